//! Message rate, or bandwidth of large messages, against the number of QPs. It must not know where the figures are shown.

use super::facets::MOST_CHARTS;
use super::grouping::{Rule, grouped};
use super::load_words::LARGE_BYTES;
use super::panels::{Kind, Panel};
use super::sample::Sample;
use super::settings::Setting;
use crate::observe::Metric;
use crate::show::plot::figure::Figure;
use crate::show::plot::sides::Sides;

/// The figure; none without two numbers of QPs.
pub fn figures<'a>(results: impl Into<Sides<'a>>) -> Vec<Figure> {
    let rule = Rule {
        axis: Setting::of("qps"),
        place: &|sample| sample.number(|settings| settings.qps),
        metrics: &[Metric::MmsgPerS],
        apart: &[Setting::of("size")],
        most_lines: 6,
        most_charts: MOST_CHARTS,
        least_places: 2,
    };
    let groups = grouped(Sample::closed_loops(results), &rule);
    let mut sizes = groups.samples().map(|it| it.flow.settings.mean_bytes());
    // Of one size the two say the same.
    let (title, axis, column, metric) = match sizes.any(|bytes| bytes >= LARGE_BYTES) {
        true => (
            "Bandwidth against QPs, Gb/s",
            "Gb/s (10⁹ bits of payload a second)",
            "Gb/s",
            Metric::GbitPerS,
        ),
        false => (
            "Message rate against QPs, Mmsg/s",
            "Mmsg/s (10⁶ messages a second)",
            "Mmsg/s",
            Metric::MmsgPerS,
        ),
    };
    let kind = Kind {
        id: "rate-by-qps",
        title,
        setting: Setting::of("qps"),
        axis: "QPs",
        panels: &[Panel {
            axis,
            column,
            is_log: false,
            value: &|sample| sample.spread(metric),
        }],
        note: "All QPs of a flow together. Charts of figures far apart have scales of their own.",
    };
    kind.figure(&groups).into_iter().collect()
}
