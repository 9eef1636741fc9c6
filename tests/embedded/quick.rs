//! `mesh --quick`: pairs in short rounds, and what looks slow measured again.

use testing::program::{Server, call};

#[test]
fn rounds_over_two_rails_have_flows_over_both() {
    let words = "mesh --quick --nodes local:3 -d soft[0-1] --timeout 18 --op write -s 512 -q 1 -t 4 --workers 2 -n 99 --warmup 0";
    let ended = call(words).passes();
    let runs = ended.runs();
    assert!(runs.len() >= 6 && runs.iter().all(|run| run.flows.len() == 2));
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
