//! A slow run takes less CPU time with workers that sleep.

use std::collections::HashMap;

use serde_json::Value;

use crate::program::{Program, Server, alone};

/// CPU time of the workers of all ends that had any, for a gigabyte.
fn cpu_seconds_per_gb(run: &Value) -> f64 {
    let workers = [&run["nodes"][0]["workers"], &run["nodes"][1]["workers"]];
    let workers = workers.iter().filter_map(|list| list.as_array()).flatten();
    let seconds: f64 = workers
        .map(|worker| worker["cpu_seconds"].as_f64().unwrap())
        .sum();
    seconds / (run["flows"][0]["totals"]["bytes"].as_f64().unwrap() / 1e9)
}

#[test]
fn sleeping_takes_less_cpu_time_where_there_is_time_to_sleep() {
    let _alone = alone();
    let slow = "-d soft0 --faults rate=20M";
    let server = Server::start(slow);
    for op in ["send", "write", "read"] {
        let ended = Program::new(&format!(
            "127.0.0.1:{} {slow} --op {op} --poll busy,event,adaptive -s 16K -t 4 -r 16 -D 0.2 --warmup 0 --timeout 18 \
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
