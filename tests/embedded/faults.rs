//! Packets that are lost, doubled, damaged or late, and networks that lose all: nothing is lost over it, or it is said.

use serde_json::Value;
use testing::server::{Server, call};

#[test]
fn faults_that_are_none_are_bad_input() {
    for (words, says) in [
        ("--faults drop=5", "from 0% to 100%"),
        (
            "--faults dorp=5%",
            "`dorp=5%` is not a fault: faults are seed, peer, down, drop",
        ),
        ("serve --faults delay=5", "`delay=5` is not a time"),
    ] {
        call(words).is_refused(&["--faults", says]);
    }
    call("-n 1")
        .env("SOFTROCE_FAULTS", "drop=x")
        .is_refused(&["SOFTROCE_FAULTS", "`drop=x` is not a probability"]);
}

#[test]
fn a_network_that_swallows_all_ends_the_run() {
    call("-d soft0 --faults tx.drop=100% --op write -n 10 --timeout 12 --retry-cnt 3 --warmup 0")
        .fails(&["RETRY_EXC_ERR (12)", "hint: check the link"]);
}

#[test]
fn a_window_without_a_message_is_told_without_a_long_drain() {
    // 1.3 s a message, and three minutes for all that are posted.
    call("-d soft0 -s 16M -D 20ms --warmup 0 --faults rate=100M")
        .fails(&["no message completed in the window of"]);
}

#[test]
fn a_cq_that_overflows_is_told_as_such() {
    call("-d soft0 --op write,send --cq shared,per-qp --cq-depth 2 -q 4 -Q 1 -n 1000 --warmup 0")
        .fails(&[
            "a CQ of soft0 with 2 entries overflowed: completions are lost",
            "hint: leave --cq-depth out",
        ]);
}

/// What the device is to survive.
const FAULTS: &str = "drop=5%,duplicate=1%,reorder=1%,corrupt=0.1%";

#[test]
fn faults_lose_and_spoil_nothing() {
    // Both ends may have one address.
    let environments = [("SOFTROCE_ADDRESS", "127.77.1.1"), ("UNUSED", "")];
    for (seed, (name, value)) in environments.iter().enumerate() {
        let words = format!(
            "-d soft0 --faults {FAULTS},seed={seed} --op send,write,read -q 3 -s 100,20000 -n 40 -t 16 --timeout 14 \
             --warmup 0 --verify --quiet"
        );
        let ended = call(&words).env(name, value).is_whole(6);
        let cases = ended.cases().iter();
        let counters = cases.map(|case| &case["runs"][0]["nodes"][0]["counters"]);
        let dropped: u64 = counters
            .filter_map(|it| it["fault_tx_dropped"].as_u64())
            .sum();
        assert!(dropped > 10, "{dropped} dropped");
        let device = &ended.json()["nodes"][0]["devices"][0];
        let recorded = device["faults"].as_str().unwrap();
        let start = format!("seed={seed},drop=0.05");
        assert!(recorded.starts_with(&start), "{recorded}");
        assert_eq!(device["gid"] == "::ffff:127.77.1.1", seed == 0);
    }
}

#[test]
fn a_server_has_faults_of_its_own() {
    let server = Server::embedded(&format!("-d soft0 --faults {FAULTS},seed=9"));
    let words =
        "-b --op send,write,read -q 2 -n 60 -s 5000 --timeout 14 --warmup 0 --verify --quiet";
    let ended = server.call(words).is_whole(3);
    let faults = |node: usize| &ended.json()["nodes"][node]["devices"][0]["faults"];
    assert_eq!(faults(0), &Value::Null);
    let recorded = faults(1).as_str().unwrap();
    assert!(recorded.starts_with("seed=9,"), "{recorded}");
}

/// Packets are lost, so the device's timers must wake them.
#[test]
fn sleeping_workers_wake_for_what_was_lost() {
    let words = "-d soft0 --faults drop=3%,reorder=1%,seed=3 --op send,write,read --cq shared,per-qp --poll event,adaptive \
         -q 3 --workers 2 -t 4 -s 64 -Q 1 -n 60 --timeout 12 --warmup 0 --verify --quiet";
    call(words).is_whole(12);
}

/// What a device dropped, which only the other end's can miss.
#[test]
fn both_ends_tell_what_their_devices_counted() {
    let server = Server::embedded("-d soft0");
    let words =
        "--faults tx.drop=3%,seed=3 --op send -s 20000 -n 400 -t 32 --timeout 14 --warmup 0";
    let ended = server.call(words).is_whole(1);
    let run = ended.first_run();
    let [own, peer] = [0, 1].map(|node| &run["nodes"][node]["counters"]);
    assert!(own["fault_tx_dropped"].as_u64() > Some(10), "{own}");
    assert_eq!(peer["fault_tx_dropped"], 0, "{peer}");
    let count = |node: &str, kind: &str| -> u64 {
        let events = run["path_events"].as_array().unwrap().iter();
        let events = events.filter(|event| event["node"] == node && event["kind"] == kind);
        events.filter_map(|event| event["count"].as_u64()).sum()
    };
    let gaps = peer["out_of_sequence"].as_u64().unwrap();
    assert!(gaps > 0, "{peer}");
    assert_eq!(count("server", "sequence_gap"), gaps);
    assert!(count("client", "resent") > 0, "{}", run["path_events"]);
    assert!(peer["packets_received"].as_u64() > Some(0), "{peer}");
    ended.shows(&["sequence gap", "resent"]);
}

#[test]
fn one_device_of_both_ends_is_told_once() {
    let words = "-d soft0 --op write -n 10 --warmup 0 --quiet";
    let ended = call(words).env("SOFTROCE_ADDRESS", "127.77.1.2").run();
    let ended = ended.exits(0);
    let nodes = &ended.first_run()["nodes"];
    assert!(nodes[0]["counters"].is_object(), "{nodes}");
    assert!(nodes[1]["counters"].is_null(), "{nodes}");
}
