//! Figure: throughput over the time of a run in as many intervals as have room, with its slowest interval and its
//! longest stall: the least steady run of each of the least steady flows.

use results::load::Loaded;
use results::model::{Bandwidth, CaseResult, Run, Timeline};
use settings::Settings;

use crate::observe::Observation;
use crate::show::plot::{
    draw::{Key, KeyMark, Scale, SeriesStyle, Unit, WORSE, style, text},
    figure::{Cell, Figure, Picture, Table},
    figures::node_state,
    marks::{self, Axis, Band, Chart, Dot, Mark, Point, Rule, Series},
    rows::{Groups, OfRun, Sample, Sides},
};

/// Lines of a chart of flows; of more, the first.
const MOST_LINES: usize = 8;
/// Flows that are drawn; of more, the least steady.
const MOST_FLOWS: usize = 6;
const MOST_ROWS: usize = 60;

struct Sampled<'a> {
    bandwidth: Option<&'a Bandwidth>,
    timeline: &'a Timeline,
    measured: &'a Run,
    intervals: Vec<Interval>,
    /// 1 is steady, 0 stood still for a hundredth of the run.
    steadiness: f64,
}

fn sampled<'a>(sample: &Sample<'a>, counted: &Observation<'a>) -> Option<Sampled<'a>> {
    let moved = counted.moved?;
    let timeline = moved.timeline.as_ref()?;
    let intervals = intervals(timeline, &sample.observed.flow.settings);
    let steadiness = match moved.load {
        Some(_) => steadiness_of_arrivals(&timeline.messages),
        None => steadiness_of_rates(intervals.iter().map(|it| it.gbit_per_s)),
    };
    let bandwidth = moved.bandwidth_gbit_per_s.as_ref();
    let measured = counted.run;
    (!intervals.is_empty()).then_some(Sampled {
        bandwidth,
        timeline,
        measured,
        intervals,
        steadiness,
    })
}

fn intervals(timeline: &Timeline, settings: &Settings) -> Vec<Interval> {
    let gbit = settings.mean_bytes() * 8.0 / 1e9;
    let mut from = 0.0;
    let mut intervals = Vec::with_capacity(timeline.at_seconds.len());
    for (&to, &messages) in timeline.at_seconds.iter().zip(&timeline.messages) {
        if to > from && to.is_finite() {
            intervals.push(Interval { from, to, gbit_per_s: messages as f64 * gbit / (to - from) });
            from = to;
        }
    }
    intervals
}

/// The figure; none without samples.
pub fn figures<'a>(results: impl Into<Sides<'a>>) -> Vec<Figure> {
    let (groups, mut flows) = Groups::of_runs(results.into(), sampled);
    let by_steadiness = |one: &OfRun<Sampled<'_>>, other: &OfRun<Sampled<'_>>| {
        one.value.steadiness.total_cmp(&other.value.steadiness)
    };
    flows.iter_mut().for_each(|runs| runs.sort_by(by_steadiness));
    flows.sort_by(|one, other| by_steadiness(&one[0], &other[0]));
    let least_steady: Vec<_> = flows.iter().map(|runs| &runs[0]).take(MOST_FLOWS).collect();
    let seconds = least_steady.iter().map(|run| run.value.timeline.interval_seconds);
    let Some(longest) = seconds.reduce(f64::max) else {
        return Vec::new();
    };
    let is_joined = least_steady.iter().any(|run| run.value.intervals.len() > COLUMNS);
    let (of_all, runs) = (flows.len(), flows.iter().map(Vec::len).sum::<usize>());
    let own_notes = [
        Some(format!(
            "Intervals of about {}. Short ones scatter, since completions come in groups.",
            text::time(longest * 1e9)
        )),
        (of_all > MOST_FLOWS)
            .then(|| format!("The figure has the {MOST_FLOWS} least steady of {of_all} flows.")),
        (runs > MOST_ROWS).then(|| {
            format!("The table has {MOST_ROWS} of {runs} runs, those of the least steady flows.")
        }),
    ];
    let state = least_steady.first().and_then(|run| {
        node_state::figure(&format!("{}, run {}", run.flow, run.run), run.value.measured)
    });
    let joined = Key::new(KeyMark::Area, style(5), "least to most in a column");
    let slowest = Key::new(KeyMark::Marker, slowest_style(), SLOWEST);
    let charts: Vec<Chart> = least_steady.into_iter().map(chart).collect();
    let own_keys =
        marks::keys_of_charts(&charts, &[THROUGHPUT.to_owned()]).into_iter().chain([slowest]);
    let picture = Picture {
        keys: own_keys.chain(is_joined.then_some(joined)).collect(),
        charts,
        tables: vec![table(flows.iter().flatten().take(MOST_ROWS))],
        ..groups.picture(own_notes)
    };
    let caption =
        "The least steady run of each flow: payload that completed at the node that posts it.";
    let timeline = picture.named("timeline", "Throughput over time", caption);
    std::iter::once(timeline).chain(state).collect()
}

