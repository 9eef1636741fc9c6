//! Figure: throughput over the time of a run in as many intervals as have room, with its slowest interval and its
//! longest stall: the least steady run of each of the least steady flows.

use results::model::{Bandwidth, Timeline};

use crate::observe::Observation;
use crate::show::plot::{
    draw::{
        Key, KeyMark, Scale, Unit,
        palette::{SeriesStyle, WORSE, style},
        text,
    },
    figure::{Cell, Figure, Picture, Table},
    marks::{Axis, Band, Chart, Dot, Mark, Point, Rule, Series},
    rows::{Sample, Sides, groups::Groups},
};

/// Flows that are drawn; of more, the least steady.
const MOST_FLOWS: usize = 6;
const MOST_ROWS: usize = 60;

struct Sampled<'a> {
    flow: String,
    run: String,
    bandwidth: Option<&'a Bandwidth>,
    timeline: &'a Timeline,
    intervals: Vec<Interval>,
    /// 1 is steady, 0 stood still for a hundredth of the run.
    steadiness: f64,
}

/// The figure; none without samples.
pub fn figures<'a>(results: impl Into<Sides<'a>>) -> Vec<Figure> {
    let mut samples = Sample::of_sides(results.into().new.into());
    samples.retain(|sample| sample.counted().any(|it| sampled("", sample, it).is_some()));
    let groups = Groups::of_flows(samples);
    // The runs of each flow, the least steady first.
    let mut flows: Vec<Vec<Sampled<'_>>> = groups
        .flows()
        .into_iter()
        .map(|(name, sample)| {
            let mut runs: Vec<Sampled<'_>> =
                sample.counted().filter_map(|it| sampled(&name, sample, it)).collect();
            runs.sort_by(|one, other| one.steadiness.total_cmp(&other.steadiness));
            runs
        })
        .collect();
    flows.sort_by(|one, other| one[0].steadiness.total_cmp(&other[0].steadiness));
    figure(&groups, &flows).into_iter().collect()
}

fn sampled<'a>(name: &str, sample: &Sample<'a>, of: &Observation<'a>) -> Option<Sampled<'a>> {
    let moved = of.moved?;
    let timeline = moved.timeline.as_ref()?;
    let gbit = sample.observed.flow.settings.mean_bytes() * 8.0 / 1e9;
    let mut from = 0.0;
    let mut intervals = Vec::with_capacity(timeline.at_seconds.len());
    for (&to, &messages) in timeline.at_seconds.iter().zip(&timeline.messages) {
        if to > from && to.is_finite() {
            let gbit_per_s = messages as f64 * gbit / (to - from);
            intervals.push(Interval { from, to, gbit_per_s });
            from = to;
        }
    }
    let steadiness = match moved.load {
        Some(_) => steadiness_of_arrivals(&timeline.messages),
        None => steadiness_of_rates(intervals.iter().map(|it| it.gbit_per_s)),
    };
    (!intervals.is_empty()).then(|| Sampled {
        flow: name.to_owned(),
        run: sample.run_name(of.run),
        bandwidth: moved.bandwidth_gbit_per_s.as_ref(),
        timeline,
        intervals,
        steadiness,
    })
}

fn figure(groups: &Groups<'_>, flows: &[Vec<Sampled<'_>>]) -> Option<Figure> {
    let least_steady = flows.iter().map(|runs| &runs[0]).take(MOST_FLOWS);
    let seconds = least_steady.clone().map(|run| run.timeline.interval_seconds);
    let interval = text::time(seconds.reduce(f64::max)? * 1e9);
    let joined = least_steady.clone().any(|run| run.intervals.len() > COLUMNS);
    let (of_all, runs) = (flows.len(), flows.iter().map(Vec::len).sum::<usize>());
    let own_notes = [
        Some(format!(
            "Intervals of about {interval}. Short ones scatter, since completions come in groups."
        )),
        (of_all > MOST_FLOWS)
            .then(|| format!("The figure has the {MOST_FLOWS} least steady of {of_all} flows.")),
        (runs > MOST_ROWS).then(|| {
            format!("The table has {MOST_ROWS} of {runs} runs, those of the least steady flows.")
        }),
    ];
    let p1 = "p1: 1 % of the intervals are slower";
    let mut keys = vec![
        Key::new(KeyMark::Line, style(0), THROUGHPUT),
        Key::new(KeyMark::Line, SeriesStyle::of_rule(1), p1),
        Key::new(KeyMark::Marker, slowest_style(), SLOWEST),
        Key::new(KeyMark::Area, slowest_style(), STALL),
    ];
    keys.extend(joined.then(|| Key::new(KeyMark::Area, style(5), "least to most in a column")));
    let picture = Picture {
        keys,
        charts: least_steady.map(chart).collect(),
        tables: vec![table(flows.iter().flatten().take(MOST_ROWS))],
        ..groups.picture(own_notes)
    };
    Some(picture.named(
        "timeline",
        "Throughput over time",
        "The least steady run of each flow: payload that completed at the node that posts it.",
    ))
}

