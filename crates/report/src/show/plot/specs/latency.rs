//! Latency percentiles over the logarithm of 1 / (1 - q).

use crate::observe::Metric;
use crate::show::plot::rows::sample::Sample;
use crate::show::plot::spec::{Spec, X, Y};

pub const SPEC: Spec = Spec {
    id: "latency-percentiles",
    title: "Latency percentiles",
    caption: "Latency: from the post (with --rate from the planned time) until the program sees the completion; for \
              ping-pongs half of the round trip.",
    rows: |sides| Sample::with_latency(sides),
    x: X::Percentile,
    y: &[Y::Log(Metric::P99Ns)],
    ..Spec::USUAL
};