/// Flows of cases in which flows come and go, of the first run with such an event; none without one.
pub fn flows_figures(results: &[Loaded]) -> Vec<Figure> {
    let all_cases = results.iter().flat_map(|loaded| &loaded.result.cases);
    let with_events = all_cases.filter_map(|case| {
        let run = case.runs.iter().find(|run| run.complete && !run.convergence.is_empty())?;
        Some((case, run))
    });
    let cases: Vec<(&CaseResult, &Run)> = with_events.take(MOST_FLOWS).collect();
    if cases.is_empty() {
        return Vec::new();
    }
    let charts: Vec<Chart> = cases.iter().map(|(case, run)| chart_of_flows(case, run)).collect();
    let events =
        cases.iter().flat_map(|(case, run)| run.convergence.iter().map(move |it| (case, it)));
    let table = Table::from_rows(
        "Time until shares were even again",
        events.take(MOST_ROWS),
        &[
            ("Case", &|(case, _)| Cell::text(&case.id)),
            ("at (s)", &|(_, event)| Cell::number(event.at_seconds, 3)),
            ("Event", &|(_, event)| Cell::text(event.event())),
            ("Flows", &|(_, event)| Cell::number(f64::from(event.flows), 0)),
            ("even after (ms)", &|(_, event)| Cell::number(event.seconds.map(|it| it * 1e3), 0)),
            ("Remark", &|(_, event)| Cell::text(event.unknown.as_deref().unwrap_or_default())),
        ],
    );
    let event = Key::new(
        KeyMark::Line,
        SeriesStyle::of_rule(2),
        "a flow starts or stops, or a link fails or returns",
    );
    let picture = Picture {
        keys: marks::keys_of_charts(&charts, &[]).into_iter().chain([event]).collect(),
        charts,
        tables: vec![table],
        ..Picture::default()
    };
    let caption = "Even: each flow in a closed loop is within 10 % of an equal share for five intervals in a row.";
    vec![picture.named("flows-over-time", "Flows over time", caption)]
}

/// The lines of a run's first flows, and its events.
fn chart_of_flows(case: &CaseResult, run: &Run) -> Chart {
    let sampled_flows = run.flows.iter().enumerate().filter_map(|(index, flow)| {
        Some((&flow.name, intervals(flow.timeline.as_ref()?, &case.config.flow(index))))
    });
    let flows: Vec<_> = sampled_flows.take(MOST_LINES).collect();
    let drawn: Vec<&Interval> = flows.iter().flat_map(|(_, intervals)| intervals).collect();
    let most = drawn.iter().map(|it| it.gbit_per_s).fold(0.0, f64::max);
    let end_ns = drawn.iter().map(|it| it.to).fold(0.0, f64::max) * 1e9;
    let events = run.convergence.iter().map(|it| Mark::Rule(Rule::upright(it.at_seconds * 1e9)));
    let lines = flows.iter().enumerate().map(|(number, (name, intervals))| {
        let joined = columns(intervals).into_iter();
        Mark::Line(Series {
            name: (*name).clone(),
            style: style(number),
            points: joined.map(|(one, ..)| Point::at(one.middle_ns(), one.gbit_per_s)).collect(),
            ..Series::default()
        })
    });
    let x = Axis::new("time in the window", Scale::linear(0.0, end_ns), Unit::Nanoseconds);
    let y = Axis::new("Gb/s", Scale::from_zero(most), Unit::Rate("Gb/s"));
    let heading = format!("{}, run {}", case.id, run.run);
    Chart { heading, ..Chart::new(x, y, events.chain(lines).collect()) }
}

