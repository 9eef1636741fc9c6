//! Throughput over time whose truth is known: a server that stays as it is, becomes slower or faster in steps or all the
//! time. The window's test for drift and the warm-up's for steadiness are held to it.

use datapath::Phase;
use metrics::steady::{Drift, Shape, SteadyDetector, drift};
use metrics::timeline::Sample;
use null_verbs::loopback::{ServiceTimes, Serving};
use plan::Case;
use results::model::{DoubtKind, FlowResult};
use settings::{Op, Settings};

use crate::bench::{MS, SECOND, Seed, for_seeds, list, servers, timed};
use crate::loopback_node::{case_of, small};

const SEEDS: u64 = 200;
const WINDOW_NS: u64 = 640 * MS;
/// Until the window opens: a warm-up, and the time from its word.
const BEFORE_NS: u64 = 25 * MS;

fn closed_loop(depth: u64) -> Case {
    let settings = Settings { tx_depth: depth as u32, ..small(Op::Write) };
    case_of(timed(settings, WINDOW_NS))
}

/// A window with samples every 10 ms, in which the server takes these times, and its drift.
fn window(seed: &mut Seed, times: ServiceTimes) -> (FlowResult, Option<Drift>) {
    let depth = seed.choices.upto(8);
    let first_sample_ns = seed.within(0..10 * MS);
    let set_up = seed.bench(&closed_loop(depth), servers(times, false));
    let ((), over) = set_up.run(|bench| {
        bench.set_phase(Phase::Warmup);
        bench.run_for(first_sample_ns);
        bench.sample_every(10 * MS);
        bench.measure(20 * MS - first_sample_ns, WINDOW_NS);
    });
    let sent = over.report().sent.unwrap();
    let timeline = sent.timeline.as_ref().unwrap();
    let at_ns = timeline.at_seconds.iter().map(|at| (at * 1e9).round() as u64);
    let samples: Vec<Sample> = at_ns
        .zip(&timeline.messages)
        .map(|(at_ns, &messages)| Sample { at_ns, messages })
        .collect();
    let messages: u64 = samples.iter().map(|it| it.messages).sum();
    assert_eq!(messages, sent.totals.messages);
    let found = drift(&samples);
    let marks = sent.window.doubts.iter().filter(|doubt| doubt.kind == DoubtKind::Drift);
    assert_eq!(marks.count(), usize::from(found.is_some()));
    (sent, found)
}

/// Of noise without memory 1 of 10,000 windows is marked: so 2 of 200 are once in 5,000 such trials.
#[test]
fn a_server_that_stays_as_it_is_does_not_drift() {
    let mut marked = 0;
    for_seeds(2 * SEEDS, |seed| {
        let mean_ns = seed.within(800_000..1_200_000);
        let is_constant = seed.number % 2 == 0;
        let (_, drift) = window(
            seed,
            if is_constant {
                ServiceTimes::Constant(mean_ns)
            } else {
                ServiceTimes::Exponential(mean_ns as f64)
            },
        );
        assert!(drift.is_none() || !is_constant, "{drift:?}");
        marked += u64::from(drift.is_some());
    });
    assert!(marked < 2, "{marked}");
}

/// The service times of a server whose rate is `rate_at` of a usual one at each part of the window, which has such a
/// service time.
fn times_of(service_ns: u64, rate_at: impl Fn(f64) -> f64) -> ServiceTimes {
    let mut at_ns = 0;
    let mut times = Vec::new();
    while at_ns < BEFORE_NS + 2 * WINDOW_NS {
        let part = at_ns.saturating_sub(BEFORE_NS) as f64 / WINDOW_NS as f64;
        times.push((service_ns as f64 / rate_at(part.min(1.0))).round() as u64);
        at_ns += times[times.len() - 1];
    }
    ServiceTimes::List(times)
}

#[test]
fn a_server_that_becomes_slower_or_faster_is_told_with_its_change() {
    for_seeds(SEEDS, |seed| {
        let service_ns = seed.within(600_000..900_000);
        let change = seed.within(8..60) as f64 / 100.0 * seed.choices.one(&[-1.0, 1.0]);
        let shape = seed.choices.one(&[Shape::Line, Shape::Halves]);
        let times = times_of(service_ns, |part| match shape {
            Shape::Line => 1.0 + change * (part - 0.5),
            Shape::Halves => 1.0 + change * if part < 0.5 { -0.5 } else { 0.5 },
        });
        let (sent, found) = window(seed, times);
        let found = found.unwrap();
        assert_eq!(found.shape, shape);
        // Each of the 16 parts has a message more or less.
        let message = 16.0 / sent.totals.messages as f64;
        assert!((found.change - change).abs() < message, "{found:?} {change}");
    });
}

#[test]
fn a_change_below_5_percent_is_no_drift() {
    for_seeds(SEEDS, |seed| {
        let service_ns = seed.within(400_000..600_000);
        let change = seed.within(0..30) as f64 / 1e3 * seed.choices.one(&[-1.0, 1.0]);
        let times = times_of(service_ns, |part| 1.0 + change * part.round());
        assert_eq!(window(seed, times).1, None, "{change}");
    });
}

/// When a closed loop's warm-up is steady, by samples each 50 ms.
fn steady_ns(seed: &mut Seed, depth: u64, serving: Serving, cap_ns: u64) -> Option<u64> {
    let set_up = seed.bench(&closed_loop(depth), serving);
    let (steady_ns, _) = set_up.run(|bench| {
        bench.set_phase(Phase::Warmup);
        let began_ns = bench.now_ns();
        let mut detector = SteadyDetector::new(1);
        detector.push(0, 0);
        let samples = (1..=cap_ns / (50 * MS)).map(|sample| sample * 50 * MS);
        let mut is_steady = |at_ns: &u64| {
            bench.run_until_ns(began_ns + at_ns);
            detector.push(*at_ns, bench.pair.client.shared.counts().completed)
        };
        samples.into_iter().find(|at_ns| is_steady(at_ns))
    });
    steady_ns
}

/// Times of which an interval of 50 ms has a whole number, 20 at least; each is a quarter off the next.
const EVEN_NS: [u64; 5] = [2_500_000, 2_000_000, 1_250_000, MS, 500_000];

#[test]
fn a_warm_up_is_steady_eight_intervals_after_its_last_step() {
    for_seeds(SEEDS, |seed| {
        let (mut times, mut last_step_ns) = (Vec::new(), 0);
        let mut place = seed.within(0..5) as usize;
        for _ in 0..seed.within(0..4) {
            let service_ns = EVEN_NS[place];
            // A plateau of eight intervals could not be told from the end.
            let count = seed.within(60 * MS..340 * MS) / service_ns;
            times.extend(vec![service_ns; count as usize]);
            last_step_ns += count * service_ns;
            place = (place + seed.choices.upto(4) as usize) % 5;
        }
        let service_ns = EVEN_NS[place];
        times.extend(vec![service_ns; (2 * SECOND / service_ns) as usize]);
        let depth = seed.choices.upto(8);
        let serving = list(times, false);
        let steady_ns = steady_ns(seed, depth, serving, 3 * SECOND).unwrap();
        // The interval with the step may be so little off that it is one of the eight.
        let of_step_ns = last_step_ns / (50 * MS) * 50 * MS;
        assert!(
            (of_step_ns + 400 * MS..=of_step_ns + 450 * MS).contains(&steady_ns),
            "{steady_ns} after {last_step_ns}"
        );
    });
}
