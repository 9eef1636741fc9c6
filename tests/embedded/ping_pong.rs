//! Ping-pongs between two ends of the program: every kind answers, lost messages stop nothing, and a partner that dies ends
//! the run with what was measured.

use testing::program::{Server, call, sweep};

#[test]
fn every_operation_service_and_way_of_polling_answers() {
    let half = "latency is half of a ping-pong's round trip";
    for (words, cases, says) in [
        ("--op send,write,send-imm,write-imm -q 1,3", 8, half),
        ("--op read,fetch-add,compare-swap --verify -q 3", 3, ""),
        ("--op send,read --poll event", 2, "(1 of 2 cases)"),
        ("--op send-imm,write-imm --poll adaptive", 2, half),
        ("--op send,write --service uc -s 1", 2, half),
        ("--op send,send-imm --service ud", 2, half),
        ("--op send,write --connect cm -s 9000", 2, half),
        ("--op send --recv-queue shared -q 4 -r 8", 1, half),
        ("--op write --mr per-qp -q 4 --workers 2 --cq per-worker", 1, half),
    ] {
        let size = if words.contains("-s ") { "" } else { "-s 64" };
        let ended = call(&format!("-d soft0 --ping-pong {words} {size} -n 40 --warmup 10ms"))
            .is_whole(cases);
        ended.shows(&[says]);
        for run in ended.runs() {
            let flow = &run.flows[0];
            let latency = flow.latency_ns.as_ref().unwrap();
            let messages = 40 * flow.qps.len() as u64;
            assert_eq!((flow.totals.messages, latency.count), (messages, messages));
            assert!(flow.qps.iter().all(|qp| qp.messages == 40), "{words}");
        }
    }
}

#[test]
fn what_is_lost_is_counted_and_the_next_follows() {
    let words = "--service uc --op send,write -s 64 -q 8 -n 25 --warmup 0";
    let ended = sweep(&format!("-d soft0 --ping-pong {words} --faults drop=5%,seed=7")).is_whole(2);
    for run in ended.runs() {
        let flow = &run.flows[0];
        assert_eq!(flow.totals.messages, 200);
        // WRITEs are not counted where they come.
        if let Some(delivery) = &flow.delivery {
            // On a busy machine some answers come so late that they are not awaited any more.
            assert!(delivery.received >= 200 && delivery.lost > 0, "{flow:?}");
            assert_eq!(delivery.sent, delivery.received + delivery.lost);
        }
    }
}

#[test]
fn a_partner_that_dies_ends_it_with_what_was_measured() {
    for op in ["send", "write", "read"] {
        let server = Server::embedded("-d soft0");
        let client = server
            .call(&format!("--ping-pong --op {op} -s 64 -q 2 -D 60s --warmup 0 --timeout 18"))
            .start();
        client.has_moved(0, "measure", 0);
        server.kill();
        let ended = client.wait().exits(1).says(&["closed the connection"]);
        let run = ended.runs().remove(0);
        assert!(!run.complete && run.flows[0].totals.messages > 0, "{op}");
    }
}
