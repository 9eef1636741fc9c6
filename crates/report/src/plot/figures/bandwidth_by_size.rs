//! Bandwidth against message size, with what the protocol allows and what perftest reaches. It must not know
//! where the figures are shown.

use std::collections::BTreeMap;

use super::curves::{
    Spread, all_series, is_a_curve, largest, number_column, runs_cell, series, text_column,
};
use super::groups::{Group, Rule, grouped};
use super::naming::head;
use super::settings::{Sample, Setting};
use crate::compare::Metric;
use crate::plot::draw::palette::{Look, RULE, look};
use crate::plot::draw::{Axis, LineChart, Point, Scale, Series, Sheet, Unit, number};
use crate::plot::figure::{Cell, Figure, Table};
use crate::plot::median::counted_flows;
use crate::results::load::Loaded;

/// Limits that are more than so many times the largest figure are told in words: an axis that had them would
/// leave no height to the figures.
const LIMIT_SHOWN_UP_TO: f64 = 2.5;

/// The figures; none without two sizes.
pub fn figures(results: &[Loaded]) -> Vec<Figure> {
    let samples = Sample::closed_loops(results);
    let has_peer = samples.iter().any(|sample| perftest(sample).is_some());
    let rule = Rule {
        axis: Setting::of("size"),
        place: &|sample| {
            let place = sample.number(|settings| settings.size_bytes);
            place.filter(|_| sample.flow.settings.size_mix.is_none())
        },
        apart: &[],
        most_lines: if has_peer { 4 } else { 8 },
        most_figures: 12,
        least_places: 2,
    };
    grouped(samples, &rule).figures(figure)
}

fn bandwidth(sample: &Sample<'_>) -> Option<Spread> {
    Spread::of_metric(sample, Metric::GbitPerS)
}

/// What perftest reached, in Gb/s, over the pairs that count; `None` beside one of several flows, which it tells together.
fn perftest(sample: &Sample<'_>) -> Option<Spread> {
    let case = sample.flow.case;
    let comparison = case
        .perftest
        .as_ref()
        .filter(|_| case.config.flows.len() == 1)?;
    let factor = match comparison.metric.as_str() {
        "gbit_per_s" => 1.0,
        "mmsg_per_s" => sample.flow.settings.mean_bytes() * 8.0 / 1e3,
        _ => return None,
    };
    let counts = comparison
        .pairs
        .iter()
        .filter(|pair| pair.failure.is_none());
    Spread::of(counts.filter_map(|pair| Some(pair.perftest? * factor)))
}

/// What the link and the protocol allow, in Gb/s.
fn limit(sample: &Sample<'_>) -> Option<f64> {
    let limits = counted_flows(&sample.flow).find_map(|flow| flow.limits.as_ref())?;
    Some(limits.link_gbit_per_s * limits.protocol_efficiency)
}

fn peers(group: &Group<'_>, places: &[f64]) -> Vec<Series> {
    let of = |(index, line)| {
        let name = format!("perftest: {}", group.name(line));
        series(&name, look(index).of_peer(), line, places, &perftest)
    };
    let all = group.lines.iter().enumerate().map(of);
    all.filter(|series| series.points.iter().any(|point| point.y.is_some()))
        .collect()
}

/// A line for each operation whose limit differs.
fn limits(group: &Group<'_>, places: &[f64]) -> Vec<Series> {
    let mut of_op: BTreeMap<String, BTreeMap<u64, f64>> = BTreeMap::new();
    for (_, sample) in group.lines.iter().flat_map(|line| &line.points) {
        if let Some(limit) = limit(sample) {
            let config = &sample.flow.settings;
            of_op
                .entry(config.op.to_string())
                .or_default()
                .insert(config.size_bytes.into(), limit);
        }
    }
    let mut lines: Vec<(String, BTreeMap<u64, f64>)> = of_op.into_iter().collect();
    if lines.is_empty() {
        return Vec::new();
    }
    let pairs = lines
        .iter()
        .flat_map(|one| lines.iter().map(move |other| (one, other)));
    if pairs
        .into_iter()
        .all(|(one, other)| alike(&one.1, &other.1))
    {
        let all = lines.into_iter().flat_map(|(_, limits)| limits).collect();
        lines = vec![(String::new(), all)];
    }
    let of = |(index, (op, limits)): (usize, (String, BTreeMap<u64, f64>))| Series {
        name: if op.is_empty() {
            "protocol limit".to_owned()
        } else {
            format!("protocol limit of {op}")
        },
        look: Look::of_rule(index),
        points: places
            .iter()
            .map(|&x| Point {
                x,
                y: limits.get(&(x as u64)).copied(),
                interval: None,
            })
            .collect(),
        markers: false,
    };
    lines.into_iter().enumerate().map(of).collect()
}

