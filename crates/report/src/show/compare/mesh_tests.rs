//! A comparison of many nodes stays short: it shows what has changed, and counts the rest.

use super::sample::{compared, text};
use super::table;
use crate::judge::compare::model::Comparison;
use results::load::Found;
use results::model::ResultFile;
use results::sample::mesh::{Mesh, Slow};
use results::sample::{fairness, has};

/// Six launches, in turns with those of the other side.
fn side(name: &str, second: u32, file: impl Fn(Mesh) -> ResultFile) -> Found {
    super::sample::side(name, second, 6, |launch| {
        let mesh =
            Mesh { runs: 1, noise: 0.002, seed: u64::from(launch * 60 + second), ..Mesh::new(10) };
        let mut result = file(mesh);
        for run in result.cases.iter_mut().flat_map(|case| &mut case.runs) {
            run.nodes.iter_mut().for_each(|node| node.workers.clear());
            for flow in &mut run.flows {
                (flow.latency_ns, flow.fairness) = (None, fairness(1.0, 1.0, 1.0));
            }
        }
        result
    })
}

fn table_of(base: &Found, new: &Found) -> (Comparison, String) {
    let comparison = compared(base, new);
    let table = text(|out| table::write(&comparison, out));
    (comparison, table)
}

#[test]
fn rounds_without_a_change_are_told_together() {
    let base = side("base", 0, |mesh| mesh.pairs());
    let new = side("new", 30, |mesh| mesh.with(Slow::Pair(2, 3, 0.5)).pairs());
    let (comparison, table) = table_of(&base, &new);
    assert_eq!(comparison.cases.len(), 18);
    assert!(table.lines().count() < 60, "{table}");
    let together = "\nwrite-pairs-round01, write-pairs-round02, ";
    has(table, ["\n  node3>node4\n! bandwidth", together, " equal"]);
}

#[test]
fn of_many_flows_those_that_changed_are_told() {
    let base = side("base", 0, |mesh| mesh.all_to_all());
    let slow = |mesh: Mesh| mesh.with(Slow::Pair(2, 3, 0.5));
    let new = side("new", 30, |mesh| slow(mesh).all_to_all());
    let (_, table) = table_of(&base, &new);
    assert!(table.lines().count() < 40, "{table}");
    let rest = "  89 more of 90 flows: ";
    has(table, ["\n  node3>node4\n! bandwidth", rest]);
}
