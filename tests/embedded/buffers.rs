//! Shared receive queues, scatter/gather lists and the memory of messages: all arrives whole, and the result tells what it
//! took.

use serde_json::Value;

use crate::{CHECKED, number, whole};
use testing::server::call;

/// The only flow of the first run of a case.
fn flow(case: &Value) -> &Value {
    &case["runs"][0]["flows"][0]
}

#[test]
fn an_srq_feeds_all_qps_whatever_the_cqs_and_the_polling() {
    let words = "--op send,send-imm,write-imm --recv-queue shared --cq shared,per-worker,per-qp \
                 --poll busy,event,adaptive -q 16 --workers 2 -s 1000 -n 20 -t 8 -r 24";
    for case in whole(words, 27).cases() {
        let queues = &flow(case)["receive_queues"];
        let told = ["queues", "receives", "buffer_bytes"].map(|it| number(&queues[it]));
        let is_write = case["config"]["op"] == "write-imm";
        let holds = if is_write { 0 } else { 24_000 };
        assert_eq!(told, [1, 24, holds], "{}", case["id"]);
    }
}

/// As many receives as all senders can have in flight by default; a queue for each QP has as many each.
#[test]
fn receives_that_are_shared_take_less_memory_and_the_result_tells() {
    let words =
        "--op send,write --recv-queue per-qp,shared --cq shared,per-worker -q 256 --workers 2";
    let ended = whole(&format!("{words} -s 64 -n 8 -t 4"), 6);
    let cases = || ended.cases().iter();
    let of = |kind: &str| {
        let case = cases().find(|case| case["config"]["recv_queue"] == kind);
        &flow(case.unwrap())["receive_queues"]
    };
    let (own, shared) = (of("per-qp"), of("shared"));
    let each = |name: &str| [number(&own[name]), number(&shared[name])];
    assert_eq!(each("queues"), [256, 1]);
    assert_eq!(each("receives"), [256 * 512, 256 * 4]);
    let [of_own, of_shared] = each("buffer_bytes");
    assert_eq!(of_own, 128 * of_shared);
    for kind in ["allocated_bytes", "queue_bytes"] {
        let [own, shared] = each(kind);
        assert!(own > 100 * shared && shared > 0, "{kind}: {own}, {shared}");
    }
    assert_eq!(own["limit_events"], Value::Null);
    let mut writes = cases().filter(|case| case["config"]["op"] == "write");
    assert!(writes.all(|case| flow(case)["receive_queues"].is_null()));
}

#[test]
fn an_srq_that_runs_low_is_counted() {
    let ended = whole(
        "--op send -b --recv-queue shared -q 8 -s 64 -t 64 -r 16 -n 400",
        1,
    );
    let flows = ended.first_run()["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 2);
    for flow in flows {
        let events = number(&flow["receive_queues"]["limit_events"]);
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
    let words =
        "--op fetch-add,compare-swap --atomic-target shared,per-qp,spread --mr per-qp --offset 8";
    whole(&format!("{words} -q 3 -n 20 -t 4"), 6);
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
        (
            "--op send --recv-queue shared --memory 300K -q 4 -s 3000 -n 100 -t 8 -r 16",
            1,
        ),
    ] {
        whole(words, cases);
    }
    let datagrams = "-d soft0 --warmup 0 --verify --quiet --op send --service ud --memory 300K -q 2 -s 1000 -n 100 -t 8 -r 200";
    call(datagrams).is_whole(1);
}

#[test]
fn what_does_not_fit_is_one_sentence_with_what_would() {
    for (words, says) in [
        ("--size-mix 64:9", &["2 to 16 entries"][..]),
        (
            "--op write --recv-queue shared",
            &["--recv-queue has no effect", "send, send-imm or write-imm"],
        ),
        (
            "--op fetch-add --sges 2",
            &["--sges has no effect", "one piece"],
        ),
        (
            "--op fetch-add --offset 4",
            &["--offset", "8 bytes at a multiple of 8, and 4 is not one"],
        ),
        (
            "--op send --sges 17",
            &["soft0 can do at most 16 SGEs in one WR", "lower --sges"],
        ),
        (
            "--op send --recv-queue shared -r 20000",
            &["at most 16384 receives on one SRQ", "lower --rx-depth"],
        ),
        (
            "--op write --memory 1024G",
            &["of memory", "leaves", "lower --memory"],
        ),
        (
            // More than any machine that tests run on has reserved.
            "--op write -q 64 -s 1G --pages huge",
            &["huge pages of 2 MiB", "/proc/sys/vm/nr_hugepages"],
        ),
    ] {
        call(&format!("{CHECKED} -n 5 {words}")).is_refused(says);
    }
}
