//! Patterns: which nodes have a part in which runs, and whether those of a run were measured at the same time.

use std::collections::BTreeSet;

use serde_json::Value;

use testing::program::{Ended, Server, call};

fn runs(ended: &Ended) -> impl Iterator<Item = &Value> {
    ended.cases().iter().flat_map(|case| case["runs"].as_array().unwrap())
}

/// Which flows a pattern makes, its own tests state.
#[test]
fn every_pattern_moves_its_flows() {
    let patterns = "pairs,ring,incast:node1,outcast,all-to-all,loop";
    let ended = call(&format!(
        "-d soft0 --timeout 18 --nodes local:3 --pattern {patterns} -n 50 -s 1000 --verify --warmup 0"
    )).is_whole(11);
    let runs = ended.runs();
    let flows: Vec<usize> = runs.iter().map(|run| run.flows.len()).collect();
    assert_eq!(flows, [1, 1, 1, 1, 1, 1, 3, 2, 2, 6, 3]);
    for run in &runs {
        // Nodes without a flow have no part in the run.
        let ends = run.flows.iter().flat_map(|flow| [&flow.from, &flow.to]);
        let nodes = run.nodes.iter().map(|node| &node.name);
        assert_eq!(nodes.collect::<BTreeSet<_>>(), ends.collect());
    }
}

#[test]
fn windows_of_nodes_in_different_processes_are_told_on_one_clock() {
    let servers = [(); 3].map(|()| Server::embedded("-d soft0"));
    let nodes = servers.each_ref().map(|server| &*server.name).join(",");
    let ended = call(&format!(
        "--timeout 18 --nodes {nodes} --pattern ring --poll event -t 4 -D 100ms --warmup 20ms"
    ))
    .passes();
    for run in runs(&ended) {
        assert!(run["overlap"].is_f64(), "{run}");
        for node in run["nodes"].as_array().unwrap() {
            assert!(node["clock"]["uncertainty_ns"].is_u64(), "{node}");
            assert!(node["clock"]["offset_ns"].is_i64(), "{node}");
        }
    }
}

#[test]
fn windows_that_were_not_open_together_are_told() {
    // The slow node still sends when the others have long sent all: they have no delay of 20 ms a message.
    let servers = ["", "", "--faults tx.delay=20ms"]
        .map(|words| Server::embedded(&format!("-d soft0 {words}")));
    let nodes = servers.each_ref().map(|server| &*server.name);
    let ended = call(&format!(
        "--timeout 18 --nodes {} --pattern ring --op write -s 64 -t 1 -n 40 --warmup 0",
        nodes.join(",")
    ))
    .passes();
    let run = runs(&ended).next().unwrap();
    for flow in run["flows"].as_array().unwrap() {
        let doubts = flow["window"]["doubts"].as_array().unwrap();
        assert!(doubts.iter().any(|doubt| doubt["kind"] == "not_together"), "{doubts:?}");
    }
    ended.shows(&["not together"]);
}
