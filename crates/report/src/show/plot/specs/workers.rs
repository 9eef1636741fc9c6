//! Rate against the number of workers.

use crate::observe::Metric;
use crate::show::plot::draw::Unit;
use crate::show::plot::spec::{Spec, X, Y};

pub const SPEC: Spec = Spec {
    id: "rate-by-workers",
    title: "{y} against workers",
    caption: "If N workers move less than N times the rate of one, they wait for each other, for the device or for the link.",
    x: X::Setting("workers", "workers at each end", Unit::Plain),
    y: &[Y::Linear(Metric::MmsgPerS)],
    apart: &["size"],
    ..Spec::USUAL
};
