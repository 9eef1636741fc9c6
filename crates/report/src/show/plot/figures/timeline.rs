//! Figure: throughput over the time of a run in as many intervals as have room, with its slowest interval and its
//! longest stall: the least steady run of each of the least steady flows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use results::model::{Bandwidth, FlowResult, Run, Timeline};

use crate::show::plot::{
    draw::{
        Key, KeyMark, Scale, Unit,
        palette::{SeriesStyle, WORSE, style},
        text,
    },
    figure::{Cell, Figure, Picture, Table},
    marks::{Area, Axis, Band, Chart, Dot, Mark, Point, Rule, Series},
    rows::{
        Sample, Sides,
        case_settings::{Setting, revision},
    },
};

/// Flows that are drawn; of more, the least steady.
const MOST_FLOWS: usize = 6;
const MOST_ROWS: usize = 60;

struct Sampled<'a> {
    run: u32,
    bandwidth: Option<&'a Bandwidth>,
    timeline: &'a Timeline,
    intervals: Vec<Interval>,
    /// 1 is steady, 0 stood still for a hundredth of the run.
    steadiness: f64,
}

/// A flow whose runs were sampled, the least steady run first.
struct Flow<'s, 'a> {
    sample: &'s Sample<'a>,
    /// With its file where another has it too.
    subject: String,
    runs: Vec<Sampled<'a>>,
}

/// The figure; none without samples.
pub fn figures<'a>(results: impl Into<Sides<'a>>) -> Vec<Figure> {
    let samples = Sample::of_sides(results.into().new.into());
    let mut flows: Vec<Flow<'_, '_>> = samples
        .iter()
        .zip(subjects(&samples))
        .filter_map(|(sample, subject)| {
            let mean_bytes = sample.observed.flow.settings.mean_bytes();
            let counted = sample.observed.counted();
            let mut runs: Vec<Sampled<'_>> =
                counted.filter_map(|it| sampled(it.run, it.moved?, mean_bytes)).collect();
            runs.sort_by(|a, b| a.steadiness.total_cmp(&b.steadiness));
            (!runs.is_empty()).then_some(Flow { sample, subject, runs })
        })
        .collect();
    flows.sort_by(|a, b| a.runs[0].steadiness.total_cmp(&b.runs[0].steadiness));
    figure(&flows).into_iter().collect()
}

fn sampled<'a>(run: &Run, flow: &'a FlowResult, mean_bytes: f64) -> Option<Sampled<'a>> {
    let timeline = flow.timeline.as_ref()?;
    let mut from = 0.0;
    let mut intervals = Vec::with_capacity(timeline.at_seconds.len());
    for (&to, &messages) in timeline.at_seconds.iter().zip(&timeline.messages) {
        if to > from && to.is_finite() {
            let gbit_per_s = messages as f64 * mean_bytes * 8.0 / 1e9 / (to - from);
            intervals.push(Interval { from, to, gbit_per_s });
            from = to;
        }
    }
    let steadiness = match flow.load {
        Some(_) => steadiness_of_arrivals(&timeline.messages),
        None => steadiness_of_rates(intervals.iter().map(|it| it.gbit_per_s)),
    };
    (!intervals.is_empty()).then_some(Sampled {
        run: run.run,
        bandwidth: flow.bandwidth_gbit_per_s.as_ref(),
        timeline,
        intervals,
        steadiness,
    })
}

/// The run and its stall, as a chart has room for it.
fn brief(sampled: &Sampled<'_>) -> String {
    let stall = match sampled.timeline.longest_stall_seconds {
        Some(0.0) => "no stall".to_owned(),
        Some(seconds) => format!("longest stall {}", text::time(seconds * 1e9)),
        None => "longest stall unknown".to_owned(),
    };
    format!("Gb/s of run {}: {stall}", sampled.run)
}

fn subtitle(flows: &[Flow<'_, '_>]) -> String {
    Setting::each()
        .into_iter()
        .filter(|it| ![Setting::Revision, Setting::Side].contains(it))
        .filter_map(|setting| {
            let mut words = flows.iter().map(|flow| &flow.sample.value(setting).words);
            let first = words.next()?;
            (words.all(|other| other == first) && !first.is_empty()).then(|| first.clone())
        })
        .collect::<Vec<_>>()
        .join("\u{a0}· ")
}

