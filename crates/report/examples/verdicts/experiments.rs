//! Synthetic experiments: launches of cases with seven metrics each, in turns, whose noise and true change are known.
//! Shared by the program that prints the tables and the test that keeps them true.

use fastrand::Rng;
use report::observe::Metric;
use statistics::{Figures, Question, Unit, Verdict, verdicts};

use super::noise::Noise;

/// Metrics of a case.
pub const METRICS: usize = 7;

/// What an experiment is made of.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub noise: Noise,
    /// Spread of bandwidth: 0.01 for 1 %. Latency's tail scatters more.
    pub spread: f64,
    pub cases: usize,
    /// Launches on each side.
    pub launches: usize,
    /// How much slower the new side truly is: 0.05 for 5 %.
    pub slower: f64,
    /// How many of the cases are slower.
    pub slower_cases: usize,
}

impl Setup {
    /// One case and five launches a side of which nothing changed, at 1 % spread.
    pub const fn new(noise: Noise) -> Setup {
        Setup { noise, spread: 0.01, cases: 1, launches: 5, slower: 0.0, slower_cases: 0 }
    }

    /// So many of its cases truly are slower by this.
    pub const fn slower_by(self, slower: f64, slower_cases: usize) -> Setup {
        Setup { slower, slower_cases, ..self }
    }
}

/// What is compared: a typical figure, and its scatter against bandwidth's.
pub const FIGURES: [(Metric, f64, f64); METRICS] = [
    (Metric::GbitPerS, 20.0, 1.0),
    (Metric::MmsgPerS, 0.04, 1.0),
    (Metric::P50Ns, 3e3, 1.0),
    (Metric::P99Ns, 9e3, 2.0),
    (Metric::P99_9Ns, 15e3, 4.0),
    (Metric::Fairness, 0.99, 0.1),
    (Metric::CpuSecondsPerGb, 0.35, 1.0),
];

/// How much of a metric's noise is the run's, which all its metrics share.
const SHARED: f64 = 0.7;

/// How much a turn's deviation is that of the turn before, where it is at all.
const MEMORY: f64 = 0.6;

/// One experiment's figures.
pub struct Experiment {
    /// By side, case and metric: of each launch.
    values: [Vec<[Vec<f64>; METRICS]>; 2],
    units: Vec<Unit>,
}

impl Experiment {
    /// Launches both sides in turns, A B B A.
    pub fn new(setup: &Setup, rng: &mut Rng) -> Experiment {
        let none = vec![<[Vec<f64>; METRICS]>::default(); setup.cases];
        let mut values = [none.clone(), none];
        let mut before: Vec<Option<[f64; METRICS]>> = vec![None; setup.cases];
        for turn in 0..2 * setup.launches {
            let side = [0, 1, 1, 0][turn % 4];
            // A launch's luck is the same for all that runs in it.
            let launch = deviations(Noise::Normal, rng);
            for (case, last) in before.iter_mut().enumerate() {
                let own = deviations(setup.noise, rng);
                let deviations = match (setup.noise, &*last) {
                    // The median of five runs that scatter a fifth as much.
                    (Noise::Launches, _) => mixed(&launch, 1.0, &own, 0.2 * 0.54),
                    (Noise::Correlated, Some(known)) => {
                        mixed(known, MEMORY, &own, (1.0 - MEMORY * MEMORY).sqrt())
                    }
                    _ => own.map(|deviation| deviation * setup.noise.of_case(case)),
                };
                *last = Some(deviations);
                let is_slower = side == 1 && case < setup.slower_cases;
                let speed = if is_slower { 1.0 - setup.slower } else { 1.0 };
                for (metric, (kind, typical, scatter)) in FIGURES.into_iter().enumerate() {
                    // Fairness does not change with speed.
                    let speed = if kind == Metric::Fairness { 1.0 } else { speed };
                    let better = speed * (setup.spread * scatter * deviations[metric]).exp();
                    let power = if kind.higher_is_better() { 1 } else { -1 };
                    values[side][case][metric].push(typical * better.powi(power));
                }
            }
        }
        Experiment {
            values,
            units: (0..setup.launches).map(|launch| Unit { launch, run: None }).collect(),
        }
    }

    /// What is asked of them: each metric of each case.
    pub fn questions(&self) -> Vec<Question<'_>> {
        let metrics = FIGURES.map(|(metric, _, _)| metric);
        questions(&self.units, &self.values, metrics)
    }
}

/// A question for each of these metrics of each case, of which both sides have values.
pub fn questions<'a, const N: usize>(
    units: &'a [Unit],
    values: &'a [Vec<[Vec<f64>; N]>; 2],
    metrics: [Metric; N],
) -> Vec<Question<'a>> {
    let [base, new] = values;
    let figures = |of_side| Figures { units, values: of_side };
    let mut questions = Vec::new();
    for (case, (old, now)) in base.iter().zip(new).enumerate() {
        for (metric, kind) in metrics.into_iter().enumerate() {
            questions.push(Question {
                case,
                metric,
                base: figures(&old[metric]),
                new: figures(&now[metric]),
                margin: kind.default_margin(),
                higher_is_better: kind.higher_is_better(),
            });
        }
    }
    questions
}

/// One run's deviation in each metric, in units of its spread, for the better.
fn deviations(noise: Noise, rng: &mut Rng) -> [f64; METRICS] {
    let run = noise.draw(rng);
    let mut sums = [0.0; METRICS];
    for deviation in &mut sums {
        let is_shared = rng.f64() < SHARED;
        *deviation = if is_shared { run } else { noise.draw(rng) };
    }
    // Messages of one size: the rate is the bandwidth in another unit.
    sums[1] = sums[0];
    sums
}

fn mixed(one: &[f64; METRICS], part: f64, other: &[f64; METRICS], rest: f64) -> [f64; METRICS] {
    std::array::from_fn(|metric| part * one[metric] + rest * other[metric])
}

/// In how many experiments something was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// A regression, over all cases or in any.
    pub anywhere: usize,
    /// Over all cases.
    pub over_all: usize,
    /// In a case that is slower in truth.
    pub in_slower: usize,
    /// The first case's bandwidth was called equal.
    pub bandwidth_equal: usize,
}

/// Judges so many experiments.
pub fn found(setup: &Setup, experiments: usize, seed: u64) -> Found {
    let mut rng = Rng::with_seed(seed);
    let mut found = Found::default();
    for _ in 0..experiments {
        let words = verdicts(&Experiment::new(setup, &mut rng).questions(), 1.0);
        let has = |answers: &[Verdict]| answers.contains(&Verdict::Worse);
        let over_all = has(&words.over_all);
        found.over_all += usize::from(over_all);
        found.anywhere += usize::from(over_all || has(&words.by_case));
        let slower = &words.by_case[..METRICS * setup.slower_cases];
        found.in_slower += usize::from(has(slower));
        found.bandwidth_equal += usize::from(words.by_case[0] == Verdict::Equal);
    }
    found
}
