//! Shares of QPs of which one is served worse than the others.

use null_verbs::loopback::{self, ServiceTimes};
use report::results::model::FlowResult;
use settings::{Op, Settings};

use crate::bench::{MS, SetUp};
use crate::exact::{Truth, exponential, timed};
use crate::loopback_node::{Choices, case_of, small};

const WINDOW_NS: u64 = 20 * MS;

/// Messages of a QP in the window, about.
const EACH: u64 = 24;

/// Messages of each QP, one of which takes so many times as long for its messages; the starved QP and what is told.
pub fn starved(qps: u32, times_as_long: u64, seed: u64) -> (Vec<u64>, usize, FlowResult) {
    let choices = &mut Choices(seed);
    let case = case_of(timed(
        Settings {
            qps,
            tx_depth: choices.upto(3) as u32,
            no_latency: true,
            ..small(Op::Write)
        },
        WINDOW_NS,
    ));
    let starved = choices.upto(qps.into()) as usize - 1;
    let mean_ns = WINDOW_NS / EACH;
    let set_up = SetUp::new(case, seed, exponential(mean_ns, true));
    let (edges, over) = set_up.run(|bench| {
        let qpn = bench.pair.client.shared.qp_contexts()[starved].qp.qpn();
        loopback::serve_qp(qpn, ServiceTimes::Constant(mean_ns * times_as_long));
        bench.measure(2 * MS, WINDOW_NS)
    });
    let counts = Truth::of(&over, edges).done_in_windows(&over);
    (counts, starved, over.report().sent.unwrap())
}

#[test]
fn one_starved_qp_has_its_share() {
    for seed in 0..220 {
        let choices = &mut Choices(seed + 1_000);
        let qps = if seed % 22 == 0 {
            256
        } else {
            1 + choices.upto(31) as u32
        };
        let (counts, starved, told) = starved(qps, 10, seed);
        let of_qps: Vec<u64> = told.qps.iter().map(|qp| qp.messages).collect();
        assert_eq!(of_qps, counts, "seed {seed}");
        let (least, all) = (counts.iter().min().unwrap(), counts.iter().sum::<u64>());
        assert_eq!(counts[starved], *least, "seed {seed}: {counts:?}");
        let squares: u64 = counts.iter().map(|count| count * count).sum();
        let qps = counts.len() as f64;
        let fairness = told.fairness.unwrap();
        let expected = [
            (all * all) as f64 / (qps * squares as f64),
            *least as f64 * qps / all as f64,
            *counts.iter().max().unwrap() as f64 * qps / all as f64,
        ];
        let shown = [fairness.jain, fairness.min_share, fairness.max_share];
        let is_same = |(shown, expected): (f64, f64)| (shown - expected).abs() < 1e-12;
        assert!(
            shown.into_iter().zip(expected).all(is_same),
            "{shown:?} {expected:?}"
        );
    }
}
