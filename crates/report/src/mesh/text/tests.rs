use super::*;
use crate::results::sample::mesh::{Mesh, Slow};

fn text(file: &ResultFile) -> String {
    let mut out = Vec::new();
    write(file, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn snapshot(name: &str, file: &ResultFile) {
    let text = text(file);
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(COLUMNS), "{text}");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots");
    insta::with_settings!({ snapshot_path => path, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(format!("mesh__{name}"), text);
    });
}

#[test]
fn two_nodes() {
    snapshot("2", &Mesh::of(2).pairs());
}

#[test]
fn four_nodes_one_of_them_slow_and_two_flows_lost() {
    let mesh = Mesh {
        failed: vec![(0, 1)],
        ..Mesh::of(4).with(Slow::Receives(2, 0.5))
    };
    snapshot("4", &mesh.pairs());
}

#[test]
fn eight_nodes_with_a_slow_pair() {
    snapshot("8", &Mesh::of(8).with(Slow::Pair(2, 5, 0.4)).pairs());
}

#[test]
fn sixteen_nodes() {
    let mesh = Mesh::of(16).with(Slow::Receives(6, 0.59));
    snapshot("16", &mesh.with(Slow::Pair(1, 2, 0.5)).pairs());
}

#[test]
fn sixty_four_nodes() {
    let mesh = Mesh {
        runs: 1,
        ..Mesh::of(64).with(Slow::Sends(40, 0.7))
    };
    snapshot("64", &mesh.all_to_all());
}

#[test]
fn hundreds_of_nodes() {
    let mesh = Mesh {
        runs: 1,
        ..Mesh::of(100).with(Slow::Sends(40, 0.7))
    };
    let text = text(&mesh.ring());
    assert!(text.lines().count() < 40, "{text}");
}

#[test]
fn a_ring() {
    snapshot("ring", &Mesh::of(8).with(Slow::Pair(3, 4, 0.5)).ring());
}

#[test]
fn incasts() {
    snapshot(
        "incast",
        &Mesh::of(9).with(Slow::Sends(3, 0.6)).incast(&[1, 2, 4, 8]),
    );
}

#[test]
fn loads_are_told_by_latency() {
    let mesh = Mesh {
        flags: vec![("op", "write"), ("rate", "20%")],
        ..Mesh::of(4)
    };
    snapshot("loads", &mesh.pairs());
}

#[test]
fn a_file_without_a_pattern_says_nothing() {
    assert_eq!(text(&crate::results::sample::result()), "");
}
