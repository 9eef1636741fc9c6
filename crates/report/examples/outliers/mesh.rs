//! Matrices whose truth is known: nodes that are alike but for noise, and one that is slow, or a path.

use fastrand::Rng;
use report::judge::mesh::{Cell, Figures, Matrix, Place};
use report::observe::Metric;
use settings::{Pattern, Settings, names};

names! {
    /// How figures scatter.
    Noise {
        /// Normal.
        Normal = "normal",
        /// Skewed to the slow side: lognormal.
        Skewed = "skewed",
        /// Student's t with three degrees of freedom.
        HeavyTails = "heavy tails",
        /// Nodes differ in what they send and in what they receive, by the spread, in all runs.
        Nodes = "nodes differ",
        /// Normal, and one run of 33 is fifteen spreads slower.
        Stalls = "rare stalls",
    }
}

impl Noise {
    /// One deviation, in units of the spread, for the better.
    pub fn draw(self, rng: &mut Rng) -> f64 {
        match self {
            Noise::Normal | Noise::Nodes => normal(rng),
            Noise::Skewed => (1.377 - (0.8 * normal(rng)).exp()) / 1.305,
            Noise::HeavyTails => {
                let chi = (0..3).map(|_| normal(rng).powi(2)).sum::<f64>() / 3.0;
                normal(rng) / chi.sqrt() / 3f64.sqrt()
            }
            Noise::Stalls if rng.f64() < 0.03 => normal(rng) - 15.0,
            Noise::Stalls => normal(rng),
        }
    }
}

names! {
    /// What is slow.
    Fault {
        /// The last node receives half.
        Receives = "One node receives half: matrices that name it and nothing else",
        /// The first node sends half to the second one.
        Pair = "One path carries half: matrices that name it and nothing else",
        /// The last node moves half both ways, with three times the spread, as one that has half of its CPU.
        Cpu = "One node has half of its CPU: matrices that name it and nothing else",
    }
}

impl Fault {
    fn place(self, nodes: usize) -> Place {
        match self {
            Fault::Receives => Place::To(nodes - 1),
            Fault::Pair => Place::Path(0, 1),
            Fault::Cpu => Place::Node(nodes - 1),
        }
    }
}

/// What a matrix is of.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub noise: Noise,
    /// Standard deviation of the logarithm of one run's throughput.
    pub spread: f64,
    pub nodes: usize,
    pub runs: usize,
    pub fault: Option<Fault>,
}

/// Whether what is slow is named, and nothing else; of nodes that are alike, nothing.
pub fn right(setup: &Setup, seed: u64) -> bool {
    let found = matrix(setup, &mut Rng::with_seed(seed)).outliers();
    match (&found[..], setup.fault) {
        ([], None) => true,
        ([one], Some(fault)) => one.place == fault.place(setup.nodes),
        _ => false,
    }
}

fn matrix(setup: &Setup, rng: &mut Rng) -> Matrix {
    let nodes = setup.nodes;
    let of_node = match setup.noise {
        Noise::Nodes => setup.spread,
        _ => 0.0,
    };
    let mut of_nodes = || -> Vec<f64> { (0..nodes).map(|_| of_node * normal(rng)).collect() };
    let (sends, receives) = (of_nodes(), of_nodes());
    let mut cells = Vec::new();
    for (from, sent) in sends.iter().enumerate() {
        for (to, received) in receives.iter().enumerate().filter(|(to, _)| *to != from) {
            let is_slow = setup.fault.is_some_and(|it| it.place(nodes).has(from, to));
            let level = sent + received + if is_slow { 0.5f64.ln() } else { 0.0 };
            let spread = match setup.fault {
                Some(Fault::Cpu) if is_slow => 3.0 * setup.spread,
                _ => setup.spread,
            };
            let runs: Vec<Figures> =
                (0..setup.runs).map(|_| run(setup.noise, level, spread, rng)).collect();
            cells.push(Cell { from, to, figures: Figures::median(&runs), runs, ..Cell::default() });
        }
    }
    Matrix {
        title: "made-up".to_owned(),
        cases: vec!["made-up".to_owned()],
        settings: Settings::default(),
        pattern: Pattern::Pairs,
        nodes: (0..nodes).map(|node| format!("node{node}")).collect(),
        cells,
        cpu: vec![None; nodes],
        steps: Vec::new(),
        is_embedded: false,
    }
}

/// One run of a closed loop: p50 goes with the throughput mostly, p99 scatters twice as much.
fn run(noise: Noise, level: f64, spread: f64, rng: &mut Rng) -> Figures {
    let rate = level + spread * noise.draw(rng);
    let p50 = -rate + 0.3 * spread * normal(rng);
    let p99 = -level + 0.4 - 2.0 * spread * noise.draw(rng);
    Figures::new(|metric| match metric {
        Metric::GbitPerS => Some(10.0 * rate.exp()),
        Metric::P50Ns => Some(1e4 * p50.exp()),
        Metric::P99Ns => Some(1e4 * p99.exp()),
        _ => None,
    })
}

/// A standard normal deviation.
pub fn normal(rng: &mut Rng) -> f64 {
    let (u, v) = (1.0 - rng.f64(), rng.f64());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}
