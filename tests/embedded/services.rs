//! Unreliable services: what comes is checked byte by byte, what does not is counted, and neither fails a run.

use serde_json::Value;

use crate::program::{Ended, Program, Server, alone, with_others};

/// Of each flow of each case: its settings, its totals and its delivery.
fn flows(ended: &Ended) -> Vec<(&Value, &Value, &Value)> {
    let mut all = Vec::new();
    for case in ended.cases() {
        let run = &case["runs"][0];
        assert_eq!(run["complete"], true, "{case}");
        for flow in run["flows"].as_array().unwrap() {
            assert_eq!(flow["totals"]["errors"], 0, "{case}");
            all.push((&case["config"], &flow["totals"], &flow["delivery"]));
        }
    }
    all
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

/// Every message is either received or lost, and some are received.
fn accounts_for_all(ended: &Ended) {
    for (config, totals, delivery) in flows(ended) {
        let wanted = number(&config["qps"]) * number(&config["iterations_per_qp"]);
        assert_eq!(totals["messages"], wanted, "{config}");
        if config["op"] == "write" || config["service"] == "rc" {
            assert!(delivery.is_null(), "{config}: {delivery}");
            continue;
        }
        let [sent, received, lost] = ["sent", "received", "lost"].map(|it| number(&delivery[it]));
        assert_eq!((sent, received + lost), (wanted, wanted), "{config}");
        assert!(received > 0, "{config}: all {sent} messages are lost");
    }
}

#[test]
fn every_operation_service_cq_mode_and_poll_mode_is_verified() {
    let _machine = with_others();
    for (services, size, cases) in [
        (
            "--service rc,uc --op send,write,send-imm,write-imm",
            9000,
            72,
        ),
        ("--service ud --op send,send-imm", 3000, 18),
    ] {
        let ended = Program::new(&format!(
            "-d soft0 {services} --cq shared,per-worker,per-qp --poll busy,event,adaptive -q 3 --workers 2 -s {size} -n 60 \
             -t 16 --warmup 0 --verify --quiet"
        ))
        .run()
        .exits(0);
        assert_eq!(ended.cases().len(), cases);
        accounts_for_all(&ended);
    }
}

#[test]
fn both_directions_sizes_by_weight_and_inline() {
    let _machine = with_others();
    let ended = Program::new(
        "-d soft0 -b --service uc,ud --op send,send-imm --cq shared,per-qp --size-mix 64:3,2K:1 -I 64 -l 4 -Q 2 -q 3 -t 16 \
         -n 80 --warmup 0 --verify --quiet",
    )
    .run()
    .exits(0);
    assert_eq!(flows(&ended).len(), 16);
    accounts_for_all(&ended);
}

#[test]
fn lost_packets_are_counted_and_fail_nothing() {
    let _machine = alone();
    for (words, cases) in [
        ("--service uc --op send,send-imm,write-imm,write -s 9000", 4),
        ("--service ud --op send,send-imm -s 1000", 2),
    ] {
        let ended = Program::new(&format!(
            "-d soft0 --faults drop=5%,seed=7 {words} -q 2 -t 16 -n 500 --warmup 0 --verify"
        ))
        .run()
        .exits(0);
        assert_eq!(ended.cases().len(), cases);
        accounts_for_all(&ended);
        for (config, _, delivery) in flows(&ended) {
            let may_lose = config["op"] != "write";
            assert!(!may_lose || number(&delivery["lost"]) > 0, "{delivery}");
        }
        ended.shows(&["lost ", "goodput "]);
    }
}

#[test]
fn a_receiver_without_receives_loses_and_the_run_ends_on_quiet() {
    let _machine = alone();
    let ended = Program::new(
        "-d soft0 --service uc,ud --op send -s 64 -r 1 -q 4 -t 64 -n 5000 --warmup 0 --verify --quiet",
    )
    .run()
    .exits(0);
    accounts_for_all(&ended);
    for (config, _, delivery) in flows(&ended) {
        assert!(number(&delivery["lost"]) > 0, "{config}: {delivery}");
    }
}

#[test]
fn goodput_is_of_what_was_received_in_the_window() {
    let _machine = alone();
    let server = Server::start("-d soft0");
    let ended = Program::new(&format!(
        "127.0.0.1:{} -d soft0 --service uc,ud --op send -s 2K -q 2 -D 500ms --warmup 100ms --quiet",
        server.port
    ))
    .run()
    .exits(0);
    for case in ended.cases() {
        let flow = &case["runs"][0]["flows"][0];
        let received = &flow["received"];
        let seconds = received["window_seconds"].as_f64().unwrap();
        let expected = number(&received["bytes"]) as f64 * 8e-9 / seconds;
        let goodput = flow["delivery"]["goodput_gbit_per_s"].as_f64().unwrap();
        assert!(
            expected > 0.0 && (goodput / expected - 1.0).abs() < 1e-9,
            "{flow}"
        );
    }
    assert!(!server.end().contains("ended early"));
}

/// The receiver names the sending QP of each message by its position, and checks the payload by it.
#[test]
fn a_ud_qp_sends_to_all_qps_of_the_peer() {
    let _machine = with_others();
    let ended = Program::new(
        "-d soft0 -b --service ud --ud-fan-out --op send,send-imm --cq shared,per-qp -q 1,5 --workers 2 -s 500 -t 16 -n 64 \
         --warmup 0 --verify --quiet",
    )
    .run()
    .exits(0);
    assert_eq!(flows(&ended).len(), 16);
    accounts_for_all(&ended);
}
