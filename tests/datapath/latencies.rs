//! Latencies are those of the device: each message's, to the histogram's bucket.

use null_verbs::loopback;
use plan::Case;
use results::model::{FlowResult, Latency, can_tell};
use settings::{CqMode, Op, Settings};

use crate::bench::{LEAD_NS, MS, US};
use crate::exact::{Truth, constant, recorder_of, timed};
use crate::loopback_node::{Choices, case_of, small};
use crate::planned::for_seeds;

const SEEDS: u64 = 200;

/// Fails unless these are the figures of the sorted `exact` latencies.
#[track_caller]
pub fn assert_latency(latency: &Latency, exact: &[u64]) {
    let recorder = recorder_of(exact);
    let histogram = recorder.histogram();
    let count = exact.len() as u64;
    let value = |quantile: f64| {
        let rank = (quantile * count as f64 - 1e-9).ceil() as usize;
        histogram.highest_equivalent(exact[rank.max(1) - 1])
    };
    let percentile = |quantile| can_tell(count, quantile).then(|| value(quantile));
    for (of, ns) in latency.percentiles() {
        assert_eq!(ns, percentile(of.quantile), "{}", of.name);
    }
    let ends = (latency.count, latency.min, latency.max);
    let lowest = histogram.lowest_equivalent(exact[0]);
    let highest = histogram.highest_equivalent(exact[exact.len() - 1]);
    assert_eq!(ends, (count, lowest, highest));
    let mean =
        |of: &dyn Fn(u64) -> u64| exact.iter().map(|&ns| of(ns) as f64).sum::<f64>() / count as f64;
    let bucket = mean(&|ns| histogram.highest_equivalent(ns) - histogram.lowest_equivalent(ns) + 1);
    assert!((latency.mean - mean(&|ns| ns)).abs() <= bucket);
}

/// A closed loop with random settings, whose messages take about `mean_ns`.
fn closed_loop(choices: &mut Choices, window_ns: u64) -> Case {
    case_of(timed(
        Settings {
            cq: choices.one(CqMode::ALL),
            workers: choices.upto(3) as u32,
            qps: choices.upto(4) as u32,
            tx_depth: choices.upto(16) as u32,
            ..small(choices.one(&[Op::Write, Op::Read, Op::Send]))
        },
        window_ns,
    ))
}

/// With one server and every message signalled, each waits for all that are in flight.
#[test]
fn a_constant_server_gives_every_message_depth_times_its_time() {
    for_seeds(SEEDS, |seed| {
        let choices = &mut seed.choices;
        let case = closed_loop(choices, 20 * MS);
        let service_ns = (choices.upto(20) + 10) * US;
        let expected = service_ns * u64::from(case.qps * case.tx_depth);
        let set_up = seed.bench(&case, constant(service_ns, false));
        let (_, over) = set_up.run(|bench| bench.measure(8 * MS, 20 * MS));
        let latency = over.report().sent.unwrap().latency_ns.unwrap();
        assert_latency(&latency, &vec![expected; latency.count as usize]);
    });
}

/// A closed loop omits what it would have sent while the server stood still: as many messages see the stop as are in flight.
#[test]
fn a_closed_loop_sees_a_stop_as_often_as_it_is_deep() {
    const STOP_NS: u64 = 300 * MS;
    const WARM_UP_NS: u64 = 10 * MS;
    for_seeds(SEEDS, |seed| {
        let choices = &mut seed.choices;
        let case = closed_loop(choices, 400 * MS);
        let in_flight = u64::from(case.qps * case.tx_depth);
        let service_ns = (choices.upto(300) + 100) * US;
        let from_ns = choices.upto(60 * MS);
        let set_up = seed.bench(&case, constant(service_ns, false));
        let (edges, over) = set_up.run(|bench| {
            bench.sample_every(10 * MS);
            loopback::stand_still(bench.now_ns() + WARM_UP_NS + LEAD_NS + from_ns, STOP_NS);
            bench.measure(WARM_UP_NS, 400 * MS)
        });
        let truth = Truth::new(&over, edges);
        let exact = truth.latencies_ns();
        let long = exact.iter().filter(|&&ns| ns >= STOP_NS).count() as u64;
        assert_eq!(long, in_flight);
        let sent: FlowResult = truth.check_timelines(over, edges);
        assert_latency(sent.latency_ns.as_ref().unwrap(), &exact);
        // Whole intervals without a message.
        let stall_ms = sent.timeline.unwrap().longest_stall_seconds.unwrap() * 1e3;
        let least_ms = (STOP_NS / MS - 20) as f64;
        let most_ms = ((STOP_NS + service_ns) / MS) as f64;
        assert!((least_ms..=most_ms).contains(&stall_ms), "{stall_ms}");
    });
}
