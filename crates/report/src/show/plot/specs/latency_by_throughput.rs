//! Throughput against latency of closed loops: paths over the send depth and over the number of QPs, which are what sets how
//! much a closed loop has in flight.

use crate::observe::Metric;
use crate::show::plot::spec::{Spec, X, Y};

const PERCENTILES: &[Y] = &[Y::Percentiles(&[Metric::P50Ns, Metric::P99Ns])];
const CAPTION: &str =
    "To the right: more messages in flight bring more throughput. Straight up: they only wait.";

pub const BY_DEPTH: Spec = Spec {
    id: "latency-by-throughput-tx-depth",
    title: "Throughput and latency over send depth",
    caption: CAPTION,
    x: X::RateOver("tx-depth", "send depth", |depth, _| {
        Some(format!("-t {depth}"))
    }),
    y: PERCENTILES,
    apart: &["size", "size-mix"],
    most_lines: 4,
    ..Spec::USUAL
};

pub const BY_QPS: Spec = Spec {
    id: "latency-by-throughput-qps",
    title: "Throughput and latency over QPs",
    x: X::RateOver("qps", "QPs", |qps, _| Some(format!("-q {qps}"))),
    ..BY_DEPTH
};
