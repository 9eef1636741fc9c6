//! A perftest that hangs, crashes or prints nonsense fails its pair, with what it printed, and nothing else.

use serde_json::Value;

use crate::fake::Fake;
use testing::embedded_device::place_beside_the_program;
use testing::process::{Call, Ended, Signal};
use testing::program::call;

const SWEEP: &str = "-d soft0 -s 64 -D 500ms --warmup 0 --timeout 18 --against perftest";

/// A sweep of one WRITE case with two pairs.
fn sweep(fake: &Fake, limit: &str) -> Call {
    let words = format!("{SWEEP} --op write --pairs 2 --max-pairs 2 --perftest-limit {limit}");
    call(&words).env("PATH", &fake.path())
}

/// That sweep, whose pairs fail; and the first of them.
fn failing(client: &str, limit: &str) -> (Ended, Value) {
    let fake = Fake::new("ib_write_bw", client, SERVES);
    let says = "1 of 1 comparisons with perftest failed in every round";
    let sweep = sweep(&fake, limit).env("SOFTROCE_FAULTS", "duplicate=0.1%,seed=5");
    let ended = sweep.fails(&[says]);
    fake.is_gone();
    let case = &ended.cases()[0];
    assert_eq!(case["runs"][0]["complete"], true);
    let figures = &case["comparison"]["metrics"][0];
    assert_eq!((&figures["verdict"], &figures["ratio"]), (&"unclear".into(), &Value::Null));
    let round = case["comparison"]["rounds"][0].clone();
    assert!(round["new"][0].as_f64().unwrap() > 0.0 && round["base"] == Value::Array(Vec::new()));
    (ended, round)
}

fn text<'a>(pair: &'a Value, name: &str) -> &'a str {
    pair[name].as_str().unwrap()
}

/// As the real one does.
const SERVES: &str = "exec $real \"$@\"";

#[test]
fn a_client_that_crashes_prints_nonsense_or_hangs() {
    place_beside_the_program();
    let (ended, pair) = failing("echo \"faults: $SOFTROCE_FAULTS\"; echo boom >&2; exit 3", "20s");
    assert_eq!(text(&pair, "failure"), "ib_write_bw: exit status: 3");
    let output = text(&pair, "output");
    for word in ["boom", "faults: seed=5,duplicate=0.001", "--- client", "--- server"] {
        assert!(output.contains(word), "no {word} in {output}");
    }
    ended.says(&["(round 1): ib_write_bw: exit status: 3", "its output: "]);

    let (_, without_rate) = failing(
        "echo ' #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]'; echo 64 99 0 nan nan",
        "600ms",
    );
    assert!(text(&without_rate, "failure").contains("nan"), "{without_rate}");

    let (_, hanging) = failing("sleep 1000 & echo hanging; wait", "1s");
    assert_eq!(text(&hanging, "failure"), "ib_write_bw did not end within 2 s");
    assert!(text(&hanging, "output").contains("hanging"));
}

#[test]
fn a_server_that_crashes_or_does_not_listen() {
    place_beside_the_program();
    for (server, limit, says) in [
        ("echo 'no such device'; exit 7", "20s", "exit status: 7"),
        ("echo 'no such device'; sleep 1000", "500ms", "did not listen within 0.5 s"),
    ] {
        let fake = Fake::new("ib_write_bw", "exit 0", server);
        let ended = sweep(&fake, limit).fails(&["its output: no such device"]);
        let pair = &ended.cases()[0]["comparison"]["rounds"][0];
        let failure = text(pair, "failure");
        assert_eq!(failure, format!("ib_write_bw's server: {says}"));
        assert!(text(pair, "output").contains("no such device"));
        fake.end_is_gone("server");
    }
}

#[test]
fn one_broken_program_does_not_stop_the_sweep() {
    place_beside_the_program();
    // It fails three times, which is enough; the other case is compared.
    let fake = Fake::new("ib_send_bw", "exit 1", SERVES);
    let words = "-d soft0 --op send,write -s 64 -n 1000 --warmup 0 --timeout 18 --against perftest";
    let sweep = call(&format!("{words} --pairs 4 --max-pairs 4")).env("PATH", &fake.path());
    let ended = sweep.fails(&["1 of 2 comparisons"]);
    let pairs = |case: usize| ended.cases()[case]["comparison"]["rounds"].as_array().unwrap();
    assert_eq!(pairs(0).len(), 3);
    assert_eq!(pairs(0)[1]["first"], ended.cases()[0]["comparison"]["sides"][0]);
    assert_eq!(pairs(1).len(), 4);
    assert!(pairs(1).iter().all(|pair| pair["failure"].is_null()));
    let note = &ended.cases()[0]["comparison"]["notes"][0];
    assert_eq!(note, "3 of 3 rounds failed: ib_send_bw: exit status: 1");
}

/// Waits until perftest's client hangs, and sends a signal to rocebench; how that ended.
fn signalled(how: Signal) -> Ended {
    let fake = Fake::new("ib_write_bw", "sleep 1000 & wait", SERVES);
    let sweep = format!("{SWEEP} --op write");
    let program = call(&sweep).env("PATH", &fake.path()).start();
    fake.id("client");
    program.signal(how);
    let ended = program.wait();
    fake.is_gone();
    ended
}

#[test]
fn an_interrupt_ends_both_ends_and_keeps_what_was_measured() {
    place_beside_the_program();
    let ended = signalled(Signal::Interrupt).exits(1).says(&["interrupted"]);
    let case = &ended.cases()[0];
    assert_eq!(case["runs"][0]["complete"], true);
    let round = &case["comparison"]["rounds"][0];
    assert_eq!(round["failure"], "interrupted");
    assert!(round["new"][0].as_f64().unwrap() > 0.0);
}

#[test]
fn a_death_leaves_nothing_behind() {
    place_beside_the_program();
    assert_eq!(signalled(Signal::Kill).signal, Some(9));
}
