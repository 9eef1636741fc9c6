//! Bandwidth against message size, both logarithmic, with what the protocol allows and what perftest reaches. It must not
//! know where the figures are shown.

use std::collections::BTreeMap;

use super::curves::{
    all_series, cells, is_a_curve, largest, number_column, runs_cell, series, text_column,
};
use super::facets::{self, MOST_CHARTS};
use super::grouping::{Rule, grouped};
use super::groups::{Group, Groups};
use super::naming::{drawn, some_of};
use super::sample::Sample;
use super::settings::Setting;
use crate::observe::standing::counted_flows;
use crate::observe::{Metric, Spread};
use crate::show::plot::draw::palette::Look;
use crate::show::plot::draw::{Axis, LineChart, Point, Scale, Series, Unit, number};
use crate::show::plot::figure::{Cell, Figure, Table};
use crate::show::plot::sides::Sides;

/// Limits that are more than so many times the largest figure are told in words: an axis that had them would
/// leave no height to the figures.
const LIMIT_SHOWN_UP_TO: f64 = 10.0;

/// The figure; none without two sizes.
pub fn figures<'a>(results: impl Into<Sides<'a>>) -> Vec<Figure> {
    let samples = Sample::closed_loops(results);
    let has_peer = samples.iter().any(|sample| perftest(sample).is_some());
    let rule = Rule {
        axis: Setting::of("size"),
        place: &|sample| {
            let place = sample.number(|settings| settings.size_bytes);
            place.filter(|_| sample.flow.settings.size_mix.is_none())
        },
        metrics: &[Metric::GbitPerS],
        apart: &[],
        most_lines: if has_peer { 4 } else { 6 },
        most_charts: MOST_CHARTS,
        least_places: 2,
    };
    figure(&grouped(samples, &rule)).into_iter().collect()
}

fn bandwidth(sample: &Sample<'_>) -> Option<Spread> {
    sample.spread(Metric::GbitPerS)
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

fn peers(groups: &Groups<'_>, group: &Group<'_>, places: &[f64]) -> Vec<Series> {
    let of = |line| {
        let name = format!("perftest: {}", groups.name(line));
        let look = groups.look(line).of_peer();
        series(&name, look, line, places, &perftest)
    };
    let own = group.lines.iter().filter(|line| !line.is_of_base());
    own.map(of)
        .filter(|series| series.points.iter().any(|point| point.y.is_some()))
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

/// The lines of a chart.
struct Chart {
    heading: String,
    places: Vec<f64>,
    own: Vec<Series>,
    peers: Vec<Series>,
    limits: Vec<Series>,
}

fn figure(groups: &Groups<'_>) -> Option<Figure> {
    let chart = |group: &Group<'_>| {
        let places = group.places();
        Chart {
            heading: group.heading(),
            own: all_series(groups, group, &bandwidth),
            peers: peers(groups, group, &places),
            limits: limits(group, &places),
            places,
        }
    };
    let mut all: Vec<Chart> = groups.groups.iter().map(chart).collect();
    all.retain(|chart| is_a_curve(&chart.own));
    let measured = || {
        all.iter()
            .flat_map(|chart| chart.own.iter().chain(&chart.peers))
    };
    let ends = measured().flat_map(|series| &series.points);
    let lows = ends.filter_map(|point| Some(point.interval.map_or(point.y?, |(low, _)| low)));
    let least = lows.filter(|low| *low > 0.0).min_by(f64::total_cmp)?;
    let top = measured().filter_map(|series| largest(std::slice::from_ref(series)));
    let top = top.fold(least, f64::max);
    let highest_limit = all.iter().filter_map(|chart| largest(&chart.limits));
    let highest_limit = highest_limit.max_by(f64::total_cmp);
    let limit_is_far = highest_limit.is_some_and(|limit| limit > top * LIMIT_SHOWN_UP_TO);
    let highest = highest_limit.filter(|_| !limit_is_far).unwrap_or(top);
    let y = Scale::log10(least, highest.max(top)).widened(0.04);
    let figure = Figure {
        id: "bandwidth-by-size".to_owned(),
        title: "Bandwidth against message size, Gb/s".to_owned(),
        subtitle: groups.subtitle(Setting::of("size")),
        description: description(all.iter().flat_map(|chart| &chart.own)),
        tables: vec![table(groups)],
        ..Figure::default()
    };
    let line_chart = |chart: Chart| {
        let ends = (*chart.places.first()?, *chart.places.last()?);
        let limits = chart.limits.into_iter().filter(|_| !limit_is_far);
        let line_chart = LineChart {
            x: Axis::new(
                "message size (payload)",
                Scale::log2(ends.0, ends.1).widened(0.03),
                Unit::Bytes,
            ),
            y: Axis::new("Gb/s (10⁹ bits of payload a second; log)", y, Unit::Plain),
            series: limits.chain(chart.peers).chain(chart.own).collect(),
            rules: Vec::new(),
        };
        Some((chart.heading, line_chart))
    };
    let charts: Vec<(String, LineChart)> = all.into_iter().filter_map(line_chart).collect();
    Some(drawn(figure, |sheet| {
        sheet.legend(&facets::keys(&charts, &groups.names));
        facets::draw(sheet, &charts, 380.0);
        sheet.note(
            "Points are medians of the runs, whiskers their smallest and largest; a gap was not measured.",
        );
        match highest_limit {
            Some(limit) if limit_is_far => sheet.note(&format!(
                "The protocol limit is above this axis: up to {} Gb/s.",
                number::short(limit)
            )),
            None => {
                sheet.note("The link has no known speed, so there is no protocol limit to draw.");
            }
            Some(_) => {}
        }
        groups.notes.iter().for_each(|note| sheet.note(note));
    }))
}

fn description<'s>(series: impl Iterator<Item = &'s Series>) -> String {
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
    let all: Vec<String> = series.filter_map(best).collect();
    format!("Lines of bandwidth over message size. {}.", some_of(&all))
}

fn table(groups: &Groups<'_>) -> Table {
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
        row.extend(cells(bandwidth(sample), 1.0, 3));
        row.push(limit(sample).map_or(Cell::Missing, |limit| Cell::Number(limit, 3)));
        row.extend(cells(perftest(sample), 1.0, 3));
        row
    };
    let rows = groups.named_lines().flat_map(|(name, line)| {
        let rows = line.points.iter().map(|(_, sample)| row(&name, sample));
        rows.collect::<Vec<_>>()
    });
    Table {
        caption: "Medians of the runs that count, with the smallest and the largest".to_owned(),
        columns,
        rows: rows.collect(),
    }
}
