//! Patterns: which flows they make of nodes, in which runs, and that the flows of a run were measured at the same time.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::program::{Ended, Program, Server, alone, with_others};
use testing::quiet::tries;

/// Each case's id, and the ways of its flows.
fn ways(ended: &Ended) -> Vec<(String, Vec<(String, String)>)> {
    let cases = ended.json["cases"].as_array().unwrap();
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
    let cases = ended.json["cases"].as_array().unwrap().iter();
    cases.flat_map(|case| case["runs"].as_array().unwrap())
}

fn named(node: &Value) -> &str {
    node["name"].as_str().unwrap()
}

#[test]
fn every_pattern_moves_its_flows() {
    let _machine = with_others();
    let patterns = "pairs,ring,incast:node1,outcast,all-to-all,loop";
    let ended = Program::new(&format!(
        "-d soft0 --timeout 18 --nodes local:3 --pattern {patterns} -n 50 -s 1000 --verify --warmup 0"
    ))
    .run()
    .exits(0);
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
fn windows_of_nodes_in_different_processes_are_open_together() {
    let _machine = with_others();
    let servers = [(); 3].map(|()| Server::start("-d soft0"));
    let nodes = servers.each_ref().map(Server::name);
    let ended = Program::new(&format!(
        "--timeout 18 --nodes {} --pattern ring --poll event -t 4 -D 2s --warmup 200ms",
        nodes.join(",")
    ))
    .run()
    .exits(0);
    for run in runs(&ended) {
        let overlap = run["overlap"].as_f64().unwrap();
        assert!((0.95..=1.0).contains(&overlap), "{overlap}");
        for node in run["nodes"].as_array().unwrap() {
            let uncertainty_ns = node["clock"]["uncertainty_ns"].as_u64().unwrap();
            assert!((1..100_000_000).contains(&uncertainty_ns), "{node}");
            assert!(node["clock"]["offset_ns"].is_i64());
        }
    }
}

#[test]
fn windows_that_were_not_open_together_are_told() {
    let _machine = with_others();
    // The slow node sends as many messages as the others in ten times the time.
    let servers =
        ["", "", "--faults tx.rate=10M"].map(|words| Server::start(&format!("-d soft0 {words}")));
    let nodes = servers.each_ref().map(Server::name);
    let ended = Program::new(&format!(
        "--timeout 18 --nodes {} --pattern ring --op write -s 4K -t 4 -n 300 --warmup 0",
        nodes.join(",")
    ))
    .run()
    .exits(0);
    let run = runs(&ended).next().unwrap();
    assert!(
        run["overlap"].as_f64().unwrap() < 0.95,
        "{}",
        run["overlap"]
    );
    for flow in run["flows"].as_array().unwrap() {
        let doubts = flow["window"]["doubts"].as_array().unwrap();
        assert!(
            doubts.iter().any(|doubt| doubt["kind"] == "not_together"),
            "{doubts:?}"
        );
    }
    ended.shows(&["not together"]);
}

/// Bits a second of each flow, by its ends.
fn rates(ended: &Ended) -> BTreeMap<(String, String), f64> {
    let flows = runs(ended).flat_map(|run| run["flows"].as_array().unwrap());
    let told = |flow: &Value| {
        let name = |end: &str| flow[end].as_str().unwrap().to_owned();
        let rate = flow["totals"]["gbit_per_s"].as_f64().unwrap();
        ((name("from"), name("to")), rate)
    };
    flows.map(told).collect()
}

#[test]
fn a_pair_has_in_the_rounds_what_it_has_alone() {
    let _machine = alone();
    // Devices that send at rates of their own, so that no core is what the pairs share.
    let servers = ["10M", "20M", "30M", "40M"]
        .map(|rate| Server::start(&format!("-d soft0 --faults tx.rate={rate}")));
    let nodes = servers.each_ref().map(Server::name);
    let pairs = |nodes: &[String]| {
        let nodes = nodes.join(",");
        let words = format!(
            "--timeout 18 --nodes {nodes} --pattern pairs --op write -s 4K -t 8 --poll event -D 1s --warmup 200ms"
        );
        rates(&Program::new(&words).run().exits(0))
    };
    // A busy machine takes from one of two runs, or from the other.
    let mut seen = Vec::new();
    let is_alike = tries(4).any(|_| {
        let rounds = pairs(&nodes);
        assert_eq!(rounds.len(), 12);
        let mut ratios = Vec::new();
        for two in [[0, 3], [1, 2]] {
            let alone = pairs(&two.map(|index| nodes[index].clone()));
            assert_eq!(alone.len(), 2);
            ratios.extend(alone.iter().map(|(ends, rate)| rounds[ends] / rate));
        }
        let is_alike = ratios.iter().all(|ratio| (0.9..1.1).contains(ratio));
        seen.push(ratios);
        is_alike
    });
    assert!(is_alike, "{seen:?}");
}

#[test]
fn what_nodes_and_patterns_cannot_do_is_one_sentence_that_names_it() {
    for (words, told) in [
        (
            "--nodes local:3 --pattern bisection",
            "an even number of nodes, and there are 3",
        ),
        (
            "--nodes local:3 --pattern incast --fan-in 3",
            "--fan-in 3 is more than the 2 other nodes",
        ),
        (
            "--nodes local:3 --pattern incast:node3",
            "no node is named `node3`",
        ),
        ("--nodes a,a --pattern ring", "a is listed twice"),
        (
            "--nodes a,b[1-2 --pattern ring",
            "`b[1-2` has a bracket that does not close",
        ),
        ("--nodes a --pattern ring", "2 to 4096 nodes, not 1"),
        (
            "--nodes a,b/ --pattern ring",
            "a device such as mlx5_1 follows the slash",
        ),
        (
            "--nodes @/nowhere/nodes --pattern ring",
            "cannot read the list of nodes /nowhere/nodes",
        ),
        ("--nodes local:3", "no --pattern or [[flow]] between them"),
        ("--nodes local:65 --pattern all-to-all", "4160 flows"),
        (
            "--pattern pairs --slo p99<20us",
            "--pattern does not go together with --slo",
        ),
        (
            "--pattern pairs --op connect",
            "--pattern has no effect on --op connect",
        ),
    ] {
        let ended = Program::new(words).run().exits(2);
        ended.says(&[told]);
    }
}
