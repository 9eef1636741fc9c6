//! Workers that sleep on a completion channel lose no completion.

use crate::program::{Program, Server, with_others};

#[test]
fn sleeping_workers_lose_no_completion_under_load() {
    let _machine = with_others();
    Program::new(
        "-d soft0 --op send,write,read,send-imm,write-imm,fetch-add,compare-swap --cq shared,per-worker,per-qp \
         --poll event,adaptive -q 2,24 --workers 3 -s 300 -n 400 -t 16 --timeout 18 --warmup 0 --verify --quiet",
    )
    .run()
    .exits(0)
    .all_whole(84);
}

#[test]
fn both_directions_sleep_in_two_processes() {
    let _machine = with_others();
    let server = Server::start("-d soft0");
    let ended = server.client(
        "-b --op send,write,read --cq shared,per-qp --poll event,adaptive -q 3 --workers 2 -s 5000 \
         -n 100 --timeout 18 --warmup 0.1s --verify --quiet",
    )
    .run()
    .exits(0)
    .all_whole(12);
    for case in ended.cases() {
        let poll = case["config"]["poll"].as_str().unwrap();
        assert!(case["id"].as_str().unwrap().ends_with(poll), "{case}");
    }
    assert!(!server.end().contains("ended early"));
}

/// Packets are late, so workers do sleep when they come, and nobody polls the device.
#[test]
fn sleeping_workers_wake_for_what_is_late() {
    let _machine = with_others();
    for faults in ["delay=1ms", "rx.delay=1ms"] {
        let ended = Program::new(&format!(
            "-d soft0 --faults {faults} --op send,write,read --cq shared,per-worker --poll event,adaptive -q 3 --workers 2 \
             -t 2 -s 64 -Q 1 -n 20 --timeout 18 --warmup 0 --verify --quiet"
        ))
        .run()
        .exits(0)
        .all_whole(12);
        for case in ended.cases() {
            let p50_ns = case["runs"][0]["flows"][0]["latency_ns"]["p50"]
                .as_u64()
                .unwrap();
            // A second is what a packet takes that only a retransmission brings.
            assert!(
                (1_000_000..300_000_000).contains(&p50_ns),
                "{p50_ns} in {case}"
            );
        }
    }
}

#[test]
fn a_servers_death_wakes_sleeping_workers() {
    let _machine = with_others();
    let mut server = Server::start("-d soft0");
    let client = server.client("--poll event -q 4 --workers 2 -D 60 --timeout 18 --warmup 0");
    let ended = std::thread::scope(|scope| {
        let client = scope.spawn(|| client.run());
        server.is_in_a_run(0);
        server.kill();
        client.join().unwrap()
    });
    let ended = ended.exits(1).says(&["its process ended or died"]);
    let run = &ended.cases()[0]["runs"][0];
    assert_eq!(run["complete"], false);
    assert!(
        run["flows"][0]["totals"]["messages"].as_u64().unwrap() > 0,
        "{run}"
    );
}
