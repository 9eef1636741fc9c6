//! Quick rounds on networks that are made up: 64 nodes, runs that scatter, and one thing wrong.

use std::collections::HashSet;

use report::judge::mesh::{Figures, NodesFinding, Part};
use report::observe::Metric;
use settings::{Pattern, Settings};

use super::*;
use crate::plan::quick::most_further;

const NODES: usize = 64;
const ROUNDS: usize = 2 * (NODES - 1);
const SEEDS: u64 = 200;

/// What is wrong, by number of the node, and what rates are multiplied by.
#[derive(Clone, Copy, Debug)]
enum Wrong {
    Nothing,
    Sends(usize, f64),
    Receives(usize, f64),
    Node(usize, f64),
    Path(usize, usize, f64),
    LossyPath(usize, usize, f64),
}

struct Network {
    rng: fastrand::Rng,
    wrong: Wrong,
    /// Standard deviation of a run's rate as a part of it.
    noise: f64,
    matrix: Matrix,
}

impl Network {
    fn new(wrong: Wrong, seed: u64) -> Network {
        let pairs = (0..NODES).flat_map(|from| (0..NODES).map(move |to| (from, to)));
        let cells = pairs.filter(|(from, to)| from != to);
        let cells = cells.map(|(from, to)| Cell {
            from,
            to,
            ..Cell::default()
        });
        let matrix = Matrix {
            title: String::new(),
            cases: Vec::new(),
            settings: Settings::from([("pattern", "pairs"), ("op", "write")]),
            pattern: Pattern::Pairs,
            nodes: (0..NODES).map(|node| node.to_string()).collect(),
            cells: cells.collect(),
            cpu: vec![None; NODES],
        };
        let mut network = Network {
            rng: fastrand::Rng::with_seed(seed),
            wrong,
            noise: 0.02 + 0.01 * (seed % 4) as f64,
            matrix,
        };
        (0..NODES * (NODES - 1)).for_each(|place| network.measure(place));
        network
    }

    /// One run of a flow. One of 200 runs is 30 % slower by chance, and one of 500 loses packets.
    fn measure(&mut self, place: usize) {
        let (from, to) = (self.matrix.cells[place].from, self.matrix.cells[place].to);
        let rng = &mut self.rng;
        let (factor, loses) = match self.wrong {
            Wrong::Sends(node, factor) if node == from => (factor, 0.002),
            Wrong::Receives(node, factor) if node == to => (factor, 0.002),
            Wrong::Node(node, factor) if node == from || node == to => (factor, 0.002),
            Wrong::Path(one, other, factor) if (one, other) == (from, to) => (factor, 0.002),
            Wrong::LossyPath(one, other, factor) if (one, other) == (from, to) => (factor, 0.98),
            _ => (1.0, 0.002),
        };
        let chance = if rng.f64() < 0.005 { 0.7 } else { 1.0 };
        // Nearly normal: the sum of twelve.
        let normal: f64 = (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0;
        let rate = 100.0 * factor * chance * (1.0 + self.noise * normal);
        let lost = rng.f64() < loses;
        let cell = &mut self.matrix.cells[place];
        cell.runs.push(Figures::new(|metric| {
            (metric == Metric::GbitPerS).then_some(rate)
        }));
        cell.losing += usize::from(lost);
        cell.figures = Figures::median(&cell.runs);
    }

    /// Further rounds until enough is known: what is named then, and how many rounds they were.
    fn found(mut self) -> (Vec<(Part, Vec<String>)>, usize) {
        let mut further = 0;
        loop {
            let mesh = Mesh::of(self.matrix.clone());
            let pass = next_pass(&mesh, ROUNDS + further, most_further(ROUNDS) - further);
            if pass.is_empty() {
                let named = mesh
                    .findings
                    .into_iter()
                    .filter_map(|finding| match finding {
                        NodesFinding::Slow(slow) => Some((slow.part, slow.nodes)),
                        NodesFinding::Lossy { part, nodes, .. } => Some((part, nodes)),
                        _ => None,
                    });
                return (named.collect(), further);
            }
            further += pass.len();
            for round in pass {
                let nodes: HashSet<usize> = round.iter().flat_map(|it| [it.0, it.1]).collect();
                assert_eq!(nodes.len(), 2 * round.len(), "{round:?}");
                assert!(round.len() >= NODES / 2 - 1, "the network is full");
                for (from, to) in round {
                    self.measure(from * (NODES - 1) + to - usize::from(to > from));
                }
            }
        }
    }
}

/// How many of all seeds name what is wrong, the most further rounds; nothing else may be named.
fn right(of: impl Fn(usize, usize) -> Wrong, expected: Option<Part>) -> (u64, usize) {
    let (mut right, mut most) = (0, 0);
    for seed in 0..SEEDS {
        let mut places = fastrand::Rng::with_seed(!seed);
        let one = places.usize(..NODES);
        let other = (one + 1 + places.usize(..NODES - 1)) % NODES;
        let wrong = of(one, other);
        let guilty = match expected {
            Some(Part::Path) => vec![one.to_string(), other.to_string()],
            _ => vec![one.to_string()],
        };
        let (named, further) = Network::new(wrong, seed).found();
        let is_it =
            |(part, nodes): &(Part, Vec<String>)| Some(*part) == expected && *nodes == guilty;
        assert!(named.iter().all(is_it), "seed {seed}, {wrong:?}: {named:?}");
        right += u64::from(named.is_empty() == expected.is_none());
        most = most.max(further);
    }
    eprintln!("{expected:?}: right {right}, most further rounds {most}");
    (right, most)
}

#[test]
fn a_quiet_or_noisy_network_names_nobody() {
    assert_eq!(right(|_, _| Wrong::Nothing, None).0, SEEDS);
}

#[test]
fn slow_nodes_are_named_and_nobody_else() {
    for (of, part) in [
        (Wrong::Sends as fn(usize, f64) -> Wrong, Part::Sends),
        (Wrong::Receives, Part::Receives),
        (Wrong::Node, Part::Node),
    ] {
        let (right, _) = right(|one, _| of(one, 0.7), Some(part));
        assert!(right * 100 >= SEEDS * 95, "{part:?}: {right}");
    }
}

#[test]
fn slow_and_lossy_paths_are_named_and_nobody_else() {
    for (of, factor) in [
        (Wrong::Path as fn(usize, usize, f64) -> Wrong, 0.6),
        (Wrong::LossyPath, 1.0),
        (Wrong::LossyPath, 0.4),
    ] {
        let (right, _) = right(|one, other| of(one, other, factor), Some(Part::Path));
        assert!(right * 100 >= SEEDS * 95, "{factor}: {right}");
    }
}
