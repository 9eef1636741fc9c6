//! Unreliable services: what comes is checked byte by byte, what does not is counted, and neither fails a run.

use serde_json::Value;

use crate::program::{Ended, Program, Server, alone, number, with_others};
use testing::cells;

/// Each flow of each case, with the case's settings.
fn flows(ended: &Ended) -> impl Iterator<Item = (&Value, &Value)> {
    ended.cases().iter().flat_map(|case| {
        let flows = case["runs"][0]["flows"].as_array().unwrap();
        flows.iter().map(move |flow| (&case["config"], flow))
    })
}

/// All runs are whole: every message is either received or lost, and some are received. Losses are told of each QP.
fn accounts_for_all(ended: Ended, cases: usize) -> Ended {
    let ended = ended.exits(0).all_whole(cases);
    for (config, flow) in flows(&ended) {
        let delivery = &flow["delivery"];
        let lost_of_qps = flow["qps"].as_array().unwrap();
        let lost_of_qps: Option<u64> = lost_of_qps.iter().map(|qp| qp["lost"].as_u64()).sum();
        let receives = ["send", "send-imm", "write-imm"].map(Value::from);
        if config["service"] == "rc" || !receives.contains(&config["op"]) {
            assert!(delivery.is_null(), "{config}: {delivery}");
            assert_eq!(lost_of_qps, None, "{config}");
            continue;
        }
        let sent = number(&flow["totals"]["messages"]);
        let [of_all, received, lost] = ["sent", "received", "lost"].map(|it| number(&delivery[it]));
        assert_eq!((of_all, received + lost), (sent, sent), "{config}");
        assert!(received > 0, "{config}: all {sent} messages are lost");
        let is_told = config["ud_fan_out"] == false;
        assert_eq!(lost_of_qps, is_told.then_some(lost), "{config}");
    }
    ended
}

#[test]
fn every_cell_of_services_operations_cq_modes_and_poll_modes_is_verified() {
    let _machine = with_others();
    for (words, cases) in cells::of_services() {
        let size = if words.contains("--service ud") {
            "3000"
        } else {
            "9000"
        };
        let ended = Program::new(&format!(
            "-d soft0 {words} -q 3 --workers 2 -s {size} -n 40 -t 16 --warmup 0 --verify --quiet"
        ))
        .run();
        accounts_for_all(ended, cases);
    }
}

#[test]
fn both_directions_sizes_by_weight_and_inline() {
    let _machine = with_others();
    let ended = Program::new(
        "-d soft0 -b --service uc,ud --op send,send-imm --cq shared,per-qp --size-mix 64:3,2K:1 -I 64 -l 4 -Q 2 -q 3 -t 16 \
         -n 80 --warmup 0 --verify --quiet",
    )
    .run();
    assert_eq!(flows(&accounts_for_all(ended, 8)).count(), 16);
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
        .run();
        let ended = accounts_for_all(ended, cases);
        for (config, flow) in flows(&ended) {
            let is_counted = config["op"] != "write";
            let lost = &flow["delivery"]["lost"];
            assert!(!is_counted || number(lost) > 0, "{flow}");
        }
        ended.shows(&["lost ", ", sent "]);
        let writes = words.contains("write");
        assert_eq!(ended.stdout.contains("losses not known"), writes);
    }
}

#[test]
fn a_receiver_without_receives_loses_and_the_run_ends_on_quiet() {
    let _machine = alone();
    let ended = Program::new(
        "-d soft0 --service uc,ud --op send -s 64 -r 1 -q 4 -t 64 -n 5000 --warmup 0 --verify --quiet",
    )
    .run();
    for (config, flow) in flows(&accounts_for_all(ended, 2)) {
        assert!(number(&flow["delivery"]["lost"]) > 0, "{config}: {flow}");
    }
}

#[test]
fn goodput_is_of_what_was_received_in_the_window() {
    let _machine = alone();
    let server = Server::start("-d soft0");
    let ended = server
        .client("--service uc,ud --op send -s 2K -q 2 -D 500ms --warmup 100ms --quiet")
        .run()
        .exits(0);
    for (_, flow) in flows(&ended) {
        let received = &flow["received"];
        let seconds = received["window_seconds"].as_f64().unwrap();
        for (count, unit, goodput) in [
            ("bytes", 8e-9, "goodput_gbit_per_s"),
            ("messages", 1e-6, "goodput_mmsg_per_s"),
        ] {
            let expected = number(&received[count]) as f64 * unit / seconds;
            let told = flow["delivery"][goodput].as_f64().unwrap();
            assert!(
                expected > 0.0 && (told / expected - 1.0).abs() < 1e-9,
                "{goodput}: {flow}"
            );
        }
    }
    assert!(!server.end().contains("ended early"));
}

/// Nine of ten messages are lost: what was sent is above the threshold, and what came below.
#[test]
fn a_threshold_is_of_what_was_received() {
    let _machine = alone();
    let words = "-d soft0 --faults drop=90%,seed=3 --service ud --op send -q 2 -n 5000 --warmup 0";
    let free = Program::new(words).run().exits(0);
    let (_, flow) = flows(&free).next().unwrap();
    let sent = flow["totals"]["gbit_per_s"].as_f64().unwrap();
    let goodput = flow["delivery"]["goodput_gbit_per_s"].as_f64().unwrap();
    assert!(goodput < 0.2 * sent && goodput > 0.0, "{flow}");
    let least = (sent * goodput).sqrt();
    let said = Program::new(&format!("{words} --fail-below {least:.6}Gb")).run();
    said.exits(1).says(&["1 of 1 flow fails"]);
}

/// The receiver names the sending QP of each message by its position, and checks the payload by it.
#[test]
fn a_ud_qp_sends_to_all_qps_of_the_peer() {
    let _machine = with_others();
    let ended = Program::new(
        "-d soft0 -b --service ud --ud-fan-out --op send,send-imm --cq shared,per-qp -q 1,5 --workers 2 -s 500 -t 16 -n 64 \
         --warmup 0 --verify --quiet",
    )
    .run();
    assert_eq!(flows(&accounts_for_all(ended, 8)).count(), 16);
}
