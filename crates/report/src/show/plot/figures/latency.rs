//! Latency percentiles over the logarithm of 1 / (1 - q). It must not know where the figures are shown.

use super::curves::{number_column, text_column};
use super::distribution::{Distribution, distribution};
use super::facets::{self, MOST_CHARTS};
use super::grouping::{Rule, grouped};
use super::groups::{Groups, Line};
use super::naming::{drawn, some_of};
use super::sample::Sample;
use super::settings::Setting;
use crate::observe::Metric;
use crate::observe::standing::counted_flows;
use crate::results::percentile::can_tell;
use crate::show::plot::draw::palette::Look;
use crate::show::plot::draw::{Axis, LineChart, Point, Scale, Series, Unit, number};
use crate::show::plot::figure::{Cell, Figure, Table};
use crate::show::plot::sides::Sides;

const MOST_LINES: usize = 6;
/// A latency axis is logarithmic from this ratio on.
const WIDE: f64 = 8.0;
/// The tail's axis ends at 99.9999999 %.
const LONGEST_TAIL: f64 = 1e9;

/// The figure; none without latencies.
pub fn figures<'a>(results: impl Into<Sides<'a>>) -> Vec<Figure> {
    let has_latency = |sample: &Sample<'_>| {
        counted_flows(&sample.flow)
            .filter_map(|flow| flow.latency_ns.as_ref())
            .any(|latency| latency.count > 0)
            .then_some(0.0)
    };
    let rule = Rule {
        axis: no_axis(),
        place: &has_latency,
        metrics: &[Metric::P99Ns],
        apart: &[],
        most_lines: MOST_LINES,
        most_charts: MOST_CHARTS,
        least_places: 1,
    };
    let groups = grouped(Sample::transfers(results), &rule);
    figure(&groups).into_iter().collect()
}

/// All cases are at one place, and launches may differ in this.
fn no_axis() -> Setting {
    Setting::of("runs")
}

/// A line that is drawn.
struct Drawn {
    /// In its chart.
    name: String,
    /// On the page.
    full_name: String,
    look: Look,
    all: Distribution,
}

fn figure(groups: &Groups<'_>) -> Option<Figure> {
    let of = |heading: &str, line: &Line<'_>| {
        let (_, sample) = line.points.first()?;
        let name = groups.name(line);
        let full_name = match heading {
            "" => name.clone(),
            heading => format!("{heading}: {name}"),
        };
        Some(Drawn {
            name,
            full_name,
            look: groups.look(line),
            all: distribution(sample)?,
        })
    };
    let mut charts: Vec<(String, Vec<Drawn>)> = Vec::new();
    for group in &groups.groups {
        let heading = group.heading();
        let lines = group.lines.iter().filter_map(|line| of(&heading, line));
        let lines: Vec<Drawn> = lines.collect();
        if !lines.is_empty() {
            charts.push((heading, lines));
        }
    }
    let lines = || charts.iter().flat_map(|(_, lines)| lines);
    let points = || lines().flat_map(|line| tail(&line.all));
    let furthest = points().map(|point| point.0).fold(10.0, f64::max);
    let least = points().map(|point| point.1).reduce(f64::min)?.max(1.0);
    let most = points().map(|point| point.1).fold(1.0, f64::max);
    let y = match most / least >= WIDE {
        true => Scale::log10(least, most).widened(0.03),
        false => Scale::from_zero(most),
    };
    let figure = Figure {
        id: "latency-percentiles".to_owned(),
        title: "Latency percentiles".to_owned(),
        subtitle: groups.subtitle(no_axis()),
        description: description(lines()),
        tables: vec![table(lines())],
        ..Figure::default()
    };
    let chart = |(heading, lines): &(String, Vec<Drawn>)| {
        let chart = LineChart {
            x: Axis::new(
                "percentile, on a scale of 1 ÷ (1 − q)",
                Scale::log10(1.8, furthest * 1.15),
                Unit::Tail,
            ),
            y: Axis::new("latency at most", y, Unit::Nanoseconds),
            series: lines.iter().map(Drawn::series).collect(),
            rules: Vec::new(),
        };
        (heading.clone(), chart)
    };
    let drawn_charts: Vec<(String, LineChart)> = charts.iter().map(chart).collect();
    let since = since(groups);
    Some(drawn(figure, |sheet| {
        sheet.legend(&facets::keys(&drawn_charts, &groups.names));
        facets::draw(sheet, &drawn_charts, 320.0);
        sheet.note(since);
        sheet.note("All runs' samples in one histogram; a line ends where ten samples are left.");
        for line in lines() {
            if let Some(note) = line.all.note {
                sheet.note(&format!("{}: {note}.", line.full_name));
            }
        }
        groups.notes.iter().for_each(|note| sheet.note(note));
    }))
}

