//! More nodes than two, as servers; one of them dies or falls silent.

use results::model::Run;
use testing::process::{Call, Ended, Signal};
use testing::program::{Server, call};

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
    let text = ["A", "B", "C"].iter().zip(names);
    let text = text.fold(RING.to_owned(), |text, (letter, name)| {
        text.replace(&format!("\"{letter}\""), &format!("\"{name}\""))
    });
    call(&format!("--timeout 18 --config ring.toml --warmup 0 --nodes {} {words}", names.join(",")))
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

/// In lock-step all others wait for the one that is gone.
#[test]
fn a_dead_node_ends_a_lock_step_and_its_steps_are_kept() {
    for (deed, words) in
        [(Signal::Kill, "closed the connection"), (Signal::Stop, "has been silent")]
    {
        let servers = servers();
        let [_, victim, _] = names(&servers);
        let steps = "--pattern ring --lock-step -s 3000 --timeout 18 --warmup 0 -D 60s";
        let client = call(&format!("mesh --nodes {} {steps}", names(&servers).join(","))).start();
        (0..3).for_each(|node| client.has_moved(0, "measure", node));
        servers[1].program.signal(deed);
        let ended = client.wait().exits(1).says(&[words]);
        let errors = ended.stderr().lines().filter(|line| line.starts_with("rocebench: error"));
        assert_eq!(errors.count(), 1, "{}", ended.stderr());
        let run = ended.runs().remove(0);
        let (failure, lock_step) = (run.failure.unwrap(), run.lock_step.unwrap());
        assert!(!run.complete && failure.message.contains(victim), "{failure:?}");
        assert!(lock_step.step_ns.unwrap().count > 0);
        assert_eq!(lock_step.nodes.len(), 3);
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

/// Which node is slow or loses packets is named from simulated rounds, in which no busy machine has a say.
#[test]
fn each_round_of_servers_tells_where_packets_were_lost() {
    let faults = ["rate=8M", "rate=8M,drop=4%", "rate=8M", "rate=8M"];
    let servers = faults.map(|faults| Server::embedded(&format!("-d soft0 --faults {faults}")));
    let names = servers.each_ref().map(|it| &*it.name);
    let ended = call(&format!(
        "mesh --quick --nodes {} --timeout 18 --op write -s 512 -q 1 -t 4 --poll event -n 300 --warmup 0",
        names.join(",")
    ))
    .passes();
    let runs = ended.runs();
    assert!((6..=22).contains(&runs.len()));
    for run in runs {
        let flow = run
            .flows
            .iter()
            .find(|it| it.from == names[1] || it.to == names[1])
            .map(|it| [&it.from, &it.to]);
        let mut lost = run.path_events.iter().filter(|it| it.kind.is_loss());
        let is_told = |ends: [&String; 2]| lost.any(|event| ends.contains(&&event.node));
        assert!(flow.is_none_or(is_told), "{:?}", run.path_events);
    }
}
