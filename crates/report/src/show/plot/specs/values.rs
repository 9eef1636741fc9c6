//! Figures of lines that are a value and few functions. A new one is a value here and its line in `sections`.

use crate::observe::{Metric, Spread};
use crate::show::plot::draw::Unit;
use crate::show::plot::rows::sample::Sample;
use crate::show::plot::spec::{Beside, Spec, X, Y};
use results::model::PerftestPair;

/// Over the logarithm of 1 / (1 - q).
pub const LATENCY: Spec = Spec {
    id: "latency-percentiles",
    title: "Latency percentiles",
    caption: "Latency: from the post (with --rate from the planned time) until the program sees the completion; for \
              ping-pongs half of the round trip.",
    rows: |sides| Sample::with_latency(sides),
    x: X::Percentile,
    y: &[Y::Log(Metric::P99Ns)],
    ..Spec::USUAL
};

pub const RATE_BY_QPS: Spec = Spec {
    id: "rate-by-qps",
    title: "{y} against QPs",
    caption: "All QPs of a flow together, for each way of sharing completion queues.",
    x: X::Setting("qps", "QPs", Unit::Plain),
    y: &[Y::Rate],
    apart: &["size"],
    ..Spec::USUAL
};

pub const RATE_BY_WORKERS: Spec = Spec {
    id: "rate-by-workers",
    title: "{y} against workers",
    caption: "If N workers move less than N times the rate of one, they wait for each other, for the device or for the link.",
    x: X::Setting("workers", "workers at each end", Unit::Plain),
    y: &[Y::Linear(Metric::MmsgPerS)],
    apart: &["size"],
    ..Spec::USUAL
};

/// Paths over the send depth and over the number of QPs, which are what sets how much a closed loop has in flight.
pub const LATENCY_BY_THROUGHPUT: [Spec; 2] = [
    BY_DEPTH,
    Spec {
        id: "latency-by-throughput-qps",
        title: "Throughput and latency over QPs",
        x: X::RateOver("qps", "QPs", |qps, _| Some(format!("-q {qps}"))),
        ..BY_DEPTH
    },
];

const BY_DEPTH: Spec = Spec {
    id: "latency-by-throughput-tx-depth",
    title: "Throughput and latency over send depth",
    caption: "To the right: more messages in flight bring more throughput. Straight up: they only wait.",
    x: X::RateOver("tx-depth", "send depth", |it, _| Some(format!("-t {it}"))),
    y: &[Y::Percentiles(&[Metric::P50Ns, Metric::P99Ns])],
    apart: &["size", "size-mix"],
    most_lines: 4,
    ..Spec::USUAL
};

/// What several nodes move together to one, and one to several, over how many they are. The rows are sums: a case's flows as one.
pub const FANS: [Spec; 2] = [
    FAN_IN,
    Spec {
        id: "fan-out",
        title: "Outcast over fan-out",
        x: X::Setting("fan-out", "nodes that receive", Unit::Plain),
        ..FAN_IN
    },
];

const FAN_IN: Spec = Spec {
    id: "fan-in",
    title: "Incast over fan-in",
    caption: "All flows of a case together. Jain’s index over n nodes is 1/n if one node gets everything.",
    rows: |sides| Sample::transfers(sides),
    x: X::Setting("fan-in", "nodes that send", Unit::Plain),
    y: &[Y::Linear(Metric::GbitPerS), Y::Linear(Metric::P99Ns), Y::Linear(Metric::Fairness)],
    ..Spec::USUAL
};

pub const BANDWIDTH_BY_SIZE: Spec = Spec {
    id: "bandwidth-by-size",
    title: "{y} against message size",
    caption: "The cost of a message limits small messages, the link limits large ones.",
    x: X::Setting("size", "message size", Unit::Bytes),
    y: &[Y::Log(Metric::GbitPerS)],
    most_lines: 4,
    beside: &[
        Beside { name: "protocol limit", of: limit, is_limit: true },
        Beside { name: "perftest", of: perftest, is_limit: false },
    ],
    ..Spec::USUAL
};

/// What the link and the protocol allow, in Gb/s.
fn limit(sample: &Sample<'_>) -> Option<f64> {
    let mut counted = sample.observed.counted();
    let limits = counted.find_map(|it| it.moved?.limits.as_ref())?;
    Some(limits.link_gbit_per_s * limits.protocol_efficiency)
}

/// What perftest reached, in Gb/s, over the pairs that count; `None` beside one of several flows, whose sum it measures.
fn perftest(sample: &Sample<'_>) -> Option<f64> {
    let case = sample.observed.flow.case;
    let comparison = case.perftest.as_ref().filter(|_| case.config.flows.len() == 1)?;
    let factor = match comparison.metric.as_str() {
        "gbit_per_s" => 1.0,
        "mmsg_per_s" => sample.observed.flow.settings.mean_bytes() * 8.0 / 1e3,
        _ => return None,
    };
    Some(
        Spread::new(
            comparison
                .pairs
                .iter()
                .filter_map(PerftestPair::counted)
                .map(|(_, perftest)| perftest * factor),
        )?
        .median,
    )
}
