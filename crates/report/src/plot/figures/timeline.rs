//! Throughput over the time of a run, with its slowest interval and its longest stall. It must not know where
//! the figures are shown.

use super::curves::{number_column, text_column};
use super::naming::head;
use super::settings::{Sample, Setting};
use super::steadiness;
use crate::plot::draw::palette::{Look, WORSE, look};
use crate::plot::draw::{
    Axis, AxisFrame, Key, KeyMark, LineChart, Paint, Point, Rect, Rule, Scale, Series, Sheet,
    Style, Unit, number,
};
use crate::plot::figure::{Cell, Figure, Table};
use crate::plot::median::counted_runs;
use crate::results::load::Loaded;
use crate::results::model::{FlowResult, Run, Timeline};

const MOST_FIGURES: usize = 8;
const MOST_RUNS: usize = 4;
/// Columns of a chart; more intervals than that are drawn with their least and most.
const COLUMNS: usize = 300;

/// Throughput of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Interval {
    from: f64,
    to: f64,
    gbit_per_s: f64,
}

/// A run that was sampled.
struct Sampled<'a> {
    run: u32,
    flow: &'a FlowResult,
    timeline: &'a Timeline,
    intervals: Vec<Interval>,
}

impl Sampled<'_> {
    /// Gb/s of the slowest interval.
    fn min(&self) -> Option<f64> {
        Some(self.flow.bandwidth_gbit_per_s.as_ref()?.min)
    }

    /// Gb/s of the interval that 1 % are not above, where there were enough to tell it.
    fn p1(&self) -> Option<f64> {
        self.flow.bandwidth_gbit_per_s.as_ref()?.p1
    }
}

/// The figures, one for each case; none without samples.
pub fn figures(results: &[Loaded]) -> Vec<Figure> {
    let samples = Sample::all(results);
    let mut cases: Vec<_> = samples
        .iter()
        .filter_map(|sample| Some((sampled_runs(sample)?, sample)))
        .collect();
    // The least steady first: those are the ones to look at.
    let left_out = cases.len().saturating_sub(MOST_FIGURES);
    if left_out > 0 {
        cases.sort_by(|a, b| least_steady(&a.0).total_cmp(&least_steady(&b.0)));
        cases.truncate(MOST_FIGURES);
    }
    let last = cases.len().saturating_sub(1);
    let drawn = cases.iter().enumerate().map(|(index, (runs, sample))| {
        let note = (index == last && left_out > 0).then(|| {
            format!(
                "The {MOST_FIGURES} least steady cases are drawn, and {left_out} more are not: give files with fewer \
                 cases to see them."
            )
        });
        figure(index, sample, runs, note.as_deref())
    });
    drawn.collect()
}

fn sampled_runs<'a>(sample: &Sample<'a>) -> Option<Vec<Sampled<'a>>> {
    let flow = &sample.flow;
    let mean_bytes = flow.settings.mean_bytes();
    let sampled = |run| sampled(run, flow.result(run)?, mean_bytes);
    let runs = counted_runs(flow.case).filter_map(sampled);
    let runs: Vec<_> = runs.collect();
    (!runs.is_empty()).then_some(runs)
}

fn sampled<'a>(run: &Run, flow: &'a FlowResult, mean_bytes: f64) -> Option<Sampled<'a>> {
    let timeline = flow.timeline.as_ref()?;
    let mut from = 0.0;
    let mut intervals = Vec::with_capacity(timeline.at_seconds.len());
    for (&to, &messages) in timeline.at_seconds.iter().zip(&timeline.messages) {
        if to > from && to.is_finite() {
            let gbit_per_s = messages as f64 * mean_bytes * 8.0 / 1e9 / (to - from);
            intervals.push(Interval {
                from,
                to,
                gbit_per_s,
            });
            from = to;
        }
    }
    (!intervals.is_empty()).then_some(Sampled {
        run: run.run,
        flow,
        timeline,
        intervals,
    })
}

/// Of the least steady run.
fn least_steady(runs: &[Sampled<'_>]) -> f64 {
    let of = |run: &Sampled<'_>| match run.flow.load {
        Some(_) => steadiness::of_arrivals(&run.timeline.messages),
        None => steadiness::of_rates(run.intervals.iter().map(|interval| interval.gbit_per_s)),
    };
    runs.iter().map(of).fold(f64::INFINITY, f64::min)
}

