//! `mesh --quick`: pairs in short rounds, and what looks slow measured again.

use serde_json::Value;
use testing::server::{Server, call};

#[test]
fn rounds_over_two_rails_have_flows_over_both() {
    let words = "mesh --quick --nodes local:3 -d soft[0-1] --timeout 18 --op write -s 512 -q 1 -t 4 --workers 2 -n 99 --warmup 0";
    let ended = call(words).passes();
    let runs = ended.runs();
    assert!(runs.len() >= 6 && runs.iter().all(|run| run.flows.len() == 2));
}

/// Packets are lost however busy the machine is; that a slow node is named is shown where no machine has a say, in
/// simulated rounds.
#[test]
fn the_node_that_loses_packets_is_named_by_them() {
    let faults = ["rate=8M", "rate=8M,drop=4%", "rate=8M", "rate=8M"];
    let servers = faults.map(|faults| Server::embedded(&format!("-d soft0 --faults {faults}")));
    let names = servers.each_ref().map(|it| &*it.name);
    let ended = call(&format!(
        "mesh --quick --nodes {} --timeout 18 --op write -s 512 -q 1 -t 4 --poll event -D 400ms --warmup 50ms",
        names.join(",")
    ))
    .passes();
    assert!((6..=22).contains(&ended.cases().len()));
    let findings = ended.json()["findings"].as_array().unwrap().clone();
    let is_it = |it: &Value| {
        it["finding"] == "lossy" && it["nodes"].as_array().unwrap().contains(&names[1].into())
    };
    assert!(findings.iter().any(is_it), "{findings:?}");
}
