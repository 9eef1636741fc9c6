//! `rocebench why` that ends early keeps what it found.

use serde_json::Value;
use testing::process::{Ended, Program, Signal};
use testing::program::{Server, call};

const SLOW: &str = "-d soft0 --faults delay=3ms --op write -q 1 -t 4 -s 64K --timeout 18";

/// What is known of the case when something ends the first experiment.
fn ended_in_an_experiment(program: Program, end: impl FnOnce(&Program), says: &str) -> Value {
    program.has_said("trying in 8 rounds");
    end(&program);
    let ended: Ended = program.wait().exits(1).says(&[says]);
    let case = &ended.cases()[0];
    assert_eq!(case["runs"].as_array().map(Vec::len), Some(2), "{case}");
    case["diagnosis"].clone()
}

#[test]
fn an_interrupted_experiment_keeps_what_was_found() {
    let program = call(&format!("why {SLOW}")).start();
    let interrupt = |it: &Program| it.signal(Signal::Interrupt);
    let diagnosis = ended_in_an_experiment(program, interrupt, "interrupted");
    assert_eq!(diagnosis["ended_by"], "it was interrupted", "{diagnosis}");
    assert!(diagnosis["value"].as_f64() > Some(0.0), "{diagnosis}");
}

#[test]
fn a_node_that_dies_ends_it_and_what_was_found_is_kept() {
    let server = Server::embedded("-d soft0");
    let program = call(&format!("why {} {SLOW}", server.name)).start();
    let diagnosis = ended_in_an_experiment(program, |_| server.kill(), "no further run");
    assert!(diagnosis["ended_by"].is_string(), "{diagnosis}");
    assert!(diagnosis["value"].as_f64() > Some(0.0), "{diagnosis}");
}
