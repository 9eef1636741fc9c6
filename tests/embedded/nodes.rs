//! More nodes than two: in one process, and as servers; one of them dies or falls silent.

use serde_json::Value;

use testing::program::{Call, Ended, Signal};
use testing::server::{Server, call};

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
fn ring(names: [&str; 3], words: &str) -> Call {
    let nodes = match names {
        ["node0", ..] => "local:3 -d soft0".to_owned(),
        names => names.join(","),
    };
    let text = ["A", "B", "C"].iter().zip(names);
    let text = text.fold(RING.to_owned(), |text, (letter, name)| {
        text.replace(&format!("\"{letter}\""), &format!("\"{name}\""))
    });
    call(&format!(
        "--timeout 18 --config ring.toml --warmup 0 --nodes {nodes} {words}"
    ))
    .with_file("ring.toml", &text)
}

fn messages(flow: &Value) -> u64 {
    flow["totals"]["messages"].as_u64().unwrap()
}

fn whole_ring(ended: &Ended) {
    let run = ended.first_run();
    assert_eq!(run["complete"], true);
    let flows = run["flows"].as_array().unwrap();
    assert_eq!(flows.iter().map(messages).collect::<Vec<_>>(), [200; 3]);
    assert_eq!(ended.json()["nodes"].as_array().unwrap().len(), 3);
    for node in run["nodes"].as_array().unwrap() {
        assert_eq!(node["workers"].as_array().unwrap().len(), 1, "{node}");
    }
}

#[test]
fn three_nodes_of_this_process_send_in_a_ring() {
    let ended = ring(["node0", "node1", "node2"], "-n 100 --verify").passes();
    whole_ring(&ended);
    ended.shows(&["node0 → node1", "node2 → node0"]);
}

#[test]
fn two_nodes_are_two_ends() {
    call("-d soft0 --timeout 18 --nodes local:2 -n 100 -q 2 --verify --warmup 0 -b").is_whole(1);
}

fn servers() -> [Server; 3] {
    [(); 3].map(|()| Server::embedded("-d soft0"))
}

fn names(servers: &[Server; 3]) -> [&str; 3] {
    servers.each_ref().map(|server| &*server.name)
}

#[test]
fn any_node_may_die_or_fall_silent_and_the_others_figures_are_kept() {
    for (victim, deed, words) in [
        (0, Signal::Kill, "its process ended or died"),
        (2, Signal::Kill, "its process ended or died"),
        (1, Signal::Stop, "has been silent"),
    ] {
        let servers = servers();
        let client = ring(names(&servers), "-D 60s --no-latency").start();
        (0..3).for_each(|node| client.has_moved(0, "measure", node));
        servers[victim].program.signal(deed);
        let ended = client.wait().exits(1).says(&[words]);
        let run = ended.first_run();
        assert_eq!(run["complete"], false);
        for (index, flow) in run["flows"].as_array().unwrap().iter().enumerate() {
            assert_eq!(messages(flow) > 0, index != victim, "{flow}");
        }
    }
}

/// The same servers are three nodes again and again, also after Ctrl-C in a run.
#[test]
fn ctrl_c_keeps_the_figures_of_all_nodes() {
    let servers = servers();
    let names = names(&servers);
    let client = ring(names, "-D 60s").start();
    (0..3).for_each(|node| client.has_moved(0, "measure", node));
    client.signal(Signal::Interrupt);
    let ended = client.wait().exits(1);
    let run = ended.first_run();
    assert_eq!(run["interrupted"], true);
    for flow in run["flows"].as_array().unwrap() {
        assert!(messages(flow) > 0, "{flow}");
    }
    for _ in 0..2 {
        let ended = ring(names, "-n 100 --verify").passes();
        whole_ring(&ended);
        assert_eq!(ended.json()["nodes"][2]["name"], names[2]);
    }
}

#[test]
fn a_process_without_a_node_has_no_device() {
    for words in ["-d soft0", "--faults drop=1%", "--cores 0"] {
        call(&format!("--nodes 127.0.0.1:1,127.0.0.1:2 {words}"))
            .is_refused(&["none of the nodes", "rocebench serve"]);
    }
}
