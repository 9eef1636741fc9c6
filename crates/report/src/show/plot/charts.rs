//! Charts of lines: what is drawn of the flows, on which axes.

use super::draw::palette::Look;
use super::draw::{Scale, Unit};
use super::marks::{Axis, Chart, Mark, Point, Series};
use super::rows::distribution;
use super::rows::groups::{Group, Groups, Line};
use super::spec::{Spec, X, Y};
use crate::observe::{Metric, Spread};

/// Words at a load beyond what the system moves, whose latency grows as long as a run lasts.
pub(crate) const OVERLOADED: &str = "overloaded";

/// What does not count, and limits, are on the axis up to so many times the largest figure.
const BEYOND: f64 = 3.0;
const LIMIT_BEYOND: f64 = 10.0;

impl Spec {
    /// What is drawn of a metric, or some percentiles, of a group of lines; `None` without a figure.
    pub(crate) fn chart(
        &self,
        groups: &Groups<'_>,
        group: &Group<'_>,
        y: &Y,
        rate: Metric,
        extra: Vec<Mark>,
    ) -> Option<Chart> {
        let metrics = y.metrics(rate);
        let count = metrics.len();
        let own: Vec<Series> = metrics
            .iter()
            .enumerate()
            .flat_map(|(index, metric)| {
                group.lines.iter().map(move |line| {
                    let (name, look) = (groups.name(line), groups.look(line));
                    let series = self.series(line, *metric, rate, index + 1 == count);
                    let (name, look) = match count {
                        1 => (name, look),
                        _ => (
                            format!("{name}, {}", metric.short_name()),
                            look.with_dash(dash(index, count)),
                        ),
                    };
                    Series { name, look, ..series }
                })
            })
            .filter(|series| series.figures() > 0)
            .collect();
        let places = group.places();
        let beside = self.beside(groups, group, &places);
        let marked = extra.iter().filter_map(Mark::y);
        let (least, most) = together(
            extent(own.iter().chain(beside.iter().filter(|it| it.markers))),
            ends(marked.collect()),
        )?;
        let most = beside
            .iter()
            .filter(|it| !it.markers)
            .flat_map(|it| &it.points)
            .filter_map(|point| point.y)
            .filter(|y| *y <= most * LIMIT_BEYOND)
            .fold(most, f64::max);
        let (scale, log) = match y {
            Y::Linear(_) | Y::Rate => (Scale::from_zero(most), ""),
            Y::Log(_) | Y::Percentiles(_) => (Scale::log10(least, most).widened(0.06), " (log)"),
        };
        let metric = *metrics.last()?;
        let title = match (metric.unit(), &self.x) {
            ("ns", X::Setting(..)) => "time",
            ("ns", _) => "latency",
            _ => metric.axis(),
        };
        let heading = match self.y.len() {
            1 => group.heading.clone(),
            _ => heading(metric, group),
        };
        let most_x = own
            .iter()
            .flat_map(Series::xs)
            .chain(extra.iter().filter_map(Mark::x))
            .filter(|x| x.is_finite())
            .fold(0.0, f64::max);
        let x = self.x_axis(&places, most_x, rate)?;
        let (above, below): (Vec<Mark>, Vec<Mark>) =
            extra.into_iter().partition(|mark| matches!(mark, Mark::Dot(_)));
        let lines = beside.into_iter().chain(own).map(Mark::Line);
        let y = Axis::new(format!("{title}{log}"), scale, unit(metric));
        let marks = below.into_iter().chain(lines).chain(above);
        Some(Chart { heading, ..Chart::new(x, y, marks.collect()) })
    }

    fn x_axis(&self, places: &[f64], most: f64, rate: Metric) -> Option<Axis> {
        Some(match self.x {
            X::Setting(_, title, unit) => {
                let scale = Scale::log2(*places.first()?, *places.last()?);
                Axis::new(title, scale.widened(0.03), unit)
            }
            X::RateOver(..) => Axis::new(rate.axis(), Scale::linear(0.0, most * 1.06), Unit::Plain),
            X::Percentile => {
                let scale = Scale::log10(1.8, most.max(10.0) * 1.15);
                Axis::new("percentile", scale, Unit::Tail)
            }
        })
    }

    fn series(&self, line: &Line<'_>, metric: Metric, rate: Metric, is_last: bool) -> Series {
        let samples = line.points.iter().map(|(_, sample)| sample);
        match self.x {
            X::Setting(..) => Series { markers: is_last, ..over_places(line, metric) },
            X::Percentile => {
                let tail = samples.clone().flat_map(distribution::tail);
                Series {
                    points: tail.map(|(x, ns)| Point::at(x, ns)).collect(),
                    hollow: samples.flat_map(distribution::uncounted).collect(),
                    ..Series::default()
                }
            }
            X::RateOver(_, _, words) => {
                // A point at 0 is the closed loop: bars show it.
                let placed = line.points.iter().filter(|it| it.0 > 0.0);
                let (points, labels) = placed
                    .clone()
                    .filter_map(|(place, sample)| {
                        let x = sample.spread(rate)?.median;
                        let words = words(*place, sample);
                        let point = point(sample.spread(metric), x);
                        let point = Point {
                            // More than one whisker at a place cannot be distinguished.
                            interval: point.interval.filter(|_| is_last),
                            may_be_beyond: words.as_deref() == Some(OVERLOADED),
                            ..point
                        };
                        Some((point, words.unwrap_or_default()))
                    })
                    .unzip();
                let hollow = placed
                    .flat_map(|(_, sample)| sample.uncounted())
                    .filter_map(|run| Some((run.value(rate)?, run.value(metric)?)));
                Series {
                    points,
                    hollow: hollow.collect(),
                    markers: is_last,
                    labels: if is_last { labels } else { Vec::new() },
                    ..Series::default()
                }
            }
        }
    }

