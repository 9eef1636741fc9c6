//! What the devices of both ends counted, and what that means.

use serde_json::Value;

use crate::program::{Ended, Program, Server, alone};

fn run(ended: &Ended) -> &Value {
    &ended.cases()[0]["runs"][0]
}

/// Events of a node, by kind.
fn count(run: &Value, node: &str, kind: &str) -> u64 {
    let events = run["path_events"].as_array().unwrap().iter();
    events
        .filter(|event| event["node"] == node && event["kind"] == kind)
        .map(|event| event["count"].as_u64().unwrap())
        .sum()
}

#[test]
fn both_ends_tell_what_their_devices_counted() {
    let _alone = alone();
    let server = Server::start("-d soft0");
    let ended = server
        .client(
            "--faults tx.drop=3%,seed=3 --op send -s 20000 -n 400 -t 32 --timeout 14 --warmup 0",
        )
        .run()
        .exits(0)
        .all_whole(1);
    let run = run(&ended);
    let own = &run["nodes"][0]["counters"];
    let peer = &run["nodes"][1]["counters"];
    // What the client loses, only the server's device can miss.
    assert!(own["fault_tx_dropped"].as_u64().unwrap() > 10, "{own}");
    assert_eq!(peer["fault_tx_dropped"], 0, "{peer}");
    let gaps = peer["out_of_sequence"].as_u64().unwrap();
    assert!(gaps > 0, "{peer}");
    assert_eq!(count(run, "server", "sequence_gap"), gaps);
    assert!(count(run, "client", "resent") > 0, "{}", run["path_events"]);
    let received = peer["packets_received"].as_u64().unwrap();
    let sent = own["packets_sent"].as_u64().unwrap();
    assert!(received * 10 > sent * 8, "{received} of {sent}");
    ended.shows(&["sequence gap", "resent"]);
}

#[test]
fn one_device_of_both_ends_is_told_once() {
    let _alone = alone();
    let ended = Program::new("-d soft0 --op write -n 10 --warmup 0 --quiet")
        .env("SOFTROCE_ADDRESS", "127.77.1.2")
        .run()
        .exits(0);
    let run = run(&ended);
    assert!(run["nodes"][0]["counters"].is_object(), "{run}");
    assert!(run["nodes"][1]["counters"].is_null(), "{run}");
}
