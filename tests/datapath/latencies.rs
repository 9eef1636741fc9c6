//! Latencies are those of the device: each message's, to the histogram's bucket.

use null_verbs::loopback::{self, Served};
use report::results::model::{FlowResult, Latency};
use report::results::percentile::can_tell;
use rocebench::plan::Case;
use settings::{CqMode, Op, Settings};

use crate::bench::{LEAD_NS, MS, SetUp, US};
use crate::exact::{Truth, constant, exponential, recorder_of, timed};
use crate::loopback_node::{Choices, case_of, small};

const SEEDS: u64 = 200;

/// Fails unless these are the figures of the sorted `exact` latencies.
#[track_caller]
pub fn assert_latency(told: &Latency, exact: &[u64], what: &str) {
    let all = recorder_of(exact);
    let histogram = all.histogram();
    let count = exact.len() as u64;
    let value = |quantile: f64| {
        let rank = (quantile * count as f64 - 1e-9).ceil() as usize;
        histogram.highest_equivalent(exact[rank.max(1) - 1])
    };
    let percentile = |quantile| can_tell(count, quantile).then(|| value(quantile));
    let tail = [told.p90, told.p99, told.p99_9];
    assert_eq!(tail, [0.9, 0.99, 0.999].map(percentile), "{what}");
    let ends = (told.count, told.min, told.p50, told.max);
    let lowest = histogram.lowest_equivalent(exact[0]);
    let highest = histogram.highest_equivalent(exact[exact.len() - 1]);
    assert_eq!(ends, (count, lowest, value(0.5), highest), "{what}");
    let mean =
        |of: &dyn Fn(u64) -> u64| exact.iter().map(|&ns| of(ns) as f64).sum::<f64>() / count as f64;
    let bucket = mean(&|ns| histogram.highest_equivalent(ns) - histogram.lowest_equivalent(ns) + 1);
    assert!((told.mean - mean(&|ns| ns)).abs() <= bucket, "{what}");
}

/// A closed loop with random settings, whose messages take about `mean_ns`.
fn closed_loop(choices: &mut Choices, window_ns: u64) -> Case {
    case_of(timed(
        Settings {
            cq: choices.one(&[CqMode::Shared, CqMode::PerWorker, CqMode::PerQp]),
            workers: choices.upto(3) as u32,
            qps: choices.upto(4) as u32,
            tx_depth: choices.upto(16) as u32,
            ..small(choices.one(&[Op::Write, Op::Read, Op::Send]))
        },
        window_ns,
    ))
}

#[test]
fn percentiles_are_those_of_what_the_device_served() {
    for seed in 0..SEEDS {
        let choices = &mut Choices(seed);
        let window_ns = 25 * MS;
        let case = closed_loop(choices, window_ns);
        let (mean_ns, is_of_qp) = (choices.upto(20) * US + 15 * US, choices.one(&[true, false]));
        let serving = match choices.upto(3) {
            1 => constant(mean_ns, is_of_qp),
            2 => exponential(mean_ns, is_of_qp),
            _ => crate::exact::list(
                (0..9).map(|_| choices.upto(2 * mean_ns)).collect(),
                is_of_qp,
            ),
        };
        let set_up = SetUp {
            // A worker that looks only so often: latencies end when it looks.
            pass_ns: choices.one(&[None, None, Some(7 * US), Some(31_337)]),
            ..SetUp::new(case, seed, serving)
        };
        let what = format!("seed {seed}: {:?} {:?}", set_up.case, set_up.serving);
        let (edges, over) = set_up.run(|bench| bench.measure(3 * MS, window_ns));
        let truth = Truth::of(&over, edges);
        truth.check(&over, &what);
        let exact = truth.latencies_ns();
        if set_up.pass_ns.is_none() {
            // Without the rules of the window: what was seen in it, and what was posted in it.
            let (start_ns, end_ns) = truth.ends[0][0].window_ns();
            let is_held = |it: &&Served| it.done_ns > start_ns && it.posted_ns <= end_ns;
            let held = over.served.iter().filter(is_held);
            let mut all: Vec<u64> = held.map(|it| it.done_ns - it.posted_ns).collect();
            all.sort_unstable();
            assert_eq!(exact, all, "{what}");
        }
        let sent = over.report().sent.unwrap();
        assert_latency(&sent.latency_ns.unwrap(), &exact, &what);
    }
}

/// With one server and every message signalled, each waits for all that are in flight.
#[test]
fn a_constant_server_gives_every_message_depth_times_its_time() {
    for seed in 0..SEEDS {
        let choices = &mut Choices(seed);
        let case = closed_loop(choices, 20 * MS);
        let service_ns = (choices.upto(20) + 10) * US;
        let expected = service_ns * u64::from(case.qps * case.tx_depth);
        let (_, over) = SetUp::new(case, seed, constant(service_ns, false))
            .run(|bench| bench.measure(8 * MS, 20 * MS));
        let latency = over.report().sent.unwrap().latency_ns.unwrap();
        assert_latency(
            &latency,
            &vec![expected; latency.count as usize],
            &format!("seed {seed}"),
        );
    }
}

/// A closed loop omits what it would have sent while the server stood still: as many messages see the stop as are in flight.
#[test]
fn a_closed_loop_sees_a_stop_as_often_as_it_is_deep() {
    const STOP_NS: u64 = 300 * MS;
    const WARM_UP_NS: u64 = 10 * MS;
    for seed in 0..SEEDS {
        let choices = &mut Choices(seed);
        let case = closed_loop(choices, 400 * MS);
        let in_flight = u64::from(case.qps * case.tx_depth);
        let service_ns = (choices.upto(300) + 100) * US;
        let from_ns = choices.upto(60 * MS);
        let what = format!("seed {seed}: {case:?}");
        let (edges, over) = SetUp::new(case, seed, constant(service_ns, false)).run(|bench| {
            bench.sample_every(10 * MS);
            loopback::stand_still(bench.now_ns() + WARM_UP_NS + LEAD_NS + from_ns, STOP_NS);
            bench.measure(WARM_UP_NS, 400 * MS)
        });
        let truth = Truth::of(&over, edges);
        truth.check(&over, &what);
        let exact = truth.latencies_ns();
        let long = exact.iter().filter(|&&ns| ns >= STOP_NS).count() as u64;
        assert_eq!(long, in_flight, "{what}");
        let sent: FlowResult = truth.check_timelines(over, edges, &what);
        assert_latency(sent.latency_ns.as_ref().unwrap(), &exact, &what);
        // Whole intervals without a message.
        let stall_ms = sent.timeline.unwrap().longest_stall_seconds.unwrap() * 1e3;
        let least_ms = (STOP_NS / MS - 20) as f64;
        let most_ms = ((STOP_NS + service_ns) / MS) as f64;
        assert!(
            (least_ms..=most_ms).contains(&stall_ms),
            "{what}: {stall_ms}"
        );
    }
}