    /// Lines of what the flows are held against; equal limits are one.
    fn beside(&self, groups: &Groups<'_>, group: &Group<'_>, places: &[f64]) -> Vec<Series> {
        let mut series: Vec<Series> = Vec::new();
        for beside in self.beside {
            for line in group.lines.iter().filter(|line| !line.is_of_base()) {
                let points: Vec<Point> = places
                    .iter()
                    .filter_map(|&place| {
                        let found = line.points.iter().find(|(x, _)| *x == place);
                        let y = found.and_then(|(_, sample)| (beside.of)(sample));
                        Some(Point::at(place, y?))
                    })
                    .collect();
                if points.is_empty()
                    || beside.is_limit && series.iter().any(|known| known.points == points)
                {
                    continue;
                }
                let rules = series.iter().filter(|it| !it.markers).count();
                let (name, look) = match (beside.is_limit, rules) {
                    (true, 0) => (beside.name.to_owned(), Look::of_rule(0)),
                    (true, rules) => {
                        (format!("{}, {}", beside.name, groups.name(line)), Look::of_rule(rules))
                    }
                    (false, _) => (
                        format!("{}: {}", beside.name, groups.name(line)),
                        groups.look(line).of_peer(),
                    ),
                };
                series.push(Series {
                    name,
                    look,
                    points,
                    markers: !beside.is_limit,
                    ..Series::default()
                });
            }
        }
        series
    }
}

/// The medians of a line's cases at their places, and what does not count.
pub(crate) fn over_places(line: &Line<'_>, metric: Metric) -> Series {
    let points = line.points.iter();
    let hollow = points.clone().flat_map(|(place, sample)| {
        sample.uncounted().filter_map(|run| run.value(metric)).map(|value| (*place, value))
    });
    let medians = points.clone().map(|(place, sample)| point(sample.spread(metric), *place));
    Series { points: medians.collect(), hollow: hollow.collect(), ..Series::default() }
}

pub(crate) fn heading(metric: Metric, group: &Group<'_>) -> String {
    match &*group.heading {
        "" => metric.title().to_owned(),
        heading => format!("{}: {heading}", metric.title()),
    }
}

pub(crate) fn unit(metric: Metric) -> Unit {
    match metric.unit() {
        "ns" => Unit::Nanoseconds,
        _ => Unit::Plain,
    }
}

/// The dashes of a percentile of so many; the last one's line is whole.
pub(crate) fn dash(index: usize, count: usize) -> &'static str {
    match (index + 1 == count, index) {
        (true, _) => "",
        (false, 0) => "2 3",
        (false, _) => "8 4",
    }
}

/// A point at `x`; one run alone has no interval.
fn point(spread: Option<Spread>, x: f64) -> Point {
    let interval = spread.filter(|spread| spread.count > 1);
    Point {
        x,
        y: spread.map(|spread| spread.median),
        interval: interval.map(|spread| (spread.low, spread.high)),
        ..Point::default()
    }
}

/// The least figure above 0 and the largest, intervals included, and what may be beyond the axis as far as it is near; `None`
/// without a figure.
pub(crate) fn extent<'s>(series: impl Iterator<Item = &'s Series>) -> Option<(f64, f64)> {
    let (mut counted, mut beyond) = (Vec::new(), Vec::new());
    for series in series {
        for point in &series.points {
            let (low, high) = point.interval.unzip();
            let into = if point.may_be_beyond { &mut beyond } else { &mut counted };
            into.extend([point.y, low, high].into_iter().flatten());
        }
        beyond.extend(series.hollow.iter().map(|it| it.1));
    }
    let (counted, beyond) = (ends(counted), ends(beyond));
    let near = counted
        .zip(beyond)
        .map(|((least, most), (low, high))| (low.max(least / BEYOND), high.min(most * BEYOND)));
    together(counted, near.or(beyond))
}

fn together(one: Option<(f64, f64)>, other: Option<(f64, f64)>) -> Option<(f64, f64)> {
    let both = one.zip(other).map(|(one, other)| (one.0.min(other.0), one.1.max(other.1)));
    both.or(one).or(other)
}

fn ends(values: Vec<f64>) -> Option<(f64, f64)> {
    let least = values.iter().copied().filter(|it| *it > 0.0).reduce(f64::min);
    let most = values.into_iter().reduce(f64::max)?;
    Some((least.unwrap_or(most), most))
}
