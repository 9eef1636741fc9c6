//! Workers that sleep on a completion channel lose no completion.

use crate::whole;
use testing::program::{Server, call};

#[test]
fn sleeping_workers_lose_no_completion_under_load() {
    let ops = "send,write,read,send-imm,write-imm,fetch-add,compare-swap";
    let modes = "--cq shared,per-worker,per-qp --poll event,adaptive";
    let words = format!("--op {ops} {modes} -q 24 --workers 3 -s 300 -n 60 -t 16");
    whole(&words, 42);
}

#[test]
fn both_directions_sleep_in_two_processes() {
    let server = Server::embedded("-d soft0");
    let ended = server.call(
        "-b --op send,write,read --cq shared,per-qp --poll event,adaptive -q 3 --workers 2 -s 5000 \
         -n 100 --timeout 18 --warmup 20ms --verify --quiet",
    ).is_whole(12);
    for case in ended.cases() {
        let poll = case["config"]["poll"].as_str().unwrap();
        assert!(case["id"].as_str().unwrap().ends_with(poll), "{case}");
    }
    server.is_idle();
    assert!(!server.end().contains("ended early"));
}

/// Packets are late, so workers do sleep when they come, and nobody polls the device. A packet that only a retransmission
/// brings would take 9 s: none does.
#[test]
fn sleeping_workers_wake_for_what_is_late() {
    for faults in ["delay=1ms", "rx.delay=1ms"] {
        let ended = call(&format!(
            "-d soft0 --faults {faults} --op send,write,read --cq shared,per-worker --poll event,adaptive -q 3 --workers 2 \
             -t 2 -s 64 -Q 1 -n 20 --timeout 21 --warmup 0 --verify --quiet"
        )).is_whole(12);
        for case in ended.cases() {
            let counters = &case["runs"][0]["nodes"][0]["counters"];
            assert_eq!(counters["timeouts"], 0, "{case}");
        }
    }
}
