//! Shares of QPs of which one is served worse than the others.

use null_verbs::loopback::{self, ServiceTimes};
use results::model::FlowResult;
use settings::{Op, Settings};

use crate::bench::{MS, SetUp, US};
use crate::exact::{Truth, constant, exponential, timed};
use crate::loopback_node::{Choices, case_of, small};

const WINDOW_NS: u64 = 20 * MS;

/// Messages of a QP in the window, about.
const EACH: u64 = 24;

/// Messages of each QP, one of which takes so many times as long for its messages; the starved QP and what is told.
fn starved(qps: u32, times_as_long: u64, seed: u64) -> (Vec<u64>, usize, FlowResult) {
    let choices = &mut Choices(seed);
    let case = case_of(timed(
        Settings { qps, tx_depth: choices.upto(3) as u32, no_latency: true, ..small(Op::Write) },
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
    let counts = Truth::new(&over, edges).done_in_windows(&over);
    (counts, starved, over.report().sent.unwrap())
}

#[test]
fn one_starved_qp_has_its_share_and_is_named() {
    let mut named_in_many = 0;
    for seed in 0..220 {
        let choices = &mut Choices(seed + 1_000);
        let qps = if seed % 22 == 0 { 256 } else { 1 + choices.upto(31) as u32 };
        let (counts, starved, report) = starved(qps, 10, seed);
        let of_qps: Vec<u64> = report.qps.iter().map(|qp| qp.messages).collect();
        assert_eq!(of_qps, counts, "seed {seed}");
        let (least, sum) = (counts.iter().min().unwrap(), counts.iter().sum::<u64>());
        assert_eq!(counts[starved], *least, "seed {seed}: {counts:?}");
        let squares: u64 = counts.iter().map(|count| count * count).sum();
        let qp_count = counts.len() as f64;
        let fairness = report.fairness.unwrap();
        let expected = [
            (sum * sum) as f64 / (qp_count * squares as f64),
            *least as f64 * qp_count / sum as f64,
            *counts.iter().max().unwrap() as f64 * qp_count / sum as f64,
        ];
        let named: Vec<u32> = fairness.starved.iter().map(|qp| qp.index).collect();
        let expected_names = if is_too_few(*least, sum as f64 / qp_count, qp_count) {
            vec![starved as u32]
        } else {
            vec![]
        };
        assert_eq!(named, expected_names, "seed {seed}: {counts:?}");
        named_in_many += u32::from(qp_count == 256.0 && !named.is_empty());
        for qp in &fairness.starved {
            assert_eq!(qp.qpn, report.qps[starved].qpn);
            assert_eq!(qp.share, fairness.min_share);
        }
        let shown = [fairness.jain, fairness.min_share, fairness.max_share];
        let is_same = |(one, other): (f64, f64)| (one - other).abs() < 1e-12;
        assert!(shown.into_iter().zip(expected).all(is_same), "{shown:?} {expected:?}");
    }
    assert_eq!(named_in_many, 10);
}

/// Less than half, and so few that one of so many Poisson counts is as small in at most 1 of 10,000 runs.
fn is_too_few(count: u64, mean: f64, qps: f64) -> bool {
    let terms = (1..=count).scan(1.0, |term, i| {
        *term *= mean / i as f64;
        Some(*term)
    });
    let at_most = (-mean).exp() * (1.0 + terms.sum::<f64>());
    (count as f64) < mean / 2.0 && at_most * qps <= 1e-4
}

/// Two QPs of which one sends 64 bytes with each message and the other 4096: bytes are shared, not messages. None is
/// starved: it got as many messages as the other.
#[test]
fn fairness_is_of_bytes() {
    let case = case_of(timed(
        Settings { qps: 2, tx_depth: 1, size_mix: "64:1,4096:1".parse().ok(), ..small(Op::Write) },
        20 * MS,
    ));
    let (_, over) =
        SetUp::new(case, 1, constant(10 * US, true)).run(|bench| bench.measure(MS, 20 * MS));
    let sent = over.report().sent.unwrap();
    let messages = sent.qps[0].messages;
    let mut bytes = [0, 1].map(|qp| sent.qps[qp].bytes);
    bytes.sort_unstable();
    assert_eq!(sent.qps[1].messages, messages);
    assert_eq!(bytes, [64 * messages, 4096 * messages]);
    let fairness = sent.fairness.unwrap();
    let jain = (4160.0 * 4160.0) / (2.0 * (64.0 * 64.0 + 4096.0 * 4096.0));
    assert!((fairness.jain - jain).abs() < 1e-12, "{}", fairness.jain);
    assert!((fairness.min_share - 128.0 / 4160.0).abs() < 1e-12);
    assert!(fairness.starved.is_empty());
}
