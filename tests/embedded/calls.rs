//! Extended posting and polling, thread domains and the device's stamps: all arrives whole whichever calls are used, and
//! what does not fit is refused.

use serde_json::Value;

use crate::number;
use testing::program::Ended;
use testing::server::call;

const CHECKED: &str = "-d soft0 --warmup 0 --verify --quiet";
const EXTENDED: &str = "--post extended --poll-api extended";

/// Runs what is sent again if it is lost.
fn run(words: &str) -> Ended {
    run_of_any_service(&format!("--timeout 18 {words}"))
}

fn run_of_any_service(words: &str) -> Ended {
    call(&format!("{CHECKED} {words}")).passes()
}

#[test]
fn every_operation_of_every_service_goes_by_extended_calls() {
    for (service, ops, cases) in [
        (
            "rc --timeout 18",
            "send,write,read,send-imm,write-imm,fetch-add,compare-swap",
            14,
        ),
        ("uc", "send,write,send-imm,write-imm", 8),
        ("ud", "send,send-imm", 4),
    ] {
        run_of_any_service(&format!(
            "{EXTENDED} --service {service} --op {ops} -q 1,5 -s 600 -n 60 -t 16 -l 4 -Q 4 -b"
        ))
        .all_whole(cases);
    }
}

#[test]
fn inline_data_lists_of_elements_and_srqs_go_by_extended_calls() {
    run(&format!(
        "{EXTENDED} --op send,send-imm,write-imm --recv-queue shared,per-qp --cq shared,per-worker,per-qp \
         --poll busy,event --workers 2 -q 6 -s 100 -I 128 -n 40 -t 8 -r 24"
    ))
    .all_whole(36);
    run(&format!(
        "{EXTENDED} --op send,write,read --sges 3 -q 3 -s 100,1000 -I 128 -n 40 -t 8"
    ))
    .all_whole(6);
    run_of_any_service(&format!(
        "{EXTENDED} --service ud --ud-fan-out --op send -q 4 -s 64 -n 40 -t 8"
    ))
    .all_whole(1);
    run(&format!(
        "{EXTENDED} --op write --spread round-robin -q 4 -s 64 -n 40 -t 8"
    ))
    .all_whole(1);
}

#[test]
fn each_call_is_chosen_alone_and_workers_have_domains() {
    run(
        "--op send,read --post legacy,extended --poll-api legacy,extended --domains usual,thread --cq per-worker,per-qp \
         --poll busy,event --workers 2 -q 4 -s 300 -n 30 -t 8",
    )
    .all_whole(64);
    run("--op send --domains thread --recv-queue shared -q 3 -s 300 -n 30 -t 8 -b").all_whole(1);
}

/// Each message is signalled, so that each completion has a stamp, a latency and a time until it was noticed.
#[test]
fn stamps_of_the_device_part_latency_from_notice() {
    let ended = run(&format!(
        "{EXTENDED} --timestamps cpu,device --op send,read -q 2 -s 64 -Q 1 -n 100 -t 8 --workers 2 --cq per-worker -b"
    ))
    .all_whole(4);
    for case in ended.cases() {
        let is_stamped = case["config"]["timestamps"] == "device";
        for flow in case["runs"][0]["flows"].as_array().unwrap() {
            assert_eq!(number(&flow["latency_ns"]["count"]), 200);
            if !is_stamped {
                assert_eq!(flow["notice_ns"], Value::Null);
                continue;
            }
            assert_eq!(number(&flow["notice_ns"]["count"]), 200);
            // Both are parts of the run, and neither is negative or of another clock.
            let window_ns = flow["window"]["seconds"].as_f64().unwrap() * 1e9;
            for part in ["latency_ns", "notice_ns"] {
                let longest_ns = number(&flow[part]["max"]) as f64;
                assert!(
                    longest_ns < window_ns,
                    "{part}: {longest_ns} of {window_ns}"
                );
            }
        }
    }
}

#[test]
fn an_open_loop_is_stamped() {
    let ended = call(&format!(
        "-d soft0 --timeout 18 --warmup 0 --quiet {EXTENDED} --timestamps device --op write --rate 2000 -q 2 -s 64 -D 300ms"
    )).passes();
    let flow = &ended.first_flow();
    let (load, notices) = (&flow["load"], number(&flow["notice_ns"]["count"]));
    assert_eq!(
        notices,
        number(&load["offered"]) - number(&load["never_sent"])
    );
    assert_eq!(notices, number(&flow["service_ns"]["count"]));
}

#[test]
fn stamps_are_for_latencies() {
    call("-n 5 --timestamps device --poll-api extended --no-latency").is_refused(&[
        "--timestamps has no effect with --no-latency: stamps end latencies",
        "leave --timestamps out",
    ]);
}
