use super::*;
use results::model::ResultFile;
use results::sample::mesh::{Mesh, Slow};

/// The places named in a file's only matrix, each with the figure that shows it.
fn named(file: &ResultFile) -> Vec<(Metric, Place)> {
    let matrices = Matrix::of_file(file);
    assert_eq!(matrices.len(), 1);
    let found = matrices[0].outliers();
    found.iter().map(|it| (it.quantity, it.place)).collect()
}

const BANDWIDTH: Metric = Metric::GbitPerS;

#[test]
fn nodes_that_are_alike_are_not_told() {
    for nodes in [2, 3, 4, 8, 9] {
        for noise in [0.0, 0.01, 0.03] {
            let mesh = Mesh::new(nodes).noise(noise);
            for file in [mesh.pairs(), mesh.all_to_all(), mesh.ring()] {
                assert_eq!(named(&file), [], "{nodes} nodes, {noise}");
            }
        }
    }
}

#[test]
fn a_slow_side_of_a_node_is_one_cause() {
    for nodes in [3, 4, 8, 17] {
        let last = nodes - 1;
        let both = vec![Slow::Sends(0, 0.5), Slow::Receives(0, 0.6)];
        for (slow, place) in [
            (vec![Slow::Sends(last, 0.5)], Place::From(last)),
            (vec![Slow::Receives(1, 0.5)], Place::To(1)),
            (both, Place::Node(0)),
        ] {
            let mesh = Mesh { slow, ..Mesh::new(nodes) };
            for file in [mesh.pairs(), mesh.all_to_all()] {
                assert_eq!(named(&file), [(BANDWIDTH, place)], "{nodes} nodes");
            }
        }
    }
}

#[test]
fn a_slow_pair_is_no_slow_node() {
    for nodes in [3, 4, 8, 17] {
        let mesh = Mesh::new(nodes).with(Slow::Pair(1, 2, 0.5));
        let place = (BANDWIDTH, Place::Path(1, 2));
        assert_eq!(named(&mesh.pairs()), [place], "{nodes} nodes");
        let mesh = mesh.with(Slow::Pair(2, 1, 0.5));
        let back = (BANDWIDTH, Place::Path(2, 1));
        let mut both = named(&mesh.pairs());
        both.sort_by_key(|(_, path)| *path);
        assert_eq!(both, [place, back], "{nodes} nodes");
    }
}

#[test]
fn what_is_left_of_a_slow_node_is_asked_too() {
    let mesh = Mesh::new(8)
        .with(Slow::Sends(3, 0.5))
        .with(Slow::Pair(5, 6, 0.4))
        .with(Slow::Pair(3, 1, 0.4));
    let node = (BANDWIDTH, Place::From(3));
    let path = (BANDWIDTH, Place::Path(5, 6));
    assert_eq!(named(&mesh.pairs()), [node, path]);
}

#[test]
fn a_ring_tells_a_node_by_its_two_flows_and_else_a_path() {
    let path = Mesh::new(8).with(Slow::Sends(3, 0.5));
    assert_eq!(named(&path.ring()), [(BANDWIDTH, Place::Path(3, 4))]);
    let node = path.with(Slow::Receives(3, 0.5));
    assert_eq!(named(&node.ring()), [(BANDWIDTH, Place::Node(3))]);
}

#[test]
fn an_open_loop_is_told_by_its_latency() {
    let mesh = Mesh::new(8).with(Slow::Receives(2, 0.5)).flag("rate", "20%");
    let place = (Metric::P50Ns, Place::To(2));
    assert_eq!(named(&mesh.pairs()), [place]);
}

#[test]
fn one_percent_is_never_an_outlier_and_a_flow_that_stands_still_is_one() {
    let mesh = Mesh::quiet(8).with(Slow::Receives(2, 0.96));
    assert_eq!(named(&mesh.pairs()), []);
    let still = Mesh::quiet(8).with(Slow::Pair(0, 1, 0.0));
    assert_eq!(named(&still.pairs()), [(BANDWIDTH, Place::Path(0, 1))]);
}

#[test]
fn flows_without_a_figure_are_nobodys_fault() {
    let of_one_node = (1..8).flat_map(|node| [(0, node), (node, 0)]);
    for failed in [vec![(0, 1), (4, 5)], of_one_node.collect()] {
        let mesh = Mesh::new(8).failing(failed);
        assert_eq!(named(&mesh.pairs()), []);
    }
}

#[test]
fn figures_of_an_outlier_are_medians() {
    let mesh = Mesh::quiet(16).with(Slow::Receives(6, 0.59));
    let found = Matrix::of_file(&mesh.pairs())[0].outliers();
    assert_eq!((found[0].slow, found[0].flows), (15, 15));
    assert!((found[0].usual - 9.41).abs() < 0.01 && (found[0].ratio() - 0.59).abs() < 1e-3);
}

#[test]
fn the_p99_of_one_run_makes_no_slow_path() {
    for (runs, places) in [(1, vec![]), (3, vec![(Metric::P99Ns, Place::Path(1, 2))])] {
        let mut file = Mesh::new(6).runs(runs).pairs();
        for flow in
            file.cases.iter_mut().flat_map(|case| &mut case.runs).flat_map(|run| &mut run.flows)
        {
            if (&*flow.from, &*flow.to) == ("node2", "node3") {
                let p99 = &mut flow.latency_ns.as_mut().unwrap().p99;
                *p99 = p99.map(|ns| ns * 2);
            }
        }
        assert_eq!(named(&file), places, "{runs} runs");
    }
}
