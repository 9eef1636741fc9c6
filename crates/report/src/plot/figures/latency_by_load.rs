//! Latency against load: p50, p99 and p99.9 from the planned time over what was achieved, what the closed loop says of
//! the same, and the loads that a limit allows. It must not know where the figures are shown.

use super::curves::Spread;
use super::groups::{Group, Rule, grouped};
use super::load_chart::{Loads, not_kept, of_closed, of_percentile};
use super::load_lines::{LoadLine, LoadPoint, PERCENTILES, place};
use super::load_words::{self, LoadUnit};
use super::naming::head;
use super::settings::{Sample, Setting};
use crate::plot::draw::palette::{INK, Look, look};
use crate::plot::draw::{Axis, AxisFrame, Key, KeyMark, NARROW, Scale, Sheet, Unit, number};
use crate::plot::figure::Figure;
use crate::results::load::Loaded;
use crate::results::model::LoadVerdict;

/// Each has three curves.
const MOST_LINES: usize = 4;
/// Latencies of loads that are no result are drawn up to so many times the others; above, the axis would leave them no
/// height.
const BEYOND: f64 = 3.0;
const HEIGHT: f64 = 380.0;

/// The figures; none without an open loop.
pub fn figures(results: &[Loaded]) -> Vec<Figure> {
    let rule = Rule {
        axis: Setting::of("rate"),
        place: &place,
        apart: &[Setting::of("size"), Setting::of("size-mix")],
        most_lines: MOST_LINES,
        most_figures: 12,
        least_places: 1,
    };
    let groups = grouped(Sample::transfers(results), &rule);
    if groups.groups.is_empty() {
        return Vec::new();
    }
    let closed = Sample::closed_loops(results);
    groups.figures(|index, group, notes| figure(index, group, &closed, notes))
}

fn figure<'a>(
    index: usize,
    group: &Group<'a>,
    closed: &[Sample<'a>],
    notes: &[String],
) -> Option<Figure> {
    let lines = group.lines.iter();
    let lines: Vec<_> = lines
        .map(|line| LoadLine::of(group.name(line), line, closed))
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
    let (x, y) = loads.scales(most)?;
    let tables = [
        Some(load_words::table(&loads.lines, mean_bytes)),
        load_words::searches(&loads.lines),
        load_words::trials(&loads.lines),
    ];
    let mut figure = Figure {
        id: match index {
            // The one that others point to has a name of its own.
            0 => "latency-by-load".to_owned(),
            index => format!("latency-by-load-{}", index + 1),
        },
        title: group.title("Latency against load"),
        subtitle: group.subtitle(Setting::of("rate")),
        description: loads.description(),
        svg: String::new(),
        tables: tables.into_iter().flatten().collect(),
    };
    let mut sheet = Sheet::of_width(head(&figure), NARROW);
    sheet.legend(&loads.keys());
    let area = sheet.take(HEIGHT);
    let x = Axis::new(
        format!("achieved load, {}", loads.unit.words),
        x,
        Unit::Plain,
    );
    let y = Axis::new("latency from the planned time (log)", y, Unit::Nanoseconds);
    let frame = AxisFrame::draw(&mut sheet.canvas, area, &x, &y);
    loads.draw(&mut sheet.canvas, &frame);
    loads.notes().iter().for_each(|note| sheet.note(note));
    notes.iter().for_each(|note| sheet.note(note));
    figure.svg = sheet.finish();
    Some(figure)
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

    fn keys(&self) -> Vec<Key> {
        let key = |look, mark, label: &str| Key {
            look,
            mark,
            label: label.to_owned(),
        };
        let mut keys = Vec::new();
        let several = self.lines.len() > 1;
        if several {
            let lines = self.lines.iter().enumerate();
            keys.extend(lines.map(|(index, line)| {
                let look = of_percentile(look(index), 1);
                key(look, KeyMark::LineAndMarker, &line.name)
            }));
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
            let label = "closed loop says (p99.9, p99, p50)";
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
        for (index, search) in self.searches() {
            let mut label = self.search_words(search);
            if several && let Some(line) = self.lines.get(index) {
                label = format!("{}, {label}", line.name);
            }
            keys.push(key(look(index), KeyMark::Area, &label));
        }
        keys
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            "Latency is from the time at which a message was planned to its completion seen, whether the system had room \
             for it then or not; medians of the runs, whiskers the smallest and largest p99."
                .to_owned(),
        ];
        if self.lines.iter().any(|line| line.closed.is_some()) {
            notes.push(
                "A closed loop posts the next message when one completes, and counts from there: what would have come \
                 meanwhile is in no sample."
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
                "Schedule not kept: messages were posted later than planned, and their latency is not of that load; use \
                 more workers, cores of their own, or lower rates."
                    .to_owned(),
            );
        }
        if self.has(LoadVerdict::Overloaded) {
            notes.push(
                "Overloaded: less than 99 % of what was offered was achieved, and latency grows as long as a run lasts."
                    .to_owned(),
            );
        }
        notes
    }

    fn description(&self) -> String {
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
                    "; the closed loop says {} at {}",
                    number::time(p99.median),
                    self.unit.per_second(closed.achieved.median)
                ));
            }
            for search in &line.searches {
                text.push_str(&format!("; {}", self.search_words(search)));
            }
            text
        };
        let all: Vec<String> = self.lines.iter().map(of).collect();
        format!(
            "Lines of latency over the load that was achieved. {}.",
            all.join(". ")
        )
    }
}
