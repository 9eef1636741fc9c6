//! Message rate against the number of workers. It must not know where the figures are shown.

use super::facets::MOST_CHARTS;
use super::grouping::{Rule, grouped};
use super::panels::{Kind, Panel};
use super::sample::Sample;
use super::settings::Setting;
use crate::observe::Metric;
use crate::show::plot::figure::Figure;
use crate::show::plot::sides::Sides;

/// The figure; none without two numbers of workers.
pub fn figures<'a>(results: impl Into<Sides<'a>>) -> Vec<Figure> {
    let rule = Rule {
        axis: Setting::of("workers"),
        place: &|sample| sample.number(|settings| settings.workers),
        metrics: &[Metric::MmsgPerS],
        apart: &[Setting::of("size")],
        most_lines: 6,
        most_charts: MOST_CHARTS,
        least_places: 2,
    };
    let groups = grouped(Sample::closed_loops(results), &rule);
    let kind = Kind {
        id: "rate-by-workers",
        title: "Message rate against workers, Mmsg/s",
        setting: Setting::of("workers"),
        axis: "worker threads at each end",
        panels: &[Panel {
            axis: "Mmsg/s (10⁶ messages a second), all workers together",
            column: "Mmsg/s",
            is_log: false,
            value: &|sample| sample.spread(Metric::MmsgPerS),
        }],
        note: "If N workers move less than N times the rate of one, they wait for each other, for the device or for \
               the link. Charts of figures far apart have scales of their own.",
    };
    kind.figure(&groups).into_iter().collect()
}
