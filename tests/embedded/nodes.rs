//! More nodes than two: in one process, and as servers; one of them dies or falls silent.

use results::model::Run;
use testing::program::{Call, Ended, Server, Signal, call};

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
    call(&format!("--timeout 18 --config ring.toml --warmup 0 --nodes {nodes} {words}"))
        .with_file("ring.toml", &text)
}

fn messages(run: &Run) -> Vec<u64> {
    run.flows.iter().map(|flow| flow.totals.messages).collect()
}

#[track_caller]
fn whole_ring(call: Call) -> Ended {
    let ended = call.is_whole(1);
    let run = ended.runs().remove(0);
    assert_eq!(messages(&run), [200; 3]);
    let workers: Vec<usize> = run.nodes.iter().map(|node| node.workers.len()).collect();
    assert_eq!(workers, [1; 3]);
    ended
}

#[test]
fn three_nodes_of_this_process_send_in_a_ring() {
    let ended = whole_ring(ring(["node0", "node1", "node2"], "-n 100 --verify"));
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
        (0, Signal::Kill, "closed the connection"),
        (2, Signal::Kill, "closed the connection"),
        (1, Signal::Stop, "has been silent"),
    ] {
        let servers = servers();
        let client = ring(names(&servers), "-D 60s --no-latency").start();
        (0..3).for_each(|node| client.has_moved(0, "measure", node));
        servers[victim].program.signal(deed);
        let ended = client.wait().exits(1).says(&[words]);
        let run = ended.runs().remove(0);
        assert!(!run.complete);
        for (index, messages) in messages(&run).into_iter().enumerate() {
            assert_eq!(messages > 0, index != victim, "{index}, {victim}");
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
    let run = client.wait().exits(1).runs().remove(0);
    assert!(run.interrupted);
    let messages = messages(&run);
    assert!(messages.iter().all(|it| *it > 0), "{messages:?}");
    for _ in 0..2 {
        let ended = whole_ring(ring(names, "-n 100 --verify"));
        assert_eq!(ended.json()["nodes"][2]["name"], names[2]);
    }
}
