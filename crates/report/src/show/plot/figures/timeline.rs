//! Throughput over the time of a run, with its slowest interval and its longest stall: the least steady run of each of the
//! least steady flows. It must not know where the figures are shown.

use super::curves::{number_column, text_column};
use super::facets;
use super::intervals::{COLUMNS, Interval, columns, slowest, stall};
use super::naming::{drawn, some_of};
use super::sample::Sample;
use super::settings::{Setting, revision};
use super::steadiness;
use crate::observe::standing::counted_runs;
use crate::results::model::{FlowResult, Run, Timeline};
use crate::show::plot::draw::palette::{Look, WORSE, look};
use crate::show::plot::draw::{
    Axis, AxisFrame, Canvas, Key, KeyMark, LineChart, Paint, Point, Rect, Rule, Scale, Series,
    Sheet, Unit, number,
};
use crate::show::plot::figure::{Cell, Figure, Table};
use crate::show::plot::sides::Sides;

/// Flows that are drawn; of more, the least steady.
const MOST_FLOWS: usize = 6;
/// Rows of the table.
const MOST_ROWS: usize = 60;

/// A run that was sampled.
struct Sampled<'a> {
    run: u32,
    flow: &'a FlowResult,
    timeline: &'a Timeline,
    intervals: Vec<Interval>,
}

impl Sampled<'_> {
    /// 1 is steady.
    fn steadiness(&self) -> f64 {
        match self.flow.load {
            Some(_) => steadiness::of_arrivals(&self.timeline.messages),
            None => steadiness::of_rates(self.intervals.iter().map(|it| it.gbit_per_s)),
        }
    }

    /// Gb/s of the slowest interval.
    fn min(&self) -> Option<f64> {
        Some(self.flow.bandwidth_gbit_per_s.as_ref()?.min)
    }

    /// Gb/s of the interval that 1 % are not above, where there were enough to tell it.
    fn p1(&self) -> Option<f64> {
        self.flow.bandwidth_gbit_per_s.as_ref()?.p1
    }
}

/// A flow whose runs were sampled, the least steady run first.
struct Flow<'s, 'a> {
    sample: &'s Sample<'a>,
    runs: Vec<Sampled<'a>>,
    steadiness: f64,
}

/// The figure; none without samples.
pub fn figures<'a>(results: impl Into<Sides<'a>>) -> Vec<Figure> {
    let samples = Sample::all(results.into().new.into());
    let mut flows: Vec<Flow<'_, '_>> = samples
        .iter()
        .filter_map(|sample| {
            let mut runs = sampled_runs(sample)?;
            runs.sort_by(|a, b| a.steadiness().total_cmp(&b.steadiness()));
            let steadiness = runs.first()?.steadiness();
            Some(Flow {
                sample,
                runs,
                steadiness,
            })
        })
        .collect();
    flows.sort_by(|a, b| a.steadiness.total_cmp(&b.steadiness));
    figure(&flows).into_iter().collect()
}

fn sampled_runs<'a>(sample: &Sample<'a>) -> Option<Vec<Sampled<'a>>> {
    let flow = &sample.flow;
    let mean_bytes = flow.settings.mean_bytes();
    let sampled = |run| sampled(run, flow.result(run)?, mean_bytes);
    let runs = counted_runs(flow).filter_map(sampled);
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

fn gbit(value: Option<f64>) -> String {
    value.map_or("unknown".to_owned(), |value| {
        format!("{} Gb/s", number::short(value))
    })
}

/// The run and its stall, as a chart has room for it.
fn brief(sampled: &Sampled<'_>) -> String {
    let stall = match sampled.timeline.longest_stall_seconds {
        Some(0.0) => "no stall".to_owned(),
        Some(seconds) => format!("longest stall {}", number::time(seconds * 1e9)),
        None => "longest stall unknown".to_owned(),
    };
    format!("Run {}: {stall}", sampled.run)
}

fn words(sampled: &Sampled<'_>) -> String {
    let (min, p1) = (gbit(sampled.min()), gbit(sampled.p1()));
    format!("{}, min {min}, p1 {p1}", brief(sampled))
}

/// What all flows share.
fn subtitle(flows: &[Flow<'_, '_>]) -> String {
    let shared = |setting: Setting| {
        let mut words = flows.iter().map(|flow| &flow.sample.value(setting).words);
        let first = words.next()?;
        (words.all(|other| other == first) && !first.is_empty()).then(|| first.clone())
    };
    let settings = Setting::all().into_iter();
    let settings = settings.filter(|it| ![Setting::Revision, Setting::Side].contains(it));
    settings
        .filter_map(shared)
        .collect::<Vec<_>>()
        .join("\u{a0}· ")
}

/// The flow, with its file where another file has it too.
fn subject(flow: &Flow<'_, '_>, all: &[Flow<'_, '_>]) -> String {
    let subject = flow.sample.flow.subject();
    let file = flow.sample.loaded;
    let is_elsewhere = |other: &Flow<'_, '_>| {
        !std::ptr::eq(other.sample.loaded, file) && other.sample.flow.subject() == subject
    };
    match all.iter().any(is_elsewhere) {
        true => {
            let file = flow.sample.file_words(Sides::default());
            let revision = revision(&flow.sample.loaded.result);
            let revision = revision.map_or(String::new(), |it| format!(", rev {it}"));
            format!("{subject}, {file}{revision}")
        }
        false => subject,
    }
}

