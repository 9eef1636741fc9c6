//! A figure of lines as a value: which flows, over what, which metrics.

use super::draw::Unit;
use super::figure::Table;
use super::marks::Mark;
use super::rows::groups::{Group, Groups};
use super::rows::sample::Sample;
use super::rows::settings::Setting;
use super::sides::Sides;
use crate::observe::Metric;

pub struct Spec {
    /// Name of its file and of its place on the page.
    pub id: &'static str,
    /// What is shown; `{y}` stands for the first metric.
    pub title: &'static str,
    pub caption: &'static str,
    pub(crate) rows: for<'a> fn(Sides<'a>) -> Vec<Sample<'a>>,
    pub(crate) x: X,
    /// What is drawn of them: a chart each.
    pub(crate) y: &'static [Y],
    pub(crate) columns: &'static [Metric],
    /// Settings that never share a chart.
    pub(crate) apart: &'static [&'static str],
    /// Lines that a chart has at most.
    pub(crate) most_lines: usize,
    pub(crate) beside: &'static [Beside],
    /// What else is drawn in a chart of these lines.
    pub(crate) extra: Extra,
    pub(crate) tables: fn(&Groups<'_>) -> Vec<Table>,
}

type Extra = for<'a> fn(&Groups<'a>, &Group<'a>, Sides<'a>, Metric) -> Vec<Mark>;

pub(crate) enum X {
    /// A setting that is a number: its flag, its words, and how it is written.
    Setting(&'static str, &'static str, Unit),
    /// The rate, from one value of a setting to the next: its flag, its words, and those at a point.
    RateOver(&'static str, &'static str, fn(f64, &Sample<'_>) -> Option<String>),
    /// The percentiles of all samples of a case.
    Percentile,
}

pub(crate) enum Y {
    /// A metric, from 0.
    Linear(Metric),
    /// A metric, where equal ratios are equally far apart.
    Log(Metric),
    /// Gb/s from messages of 8 KiB on, the message rate below.
    Rate,
    /// Percentiles of latency, each with its dashes; the last has markers.
    Percentiles(&'static [Metric]),
}

/// A figure that a flow is held against.
pub(crate) struct Beside {
    /// Name of its lines, and of its column.
    pub(crate) name: &'static str,
    pub(crate) of: fn(&Sample<'_>) -> Option<f64>,
    /// The same for all lines, if it is equal, and drawn as far as it is near.
    pub(crate) is_limit: bool,
}

/// From this mean size on rates are in bits.
const LARGE_BYTES: f64 = 8_192.0;

impl Spec {
    pub(crate) const USUAL: Spec = Spec {
        id: "",
        title: "",
        caption: "",
        rows: |sides| Sample::closed_loops(sides),
        x: X::Percentile,
        y: &[],
        apart: &[],
        most_lines: 6,
        columns: &[],
        beside: &[],
        extra: |_, _, _, _| Vec::new(),
        tables: |_| Vec::new(),
    };
}

impl X {
    pub(crate) fn setting(&self) -> Setting {
        match self {
            X::Setting(flag, ..) | X::RateOver(flag, ..) => Setting::of(flag),
            // All cases are at one place, and launches may differ in this.
            X::Percentile => Setting::of("runs"),
        }
    }

    pub(crate) fn least_places(&self) -> usize {
        match self {
            X::Percentile | X::RateOver("rate", ..) => 1,
            _ => 2,
        }
    }
}

impl Y {
    pub(crate) fn metrics(&self, rate: Metric) -> Vec<Metric> {
        match self {
            Y::Linear(metric) | Y::Log(metric) => vec![*metric],
            Y::Rate => vec![rate],
            Y::Percentiles(metrics) => metrics.to_vec(),
        }
    }
}

/// Gb/s of large messages, else the message rate.
pub(crate) fn rate_of(groups: &Groups<'_>) -> Metric {
    let mut sizes = groups.samples().map(|it| it.observed.flow.settings.mean_bytes());
    if sizes.any(|bytes| bytes >= LARGE_BYTES) { Metric::GbitPerS } else { Metric::MmsgPerS }
}
