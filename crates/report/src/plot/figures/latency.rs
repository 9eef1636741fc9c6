//! Latency percentiles over the logarithm of 1 / (1 - q), and the same as a CDF. It must not know where the
//! figures are shown.

use super::curves::{number_column, text_column};
use super::distribution::{Distribution, distribution};
use super::groups::{Group, Groups, Rule, grouped};
use super::naming::head;
use super::settings::{Sample, Setting};
use crate::plot::draw::palette::look;
use crate::plot::draw::{Axis, LineChart, Point, Scale, Series, Sheet, Unit, number};
use crate::plot::figure::{Cell, Figure, Table};
use crate::plot::median::counted_flows;
use crate::results::load::Loaded;
use crate::results::percentile::can_tell;

/// A closed loop and seven loads fit.
const MOST_LINES: usize = 8;
const MOST_FIGURES: usize = 12;
/// A latency axis is logarithmic from this ratio on.
const WIDE: f64 = 8.0;
/// The tail's axis ends at 99.9999999 %.
const LONGEST_TAIL: f64 = 1e9;

/// The figures; none without latencies.
pub fn figures(results: &[Loaded]) -> Vec<Figure> {
    let has_latency = |sample: &Sample<'_>| {
        counted_flows(&sample.flow)
            .filter_map(|flow| flow.latency_ns.as_ref())
            .any(|latency| latency.count > 0)
            .then_some(0.0)
    };
    let rule = Rule {
        axis: Setting::of("duration"),
        place: &has_latency,
        apart: &[],
        most_lines: MOST_LINES,
        most_figures: MOST_FIGURES,
        least_places: 1,
    };
    let Groups { groups, notes } = grouped(Sample::transfers(results), &rule);
    let last = groups.len().saturating_sub(1);
    let drawn = groups.iter().enumerate().filter_map(|(index, group)| {
        let notes: &[String] = if index == last { &notes } else { &[] };
        figure(index, group, notes)
    });
    drawn.collect()
}

fn figure(index: usize, group: &Group<'_>, notes: &[String]) -> Option<Figure> {
    let of = |line: &super::groups::Line<'_>| {
        let (_, sample) = line.points.first()?;
        Some((group.name(line), distribution(&sample.flow)?))
    };
    let lines: Vec<(String, Distribution)> = group.lines.iter().filter_map(of).collect();
    if lines.is_empty() {
        return None;
    }
    let mut figure = Figure {
        id: format!("latency-{}", index + 1),
        title: group.title("Latency: percentiles and distribution"),
        subtitle: group.subtitle(Setting::of("duration")),
        description: description(&lines),
        svg: String::new(),
        tables: vec![table(&lines)],
    };
    let mut sheet = Sheet::new(head(&figure));
    let tail = tail_chart(&lines);
    sheet.legend(&tail.keys());
    let area = sheet.take(320.0);
    tail.draw(&mut sheet.canvas, area);
    let area = sheet.take(270.0);
    cdf_chart(&lines).draw(&mut sheet.canvas, area);
    sheet.note(since(group));
    sheet.note("All runs' samples in one histogram; a line ends at its last sample.");
    for (name, line) in &lines {
        if let Some(note) = line.note {
            sheet.note(&format!("{name}: {note}."));
        }
    }
    notes.iter().for_each(|note| sheet.note(note));
    figure.svg = sheet.finish();
    Some(figure)
}

