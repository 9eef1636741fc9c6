//! Synthetic experiments of open loops: Poisson arrivals at a server whose service time is fixed, message by message
//! (Lindley's recursion). Runs scatter as those of a queue do: much at high loads, where waits of a run depend on each
//! other. Shared by the program that prints the tables and the test that keeps them true.

use fastrand::Rng;
use report::observe::Metric;
use statistics::{Unit, Verdict, verdicts};

use super::experiments::questions;
use super::noise::normal;

/// Time without a queue that a message takes beside its service, in service times.
const TRIP: f64 = 4.0;

/// Metrics of a case that keeps up: what it moves is what was offered.
const METRICS: [Metric; 4] =
    [Metric::P50Ns, Metric::P99Ns, Metric::P99_9Ns, Metric::CpuSecondsPerGb];

/// What an experiment is made of.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Load of each case, as a part of what the server can.
    pub loads: Vec<f64>,
    /// Messages of a run.
    pub messages: usize,
    /// Launches on each side, of one run each.
    pub launches: usize,
    /// Spread of the service time from launch to launch, at the same rate of arrivals: 0.01 for 1 %.
    pub spread: f64,
    /// How much longer the service time of the new side truly is: 0.05 for 5 %.
    pub slower: f64,
}

/// The percentiles of a run's latencies, in service times of the base.
fn run(load: f64, service: f64, messages: usize, rng: &mut Rng) -> [f64; 3] {
    let mut wait = 0.0f64;
    let mut next = || {
        let latency = wait + service + TRIP;
        let gap = -(1.0 - rng.f64()).ln() / load;
        wait = (wait + service - gap).max(0.0);
        latency
    };
    // As many messages as a queue of this load takes to forget that it was empty.
    let warm_up = (10.0 / (1.0 - load * service).max(0.02).powi(2)) as usize;
    (0..warm_up).for_each(|_| {
        next();
    });
    let mut latencies: Vec<f64> = (0..messages).map(|_| next()).collect();
    [0.5, 0.99, 0.999].map(|quantile| {
        let place = (quantile * messages as f64) as usize;
        *latencies.select_nth_unstable_by(place, f64::total_cmp).1
    })
}

/// What all questions of an experiment are answered, launched in turns.
fn experiment(setup: &Setup, rng: &mut Rng) -> Vec<Verdict> {
    let none = vec![<[Vec<f64>; METRICS.len()]>::default(); setup.loads.len()];
    let mut values = [none.clone(), none];
    for turn in 0..2 * setup.launches {
        let side = [0, 1, 1, 0][turn % 4];
        // A launch's luck is the same for all that runs in it.
        let luck = (setup.spread * normal(rng)).exp();
        let service = luck * if side == 1 { 1.0 + setup.slower } else { 1.0 };
        for (load, of_load) in setup.loads.iter().zip(&mut values[side]) {
            let percentiles = run(*load, service, setup.messages, rng);
            let cpu = service * (setup.spread * normal(rng)).exp();
            for (of_metric, value) in of_load.iter_mut().zip(percentiles.into_iter().chain([cpu])) {
                of_metric.push(value);
            }
        }
    }
    let units: Vec<Unit> = (0..setup.launches).map(|launch| Unit { launch, run: None }).collect();
    let words = verdicts(&questions(&units, &values, METRICS), 1.0);
    words.over_all.into_iter().chain(words.by_case).collect()
}

/// In how many experiments a regression is found, over all cases or in any.
pub fn found(setup: &Setup, experiments: usize, seed: u64) -> usize {
    let mut rng = Rng::with_seed(seed);
    (0..experiments).filter(|_| experiment(setup, &mut rng).contains(&Verdict::Worse)).count()
}
