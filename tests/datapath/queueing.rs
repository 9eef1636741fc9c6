//! Queues whose waiting times are known: M/D/1 and M/M/1, message by message and against their formulas; and a server that
//! stands still.

use std::ops::Range;

use null_verbs::loopback;
use queueing::Md1;
use settings::{Arrivals, Settings};

use crate::bench::{MS, SECOND};
use crate::exact::{constant, list};
use crate::loopback_node::case_of;
use crate::planned::{
    Expected, NEVER, Ran, START_NS, Seed, at_rate, done_ns, for_seeds, planned_times, posted_by_qp,
};

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
const WAITS: [f64; 4] = [0.0, 0.5, 2.0, 5.0];

/// The mean wait and P(wait at most so many) of a queue at this load, in services.
fn truth(is_exponential: bool, load: f64) -> [f64; 5] {
    let queue = Md1::new(load).unwrap();
    let at_most = WAITS.map(|wait| {
        if is_exponential {
            1.0 - load * (-(1.0 - load) * wait).exp()
        } else {
            queue.wait_at_most(wait)
        }
    });
    let mean = if is_exponential { load / (1.0 - load) } else { queue.mean_wait() };
    [mean, at_most[0], at_most[1], at_most[2], at_most[3]]
}

/// Each of six queues with 50 seeds. What a message waits is its latency without its own service.
#[test]
fn arrivals_by_chance_wait_as_lindley_says_and_as_the_formulas_of_their_queue() {
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
        let times: Vec<u64> = if is_exponential {
            (0..4_000).map(|_| exponential(seed, SERVICE_NS)).collect()
        } else {
            vec![SERVICE_NS]
        };
        let service_ns = |index: usize| times[index % times.len()];
        let set_up = seed.bench(&case, list(times.clone(), false));
        let ran = Ran::new(&set_up, WARM_UP_NS, WINDOW_NS, NEVER);
        // Queues have room, so that messages are posted when they are planned.
        let planned = posted_by_qp(&ran.over);
        let expected = Expected::new(&planned, &ran);
        assert_eq!(expected.queue_full_messages, 0);
        let mut come: Vec<u64> = planned.concat();
        come.sort_unstable();
        let done = done_ns(&come, service_ns, &NEVER);
        let shown = ran.over.served.iter().map(|it| it.done_ns);
        assert!(shown.eq(done.iter().copied()));
        let truth = truth(is_exponential, load);
        let mut sums = [0.0; 5];
        for (index, (come_ns, done_ns)) in come.iter().zip(&done).enumerate() {
            if *come_ns >= ran.edges.opens_raw {
                let wait = (done_ns - come_ns - service_ns(index)) as f64 / SERVICE_NS as f64;
                let below = WAITS.map(|most| f64::from(u8::from(wait <= most)));
                let found = [wait, below[0], below[1], below[2], below[3]];
                for ((sum, share), true_share) in sums.iter_mut().zip(found).zip(truth) {
                    *sum += share - true_share;
                }
            }
        }
        for (deviation, sum) in off[cell].iter_mut().zip(sums) {
            deviation.add(sum);
        }
        expected.holds(ran);
    });
    for (cell, of_cell) in cells.iter().zip(&off) {
        for (deviation, what) in of_cell.iter().zip(["mean", "0", "0.5", "2", "5"]) {
            let errors = deviation.errors();
            assert!(errors.abs() < 5.0, "{cell:?} {what}: {errors}");
        }
    }
}

fn exponential(seed: &mut Seed, mean_ns: u64) -> u64 {
    let uniform = seed.within(1..1 << 53) as f64 / (1_u64 << 53) as f64;
    (-uniform.ln() * mean_ns as f64).round() as u64
}

const STOP_NS: u64 = 300 * MS;
const WINDOW_NS: u64 = 3 * SECOND;

/// A server with this time, that stands still from some instant well within a window.
fn stop_within(seed: &mut Seed) -> (u64, Range<u64>) {
    let service_ns = seed.within(3 * MS..7 * MS);
    let from_ns = START_NS + seed.within(400 * MS..2 * SECOND);
    (service_ns, from_ns..from_ns + STOP_NS)
}

#[test]
fn an_open_loop_holds_what_was_planned_while_its_server_stood_still() {
    for_seeds(200, |seed| {
        let (service_ns, still) = stop_within(seed);
        // At 25 % load.
        let rate = SECOND / 4 / service_ns;
        let case = case_of(Settings {
            arrivals: Arrivals::Fixed,
            tx_depth: 64,
            ..at_rate(seed, rate, WINDOW_NS)
        });
        let set_up = seed.bench(&case, constant(service_ns, false));
        let stop = still.clone();
        let ran = Ran::with(&set_up, 100 * MS, WINDOW_NS, NEVER, |_| {
            loopback::stand_still(stop.start, STOP_NS);
        });
        let planned = planned_times(seed, &case, ran.edges.closes_raw);
        let done = done_ns(&planned[0], |_| service_ns, &still);
        let shown = ran.over.served.iter().map(|it| it.done_ns);
        assert!(shown.eq(done.iter().copied()));
        // Those whose service the stop met or delayed. The rest of the stop is the wait of who comes in it; each
        // takes a service from the backlog, and a quarter of one comes meanwhile.
        let latencies: Vec<u64> = done
            .iter()
            .zip(&planned[0])
            .filter(|(done, planned)| **done - **planned > service_ns)
            .map(|(done, planned)| done - planned)
            .collect();
        let in_stop = |at_ns: &&u64| (still.start - service_ns..still.end).contains(at_ns);
        assert!(latencies.len() >= planned[0].iter().filter(in_stop).count() - 1);
        assert!(latencies[0] + 4 * service_ns >= STOP_NS);
        Expected::new(&planned, &ran).holds(ran);
    });
}