/// Names of the line, of the slowest interval, and of a stall.
const THROUGHPUT: &str = "throughput";
const SLOWEST: &str = "slowest interval";
const STALL: &str = "longest stall";
const P1: &str = "p1: 1 % of the intervals are slower";

fn slowest_style() -> SeriesStyle {
    SeriesStyle { colour: WORSE, ..style(4) }
}

fn chart(run: &OfRun<Sampled<'_>>) -> Chart {
    let Sampled { bandwidth, timeline, intervals, .. } = &run.value;
    let most = intervals.iter().map(|it| it.gbit_per_s).fold(0.0, f64::max);
    let end_ns = intervals.last().map_or(0.0, |last| last.to) * 1e9;
    let p1 = bandwidth.and_then(|it| it.p1);
    let p1_rule = p1.map(|at| Mark::Rule(Rule { name: P1.to_owned(), ..Rule::across(1, at) }));
    let stall = stall(intervals).map(|(from, to)| {
        let ends = (from * 1e9, to * 1e9);
        Mark::Band(Band::new(STALL, slowest_style(), 0.65, ends, STALL))
    });
    let is_joined = intervals.len() > COLUMNS;
    let points = columns(intervals).into_iter().map(|(one, low, high)| Point {
        interval: is_joined.then_some((low, high)),
        ..Point::at(one.middle_ns(), one.gbit_per_s)
    });
    let line = Mark::Line(Series {
        name: THROUGHPUT.to_owned(),
        points: points.collect(),
        area: Some(style(5)),
        ..Series::default()
    });
    let slowest = slowest(intervals).map(|slowest| {
        let at = (slowest.middle_ns(), slowest.gbit_per_s);
        let hint = format!("slowest: {} Gb/s", text::short(slowest.gbit_per_s));
        Mark::Dot(Dot::new(SLOWEST, at, slowest_style(), hint))
    });
    let words = match timeline.longest_stall_seconds {
        Some(0.0) => String::new(),
        Some(seconds) => format!(": longest stall {}", text::time(seconds * 1e9)),
        None => ": longest stall unknown".to_owned(),
    };
    let x = Axis::new("time in the window", Scale::linear(0.0, end_ns), Unit::Nanoseconds);
    let y = Axis::new("Gb/s", Scale::from_zero(most), Unit::Rate("Gb/s"));
    let marks = [p1_rule, stall, Some(line), slowest].into_iter().flatten();
    let heading = format!("{}, run {}{words}", run.flow, run.run);
    Chart { heading, ..Chart::new(x, y, marks.collect()) }
}

fn table<'s>(runs: impl Iterator<Item = &'s OfRun<Sampled<'s>>>) -> Table {
    Table::from_rows(
        "Each run's slowest interval, slowest 1 % and longest time without a completion; the least steady flow first",
        runs,
        &[
            ("Flow", &|run| Cell::text(&run.flow)),
            ("Run", &|run| Cell::text(&run.run)),
            ("Intervals", &|run| Cell::number(run.value.intervals.len() as f64, 0)),
            ("min (Gb/s)", &|run| Cell::number(run.value.bandwidth.map(|it| it.min), 3)),
            ("p1 (Gb/s)", &|run| Cell::number(run.value.bandwidth.and_then(|it| it.p1), 3)),
            ("longest stall (ms)", &|run| {
                let seconds = run.value.timeline.longest_stall_seconds;
                Cell::number(seconds.map(|seconds| seconds * 1e3), 2)
            }),
            ("slowest at (s)", &|run| {
                Cell::number(slowest(&run.value.intervals).map(|it| it.from), 3)
            }),
        ],
    )
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
