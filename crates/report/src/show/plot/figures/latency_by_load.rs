//! Latency against load: p50, p99 and p99.9 from the planned time over what was achieved, what the closed loop says of
//! the same, and the loads that a limit allows. It must not know where the figures are shown.

use super::facets;
use super::grouping::{Rule, grouped};
use super::groups::{Group, Groups};
use super::load_chart::{Loads, not_kept, of_closed, of_line, of_percentile};
use super::load_lines::{LoadLine, LoadPoint, PERCENTILES, place};
use super::load_words::{self, LoadUnit};
use super::naming::{drawn, some_of};
use super::sample::Sample;
use super::settings::Setting;
use crate::observe::{Metric, Spread};
use crate::results::model::LoadVerdict;
use crate::show::plot::draw::palette::{INK, Look, look};
use crate::show::plot::draw::{Axis, AxisFrame, Key, KeyMark, Scale, Unit, number};
use crate::show::plot::figure::{Figure, Table};
use crate::show::plot::sides::Sides;

/// Each has three curves.
const MOST_LINES: usize = 4;
const MOST_CHARTS: usize = 6;
/// Latencies of loads that are no result are drawn up to so many times the others; above, the axis would leave them no
/// height.
const BEYOND: f64 = 3.0;
const HEIGHT: f64 = 380.0;

/// The figure; none without an open loop.
pub fn figures<'a>(results: impl Into<Sides<'a>>) -> Vec<Figure> {
    let results = results.into();
    let rule = Rule {
        axis: Setting::of("rate"),
        place: &place,
        metrics: &[Metric::P99Ns],
        apart: &[Setting::of("size"), Setting::of("size-mix")],
        most_lines: MOST_LINES,
        most_charts: MOST_CHARTS,
        least_places: 1,
    };
    let groups = grouped(Sample::transfers(results), &rule);
    if groups.groups.is_empty() {
        return Vec::new();
    }
    let closed = Sample::closed_loops(results);
    figure(&groups, &closed).into_iter().collect()
}

/// A chart with its scales.
struct Chart<'a> {
    heading: String,
    loads: Loads<'a>,
    scales: (Scale, Scale),
    mean_bytes: f64,
}