/// When latency begins.
fn since(groups: &Groups<'_>) -> &'static str {
    let closed = groups.samples().any(Sample::is_closed_loop);
    let open = groups.samples().any(|sample| !sample.is_closed_loop());
    match (closed, open) {
        (true, true) => {
            "Latency ends when the completion is seen. With a load it begins at the message’s planned time, in a \
             closed loop at its post, so messages that would have waited meanwhile have no sample."
        }
        (false, true) => "From the planned time of a message to its completion seen.",
        (_, false) => "From post to completion seen.",
    }
}

/// The quantiles from the median on, as places of the axis, with their latencies.
fn tail(line: &Distribution) -> impl Iterator<Item = (f64, f64)> {
    let tail = line.points.iter();
    let tail = tail.filter(|(quantile, _)| *quantile >= 0.5 - 1e-9);
    tail.map(|(quantile, ns)| (1.0 / (1.0 - quantile), *ns))
        .filter(|(x, _)| *x <= LONGEST_TAIL)
}

impl Drawn {
    fn series(&self) -> Series {
        let point = |(x, ns)| Point {
            x,
            y: Some(ns),
            interval: None,
        };
        Series {
            name: self.name.clone(),
            look: self.look,
            points: tail(&self.all).map(point).collect(),
            markers: false,
        }
    }
}

/// The latency of a quantile, where there were samples enough to tell it.
fn at(line: &Distribution, quantile: f64) -> Option<f64> {
    let found = line.points.iter().find(|(at, _)| *at >= quantile - 1e-9);
    let (_, ns) = found.filter(|_| quantile == 0.0 || can_tell(line.samples, quantile))?;
    Some(*ns)
}

fn description<'d>(lines: impl Iterator<Item = &'d Drawn>) -> String {
    let of = |line: &Drawn| {
        let told = |quantile| at(&line.all, quantile).map_or("unknown".to_owned(), number::time);
        format!(
            "{}: half within {}, 99 % within {}",
            line.full_name,
            told(0.5),
            told(0.99)
        )
    };
    let all: Vec<String> = lines.map(of).collect();
    format!("Latency over percentiles. {}.", some_of(&all))
}

fn table<'d>(lines: impl Iterator<Item = &'d Drawn>) -> Table {
    const QUANTILES: [f64; 6] = [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999];
    let names = ["lowest", "p50", "p90", "p99", "p99.9", "p99.99", "longest"];
    let mut columns = vec![
        text_column("Line"),
        number_column("Runs"),
        number_column("Samples"),
    ];
    columns.extend(names.map(|name| number_column(format!("{name} (µs)"))));
    let row = |line: &Drawn| {
        let all = &line.all;
        let us = |ns: f64| Cell::Number(ns / 1e3, 3);
        let mut row = vec![
            Cell::Text(line.full_name.clone()),
            Cell::Number(all.runs as f64, 0),
            Cell::Number(all.samples as f64, 0),
        ];
        row.extend(QUANTILES.map(|quantile| at(all, quantile).map_or(Cell::Missing, us)));
        row.push(us(all.max_ns));
        row
    };
    Table {
        caption:
            "Percentiles of the samples of all runs that count; missing where there were too few"
                .to_owned(),
        columns,
        rows: lines.map(row).collect(),
    }
}
