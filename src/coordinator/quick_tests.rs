//! Quick rounds on networks that are made up: 64 nodes, runs that scatter, and one thing wrong.

use std::collections::HashSet;

use report::judge::mesh::Figures;
use report::observe::Metric;
use settings::{Pattern, Settings};

use super::*;
use plan::quick::most_further;
use report::judge::finding::Finding;

const NODES: usize = 64;
const ROUNDS: usize = 2 * (NODES - 1);
const SEEDS: u64 = if cfg!(debug_assertions) { 40 } else { 200 };

/// What a flow's rate is multiplied by, by the numbers of its nodes, and how often it loses packets.
type Wrong<'a> = &'a dyn Fn(usize, usize) -> (f64, f64);

/// One run of 500 loses packets by chance.
const WELL: (f64, f64) = (1.0, 0.002);

struct Network<'a> {
    rng: fastrand::Rng,
    wrong: Wrong<'a>,
    /// Standard deviation of a run's rate as a part of it.
    noise: f64,
    matrix: Matrix,
}

impl<'a> Network<'a> {
    fn new(wrong: Wrong<'a>, seed: u64) -> Network<'a> {
        let cells = (0..NODES)
            .flat_map(|from| (0..NODES).map(move |to| (from, to)))
            .filter(|(from, to)| from != to)
            .map(|(from, to)| Cell { from, to, ..Cell::default() });
        let matrix = Matrix {
            title: String::new(),
            cases: Vec::new(),
            settings: Settings::from([("pattern", "pairs"), ("op", "write")]),
            pattern: Pattern::Pairs,
            nodes: (0..NODES).map(|node| node.to_string()).collect(),
            cells: cells.collect(),
            cpu: vec![None; NODES],
            steps: Vec::new(),
            is_embedded: false,
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

    /// One run of a flow. One of 200 is 30 % slower by chance.
    fn measure(&mut self, place: usize) {
        let (from, to) = (self.matrix.cells[place].from, self.matrix.cells[place].to);
        let rng = &mut self.rng;
        let (factor, loses) = (self.wrong)(from, to);
        let chance = if rng.f64() < 0.005 { 0.7 } else { 1.0 };
        // Nearly normal: the sum of twelve.
        let normal: f64 = (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0;
        let rate = 100.0 * factor * chance * (1.0 + self.noise * normal);
        let lost = rng.f64() < loses;
        let cell = &mut self.matrix.cells[place];
        cell.runs.push(Figures::new(|metric| (metric == Metric::GbitPerS).then_some(rate)));
        cell.losing += usize::from(lost);
        cell.figures = Figures::median(&cell.runs);
    }

    /// Further rounds until enough is known: what is named then.
    fn found(mut self) -> Vec<(&'static str, Vec<String>)> {
        let mut further = 0;
        loop {
            let mesh = Mesh::new(self.matrix.clone());
            let pass = next_pass(&mesh, ROUNDS + further, most_further(ROUNDS) - further);
            if pass.is_empty() {
                return mesh
                    .findings
                    .into_iter()
                    .filter(Finding::is_problem)
                    .map(|finding| (finding.id, finding.subject.nodes))
                    .collect();
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

const PATH: &[&str] = &["slow_path", "lossy_path"];

/// Measures networks with something wrong at one node, or on its path to another: all healthy ones are innocent, and of
/// 100 guilty ones 95 are named.
fn check(of: impl Fn([usize; 2], [usize; 2]) -> (f64, f64), expected: &[&str]) {
    let mut right = 0;
    for seed in 0..SEEDS {
        let mut places = fastrand::Rng::with_seed(!seed);
        let one = places.usize(..NODES);
        let other = (one + 1 + places.usize(..NODES - 1)) % NODES;
        let guilty = if expected == PATH {
            vec![one.to_string(), other.to_string()]
        } else {
            vec![one.to_string()]
        };
        let named = Network::new(&|from, to| of([one, other], [from, to]), seed).found();
        let is_right = named.iter().all(|(id, nodes)| expected.contains(id) && *nodes == guilty);
        assert!(is_right, "seed {seed}, {guilty:?}: {named:?}");
        right += u64::from(named.is_empty() == expected.is_empty());
    }
    assert!(right * 100 >= SEEDS * 95, "{expected:?}: {right}");
}

#[test]
fn a_healthy_network_names_nobody() {
    check(|_, _| WELL, &[]);
}

#[test]
fn slow_nodes_are_named_and_nobody_else() {
    let slow = |is_it: bool| if is_it { (0.7, WELL.1) } else { WELL };
    check(|[one, _], [from, _]| slow(from == one), &["slow_sender"]);
    check(|[one, _], [_, to]| slow(to == one), &["slow_receiver"]);
    check(|[one, _], ends| slow(ends.contains(&one)), &["slow_node"]);
}

#[test]
fn slow_and_lossy_paths_are_named_and_nobody_else() {
    for bad in [(0.6, WELL.1), (1.0, 0.98), (0.4, 0.98)] {
        check(|path, ends| if ends == path { bad } else { WELL }, PATH);
    }
}