impl<'a> Chart<'a> {
    fn of(groups: &Groups<'a>, group: &Group<'a>, closed: &[Sample<'a>]) -> Option<Chart<'a>> {
        let lines = group.lines.iter();
        let lines: Vec<_> = lines
            .map(|line| LoadLine::of(groups.name(line), of_line(groups.look(line)), line, closed))
            .collect();
        let (_, first) = group.lines.first()?.points.first()?;
        let mean_bytes = first.flow.settings.mean_bytes();
        let most = lines
            .iter()
            .map(LoadLine::most_per_second)
            .fold(0.0, f64::max);
        let loads = Loads {
            lines,
            unit: LoadUnit::of(mean_bytes, most),
        };
        Some(Chart {
            heading: group.heading(),
            scales: loads.scales(most)?,
            loads,
            mean_bytes,
        })
    }
}

/// Tables of all charts with the same caption as one, each line named with its chart.
fn joined(tables: Vec<Table>) -> Vec<Table> {
    let mut all: Vec<Table> = Vec::new();
    for table in tables {
        match all.iter_mut().find(|known| known.caption == table.caption) {
            Some(known) => known.rows.extend(table.rows),
            None => all.push(table),
        }
    }
    all
}

fn figure<'a>(groups: &Groups<'a>, closed: &[Sample<'a>]) -> Option<Figure> {
    let charts = groups.groups.iter();
    let charts: Vec<Chart<'_>> = charts
        .filter_map(|group| Chart::of(groups, group, closed))
        .collect();
    let several_charts = charts.len() > 1;
    let tables = charts.iter().flat_map(|chart| {
        let of_chart = match several_charts {
            true => format!("{}: ", chart.heading),
            false => String::new(),
        };
        let lines = &chart.loads.lines;
        let tables = [
            Some(load_words::table(lines, &of_chart, chart.mean_bytes)),
            load_words::searches(lines, &of_chart),
            load_words::trials(lines, &of_chart),
        ];
        tables.into_iter().flatten()
    });
    let description = charts.iter().flat_map(|it| it.loads.description());
    let description: Vec<String> = description.collect();
    let headings: Vec<String> = charts.iter().map(|chart| chart.heading.clone()).collect();
    // The one that others point to.
    let figure = Figure {
        id: "latency-by-load".to_owned(),
        title: "Latency against load".to_owned(),
        subtitle: groups.subtitle(Setting::of("rate")),
        description: format!(
            "Lines of latency over the load that was achieved. {}.",
            some_of(&description)
        ),
        tables: joined(tables.collect()),
        ..Figure::default()
    };
    charts.first()?;
    let mut keys: Vec<Key> = Vec::new();
    let several = charts.iter().any(|chart| chart.loads.lines.len() > 1);
    for chart in &charts {
        for key in chart
            .loads
            .keys(several, several_charts.then_some(&chart.heading))
        {
            if !keys.iter().any(|known| known.label == key.label) {
                keys.push(key);
            }
        }
    }
    // Lines, percentiles, marks, and what was found at the last.
    keys.sort_by_key(|key| key.mark == KeyMark::Area);
    let mut notes: Vec<String> = Vec::new();
    for note in charts.iter().flat_map(|chart| chart.loads.notes()) {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    Some(drawn(figure, |sheet| {
        sheet.legend(&keys);
        let places = facets::places(sheet, &headings, HEIGHT);
        for (chart, place) in charts.iter().zip(places) {
            let (x, y) = chart.scales;
            let title = format!("achieved load, {}", chart.loads.unit.name);
            let x = Axis::new(title, x, Unit::Plain);
            let title = if place.is_left {
                "latency from the planned time (log)"
            } else {
                ""
            };
            let y = Axis::new(title, y, Unit::Nanoseconds);
            let frame = AxisFrame::draw(&mut sheet.canvas, place.area, &x, &y);
            chart.loads.draw(&mut sheet.canvas, &frame);
        }
        notes.iter().for_each(|note| sheet.note(note));
        groups.notes.iter().for_each(|note| sheet.note(note));
    }))
}

impl Loads<'_> {
    /// The scales of both axes; `None` where no latency is known.
    fn scales(&self, most_per_second: f64) -> Option<(Scale, Scale)> {
        let (kept, other): (Vec<&LoadPoint>, Vec<&LoadPoint>) = self
            .points()
            .partition(|point| point.verdict == LoadVerdict::Kept);
        let whiskers = kept.iter().filter_map(|point| point.latency_ns[1]);
        let whiskers = whiskers.flat_map(|p99| [p99.low, p99.high]);
        let closed = self.lines.iter().filter_map(|line| line.closed.as_ref());
        let medians = |latency: [Option<Spread>; 3]| {
            let known = latency.into_iter().flatten();
            known.map(|spread| spread.median)
        };
        let results = kept.iter().map(|point| point.latency_ns);
        let results = results.chain(closed.map(|closed| closed.latency_ns));
        let results: Vec<f64> = results.flat_map(medians).chain(whiskers).collect();
        let others: Vec<f64> = other
            .iter()
            .flat_map(|point| medians(point.latency_ns))
            .collect();
        let limits: Vec<f64> = self.limits().into_keys().map(|ns| ns as f64).collect();
        let most = |values: &[f64]| values.iter().copied().reduce(f64::max);
        let top = match (most(&results), most(&others)) {
            (Some(result), Some(other)) => result.max(other.min(result * BEYOND)),
            (result, other) => result.or(other)?,
        };
        let all = || results.iter().chain(&others).chain(&limits).copied();
        let least = all()
            .filter(|ns| *ns > 0.0)
            .fold(f64::INFINITY, f64::min)
            .max(1.0);
        let top = limits.iter().copied().fold(top, f64::max);
        let most = most_per_second * self.unit.of_message;
        let x = Scale::linear(0.0, if most > 0.0 { most * 1.04 } else { 1.0 });
        Some((x, Scale::log10(least, top.max(least)).widened(0.06)))
    }

    /// `several`: a chart has several lines, which are told by their looks; of one among others its heading.
    fn keys(&self, several: bool, heading: Option<&String>) -> Vec<Key> {
        let key = |look, mark, label: &str| Key {
            look,
            mark,
            label: label.to_owned(),
        };
        let mut keys = Vec::new();
        if several {
            let of = |line: &LoadLine<'_>| key(line.look, KeyMark::LineAndMarker, &line.name);
            keys.extend(self.lines.iter().map(of));
        }
        // What holds for all lines has no line's colour.
        let plain = Look {
            colour: if several { INK } else { look(0).colour },
            ..look(0)
        };
        // As they lie over each other.
        for (index, metric) in PERCENTILES.into_iter().enumerate().rev() {
            keys.push(key(
                of_percentile(plain, index),
                KeyMark::Line,
                metric.short_name(),
            ));
        }
        if self.lines.iter().any(|line| line.closed.is_some()) {
            let label = "closed loop (p99.9, p99, p50)";
            keys.push(key(of_closed(plain), KeyMark::Marker, label));
        }
        if self.has(LoadVerdict::Overloaded) {
            let hollow = Look {
                hollow: true,
                ..plain
            };
            keys.push(key(hollow, KeyMark::Marker, "overloaded"));
        }
        if self.has(LoadVerdict::NotKept) {
            keys.push(key(
                not_kept(plain),
                KeyMark::Marker,
                "schedule not kept: no result",
            ));
        }
        for (line, search) in self.searches() {
            let mut label = self.search_words(search);
            if several {
                label = format!("{}, {label}", line.name);
            }
            if let Some(heading) = heading {
                label = format!("{heading}: {label}");
            }
            keys.push(key(line.look, KeyMark::Area, &label));
        }
        keys
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            "Latency is from the planned time of a message to its completion seen, also if its send queue had no \
             room then; medians of the runs, whiskers the smallest and largest p99."
                .to_owned(),
        ];
        if self.lines.iter().any(|line| line.closed.is_some()) {
            notes.push(
                "A closed loop posts the next message when one completes, and counts from the post: messages that \
                 would have come meanwhile have no sample."
                    .to_owned(),
            );
        }
        let recorded = self.points().map(|point| point.recorded_one_in);
        if let Some(many) = recorded.max().filter(|many| *many > 1) {
            notes.push(format!(
                "At the highest loads latency is of one message in {many}, chosen at random."
            ));
        }
        if self.has(LoadVerdict::NotKept) {
            notes.push(
                "Schedule not kept: messages were posted later than planned, and their latency is not that of the \
                 load; use more workers, cores of their own, or lower rates."
                    .to_owned(),
            );
        }
        if self.has(LoadVerdict::Overloaded) {
            notes.push(
                "Overloaded: less than 99 % of the offered load was achieved, and latency grows as long as a run lasts."
                    .to_owned(),
            );
        }
        notes
    }

    fn description(&self) -> Vec<String> {
        let of = |line: &LoadLine<'_>| {
            let told = |point: &LoadPoint| {
                let p99 = point.latency_ns[1]
                    .map_or("unknown".to_owned(), |p99| number::time(p99.median));
                format!("{p99} at {}", self.unit.per_second(point.achieved.median))
            };
            let is_result = |point: &&LoadPoint| point.verdict == LoadVerdict::Kept;
            let results: Vec<&LoadPoint> = line.points.iter().filter(is_result).collect();
            let mut text = match results.as_slice() {
                [] => format!("{}: no load was kept", line.name),
                [only] => format!("{}: p99 is {}", line.name, told(only)),
                [first, .., last] => {
                    format!(
                        "{}: p99 goes from {} to {}",
                        line.name,
                        told(first),
                        told(last)
                    )
                }
            };
            if let Some(closed) = &line.closed
                && let Some(p99) = closed.latency_ns[1]
            {
                text.push_str(&format!(
                    "; the closed loop has {} at {}",
                    number::time(p99.median),
                    self.unit.per_second(closed.achieved.median)
                ));
            }
            for search in &line.searches {
                text.push_str(&format!("; {}", self.search_words(search)));
            }
            text
        };
        self.lines.iter().map(of).collect()
    }
}