/// Limits that no eye tells apart.
fn alike(a: &BTreeMap<u64, f64>, b: &BTreeMap<u64, f64>) -> bool {
    let near = |(size, limit): (&u64, &f64)| {
        let other = b.get(size);
        other.is_none_or(|other| (limit - other).abs() <= limit * 0.005)
    };
    a.iter().all(near)
}

fn figure(index: usize, group: &Group<'_>, notes: &[String]) -> Option<Figure> {
    let places = group.places();
    let own = all_series(group, &bandwidth);
    if !is_a_curve(&own) {
        return None;
    }
    let (peers, mut limits) = (peers(group, &places), limits(group, &places));
    let top = largest(&own)
        .unwrap_or(1.0)
        .max(largest(&peers).unwrap_or(0.0));
    let highest_limit = largest(&limits);
    let limit_is_far = highest_limit.is_some_and(|limit| limit > top * LIMIT_SHOWN_UP_TO);
    if limit_is_far {
        limits.clear();
    }
    let mut figure = Figure {
        id: format!("bandwidth-by-size-{}", index + 1),
        title: group.title("Bandwidth against message size, Gb/s"),
        subtitle: group.subtitle(Setting::of("size")),
        description: description(&own),
        svg: String::new(),
        tables: vec![table(group)],
    };
    let mut sheet = Sheet::new(head(&figure));
    let scale = Scale::from_zero(largest(&limits).map_or(top, |limit| limit.max(top)));
    let sizes = Scale::log2(*places.first()?, *places.last()?);
    let chart = LineChart {
        x: Axis::new("message size (payload)", sizes.widened(0.015), Unit::Bytes),
        y: Axis::new("Gb/s (10⁹ bits of payload a second)", scale, Unit::Plain),
        series: limits.into_iter().chain(peers).chain(own).collect(),
        rules: Vec::new(),
    };
    let mut keys = chart.keys();
    keys.sort_by_key(|key| (key.look.colour == RULE, key.look.hollow));
    sheet.legend(&keys);
    let area = sheet.take(400.0);
    chart.draw(&mut sheet.canvas, area);
    sheet.note("Points are medians of the runs, whiskers their smallest and largest; a gap was not measured.");
    match highest_limit {
        Some(limit) if limit_is_far => sheet.note(&format!(
            "The protocol limit is above this axis: up to {} Gb/s.",
            number::short(limit)
        )),
        None => sheet.note("The link has no known speed, so there is no protocol limit to draw."),
        Some(_) => {}
    }
    notes.iter().for_each(|note| sheet.note(note));
    figure.svg = sheet.finish();
    Some(figure)
}

fn description(series: &[Series]) -> String {
    let best = |series: &Series| {
        let points = series
            .points
            .iter()
            .filter_map(|point| Some((point.y?, point.x)));
        let (most, size) = points.max_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(format!(
            "{} is highest at {} with {} Gb/s",
            series.name,
            number::bytes(size as u64),
            number::short(most)
        ))
    };
    let all: Vec<String> = series.iter().filter_map(best).collect();
    format!("Lines of bandwidth over message size. {}.", all.join("; "))
}

fn table(group: &Group<'_>) -> Table {
    let mut columns = vec![
        text_column("Line"),
        text_column("Message size"),
        text_column("Runs"),
    ];
    let names = [
        "Gb/s",
        "lowest",
        "highest",
        "protocol limit (Gb/s)",
        "perftest (Gb/s)",
        "lowest",
        "highest",
    ];
    columns.extend(names.map(number_column));
    let row = |name: &str, sample: &Sample<'_>| {
        let mut row = vec![
            Cell::Text(name.to_owned()),
            Cell::Text(number::bytes(sample.flow.settings.size_bytes.into())),
            runs_cell(sample),
        ];
        row.extend(Spread::cells(bandwidth(sample), 1.0, 3));
        row.push(limit(sample).map_or(Cell::Missing, |limit| Cell::Number(limit, 3)));
        row.extend(Spread::cells(perftest(sample), 1.0, 3));
        row
    };
    let of_line = |line: &super::groups::Line<'_>| {
        let name = group.name(line);
        let rows: Vec<_> = line
            .points
            .iter()
            .map(|(_, sample)| row(&name, sample))
            .collect();
        rows
    };
    Table {
        caption: "Medians of the complete runs, with the smallest and the largest".to_owned(),
        columns,
        rows: group.lines.iter().flat_map(of_line).collect(),
    }
}