fn figure(all: &[Flow<'_, '_>]) -> Option<Figure> {
    let flows = &all[..all.len().min(MOST_FLOWS)];
    flows.first()?;
    let subject = |flow: &Flow<'_, '_>| subject(flow, all);
    let told: Vec<String> = flows
        .iter()
        .filter_map(|flow| Some(format!("{}: {}", subject(flow), words(flow.runs.first()?))))
        .collect();
    let figure = Figure {
        id: "timeline".to_owned(),
        title: "Throughput over time, Gb/s".to_owned(),
        subtitle: subtitle(flows),
        description: format!("Throughput in intervals of a run. {}.", some_of(&told)),
        tables: vec![table(all)],
        ..Figure::default()
    };
    let first_runs = || flows.iter().filter_map(|flow| flow.runs.first());
    let aimed = first_runs()
        .map(|run| run.timeline.interval_seconds)
        .fold(0.0, f64::max);
    let joined = first_runs().any(|run| run.intervals.len() > COLUMNS);
    let headings: Vec<String> = flows.iter().map(subject).collect();
    Some(drawn(figure, |sheet| {
        sheet.legend(&keys(joined));
        let places = facets::places(sheet, &headings, 300.0);
        for (flow, place) in flows.iter().zip(&places) {
            if let Some(run) = flow.runs.first() {
                draw_run(sheet, place, run);
            }
        }
        sheet.note(&format!(
            "Payload whose completions were seen at the node that posts them, in intervals of about {}; of each flow the \
             least steady run. Completions come in groups of the signalled ones, so short intervals scatter.",
            number::time(aimed * 1e9)
        ));
        if all.len() > flows.len() {
            sheet.note(&format!(
                "The figure has the {MOST_FLOWS} least steady of {} flows, with scales of their own.",
                all.len()
            ));
        }
        let runs: usize = all.iter().map(|flow| flow.runs.len()).sum();
        if runs > MOST_ROWS {
            sheet.note(&format!(
                "The table has {MOST_ROWS} of {runs} runs, those of the least steady flows."
            ));
        }
    }))
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
            label: "p1: 1 % of the intervals are at most this fast".to_owned(),
        },
        Key {
            look: slowest_look(),
            mark: KeyMark::Marker,
            label: SLOWEST.to_owned(),
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

/// The name of the slowest interval.
const SLOWEST: &str = "slowest interval";

fn slowest_look() -> Look {
    Look {
        colour: WORSE,
        ..look(4)
    }
}

fn draw_run(sheet: &mut Sheet, place: &facets::Place, run: &Sampled<'_>) {
    let intervals = || run.intervals.iter();
    let most = intervals().map(|it| it.gbit_per_s).fold(0.0, f64::max);
    let longest = intervals().map(|it| it.to).fold(0.0, f64::max);
    let (y, x) = (Scale::from_zero(most), Scale::linear(0.0, longest * 1e9));
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
        x: Axis::new(
            if place.is_lowest {
                "time in the window"
            } else {
                ""
            },
            x,
            Unit::Nanoseconds,
        ),
        y: Axis::new(brief(run), y, Unit::Plain),
        series: Vec::new(),
        rules: p1.into_iter().collect(),
    };
    let canvas = &mut sheet.canvas;
    let frame = chart.draw(canvas, place.area);
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
        canvas.begin_series(SLOWEST);
        canvas.marker((x, y), slowest_look(), Some(&hint));
        canvas.end_group();
    }
}

fn shade(canvas: &mut Canvas, frame: &AxisFrame, from: f64, to: f64) {
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

fn table(flows: &[Flow<'_, '_>]) -> Table {
    let mut columns = vec![text_column("Flow"), text_column("Run")];
    let names = [
        "Intervals",
        "min (Gb/s)",
        "p1 (Gb/s)",
        "longest stall (ms)",
        "slowest at (s)",
    ];
    columns.extend(names.map(number_column));
    let row = |flow: &Flow<'_, '_>, sampled: &Sampled<'_>| {
        let (run, timeline) = (sampled.run, sampled.timeline);
        let cell = |value: Option<f64>, digits| {
            value.map_or(Cell::Missing, |value| Cell::Number(value, digits))
        };
        let slowest = slowest(&sampled.intervals).map(|interval| interval.from);
        vec![
            Cell::Text(subject(flow, flows)),
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
    let rows = flows.iter().flat_map(|flow| {
        let rows = flow.runs.iter().map(move |run| row(flow, run));
        rows.collect::<Vec<_>>()
    });
    let rows = rows.take(MOST_ROWS).collect();
    Table {
        caption: "Each run's slowest interval, slowest hundredth and longest time without a completion, the least steady \
                  flow first"
            .to_owned(),
        columns,
        rows,
    }
}