/// When latency begins.
fn since(group: &Group<'_>) -> &'static str {
    let samples = || group.lines.iter().flat_map(|line| &line.points);
    let closed = samples().any(|(_, sample)| sample.is_closed_loop());
    let open = samples().any(|(_, sample)| !sample.is_closed_loop());
    match (closed, open) {
        (true, true) => {
            "To completion seen: with a load, from the time at which a message was planned; in a closed loop, from its \
             post, so that what would have waited meanwhile is in no sample."
        }
        (false, true) => "From the time at which a message was planned to its completion seen.",
        (_, false) => "From post to completion seen.",
    }
}

fn latency_scale(points: impl Iterator<Item = f64> + Clone) -> Scale {
    let least = points.clone().fold(f64::INFINITY, f64::min).max(1.0);
    let most = points.fold(1.0, f64::max);
    if most / least >= WIDE {
        Scale::log10(least, most).widened(0.03)
    } else {
        Scale::from_zero(most)
    }
}

fn series(index: usize, (name, line): &(String, Distribution), points: Vec<Point>) -> Series {
    Series {
        name: match line.note {
            Some(_) => format!("{name} *"),
            None => name.clone(),
        },
        look: look(index),
        points,
        markers: false,
    }
}

fn point(x: f64, y: f64) -> Point {
    Point {
        x,
        y: Some(y),
        interval: None,
    }
}

fn tail_chart(lines: &[(String, Distribution)]) -> LineChart {
    // Below the median the axis would spend a third of its width on what the CDF shows better.
    let shown = |line: &Distribution| {
        let tail = line
            .points
            .iter()
            .copied()
            .filter(|(quantile, _)| *quantile >= 0.5 - 1e-9);
        tail.map(|(quantile, ns)| (1.0 / (1.0 - quantile), ns))
            .filter(|(x, _)| *x <= LONGEST_TAIL)
            .collect::<Vec<_>>()
    };
    let all: Vec<Vec<(f64, f64)>> = lines.iter().map(|(_, line)| shown(line)).collect();
    let furthest = all
        .iter()
        .flatten()
        .map(|point| point.0)
        .fold(10.0, f64::max);
    let to_series = |(index, points): (usize, &Vec<(f64, f64)>)| {
        let points = points.iter().map(|(x, ns)| point(*x, *ns)).collect();
        Some(series(index, lines.get(index)?, points))
    };
    LineChart {
        x: Axis::new(
            "percentile, on a scale of 1 ÷ (1 − q)",
            Scale::log10(1.8, furthest * 1.15),
            Unit::Tail,
        ),
        y: Axis::new(
            "latency at most",
            latency_scale(all.iter().flatten().map(|point| point.1)),
            Unit::Nanoseconds,
        ),
        series: all.iter().enumerate().filter_map(to_series).collect(),
        rules: Vec::new(),
    }
}

fn cdf_chart(lines: &[(String, Distribution)]) -> LineChart {
    let all = || {
        lines
            .iter()
            .flat_map(|(_, line)| &line.points)
            .map(|point| point.1)
    };
    let to_series = |(index, line): (usize, &(String, Distribution))| {
        let points = line
            .1
            .points
            .iter()
            .map(|(quantile, ns)| point(*ns, *quantile));
        series(index, line, points.collect())
    };
    LineChart {
        x: Axis::new("latency", latency_scale(all()), Unit::Nanoseconds),
        y: Axis::new(
            "share of messages at most so long",
            Scale::linear(0.0, 1.0),
            Unit::Share,
        ),
        series: lines.iter().enumerate().map(to_series).collect(),
        rules: Vec::new(),
    }
}

/// The latency of a quantile, where there were samples enough to tell it.
fn at(line: &Distribution, quantile: f64) -> Option<f64> {
    let found = line.points.iter().find(|(at, _)| *at >= quantile - 1e-9);
    let (_, ns) = found.filter(|_| quantile == 0.0 || can_tell(line.samples, quantile))?;
    Some(*ns)
}

fn description(lines: &[(String, Distribution)]) -> String {
    let of = |(name, line): &(String, Distribution)| {
        let told = |quantile| at(line, quantile).map_or("unknown".to_owned(), number::time);
        format!(
            "{name}: half within {}, 99 % within {}",
            told(0.5),
            told(0.99)
        )
    };
    let all: Vec<String> = lines.iter().map(of).collect();
    format!(
        "Latency over percentiles, and the cumulative distribution below. {}.",
        all.join("; ")
    )
}

fn table(lines: &[(String, Distribution)]) -> Table {
    const QUANTILES: [f64; 6] = [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999];
    let names = ["lowest", "p50", "p90", "p99", "p99.9", "p99.99", "longest"];
    let mut columns = vec![
        text_column("Line"),
        number_column("Runs"),
        number_column("Samples"),
    ];
    columns.extend(names.map(|name| number_column(format!("{name} (µs)"))));
    let row = |(name, line): &(String, Distribution)| {
        let us = |ns: f64| Cell::Number(ns / 1e3, 3);
        let mut row = vec![
            Cell::Text(name.clone()),
            Cell::Number(line.runs as f64, 0),
            Cell::Number(line.samples as f64, 0),
        ];
        row.extend(QUANTILES.map(|quantile| at(line, quantile).map_or(Cell::Missing, us)));
        row.push(us(line.max_ns));
        row
    };
    Table {
        caption: "Percentiles of all complete runs' samples; missing where there were too few"
            .to_owned(),
        columns,
        rows: lines.iter().map(row).collect(),
    }
}
