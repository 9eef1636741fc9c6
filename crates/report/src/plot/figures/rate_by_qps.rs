//! Message rate and bandwidth against the number of QPs. It must not know where the figures are shown.

use super::curves::Spread;
use super::groups::{Rule, grouped};
use super::panels::{Kind, Panel};
use super::settings::{Sample, Setting};
use crate::compare::Metric;
use crate::plot::figure::Figure;
use crate::results::load::Loaded;

/// The figures, one for each message size at least; none without two numbers of QPs.
pub fn figures(results: &[Loaded]) -> Vec<Figure> {
    let rule = Rule {
        axis: Setting::of("qps"),
        place: &|sample| sample.number(|settings| settings.qps),
        apart: &[Setting::of("size")],
        most_lines: 8,
        most_figures: 12,
        least_places: 2,
    };
    let groups = grouped(Sample::closed_loops(results), &rule);
    let kind = Kind {
        id: "rate-by-qps",
        title: "Message rate and bandwidth against QPs",
        setting: Setting::of("qps"),
        axis: "QPs",
        panels: &[
            Panel {
                axis: "Mmsg/s (10⁶ messages a second)",
                column: "Mmsg/s",
                value: &|sample| Spread::of_metric(sample, Metric::MmsgPerS),
            },
            Panel {
                axis: "Gb/s (10⁹ bits of payload a second)",
                column: "Gb/s",
                value: &|sample| Spread::of_metric(sample, Metric::GbitPerS),
            },
        ],
        note: "All QPs of a flow together.",
    };
    kind.figures(&groups)
}