/// The flow of each sample, with its file where another file has it too.
pub(super) fn subjects(samples: &[Sample<'_>]) -> Vec<String> {
    let mut files: BTreeMap<String, BTreeSet<&Path>> = BTreeMap::new();
    for sample in samples {
        let of_flow = files.entry(sample.observed.flow.subject()).or_default();
        of_flow.insert(&sample.loaded.path);
    }
    samples
        .iter()
        .map(|sample| {
            let subject = sample.observed.flow.subject();
            if files.get(&subject).is_none_or(|files| files.len() == 1) {
                return subject;
            }
            let file = sample.file_words();
            let revision =
                revision(&sample.loaded.result).map_or(String::new(), |it| format!(", rev {it}"));
            format!("{subject}, {file}{revision}")
        })
        .collect()
}

fn figure(sampled: &[Flow<'_, '_>]) -> Option<Figure> {
    let flows = &sampled[..sampled.len().min(MOST_FLOWS)];
    flows.first()?;
    let first_runs = flows.iter().filter_map(|flow| flow.runs.first());
    let interval = text::time(
        first_runs.clone().map(|run| run.timeline.interval_seconds).fold(0.0, f64::max) * 1e9,
    );
    let joined = first_runs.clone().any(|run| run.intervals.len() > COLUMNS);
    let (of_all, runs) = (sampled.len(), sampled.iter().map(|flow| flow.runs.len()).sum::<usize>());
    let notes = [
        Some(format!(
            "Intervals of about {interval}. Short ones scatter, since completions come in groups."
        )),
        (of_all > flows.len())
            .then(|| format!("The figure has the {MOST_FLOWS} least steady of {of_all} flows.")),
        (runs > MOST_ROWS).then(|| {
            format!("The table has {MOST_ROWS} of {runs} runs, those of the least steady flows.")
        }),
    ];
    let charts = flows.iter().zip(first_runs);
    let picture = Picture {
        subtitle: subtitle(flows),
        keys: keys(joined),
        charts: charts.map(|(flow, run)| chart(flow.subject.clone(), run)).collect(),
        notes: notes.into_iter().flatten().collect(),
        tables: vec![table(sampled)],
    };
    Some(picture.named(
        "timeline",
        "Throughput over time",
        "The least steady run of each flow: payload that completed at the node that posts it.",
    ))
}

fn keys(joined: bool) -> Vec<Key> {
    let p1 = "p1: 1 % of the intervals are slower";
    let keys = [
        Key::new(KeyMark::Line, style(0), THROUGHPUT),
        Key::new(KeyMark::Line, SeriesStyle::of_rule(1), p1),
        Key::new(KeyMark::Marker, slowest_style(), SLOWEST),
        Key::new(KeyMark::Area, slowest_style(), STALL),
    ];
    let spread = joined.then(|| Key::new(KeyMark::Area, style(5), "least to most in a column"));
    keys.into_iter().chain(spread).collect()
}

/// Names of the line, of the slowest interval, and of a stall.
const THROUGHPUT: &str = "throughput";
const SLOWEST: &str = "slowest interval";
const STALL: &str = "longest stall";

fn slowest_style() -> SeriesStyle {
    SeriesStyle { colour: WORSE, ..style(4) }
}

fn chart(heading: String, run: &Sampled<'_>) -> Chart {
    let most = run.intervals.iter().map(|it| it.gbit_per_s).fold(0.0, f64::max);
    let longest = run.intervals.iter().map(|it| it.to).fold(0.0, f64::max);
    let columns = columns(&run.intervals);
    let p1 = run
        .bandwidth
        .and_then(|it| it.p1)
        .map(|y| Mark::Rule(Rule { style: SeriesStyle::of_rule(1), y, ..Rule::default() }));
    let stall = stall(&run.intervals).map(|(from, to)| {
        Mark::Band(Band {
            name: STALL,
            style: slowest_style(),
            transparency: 0.65,
            ends: (from * 1e9, to * 1e9),
            hint: STALL.to_owned(),
        })
    });
    let spread = columns.iter().map(|(one, low, high)| (one.middle_ns(), *low, *high));
    let area = (run.intervals.len() > COLUMNS)
        .then(|| Mark::Area(Area { style: style(5), points: spread.collect() }));
    let points = columns.iter().map(|(one, ..)| Point::at(one.middle_ns(), one.gbit_per_s));
    let line = Mark::Line(Series {
        name: THROUGHPUT.to_owned(),
        points: points.collect(),
        ..Series::default()
    });
    let slowest = slowest(&run.intervals).map(|slowest| {
        Mark::Dot(Dot {
            name: SLOWEST.to_owned(),
            at: (slowest.middle_ns(), slowest.gbit_per_s),
            style: slowest_style(),
            hint: format!("slowest: {} Gb/s", text::short(slowest.gbit_per_s)),
            ..Dot::default()
        })
    });
    let x = Scale::linear(0.0, longest * 1e9);
    let x = Axis::new("time in the window", x, Unit::Nanoseconds);
    let y = Axis::new(brief(run), Scale::from_zero(most), Unit::Plain);
    let marks = [p1, stall, area, Some(line), slowest];
    Chart { heading, ..Chart::new(x, y, marks.into_iter().flatten().collect()) }
}

fn table(flows: &[Flow<'_, '_>]) -> Table {
    let rows = flows
        .iter()
        .flat_map(|flow| flow.runs.iter().map(move |run| row(flow, run)).collect::<Vec<_>>());
    let names = [
        "Flow",
        "Run",
        "Intervals",
        "min (Gb/s)",
        "p1 (Gb/s)",
        "longest stall (ms)",
        "slowest at (s)",
    ];
    let caption = "Each run's slowest interval, slowest 1 % and longest time without a completion; the least steady \
                   flow first";
    Table::new(caption, names, rows.take(MOST_ROWS))
}

fn row(flow: &Flow<'_, '_>, sampled: &Sampled<'_>) -> Vec<Cell> {
    let stall = sampled.timeline.longest_stall_seconds;
    let slowest = slowest(&sampled.intervals).map(|interval| interval.from);
    vec![
        Cell::text(&flow.subject),
        Cell::text(sampled.run.to_string()),
        Cell::number(sampled.intervals.len() as f64, 0),
        Cell::number(sampled.bandwidth.map(|it| it.min), 3),
        Cell::number(sampled.bandwidth.and_then(|it| it.p1), 3),
        Cell::number(stall.map(|seconds| seconds * 1e3), 2),
        Cell::number(slowest, 3),
    ]
}

/// Columns of a chart; more intervals than that are drawn with their least and most.
const COLUMNS: usize = 150;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Interval {
    /// In seconds from the beginning of the window.
    from: f64,
    to: f64,
    gbit_per_s: f64,
}

impl Interval {
    fn middle_ns(&self) -> f64 {
        f64::midpoint(self.from, self.to) * 1e9
    }
}

/// Intervals side by side as one where there are too many: throughput over all of them, the least, the most.
fn columns(intervals: &[Interval]) -> Vec<(Interval, f64, f64)> {
    let each = intervals.len().div_ceil(COLUMNS).max(1);
    intervals
        .chunks(each)
        .filter_map(|part| {
            let (from, to) = (part.first()?.from, part.last()?.to);
            let moved: f64 = part.iter().map(|one| one.gbit_per_s * (one.to - one.from)).sum();
            let rates = part.iter().map(|one| one.gbit_per_s);
            let whole = Interval { from, to, gbit_per_s: moved / (to - from) };
            let least = rates.clone().fold(f64::INFINITY, f64::min);
            Some((whole, least, rates.fold(0.0, f64::max)))
        })
        .collect()
}

/// The longest stretch of intervals without a message, where there is one.
fn stall(intervals: &[Interval]) -> Option<(f64, f64)> {
    let stretches = intervals.chunk_by(|a, b| (a.gbit_per_s == 0.0) == (b.gbit_per_s == 0.0));
    stretches
        .filter(|stretch| stretch.first().is_some_and(|first| first.gbit_per_s == 0.0))
        .filter_map(|stretch| Some((stretch.first()?.from, stretch.last()?.to)))
        .max_by(|a, b| (a.1 - a.0).total_cmp(&(b.1 - b.0)))
}

fn slowest(intervals: &[Interval]) -> Option<Interval> {
    intervals.iter().copied().min_by(|a, b| a.gbit_per_s.total_cmp(&b.gbit_per_s))
}

/// The slowest hundredth's part of the median, for throughput in intervals.
fn steadiness_of_rates(rates: impl Iterator<Item = f64>) -> f64 {
    let (middle, slow) = middle_and_slow(rates.collect());
    if middle > 0.0 { slow / middle } else { 0.0 }
}

/// The same of an open loop's messages in intervals. Arrivals by chance are not steady by themselves: what chance explains,
/// three standard deviations of a Poisson count, is not held against them.
fn steadiness_of_arrivals(messages: &[u64]) -> f64 {
    let (middle, slow) = middle_and_slow(messages.iter().map(|&count| count as f64).collect());
    if middle > 0.0 { ((slow + 3.0 * middle.sqrt()) / middle).min(1.0) } else { 1.0 }
}

fn middle_and_slow(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let [middle, slow] =
        [values.len() / 2, values.len() / 100].map(|at| values.get(at).copied().unwrap_or(0.0));
    (middle, slow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_not_unsteady_and_a_stall_is() {
        let mut counts = vec![100; 100];
        counts.extend([75; 2]);
        assert!(steadiness_of_rates(counts.iter().map(|&count| count as f64)) < 0.9);
        assert_eq!(steadiness_of_arrivals(&counts), 1.0);
        counts[..2].fill(0);
        assert!(steadiness_of_arrivals(&counts) < 0.4);
        // Too few arrive to judge an interval.
        assert_eq!(steadiness_of_arrivals(&[0, 1, 0, 0, 2]), 1.0);
        assert_eq!(steadiness_of_rates([0.0, 0.0].into_iter()), 0.0);
    }
}
