use super::*;
use crate::results::model::{DoubtKind, ResultFile};
use crate::results::sample::mesh::{Mesh, Slow};
use crate::results::sample::{self, has, starts};

fn told(file: &ResultFile) -> Vec<String> {
    Matrix::all(file)[0].sentences()
}

#[test]
fn a_slow_node_is_named_with_how_slow_it_is_and_to_whom() {
    let read = Mesh::quiet(4).with(Slow::Sends(1, 0.5)).flag("op", "read");
    let reads = "node2 reads 50 % less than the median of 3 peers (";
    starts(&told(&read.pairs())[0], reads);
    let both = Mesh::quiet(8).with(Slow::Sends(0, 0.5));
    let both = &told(&both.with(Slow::Receives(0, 0.75)).pairs())[0];
    let words = "node1 sends 50 % and receives 25 % less than the median of 7 peers (4.705 and 7.057 of 9.410 Gb/s), \
                 with all of them: look at node1's port or cable";
    assert_eq!(both, words);
}

#[test]
fn workers_that_were_kept_from_their_cores_are_told() {
    let mut file = Mesh::quiet(4).with(Slow::Sends(2, 0.5)).pairs();
    let nodes = file.cases.iter_mut().flat_map(|case| &mut case.runs);
    for node in nodes.flat_map(|run| &mut run.nodes) {
        if node.name == "node3" {
            node.workers[0].cpu_seconds = Some(0.52);
        }
    }
    let mut asleep = file.clone();
    for case in &mut asleep.cases {
        case.config.settings.poll = PollMode::Event;
    }
    has(&told(&asleep)[0], ["look at node3's port, cable or CPU"]);
    let words = "look at what else runs on node3, whose workers had 52 % of their cores, those of the others 99 %";
    has(&told(&file)[0], [words]);
}

#[test]
fn a_slow_path_is_told_as_one_and_what_else_it_may_be() {
    let slow = |nodes: usize| Mesh::quiet(nodes).with(Slow::Pair(2, 3, 0.33));
    let both = told(&slow(8).with(Slow::Pair(3, 2, 0.5)).pairs());
    let words = "only node3 and node4 are slow with each other: 3.105 Gb/s there and 4.705 back, 67 % less and 50 % less than \
         the median 9.410 Gb/s: look at the path";
    assert_eq!(both[0], words);
    let two = told(&Mesh::quiet(2).with(Slow::Pair(0, 1, 0.5)).pairs());
    let words = "node1>node2 is slower than node2>node1: 50 % less (4.705 of 9.410 Gb/s); two flows do not show";
    starts(&two[0], words);
}

#[test]
fn what_scatters_is_told_with_how_much() {
    let wild = Mesh::of(8).noise(0.3).runs(1);
    let wild = told(&wild.pairs());
    starts(&wild[0], "nothing stands out, but 56 pairs scatter: ");
}

#[test]
fn what_has_no_figure_is_told_first() {
    let gone = (1..4).flat_map(|node| [(0, node), (node, 0)]);
    let gone = told(&Mesh::quiet(4).failing(gone).pairs());
    starts(&gone[0], "node1 has no figure: each run of its 6 flows");
    let doubt = |doubted: fn(&str, &str) -> bool| {
        let mut file = Mesh::quiet(4).pairs();
        for run in file.cases.iter_mut().flat_map(|case| &mut case.runs) {
            for flow in run.flows.iter_mut().filter(|it| doubted(&it.from, &it.to)) {
                flow.window.doubts = vec![sample::doubt(DoubtKind::EdgeMissed)];
            }
        }
        told(&file).remove(0)
    };
    let words = "no figure of node1>node4: each run is doubtful, see below";
    assert_eq!(doubt(|from, to| from == "node1" && to == "node4"), words);
    let words = "node2 has no figure of what it sends: each run of its 3 flows is doubtful, see below: look at what \
         else runs on node2";
    assert_eq!(doubt(|from, _| from == "node2"), words);
    let mut file = Mesh::quiet(4).pairs();
    file.cases.truncate(4);
    let told = told(&file);
    assert_eq!(told[0], "4 flows were not begun");
    starts(&told[1], "nothing is slow: 8 pairs");
}

#[test]
fn latency_is_told_as_longer() {
    let mesh = Mesh::quiet(8).with(Slow::Sends(2, 0.5)).flag("rate", "20%");
    let told = told(&mesh.pairs());
    let starts = "messages of node3 take 2.0 times as long as the median of 7 peers (p50 ";
    has(&told[0], ["messages of node3 take "]);
    let is_said = told[0].starts_with(starts) || told[0].contains(" take 9");
    assert!(is_said, "{told:?}");
}
