//! More nodes than two: in one process, and as servers; one of them dies or falls silent.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::program::{Ended, Program, Server, said, signal, with_others};

/// Notice within 2 s; the rest is for a machine that does other things.
const NOTICED: Duration = Duration::from_secs(4);

const RING: &str = r#"
    op = "send"
    size = 1000
    qps = 2
    [[flow]]
    name = "ab"
    from = "A"
    to = "B"

    [[flow]]
    name = "bc"
    from = "B"
    to = "C"
    op = "write"

    [[flow]]
    name = "ca"
    from = "C"
    to = "A"
    op = "read"
    "#;

/// A ring of three nodes with these names.
fn ring(names: [&str; 3], words: &str) -> Program {
    let program = Program::new(&format!(
        "--timeout 18 --config ring.toml --warmup 0 --nodes {} {words}",
        match names {
            ["node0", ..] => "local:3 -d soft0".to_owned(),
            names => names.join(","),
        }
    ));
    let text = ["A", "B", "C"].iter().zip(names);
    let text = text.fold(RING.to_owned(), |text, (letter, name)| {
        text.replace(&format!("\"{letter}\""), &format!("\"{name}\""))
    });
    std::fs::write(program.folder().join("ring.toml"), text).unwrap();
    program
}

fn messages(flow: &Value) -> u64 {
    flow["totals"]["messages"].as_u64().unwrap()
}

fn run_of(json: &Value) -> &Value {
    &json["cases"][0]["runs"][0]
}

fn whole_ring(ended: &Ended) {
    let run = run_of(&ended.json);
    assert_eq!(run["complete"], true);
    let flows = run["flows"].as_array().unwrap();
    assert_eq!(flows.iter().map(messages).collect::<Vec<_>>(), [200; 3]);
    assert_eq!(ended.json["nodes"].as_array().unwrap().len(), 3);
    for node in run["nodes"].as_array().unwrap() {
        assert_eq!(node["workers"].as_array().unwrap().len(), 1, "{node}");
    }
}

#[test]
fn three_nodes_of_this_process_send_in_a_ring() {
    let _machine = with_others();
    let ended = ring(["node0", "node1", "node2"], "-n 100 --verify")
        .run()
        .exits(0);
    whole_ring(&ended);
    ended.shows(&["node0 → node1", "node2 → node0"]);
}

#[test]
fn two_nodes_are_two_ends() {
    let _machine = with_others();
    Program::new("-d soft0 --timeout 18 --nodes local:2 -n 100 -q 2 --verify --warmup 0 -b")
        .run()
        .exits(0)
        .all_whole(1);
}

fn servers() -> [Server; 3] {
    [(); 3].map(|()| Server::start("-d soft0"))
}

fn names(servers: &[Server; 3]) -> [String; 3] {
    servers.each_ref().map(Server::name)
}

#[test]
fn three_servers_are_three_nodes_again_and_again() {
    let _machine = with_others();
    let servers = servers();
    let names = names(&servers);
    let names = names.each_ref().map(String::as_str);
    for _ in 0..2 {
        let ended = ring(names, "-n 100 --verify").run().exits(0);
        whole_ring(&ended);
        assert_eq!(ended.json["nodes"][2]["name"], names[2]);
    }
}

#[test]
fn any_node_may_die_or_fall_silent_and_the_others_figures_are_kept() {
    let _machine = with_others();
    for (victim, deed, words) in [
        (0, Signal::SIGKILL, "its process ended or died"),
        (2, Signal::SIGKILL, "its process ended or died"),
        (1, Signal::SIGSTOP, "has been silent"),
    ] {
        let servers = servers();
        let names = names(&servers);
        let mut client = ring(names.each_ref().map(String::as_str), "-D 60s --no-latency");
        let child = client.spawn();
        servers.iter().for_each(|server| server.is_in_a_run(0));
        let at = servers[victim].signal(deed);
        let (code, said) = said(child);
        assert!(at.elapsed() < NOTICED, "{:?}", at.elapsed());
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(words), "{said}");
        let json = client.json();
        let run = run_of(&json);
        assert_eq!(run["complete"], false);
        for (index, flow) in run["flows"].as_array().unwrap().iter().enumerate() {
            assert_eq!(messages(flow) > 0, index != victim, "{said}{flow}");
        }
        servers[victim].signal(Signal::SIGCONT);
    }
}

#[test]
fn ctrl_c_keeps_the_figures_of_all_nodes() {
    let _machine = with_others();
    let servers = servers();
    let names = names(&servers);
    let names = names.each_ref().map(String::as_str);
    let mut client = ring(names, "-D 60s");
    let child = client.spawn();
    servers[1].is_in_a_run(0);
    let at = signal(&child, Signal::SIGINT);
    let (code, said) = said(child);
    assert!(at.elapsed() < NOTICED, "{:?}", at.elapsed());
    assert_eq!(code, Some(1), "{said}");
    let json = client.json();
    let run = run_of(&json);
    assert_eq!(run["interrupted"], true, "{said}");
    for flow in run["flows"].as_array().unwrap() {
        assert!(messages(flow) > 0, "{said}{flow}");
    }
    whole_ring(&ring(names, "-n 100").run().exits(0));
}

#[test]
fn a_process_without_a_node_has_no_device() {
    for words in ["-d soft0", "--faults drop=1%", "--cores 0"] {
        Program::new(&format!("--nodes 127.0.0.1:1,127.0.0.1:2 {words}"))
            .run()
            .exits(2)
            .says(&["none of the nodes", "rocebench serve"]);
    }
}
