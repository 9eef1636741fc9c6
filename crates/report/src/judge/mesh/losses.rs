//! Nodes and paths of a matrix that lose packets, though their rates may be as they should.

use super::causes::{Cause, Observed, Place, Rule, causes, tail};
use super::matrix::{Cell, Matrix};
use super::outliers::CHANCES;
use statistics::Scatter;

/// Runs that a path must have to be told: a packet is lost now and then on the best of networks.
const PATH_RUNS: usize = 3;

/// A node or a path that loses packets in most runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lossy {
    /// What loses them, by indices in [`Matrix::nodes`].
    pub place: Place,
    /// Runs of its flows in which packets were lost.
    pub losing: usize,
    pub runs: usize,
}

impl Cell {
    /// Whether packets were lost in most of its runs.
    pub fn is_lossy(&self) -> bool {
        self.losing > 0 && self.losing * 2 >= self.finished()
    }

    /// Its runs with figures, doubtful or not.
    fn finished(&self) -> usize {
        self.runs.len() + self.doubtful
    }
}

impl Matrix {
    /// The fewest nodes and paths that explain where packets are lost, each once.
    pub fn lossy(&self) -> Vec<Lossy> {
        if self.cells.iter().all(|cell| cell.losing == 0) {
            return Vec::new();
        }
        let measured: Vec<&Cell> = self.cells.iter().filter(|cell| cell.finished() > 0).collect();
        let runs: Vec<Vec<f64>> = measured
            .iter()
            .map(|cell| (0..cell.finished()).map(|number| loss(number < cell.losing)).collect())
            .collect();
        let flows = measured.iter().zip(&runs).map(|(cell, runs)| Observed {
            from: cell.from,
            to: cell.to,
            value: loss(cell.is_lossy()),
            runs,
        });
        let rule = Rule {
            floor: 0.5,
            chance: CHANCES[0],
            scatter: Scatter { least: 0.0, tail: tail(1.0) },
            path_runs: PATH_RUNS,
        };
        let found = causes(self.nodes.len(), &flows.collect::<Vec<_>>(), rule);
        found
            .into_iter()
            .map(|Cause { place, .. }| {
                let own = measured.iter().filter(|cell| place.has(cell.from, cell.to));
                Lossy {
                    place,
                    losing: own.clone().map(|cell| cell.losing).sum(),
                    runs: own.map(|cell| cell.finished()).sum(),
                }
            })
            .collect()
    }
}

/// A run as a value of which more is better.
fn loss(is_lost: bool) -> f64 {
    if is_lost { -1.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::mesh::Mesh;
    use results::model::{Doubt, DoubtKind, PathEvent, PathEventKind, ResultFile};
    use results::sample_mesh;

    /// Eight nodes, of which some tell of these events in the flows from one to another.
    fn with_events(
        runs: u32,
        of: impl Fn(&str, &str) -> Vec<(usize, PathEventKind)>,
    ) -> Vec<Lossy> {
        let mut file: ResultFile = sample_mesh::Mesh::new(8).runs(runs).pairs();
        for run in file.cases.iter_mut().flat_map(|case| &mut case.runs) {
            run.path_events = run
                .flows
                .iter()
                .flat_map(|flow| of(&flow.from, &flow.to))
                .map(|(node, kind)| PathEvent {
                    node: format!("node{node}"),
                    kind,
                    count: 3,
                    counters: Vec::new(),
                })
                .collect();
        }
        let mesh = Mesh::of_file(&file).remove(0);
        let told = mesh.findings.iter().filter(|it| it.is_wrong()).count();
        assert_eq!((mesh.outliers.len(), told), (0, mesh.lossy.len()));
        // Doubts of rates are none of losses.
        for flow in
            file.cases.iter_mut().flat_map(|case| &mut case.runs).flat_map(|run| &mut run.flows)
        {
            flow.window
                .doubts
                .push(Doubt { kind: DoubtKind::WindowLength, message: String::new() });
        }
        assert_eq!(Mesh::of_file(&file).remove(0).lossy, mesh.lossy);
        mesh.lossy
    }

    #[test]
    fn a_path_is_told_by_either_end_in_three_runs_and_a_node_by_its_flows() {
        let resent = |node| vec![(node, PathEventKind::Resent)];
        let path = |runs| {
            with_events(runs, |from, to| match (from, to) {
                ("node2", "node5") => resent(5),
                _ => Vec::new(),
            })
        };
        assert_eq!(path(1), []);
        let [losing, runs] = [3; 2];
        let place = Place::Path(1, 4);
        assert_eq!(path(3), [Lossy { place, losing, runs }]);
        let node = with_events(1, |from, _| match from {
            "node3" => resent(3),
            _ => Vec::new(),
        });
        let [losing, runs] = [7; 2];
        let place = Place::From(2);
        assert_eq!(node, [Lossy { place, losing, runs }]);
        // What followed from a receiver that was not ready.
        let refused = with_events(3, |from, _| match from {
            "node3" => [PathEventKind::ReceiverNotReady, PathEventKind::Resent]
                .map(|kind| (3, kind))
                .to_vec(),
            _ => Vec::new(),
        });
        assert_eq!(refused, []);
    }
}
