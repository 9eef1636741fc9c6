//! Workers that sleep on a completion channel: no completion is lost, and a slow run takes less CPU time.

use std::collections::HashMap;

use serde_json::Value;

use crate::program::{Program, Server, alone, with_others};

#[test]
fn sleeping_workers_lose_no_completion_under_load() {
    let _machine = with_others();
    Program::new(
        "-d soft0 --op send,write,read --cq shared,per-worker,per-qp --poll event,adaptive -q 2,24 -w 3 -s 300 \
         -n 400 -t 16 --timeout 18 --warmup 0 --verify --quiet",
    )
    .run()
    .exits(0)
    .all_whole(36);
}

#[test]
fn both_directions_sleep_in_two_processes() {
    let _machine = with_others();
    let server = Server::start("-d soft0");
    let ended = Program::new(&format!(
        "127.0.0.1:{} -d soft0 -b --op send,write,read --cq shared,per-qp --poll event,adaptive -q 3 -w 2 -s 5000 \
         -n 100 --timeout 18 --warmup 0.1s --verify --quiet",
        server.port
    ))
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
    let _alone = alone();
    for faults in ["delay=1ms", "rx.delay=1ms"] {
        let ended = Program::new(&format!(
            "-d soft0 --faults {faults} --op send,write,read --cq shared,per-worker --poll event,adaptive -q 3 -w 2 \
             -t 2 -s 64 -Q 1 -n 20 --timeout 18 --warmup 0 --verify --quiet"
        ))
        .run()
        .exits(0)
        .all_whole(12);
        for case in ended.cases() {
            let p50_ns = case["runs"][0]["latency_ns"]["p50"].as_u64().unwrap();
            // A second is what a packet takes that only a retransmission brings.
            assert!(
                (1_000_000..300_000_000).contains(&p50_ns),
                "{p50_ns} in {case}"
            );
        }
    }
}

/// Packets are lost, so the device's timers must wake them.
#[test]
fn sleeping_workers_wake_for_what_was_lost() {
    let _alone = alone();
    Program::new(
        "-d soft0 --faults drop=3%,reorder=1%,seed=3 --op send,write,read --cq shared,per-qp --poll event,adaptive -q 3 \
         -w 2 -t 4 -s 64 -Q 1 -n 60 --timeout 12 --warmup 0 --verify --quiet",
    )
    .run()
    .exits(0)
    .all_whole(12);
}

/// CPU time of the workers of all ends that had any, for a gigabyte.
fn cpu_seconds_per_gb(run: &Value) -> f64 {
    let workers = [&run["workers"], &run["receiver"]["workers"]];
    let workers = workers.iter().filter_map(|list| list.as_array()).flatten();
    let seconds: f64 = workers
        .map(|worker| worker["cpu_seconds"].as_f64().unwrap())
        .sum();
    seconds / (run["totals"]["bytes"].as_f64().unwrap() / 1e9)
}

#[test]
fn sleeping_takes_less_cpu_time_where_there_is_time_to_sleep() {
    let _alone = alone();
    let slow = "-d soft0 --faults rate=20M";
    let server = Server::start(slow);
    for op in ["send", "write", "read"] {
        let ended = Program::new(&format!(
            "127.0.0.1:{} {slow} --op {op} --poll busy,event,adaptive -s 16K -t 4 -r 16 -D 0.5 --warmup 0 --timeout 18 \
             --quiet",
            server.port
        ))
        .run()
        .exits(0);
        let costs: HashMap<&str, f64> = ended
            .cases()
            .iter()
            .map(|case| {
                let run = &case["runs"][0];
                assert_eq!(run["complete"], true, "{case}");
                let poll = case["config"]["poll"].as_str().unwrap();
                (poll, cpu_seconds_per_gb(run))
            })
            .collect();
        assert!(costs["event"] < costs["busy"] / 2.0, "{op}: {costs:?}");
        assert!(costs["adaptive"] < costs["busy"] / 2.0, "{op}: {costs:?}");
        // Other words may stand beside it, such as what was received within the window.
        let is_marked = |line: &str, poll: &str| line.split([' ', ',']).any(|word| word == poll);
        let marks = |poll: &str| {
            let lines = ended.stdout.lines();
            lines.filter(|line| is_marked(line, poll)).count()
        };
        assert_eq!(
            (marks("event"), marks("adaptive")),
            (1, 1),
            "{}",
            ended.stdout
        );
    }
}

#[test]
fn a_servers_death_wakes_sleeping_workers() {
    let _machine = with_others();
    let mut server = Server::start("-d soft0");
    let words = format!(
        "127.0.0.1:{} -d soft0 --poll event -q 4 -w 2 -D 60 --timeout 18 --warmup 0",
        server.port
    );
    let ended = std::thread::scope(|scope| {
        let client = scope.spawn(|| Program::new(&words).run());
        server.is_in_a_run(0);
        server.kill();
        client.join().unwrap()
    });
    let ended = ended.exits(1).says(&["its process ended or died"]);
    let run = &ended.cases()[0]["runs"][0];
    assert_eq!(run["complete"], false);
    assert!(run["totals"]["messages"].as_u64().unwrap() > 0, "{run}");
}
