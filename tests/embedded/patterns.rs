//! Patterns: which flows they make of nodes, in which runs, and whether those of a run were measured at the same time.

use std::collections::BTreeSet;

use serde_json::Value;

use testing::program::Ended;
use testing::server::{Server, call};

/// Each case's id, and the ways of its flows.
fn ways(ended: &Ended) -> Vec<(String, Vec<(String, String)>)> {
    let cases = ended.json()["cases"].as_array().unwrap();
    let way = |flow: &Value| {
        let name = |end: &str| flow[end].as_str().unwrap().to_owned();
        (name("from"), name("to"))
    };
    let of_case = |case: &Value| {
        let flows = case["config"]["flows"].as_array().unwrap();
        let id = case["id"].as_str().unwrap().to_owned();
        (id, flows.iter().map(way).collect())
    };
    cases.iter().map(of_case).collect()
}

fn runs(ended: &Ended) -> impl Iterator<Item = &Value> {
    let cases = ended.json()["cases"].as_array().unwrap().iter();
    cases.flat_map(|case| case["runs"].as_array().unwrap())
}

fn named(node: &Value) -> &str {
    node["name"].as_str().unwrap()
}

#[test]
fn every_pattern_moves_its_flows() {
    let patterns = "pairs,ring,incast:node1,outcast,all-to-all,loop";
    let ended = call(&format!(
        "-d soft0 --timeout 18 --nodes local:3 --pattern {patterns} -n 50 -s 1000 --verify --warmup 0"
    )).passes();
    let ways = ways(&ended);
    let flows_of = |word: &str| -> Vec<Vec<(String, String)>> {
        let cases = ways.iter().filter(|(id, _)| id.contains(word));
        cases.map(|(_, flows)| flows.clone()).collect()
    };
    let rounds = flows_of("-pairs-round");
    assert!(rounds.len() == 6 && rounds.iter().all(|flows| flows.len() == 1));
    let all: BTreeSet<_> = rounds.iter().flatten().collect();
    assert_eq!(all.len(), 6);
    let counts = ["ring", "incast:node1", "outcast", "all-to-all", "loop"]
        .map(|word| flows_of(word)[0].len());
    assert_eq!(counts, [3, 2, 2, 6, 3]);
    assert!(flows_of("incast")[0].iter().all(|(_, to)| to == "node1"));
    assert!(flows_of("loop")[0].iter().all(|(from, to)| from == to));
    for run in runs(&ended) {
        assert_eq!(run["complete"], true, "{}", run["failure"]);
        let flows = run["flows"].as_array().unwrap();
        for flow in flows {
            assert_eq!(flow["totals"]["messages"], 50);
        }
        // Nodes without a flow have no part in the run.
        let ends = flows.iter().flat_map(|flow| [&flow["from"], &flow["to"]]);
        let ends: BTreeSet<&str> = ends.map(|name| name.as_str().unwrap()).collect();
        let nodes = run["nodes"].as_array().unwrap();
        assert_eq!(nodes.iter().map(named).collect::<BTreeSet<_>>(), ends);
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
        assert!(
            doubts.iter().any(|doubt| doubt["kind"] == "not_together"),
            "{doubts:?}"
        );
    }
    ended.shows(&["not together"]);
}

#[test]
fn what_patterns_do_not_go_with_is_bad_input() {
    for (words, told) in [
        ("--nodes local:3", "no --pattern or [[flow]] between them"),
        (
            "--pattern pairs --slo p99<20us",
            "--pattern does not go together with --slo",
        ),
        (
            "--pattern pairs --op connect",
            "--pattern has no effect on --op connect",
        ),
    ] {
        call(words).is_refused(&[told]);
    }
}
