//! What several nodes move together to one, or one to several, over how many they are. The rows are sums: a case's flows as one.

use crate::observe::Metric;
use crate::show::plot::draw::Unit;
use crate::show::plot::rows::sample::Sample;
use crate::show::plot::spec::{Spec, X, Y};

pub const IN: Spec = Spec {
    id: "fan-in",
    title: "Incast over fan-in",
    caption: "All flows of a case together. Jain’s index over n nodes is 1/n if one node gets everything.",
    rows: |sides| Sample::transfers(sides),
    x: X::Setting("fan-in", "nodes that send", Unit::Plain),
    y: &[
        Y::Linear(Metric::GbitPerS),
        Y::Linear(Metric::P99Ns),
        Y::Linear(Metric::Fairness),
    ],
    ..Spec::USUAL
};

pub const OUT: Spec = Spec {
    id: "fan-out",
    title: "Outcast over fan-out",
    x: X::Setting("fan-out", "nodes that receive", Unit::Plain),
    ..IN
};