/// Intervals side by side as one where there are too many: throughput over all of them, the least, the most.
fn columns(intervals: &[Interval]) -> Vec<(Interval, f64, f64)> {
    let each = intervals.len().div_ceil(COLUMNS).max(1);
    let join = |part: &[Interval]| {
        let (from, to) = (part.first()?.from, part.last()?.to);
        let moved: f64 = part
            .iter()
            .map(|one| one.gbit_per_s * (one.to - one.from))
            .sum();
        let rates = || part.iter().map(|one| one.gbit_per_s);
        let all = Interval {
            from,
            to,
            gbit_per_s: moved / (to - from),
        };
        Some((
            all,
            rates().fold(f64::INFINITY, f64::min),
            rates().fold(0.0, f64::max),
        ))
    };
    intervals.chunks(each).filter_map(join).collect()
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
    intervals
        .iter()
        .copied()
        .min_by(|a, b| a.gbit_per_s.total_cmp(&b.gbit_per_s))
}

fn gbit(value: Option<f64>) -> String {
    value.map_or("unknown".to_owned(), |value| {
        format!("{} Gb/s", number::short(value))
    })
}

fn words(sampled: &Sampled<'_>) -> String {
    let stall = match sampled.timeline.longest_stall_seconds {
        Some(0.0) => "no stall".to_owned(),
        Some(seconds) => format!("longest stall {}", number::time(seconds * 1e9)),
        None => "longest stall unknown".to_owned(),
    };
    format!(
        "Run {}: min {}, p1 {}, {stall}",
        sampled.run,
        gbit(sampled.min()),
        gbit(sampled.p1())
    )
}

fn subtitle(sample: &Sample<'_>) -> String {
    let settings = Setting::all()
        .into_iter()
        .map(|setting| sample.value(setting).words.clone());
    let mut parts: Vec<String> = settings.filter(|words| !words.is_empty()).collect();
    let left_out = sample
        .flow
        .case
        .runs
        .iter()
        .filter(|run| !run.complete)
        .count();
    if left_out > 0 {
        parts.push(format!("{left_out} runs not complete and left out"));
    }
    parts.join("\u{a0}· ")
}

fn figure(index: usize, sample: &Sample<'_>, runs: &[Sampled<'_>], note: Option<&str>) -> Figure {
    let told: Vec<String> = runs.iter().map(words).collect();
    let mut figure = Figure {
        id: format!("timeline-{}", index + 1),
        title: format!("Throughput over time, Gb/s: {}", sample.flow.subject()),
        subtitle: subtitle(sample),
        description: format!("Throughput in intervals of a run. {}.", told.join(". ")),
        svg: String::new(),
        tables: vec![table(runs)],
    };
    let mut sheet = Sheet::new(head(&figure));
    let drawn = || runs.iter().take(MOST_RUNS);
    let all = || drawn().flat_map(|run| &run.intervals);
    let most = all()
        .map(|interval| interval.gbit_per_s)
        .fold(0.0, f64::max);
    let longest = all().map(|interval| interval.to).fold(0.0, f64::max);
    let (y, x) = (Scale::from_zero(most), Scale::linear(0.0, longest * 1e9));
    sheet.legend(&keys(drawn().any(|run| run.intervals.len() > COLUMNS)));
    let height = if runs.len() == 1 { 300.0 } else { 190.0 };
    for (run, told) in drawn().zip(&told) {
        sheet.paragraph(
            told,
            Style {
                bold: true,
                ..Style::default()
            },
        );
        let area = sheet.take(height);
        draw_run(&mut sheet, area, run, x, y);
    }
    let aimed = runs
        .iter()
        .map(|run| run.timeline.interval_seconds)
        .fold(0.0, f64::max);
    sheet.note(&format!(
        "Payload whose completions were seen at the node that posts them, in intervals of about {}. Completions come \
         in groups of the signalled ones, so short intervals scatter.",
        number::time(aimed * 1e9)
    ));
    if runs.len() > MOST_RUNS {
        sheet.note(&format!(
            "{} more runs are in the table only.",
            runs.len() - MOST_RUNS
        ));
    }
    note.into_iter().for_each(|note| sheet.note(note));
    figure.svg = sheet.finish();
    figure
}

