//! Queues whose waiting times are known: what an open loop reports of them agrees with the formulas of M/D/1 and M/M/1.

use queueing::Md1;
use settings::{Arrivals, Settings};

use crate::bench::{MS, SECOND, Seed, for_seeds, list};
use crate::loopback_node::case_of;
use crate::open_loop::{at_rate, measured};

/// What sums over messages were off their expectation, in runs that know nothing of each other.
#[derive(Default)]
struct Differences {
    sum: f64,
    squares: f64,
}

impl Differences {
    /// Adds what a run's sum is off its expectation.
    fn add(&mut self, off: f64) {
        self.sum += off;
        self.squares += off * off;
    }

    /// How many standard errors all runs are off together: the variance of a sum of independent ones, each of mean 0, is
    /// the sum of their squares' expectations.
    fn errors(&self) -> f64 {
        self.sum / self.squares.sqrt()
    }
}

/// Times in services at which the distribution is compared.
const TIMES: [f64; 4] = [1.5, 2.0, 3.0, 6.0];

/// The mean time from arrival to departure and P(at most so long) of a queue at this load, in services.
fn truth(is_exponential: bool, load: f64) -> [f64; 5] {
    let queue = Md1::new(load).unwrap();
    let at_most = TIMES.map(|time| {
        if is_exponential {
            1.0 - (-(1.0 - load) * time).exp()
        } else {
            queue.wait_at_most(time - 1.0)
        }
    });
    let mean = if is_exponential { 1.0 / (1.0 - load) } else { queue.mean_wait() + 1.0 };
    [mean, at_most[0], at_most[1], at_most[2], at_most[3]]
}

/// Each of six queues with 50 seeds. Latencies are from the plan, and so the whole time in the queue.
#[test]
fn arrivals_by_chance_take_as_long_as_the_formulas_of_their_queue_say() {
    const SERVICE_NS: u64 = MS;
    // The slowest, M/M/1 at 80 %, forgets how it began in 1 / (1 - sqrt(0.8))² = 90 services.
    const WARM_UP_NS: u64 = 500 * SERVICE_NS;
    const WINDOW_NS: u64 = 1_000 * SERVICE_NS;
    let cells = [false, true].map(|kind| [0.3, 0.5, 0.8].map(|load| (kind, load))).concat();
    let mut off: Vec<[Differences; 5]> = cells.iter().map(|_| Default::default()).collect();
    for_seeds(300, |seed| {
        let cell = (seed.number % 6) as usize;
        let (is_exponential, load) = cells[cell];
        let rate = (load * SECOND as f64 / SERVICE_NS as f64).round() as u64;
        let case = case_of(Settings {
            arrivals: Arrivals::Poisson,
            qps: seed.choices.upto(4) as u32,
            tx_depth: 256,
            ..at_rate(seed, rate, WINDOW_NS)
        });
        let times = if is_exponential {
            (0..4_000).map(|_| exponential(seed, SERVICE_NS)).collect()
        } else {
            vec![SERVICE_NS]
        };
        let set_up = seed.bench(&case, list(times, false));
        let (_, over) = measured(&set_up, (WARM_UP_NS, WINDOW_NS), |_| {});
        let sent = over.report().sent.unwrap();
        assert_eq!(sent.load.unwrap().queue_full_messages, 0);
        let histogram = sent.latency_ns.unwrap().histogram().unwrap();
        let truth = truth(is_exponential, load);
        let mut sums = [0.0; 5];
        for bucket in histogram.iter_recorded() {
            // The middle of a bucket, which is 1 % long at most.
            let ns = histogram.median_equivalent(bucket.value_iterated_to());
            let time = ns as f64 / SERVICE_NS as f64;
            let below = TIMES.map(|most| f64::from(u8::from(time <= most)));
            let found = [time, below[0], below[1], below[2], below[3]];
            for ((sum, share), true_share) in sums.iter_mut().zip(found).zip(truth) {
                *sum += (share - true_share) * bucket.count_at_value() as f64;
            }
        }
        for (deviation, sum) in off[cell].iter_mut().zip(sums) {
            deviation.add(sum);
        }
    });
    for (cell, of_cell) in cells.iter().zip(&off) {
        for (deviation, what) in of_cell.iter().zip(["mean", "1.5", "2", "3", "6"]) {
            let errors = deviation.errors();
            assert!(errors.abs() < 5.0, "{cell:?} {what}: {errors}");
        }
    }
}

fn exponential(seed: &mut Seed, mean_ns: u64) -> u64 {
    let uniform = seed.within(1..1 << 53) as f64 / (1_u64 << 53) as f64;
    (-uniform.ln() * mean_ns as f64).round() as u64
}
