//! Rate against the number of QPs.

use crate::show::plot::draw::Unit;
use crate::show::plot::spec::{Spec, X, Y};

pub const SPEC: Spec = Spec {
    id: "rate-by-qps",
    title: "{y} against QPs",
    caption: "All QPs of a flow together, for each way of sharing completion queues.",
    x: X::Setting("qps", "QPs", Unit::Plain),
    y: &[Y::Rate],
    apart: &["size"],
    ..Spec::USUAL
};