/// Names of the line, of the slowest interval, and of a stall.
const THROUGHPUT: &str = "throughput";
const SLOWEST: &str = "slowest interval";
const STALL: &str = "longest stall";

fn slowest_style() -> SeriesStyle {
    SeriesStyle { colour: WORSE, ..style(4) }
}

fn chart(run: &Sampled<'_>) -> Chart {
    let most = run.intervals.iter().map(|it| it.gbit_per_s).fold(0.0, f64::max);
    let longest = run.intervals.last().map_or(0.0, |last| last.to);
    let p1 = run.bandwidth.and_then(|it| it.p1).map(|at| Rule {
        style: SeriesStyle::of_rule(1),
        at,
        ..Rule::default()
    });
    let stall = stall(&run.intervals).map(|(from, to)| Band {
        name: STALL,
        style: slowest_style(),
        transparency: 0.65,
        ends: (from * 1e9, to * 1e9),
        hint: STALL.to_owned(),
    });
    let is_joined = run.intervals.len() > COLUMNS;
    let points = columns(&run.intervals).into_iter().map(|(one, low, high)| Point {
        interval: is_joined.then_some((low, high)),
        ..Point::at(one.middle_ns(), one.gbit_per_s)
    });
    let line = Series {
        name: THROUGHPUT.to_owned(),
        points: points.collect(),
        area: Some(style(5)),
        ..Series::default()
    };
    let slowest = slowest(&run.intervals).map(|slowest| Dot {
        name: SLOWEST.to_owned(),
        at: (slowest.middle_ns(), slowest.gbit_per_s),
        style: slowest_style(),
        hint: format!("slowest: {} Gb/s", text::short(slowest.gbit_per_s)),
        ..Dot::default()
    });
    let words = match run.timeline.longest_stall_seconds {
        Some(0.0) => "no stall".to_owned(),
        Some(seconds) => format!("longest stall {}", text::time(seconds * 1e9)),
        None => "longest stall unknown".to_owned(),
    };
    let x = Axis::new("time in the window", Scale::linear(0.0, longest * 1e9), Unit::Nanoseconds);
    let y = format!("Gb/s of run {}: {words}", run.run);
    let y = Axis::new(y, Scale::from_zero(most), Unit::Plain);
    let marks =
        [p1.map(Mark::Rule), stall.map(Mark::Band), Some(Mark::Line(line)), slowest.map(Mark::Dot)];
    Chart { heading: run.flow.clone(), ..Chart::new(x, y, marks.into_iter().flatten().collect()) }
}

fn table<'s>(runs: impl Iterator<Item = &'s Sampled<'s>>) -> Table {
    Table::from_rows(
        "Each run's slowest interval, slowest 1 % and longest time without a completion; the least steady flow first",
        runs,
        &[
            ("Flow", &|run| Cell::text(&run.flow)),
            ("Run", &|run| Cell::text(&run.run)),
            ("Intervals", &|run| Cell::number(run.intervals.len() as f64, 0)),
            ("min (Gb/s)", &|run| Cell::number(run.bandwidth.map(|it| it.min), 3)),
            ("p1 (Gb/s)", &|run| Cell::number(run.bandwidth.and_then(|it| it.p1), 3)),
            ("longest stall (ms)", &|run| {
                Cell::number(run.timeline.longest_stall_seconds.map(|seconds| seconds * 1e3), 2)
            }),
            ("slowest at (s)", &|run| Cell::number(slowest(&run.intervals).map(|it| it.from), 3)),
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
