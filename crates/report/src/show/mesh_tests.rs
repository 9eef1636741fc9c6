//! Matrices of every kind, within 80 columns.

use results::{
    model::ResultFile,
    sample::{
        mesh::{Mesh, Slow},
        names,
    },
};

use super::*;

/// What is written, with the findings' ids in place of their words.
fn text(file: &ResultFile) -> String {
    let mut report = Findings::new(file);
    let of_meshes = report.meshes.iter_mut().flat_map(|mesh| &mut mesh.findings);
    for finding in of_meshes.chain(&mut report.fans) {
        finding.text = finding.id.to_owned();
    }
    results::sample::text(|out| write(&report, out))
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

/// Two nodes; a slow one of four and two flows lost; a slow pair; both; many flows; a ring; fan-ins; loads.
#[test]
fn meshes_of_every_kind() {
    let four = Mesh::new(4).with(Slow::Receives(2, 0.5)).failing([(0, 1)]);
    let sixteen = Mesh::new(16).with(Slow::Receives(6, 0.59));
    let sixty_four = Mesh::new(64).with(Slow::Sends(40, 0.7)).runs(1);
    let loads = Mesh::new(4).flag("rate", "20%");
    let fan = Mesh::new(9).with(Slow::Sends(3, 0.6));
    snapshot("2", &Mesh::new(2).pairs());
    snapshot("4", &four.pairs());
    snapshot("8", &Mesh::new(8).with(Slow::Pair(2, 5, 0.4)).pairs());
    snapshot("16", &sixteen.with(Slow::Pair(1, 2, 0.5)).pairs());
    snapshot("64", &sixty_four.all_to_all());
    snapshot("ring", &Mesh::new(8).with(Slow::Pair(3, 4, 0.5)).ring());
    snapshot("incast", &fan.incast(&[1, 2, 4, 8]));
    snapshot("loads", &loads.pairs());
}

#[test]
fn hundreds_of_nodes() {
    let mesh = Mesh::new(100).with(Slow::Sends(40, 0.7)).runs(1);
    let text = text(&mesh.ring());
    assert!(text.lines().count() < 40, "{text}");
}

#[test]
fn a_file_without_a_pattern_says_nothing() {
    assert_eq!(text(&results::sample::result()), "");
}

#[test]
fn heads_tell_nodes_apart() {
    let cut_of = |all: &[&str]| cut(&names(all));
    assert_eq!(cut_of(&["n1.cluster.org", "n2.cluster.org"]), ["n1", "n2"]);
    let addresses = ["10.0.0.1", "10.0.0.2"];
    assert_eq!(cut_of(&addresses), addresses);
    assert_eq!(cut(&names(&["a.x", "a.y"])), ["a.x", "a.y"]);
    let long = cut(&names(&["a-very-long-name-of-host-17"]));
    assert_eq!(long, ["…name-of-host-17"]);
}
