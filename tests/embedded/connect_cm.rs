//! `--connect cm` on the embedded device: QPs that meet by its connection manager carry everything that others do, in one
//! process and between two, and over a network that loses messages. What it does not go with is refused before anything
//! runs.

use serde_json::Value;

use testing::check::connects;
use testing::program::{Server, call};

#[test]
fn every_operation_by_both_ways() {
    let words =
        "-d soft0 --connect tcp,cm --op send,write,read -q 1,16 -s 4K -n 20 --warmup 0 --verify";
    let ended = call(words).is_whole(12);
    let by_cm = |case: &&Value| case["id"].as_str().unwrap().ends_with("-cm");
    assert_eq!(ended.cases().iter().filter(by_cm).count(), 6);
}

#[test]
fn with_a_server_of_another_process() {
    let server = Server::embedded("-d soft0");
    let client = server.call("--connect cm --op send,write -q 1,70 -n 10 --warmup 0");
    client.is_whole(4);
}

#[test]
fn set_up_is_measured_by_its_steps() {
    let words = "-d soft0 --op connect --connect cm -q 32 -n 3 --traffic-qps 0";
    let ended = call(words).passes();
    let cases = ended.result().cases;
    connects(&cases[0], 3);
    let connect = cases[0].runs[0].connect.as_ref().unwrap();
    assert_eq!(connect.stale_rejections, Some(0));
}

#[test]
fn lost_messages_come_again() {
    let words = "-d soft0 --faults drop=10%,seed=4 --connect cm --op write -q 8 -n 10 --warmup 0 --retry-cnt 7";
    call(words).is_whole(1);
}

#[test]
fn a_dry_run_shows_it_where_there_is_something_to_show() {
    let shown = |words: &str| call(words).passes().stdout;
    assert!(!shown("--dry-run").contains("connect "), "the usual way");
    let both = shown("--dry-run --connect tcp,cm");
    assert!(
        both.contains("connect\n") && both.contains("tcp\n") && both.contains("cm\n"),
        "{both}"
    );
    assert!(both.contains("send-shared-q1-64KiB-cm"), "{both}");
}
