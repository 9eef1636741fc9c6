//! Bandwidth against message size, with what the protocol allows and what perftest reaches.

use crate::observe::{Metric, Spread};
use crate::results::model::PerftestPair;
use crate::show::plot::draw::Unit;
use crate::show::plot::rows::sample::Sample;
use crate::show::plot::spec::{Beside, Spec, X, Y};

pub const SPEC: Spec = Spec {
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
        Spread::of(
            comparison
                .pairs
                .iter()
                .filter_map(PerftestPair::counted)
                .map(|(_, perftest)| perftest * factor),
        )?
        .median,
    )
}