fn keys(joined: bool) -> Vec<Key> {
    let mut keys = vec![
        Key {
            look: look(0),
            mark: KeyMark::Line,
            label: "throughput".to_owned(),
        },
        Key {
            look: Look::of_rule(1),
            mark: KeyMark::Line,
            label: "p1: 1 % of the intervals are at most so fast".to_owned(),
        },
        Key {
            look: slowest_look(),
            mark: KeyMark::Marker,
            label: "slowest interval".to_owned(),
        },
        Key {
            look: Look {
                colour: WORSE,
                ..look(0)
            },
            mark: KeyMark::Area,
            label: "longest stall".to_owned(),
        },
    ];
    if joined {
        keys.push(Key {
            look: look(5),
            mark: KeyMark::Area,
            label: "from least to most of the intervals that share a column".to_owned(),
        });
    }
    keys
}

fn slowest_look() -> Look {
    Look {
        colour: WORSE,
        ..look(4)
    }
}

fn draw_run(sheet: &mut Sheet, area: Rect, run: &Sampled<'_>, x: Scale, y: Scale) {
    let columns = columns(&run.intervals);
    let middle = |interval: &Interval| f64::midpoint(interval.from, interval.to) * 1e9;
    let points = columns.iter().map(|(interval, ..)| Point {
        x: middle(interval),
        y: Some(interval.gbit_per_s),
        interval: None,
    });
    let p1 = run.p1().map(|y| Rule {
        name: String::new(),
        look: Look::of_rule(1),
        y,
    });
    let mut chart = LineChart {
        x: Axis::new("time in the window", x, Unit::Nanoseconds),
        y: Axis::new("Gb/s", y, Unit::Plain),
        series: Vec::new(),
        rules: p1.into_iter().collect(),
    };
    let canvas = &mut sheet.canvas;
    let frame = chart.draw(canvas, area);
    if let Some((from, to)) = stall(&run.intervals) {
        shade(canvas, &frame, from * 1e9, to * 1e9);
    }
    if run.intervals.len() > COLUMNS {
        let place = |x: f64, y: f64| Some((frame.x(x)?, frame.y(y)?));
        let above = columns
            .iter()
            .filter_map(|(one, _, most)| place(middle(one), *most));
        let below = columns
            .iter()
            .rev()
            .filter_map(|(one, least, _)| place(middle(one), *least));
        let outline: Vec<_> = above.chain(below).collect();
        canvas.polygon(&outline, Paint::area(look(5).colour).see_through(0.5));
    }
    chart.series = vec![Series {
        name: "throughput".to_owned(),
        look: look(0),
        points: points.collect(),
        markers: false,
    }];
    chart
        .series
        .iter()
        .for_each(|series| series.draw(canvas, &frame));
    if let Some(slowest) = slowest(&run.intervals)
        && let (Some(x), Some(y)) = (frame.x(middle(&slowest)), frame.y(slowest.gbit_per_s))
    {
        let hint = format!("slowest: {} Gb/s", number::short(slowest.gbit_per_s));
        canvas.marker((x, y), slowest_look(), Some(&hint));
    }
}

fn shade(canvas: &mut crate::plot::draw::Canvas, frame: &AxisFrame, from: f64, to: f64) {
    if let (Some(from), Some(to)) = (frame.x(from), frame.x(to)) {
        let stalled = Rect {
            x: from,
            width: (to - from).max(2.0).min(frame.plot.right() - from),
            ..frame.plot
        };
        canvas.rect(
            stalled,
            Paint::area(WORSE).see_through(0.65),
            Some("longest stall"),
        );
    }
}

fn table(runs: &[Sampled<'_>]) -> Table {
    let mut columns = vec![text_column("Run")];
    let names = [
        "Intervals",
        "min (Gb/s)",
        "p1 (Gb/s)",
        "longest stall (ms)",
        "slowest at (s)",
    ];
    columns.extend(names.map(number_column));
    let row = |sampled: &Sampled<'_>| {
        let (run, timeline) = (sampled.run, sampled.timeline);
        let cell = |value: Option<f64>, digits| {
            value.map_or(Cell::Missing, |value| Cell::Number(value, digits))
        };
        let slowest = slowest(&sampled.intervals).map(|interval| interval.from);
        vec![
            Cell::Text(run.to_string()),
            Cell::Number(sampled.intervals.len() as f64, 0),
            cell(sampled.min(), 3),
            cell(sampled.p1(), 3),
            cell(
                timeline.longest_stall_seconds.map(|seconds| seconds * 1e3),
                2,
            ),
            cell(slowest, 3),
        ]
    };
    Table {
        caption:
            "Each run's slowest interval, slowest hundredth and longest time without a completion"
                .to_owned(),
        columns,
        rows: runs.iter().map(row).collect(),
    }
}
