//! `rocebench why` that ends early keeps what it found.

use serde_json::Value;
use testing::process::{Ended, Program, STEP, Signal};
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
fn in_lock_step_a_flow_of_the_node_that_holds_up_the_others_is_explained() {
    let faults = "node[0-3]:rate=20M;node2:rate=200K";
    let lock_step = "--pattern ring --lock-step -s 2K -D 2s --warmup 500ms --timeout 18 --why";
    let program =
        call(&format!("mesh --nodes local:4 -d soft0 --faults {faults} {lock_step}")).start();
    program.await_line(0, "why: the slowest flow is that", STEP * 2);
    // It may have been explained by now.
    program.signal(Signal::Interrupt);
    let ended = program.wait().says(&["node2"]);
    let case = &ended.cases()[0];
    assert!(case["runs"][0]["lock_step"].is_object(), "{case}");
    assert_eq!(case["diagnosis"]["metric"], "gbit_per_s", "{case}");
}

#[test]
fn a_node_that_dies_ends_it_and_what_was_found_is_kept() {
    let server = Server::embedded("-d soft0");
    let program = call(&format!("why {} {SLOW}", server.name)).start();
    let diagnosis = ended_in_an_experiment(program, |_| server.kill(), "no further run");
    assert!(diagnosis["ended_by"].is_string(), "{diagnosis}");
    assert!(diagnosis["value"].as_f64() > Some(0.0), "{diagnosis}");
}
