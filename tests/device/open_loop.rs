//! Open loops on the kernel's Soft-RoCE, between two ends: every operation, CQ mode and way to poll, with several
//! workers. How well an emulated guest keeps a schedule says nothing, so the tests ask for the account, not for that.

use report::results::model::{FlowResult, LoadVerdict};
use settings::Rate;

use testing::check;
use testing::program::words;
use testing::server::Server;

#[test]
fn every_operation_and_cq_at_a_rate() {
    let server = Server::start();
    let ended = server.sweep(&words(
        "--op send,write,read --cq shared,per-worker,per-qp --rate 500 -q 4 --workers 2 -s 64 --verify \
         -D 300ms --warmup 100ms --poll busy,event",
    ));
    let ended = ended.exits(0);
    let result = check::complete(&ended);
    assert_eq!(result.cases.len(), 18);
    for case in &result.cases {
        assert_eq!(case.config.rate, Rate::Messages(500));
    }
    server.serves_the_next();
    server.end();
}

#[test]
fn shares_of_what_the_closed_loop_moves() {
    let server = Server::start();
    let all = words("--rate 20%,60% -q 2 -s 1K -b -t 16 -D 1s --warmup 200ms");
    let ended = server.sweep(&all).exits(0);
    let result = check::complete(&ended);
    let ids: Vec<_> = result
        .cases
        .iter()
        .map(|case| case.config.rate.to_string())
        .collect();
    assert_eq!(ids, ["closed", "20%", "60%"]);
    let maximum = |flow: &FlowResult| flow.totals.mmsg_per_s.unwrap() * 1e6;
    let closed = maximum(&result.cases[0].runs[0].flows[0]);
    for (case, share) in result.cases[1..].iter().zip([0.2, 0.6]) {
        for flow in &case.runs[0].flows {
            let load = flow.load.as_ref().unwrap();
            let maximum = load.maximum_per_second.unwrap();
            assert!((maximum - closed).abs() <= closed * 1e-9, "{load:?}");
            assert!(
                (load.asked_per_second - closed * share).abs() <= 1.0,
                "{load:?}"
            );
        }
    }
    server.end();
}

#[test]
fn more_than_the_device_can_is_told() {
    let server = Server::start();
    let all = words("--rate 500k -q 1 -s 64 -t 8 -D 500ms --warmup 0");
    let ended = server.sweep(&all).exits(0);
    let result = check::complete(&ended);
    let flow = &result.cases[0].runs[0].flows[0];
    let load = flow.load.as_ref().unwrap();
    assert!(load.never_sent > load.offered / 2, "{load:?}");
    assert!(load.queue_full_messages > load.offered / 2, "{load:?}");
    assert!(load.verdict != LoadVerdict::Kept);
    server.end();
}
