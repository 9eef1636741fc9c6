//! Synthetic sittings: runs of cases with seven metrics each, whose noise and true change are known.
//! Shared by the program that prints the table and the test that keeps it true.

use fastrand::Rng;
use rocebench::statistics::{Answer, Question, judge};

/// How figures scatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noise {
    /// Normal.
    Normal,
    /// Skewed.
    Lognormal,
    /// Student's t with three degrees of freedom, and one run in twenty ten spreads off.
    HeavyTails,
    /// Two modes, equally often.
    Bimodal,
    /// Launches differ, the five runs within one are alike; a figure is a launch's median.
    Launches,
}

pub const NOISES: [Noise; 5] = [
    Noise::Normal,
    Noise::Lognormal,
    Noise::HeavyTails,
    Noise::Bimodal,
    Noise::Launches,
];

impl Noise {
    pub fn name(self) -> &'static str {
        match self {
            Noise::Normal => "normal",
            Noise::Lognormal => "lognormal",
            Noise::HeavyTails => "heavy tails, outliers",
            Noise::Bimodal => "two modes",
            Noise::Launches => "between launches",
        }
    }

    /// One deviation, in units of the spread.
    fn draw(self, rng: &mut Rng) -> f64 {
        match self {
            Noise::Normal | Noise::Launches => normal(rng),
            Noise::Lognormal => ((0.8 * normal(rng)).exp() - 1.377) / 1.305,
            Noise::HeavyTails => {
                let chi = (0..3).map(|_| normal(rng).powi(2)).sum::<f64>() / 3.0;
                let outlier = if rng.f64() < 0.05 { -10.0 } else { 0.0 };
                normal(rng) / chi.sqrt() / 3f64.sqrt() + outlier
            }
            Noise::Bimodal => {
                let mode = if rng.bool() { 1.0 } else { -1.0 };
                mode + 0.1 * normal(rng)
            }
        }
    }
}

fn normal(rng: &mut Rng) -> f64 {
    let (u, v) = (1.0 - rng.f64(), rng.f64());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// What a sitting is made of.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub noise: Noise,
    /// Spread of bandwidth: 0.01 for 1 %. Latency's tail scatters more.
    pub spread: f64,
    pub cases: usize,
    /// Runs (or launches) on each side.
    pub runs: usize,
    /// How much slower the new side truly is: 0.05 for 5 %.
    pub slower: f64,
    /// How many of the cases are slower.
    pub slower_cases: usize,
}

/// Gb/s, messages/s, p50, p99, p99.9, fairness, CPU s/GB: value, margin, scatter against bandwidth's, more is
/// better.
pub const METRICS: [(f64, f64, f64, bool); 7] = [
    (20.0, 0.03, 1.0, true),
    (0.04, 0.05, 1.0, true),
    (3e3, 0.03, 1.0, false),
    (9e3, 0.10, 2.0, false),
    (15e3, 0.20, 4.0, false),
    (0.99, 0.02, 0.1, true),
    (0.35, 0.05, 1.0, false),
];

/// How much of a metric's noise is the run's, which all its metrics share.
const SHARED: f64 = 0.7;

/// One run's deviation in each metric, in units of its spread, for the better.
fn deviations(noise: Noise, rng: &mut Rng) -> [f64; 7] {
    let run = noise.draw(rng);
    let mut all = [0.0; 7];
    for deviation in &mut all {
        *deviation = if rng.f64() < SHARED {
            run
        } else {
            noise.draw(rng)
        };
    }
    // Messages of one size: the rate is the bandwidth in another unit.
    all[1] = all[0];
    all
}

/// `runs` figures of each metric of each case: `[case][metric][run]`.
fn side(setup: &Setup, slower: f64, rng: &mut Rng) -> Vec<[Vec<f64>; 7]> {
    let mut cases = vec![<[Vec<f64>; 7]>::default(); setup.cases];
    for _ in 0..setup.runs {
        // A launch's luck is the same for all that runs in it.
        let launch = deviations(Noise::Normal, rng);
        for (number, case) in cases.iter_mut().enumerate() {
            let deviations = if setup.noise == Noise::Launches {
                // The median of five runs that scatter a fifth as much.
                let within = deviations(Noise::Normal, rng);
                std::array::from_fn(|metric| launch[metric] + 0.2 * 0.54 * within[metric])
            } else {
                deviations(setup.noise, rng)
            };
            let slower = if number < setup.slower_cases {
                slower
            } else {
                0.0
            };
            for (metric, (value, _, scatter, higher)) in METRICS.iter().enumerate() {
                // Fairness does not change with speed.
                let speed = if metric == 5 {
                    0.0
                } else {
                    (1.0 - slower).ln()
                };
                let log = setup.spread * scatter * deviations[metric] + speed;
                case[metric].push(value * if *higher { log.exp() } else { (-log).exp() });
            }
        }
    }
    cases
}

/// One sitting's answers, seven for each case.
pub fn sitting(setup: &Setup, rng: &mut Rng) -> Vec<Answer> {
    let base = side(setup, 0.0, rng);
    let new = side(setup, setup.slower, rng);
    let mut questions = Vec::new();
    for (group, (base, new)) in base.iter().zip(&new).enumerate() {
        for (metric, (_, margin, _, higher_is_better)) in METRICS.iter().enumerate() {
            questions.push(Question {
                group,
                base: &base[metric],
                new: &new[metric],
                margin: *margin,
                higher_is_better: *higher_is_better,
            });
        }
    }
    judge(&questions)
}

/// In how many of so many sittings `is` holds.
pub fn count(setup: &Setup, sittings: usize, seed: u64, is: impl Fn(&[Answer]) -> bool) -> usize {
    let mut rng = Rng::with_seed(seed);
    (0..sittings)
        .filter(|_| is(&sitting(setup, &mut rng)))
        .count()
}
