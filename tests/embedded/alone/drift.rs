//! A run whose throughput falls within its window is marked in the table and in the files.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{Server, alone};
use testing::quiet::tries;

/// What else a busy machine does may hide the fall: one of so many runs must show it.
const TRIES: usize = 6;

/// A run whose server becomes slow in the middle of the window; and the table.
fn run() -> (Value, String) {
    let server = Server::start("-d soft0");
    let mut client =
        server.client("--op write -q 2 -s 4K -D 2s --warmup 500ms --timeout 18 --quiet");
    let child = client.command.stdout(Stdio::piped()).spawn().unwrap();
    server.has_said(", run 1");
    std::thread::sleep(Duration::from_millis(1500));
    let slow = Instant::now();
    while slow.elapsed() < Duration::from_millis(1500) {
        server.stop_for(Duration::from_millis(15));
        std::thread::sleep(Duration::from_millis(5));
    }
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0));
    let run = client.json()["cases"][0]["runs"][0].clone();
    (run, String::from_utf8(ended.stdout).unwrap())
}

#[test]
fn a_server_that_becomes_slow_within_the_window_is_told() {
    let _alone = alone();
    let mut seen = Vec::new();
    for _ in tries(TRIES) {
        let (run, table) = run();
        let doubts = run["flows"][0]["window"]["doubts"].as_array().unwrap();
        let message = |doubt: &Value| doubt["message"].as_str().unwrap().to_owned();
        let drift = doubts.iter().find(|doubt| doubt["kind"] == "drift");
        assert_eq!(table.contains("drift"), drift.is_some(), "{table}");
        if drift.is_some_and(|drift| message(drift).starts_with("throughput fell by")) {
            return;
        }
        seen.push(run["flows"][0]["timeline"]["messages"].clone());
    }
    panic!("no drift in {TRIES} runs: {seen:?}");
}
