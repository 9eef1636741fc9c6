//! Shared receive queues, scatter/gather lists and the memory of messages: all arrives whole, and the result tells what it
//! took.

use results::model::{CaseResult, ReceiveQueues};
use settings::RecvQueue;

use crate::whole;
use testing::program::call;

/// What the receives of the only flow of a case took.
fn queues(case: &CaseResult) -> Option<&ReceiveQueues> {
    case.runs[0].flows[0].receive_queues.as_ref()
}

#[test]
fn an_srq_feeds_all_qps_whatever_the_cqs_and_the_polling() {
    let words = "--op send,send-imm,write-imm --recv-queue shared --cq shared,per-worker,per-qp \
                 --poll busy,event,adaptive -q 16 --workers 2 -s 1000 -n 20 -t 8 -r 24";
    for case in whole(words, 27).result().cases {
        let queues = queues(&case).unwrap();
        let figures = (queues.queues, queues.receives, queues.buffer_bytes);
        let is_write = case.config.op.name() == "write-imm";
        let holds = if is_write { 0 } else { 24_000 };
        assert_eq!(figures, (1, 24, holds), "{}", case.id);
    }
}

/// As many receives as all senders can have in flight by default; a queue for each QP has as many each.
#[test]
fn receives_that_are_shared_take_less_memory_and_the_result_tells() {
    let words =
        "--op send,write --recv-queue per-qp,shared --cq shared,per-worker -q 256 --workers 2";
    let ended = whole(&format!("{words} -s 64 -n 8 -t 4"), 6);
    let cases = ended.result().cases;
    let of = |kind: RecvQueue| {
        let mut cases = cases.iter();
        queues(cases.find(|case| case.config.recv_queue == kind).unwrap()).unwrap()
    };
    let (own, shared) = (of(RecvQueue::PerQp), of(RecvQueue::Shared));
    assert_eq!([own.queues, shared.queues], [256, 1]);
    assert_eq!([own.receives, shared.receives], [256 * 512, 256 * 4]);
    assert_eq!(own.buffer_bytes, 128 * shared.buffer_bytes);
    for (per_qp, of_srq) in
        [(own.allocated_bytes, shared.allocated_bytes), (own.queue_bytes, shared.queue_bytes)]
    {
        assert!(per_qp > 100 * of_srq && of_srq > 0, "{per_qp}, {of_srq}");
    }
    assert_eq!(own.limit_events, None);
    let mut writes = cases.iter().filter(|case| case.config.op.name() == "write");
    assert!(writes.all(|case| queues(case).is_none()));
}

#[test]
fn an_srq_that_runs_low_is_counted() {
    let ended = whole("--op send -b --recv-queue shared -q 8 -s 64 -t 64 -r 16 -n 400", 1);
    let flows = ended.runs().remove(0).flows;
    assert_eq!(flows.len(), 2);
    for flow in flows {
        let events = flow.receive_queues.unwrap().limit_events.unwrap();
        assert!((1..1000).contains(&events), "{events}");
    }
}

#[test]
fn messages_of_several_elements_arrive_whole() {
    let words = "--op send,write,read,write-imm --recv-queue shared,per-qp --sges 1,2,4 -q 3";
    whole(&format!("{words} -s 3,9000 -n 20 -t 8 -r 16 -I 128 -b"), 36);
}

#[test]
fn every_place_in_memory_holds_whole_messages() {
    let words = "--op send,write,read --mr one,per-qp --pages usual,transparent --alignment 8,4K --offset 0,24 \
                 --recv-queue shared,per-qp -q 5 -s 5000 -n 12 -t 4 -r 8";
    whole(words, 64);
    let atomics =
        "--op fetch-add,compare-swap --atomic-target shared,per-qp,spread --mr per-qp --offset 8";
    whole(&format!("{atomics} -q 3 -n 20 -t 4"), 6);
}

/// More messages than places, so that each place is used again, by the right message.
#[test]
fn a_working_set_holds_whole_messages_in_either_order() {
    for (words, cases) in [
        (
            "--op send,send-imm,write,write-imm,read --memory 100K,1M --touch-order sequential,random -q 3 -s 9000 -n 150 \
             -t 8 -r 16 -b",
            20,
        ),
        (
            "--op send,write,read --memory 300K --touch-order random --sges 3 --mr per-qp --offset 24 --cq per-worker \
             --workers 2 -q 4 -s 3000 -n 200 -t 10 -Q 4 -l 2 -r 16",
            3,
        ),
        ("--op send --recv-queue shared --memory 300K -q 4 -s 3000 -n 100 -t 8 -r 16", 1),
    ] {
        whole(words, cases);
    }
    let datagrams = "-d soft0 --warmup 0 --verify --quiet --op send --service ud --memory 300K -q 2 -s 1000 -n 100 -t 8 -r 200";
    call(datagrams).is_whole(1);
}

/// Longer than 1 GiB, where many devices end.
#[test]
fn a_message_of_more_than_a_gib() {
    let words = "-d soft0 --op write --timeout 20 -s 1073741825 -t 1 -n 1 --warmup 0 --quiet";
    let result = call(words).is_whole(1).result();
    let flow = &result.cases[0].runs[0].flows[0];
    assert_eq!(flow.totals.bytes, (1 << 30) + 1);
}
