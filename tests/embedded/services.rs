//! Unreliable services: what comes is checked byte by byte, what does not is counted, and neither fails a run.

use results::model::FlowResult;
use testing::check;
use testing::program::{Ended, Server, call};

/// All flows of all cases.
fn flows(ended: &Ended) -> Vec<FlowResult> {
    ended.runs().into_iter().flat_map(|run| run.flows).collect()
}

/// Of each flow whose messages are counted some are lost.
#[track_caller]
fn some_are_lost(ended: &Ended) {
    for flow in flows(ended) {
        let is_lossy = flow.delivery.as_ref().is_none_or(|it| it.lost > 0);
        assert!(is_lossy, "{flow:?}");
    }
}

#[test]
fn every_cell_of_services_operations_cq_modes_and_poll_modes_is_verified() {
    for (words, cases) in check::cells_of_services() {
        let size = if words.contains("--service ud") { 3000 } else { 9000 };
        let how = "-q 3 --workers 2 -n 40 -t 16 --warmup 0 --verify --quiet";
        call(&format!("-d soft0 {words} -s {size} {how}")).is_whole(cases);
    }
}

#[test]
fn both_directions_sizes_by_weight_and_inline() {
    let ended = call(
        "-d soft0 -b --service uc,ud --op send,send-imm --cq shared,per-qp --size-mix 64:3,2K:1 -I 64 -l 4 -Q 2 -q 3 -t 16 \
         -n 80 --warmup 0 --verify --quiet",
    )
    .is_whole(8);
    assert_eq!(flows(&ended).len(), 16);
}

#[test]
fn lost_packets_are_counted_and_fail_nothing() {
    for (words, cases) in [
        ("--service uc --op send,send-imm,write-imm,write -s 9000", 4),
        ("--service ud --op send,send-imm -s 1000", 2),
    ] {
        let ended = call(&format!(
            "-d soft0 --faults drop=5%,seed=7 {words} -q 2 -t 16 -n 500 --warmup 0 --verify"
        ))
        .is_whole(cases);
        some_are_lost(&ended);
        ended.shows(&["lost "]);
        let writes = words.contains("write");
        assert_eq!(ended.stdout.contains("losses not known"), writes);
    }
}

#[test]
fn a_receiver_without_receives_loses_and_the_run_ends_on_quiet() {
    let ended = call(
        "-d soft0 --service uc,ud --op send -s 64 -r 1 -q 4 -t 64 -n 1000 --warmup 0 --verify --quiet",
    )
    .is_whole(2);
    some_are_lost(&ended);
}

#[test]
fn goodput_is_of_what_was_received_in_the_window() {
    let server = Server::embedded("-d soft0");
    let words = "--service uc,ud --op send -s 2K -q 2 -D 500ms --warmup 20ms --quiet";
    server.call(words).is_whole(2);
    server.is_idle();
    assert!(!server.end().contains("ended early"));
}

/// What is sent is far above this threshold; nothing of it arrives.
#[test]
fn a_threshold_is_of_what_was_received() {
    let words = "-d soft0 --faults drop=100% --service ud --op send -q 2 -n 200 --warmup 0 --fail-below 0.000001Gb";
    call(words).fails(&["1 of 1 flow fails"]);
}

/// The receiver names the sending QP of each message by its position, and checks the payload by it.
#[test]
fn a_ud_qp_sends_to_all_qps_of_the_peer() {
    let ended = call(
        "-d soft0 -b --service ud --ud-fan-out --op send,send-imm --cq shared,per-qp -q 1,5 --workers 2 -s 500 -t 16 -n 64 \
         --warmup 0 --verify --quiet",
    )
    .is_whole(8);
    assert_eq!(flows(&ended).len(), 16);
}
