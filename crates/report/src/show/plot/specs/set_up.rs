//! How fast QPs are set up against how many a round sets up, and how long each step takes.

use super::set_up_steps;
use crate::observe::Metric;
use crate::show::plot::draw::Unit;
use crate::show::plot::figure::Figure;
use crate::show::plot::rows::sample::Sample;
use crate::show::plot::sides::Sides;
use crate::show::plot::spec::{Spec, X, Y};

pub const SPEC: Spec = Spec {
    id: "set-up-by-qps",
    title: "Connections a second and set-up time against QPs",
    caption: "A round creates QPs at both ends, connects them and destroys them. Connections a second are of whole rounds.",
    rows: |sides| Sample::set_ups(sides),
    x: X::Setting("qps", "QPs that a round sets up", Unit::Plain),
    y: &[Y::Log(Metric::ConnectionsPerS), Y::Log(Metric::SetupP99Ns)],
    ..Spec::USUAL
};

pub fn figures<'a>(sides: impl Into<Sides<'a>>) -> Vec<Figure> {
    let sides: Sides<'_> = sides.into();
    let groups = SPEC.groups(sides);
    let steps = set_up_steps::figure(&groups);
    SPEC.figure(&groups, sides).into_iter().chain(steps).collect()
}
