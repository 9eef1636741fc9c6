//! Figures of lines that are a value and nothing else. A new one is a value here and its line in `sections`.

use crate::observe::Metric;
use crate::show::plot::draw::Unit;
use crate::show::plot::rows::sample::Sample;
use crate::show::plot::spec::{Spec, X, Y};

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
