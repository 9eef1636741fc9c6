//! A figure of flows as a value: which flows, over what, which metrics. Flows become lines, or cells of a map, and charts,
//! and the table beside them is made of the same rows.

use crate::observe::{Metric, Spread};
use crate::show::plot::{
    draw::{INK, Key, KeyMark, MAP, Scale, SeriesStyle, Unit, style, text},
    figure::{Cell, CellsOf, Figure, Picture, Table},
    marks::{self, Axis, Chart, Mark, Matrix, MatrixCell, Point, Series, Shade, Shades},
    rows::{
        Group, Groups, Line, Sample, Setting, Sides, groups::Rule, latency_tail, uncounted_tail,
    },
};

pub struct Spec {
    /// Name of its file and of its place on the page.
    pub id: &'static str,
    /// What is shown; `{y}` stands for the first metric.
    pub title: &'static str,
    pub caption: &'static str,
    pub(crate) rows: for<'a> fn(Sides<'a>) -> Vec<Sample<'a>>,
    pub(crate) x: X,
    /// What is drawn of them: a chart each.
    pub(crate) y: &'static [Y],
    pub(crate) columns: &'static [Metric],
    /// Settings that never share a chart.
    pub(crate) apart: &'static [&'static str],
    /// Lines that a chart has at most.
    pub(crate) most_lines: usize,
    pub(crate) beside: &'static [Beside],
    /// What else is drawn in a chart of these lines.
    pub(crate) extra: Extra,
    pub(crate) tables: fn(&Groups<'_>) -> Vec<Table>,
}

type WordsAt = fn(f64, &Sample<'_>) -> Option<String>;
type Extra = for<'a> fn(&Groups<'a>, &Group<'a>, Sides<'a>, Metric) -> Vec<Mark>;

pub(crate) enum X {
    /// A setting that is a number: its flag, its words, and how it is written.
    Setting(&'static str, &'static str, Unit),
    /// The rate, from one value of a setting to the next: its flag, its words, and those at a point.
    RateOver(&'static str, &'static str, WordsAt),
    /// The percentiles of all samples of a case.
    Percentile,
}

pub(crate) enum Y {
    /// A metric, on an axis that begins at 0.
    Linear(Metric),
    /// A metric, where equal ratios are equally far apart.
    Log(Metric),
    /// Gb/s from messages of 8 KiB on, the message rate below.
    Rate,
    /// Percentiles of latency, each with its dashes; the last has markers.
    Percentiles(&'static [Metric]),
    /// A map with a row for each number of a setting: a metric as a part of the best of its column.
    OfBest(&'static str, Metric),
}

/// A figure that a flow is held against.
pub(crate) struct Beside {
    /// Name of its lines, and of its column.
    pub(crate) name: &'static str,
    pub(crate) of: fn(&Sample<'_>) -> Option<f64>,
    /// The same for all lines, if it is equal, and drawn as far as it is near.
    pub(crate) is_limit: bool,
}

/// From this mean size on rates are in bits.
const LARGE_BYTES: f64 = 8_192.0;

impl Spec {
    pub(crate) const USUAL: Spec = Spec {
        id: "",
        title: "",
        caption: "",
        rows: |sides| Sample::closed_loops(sides),
        x: X::Percentile,
        y: &[],
        apart: &[],
        most_lines: 6,
        columns: &[],
        beside: &[],
        extra: |_, _, _, _| Vec::new(),
        tables: |_| Vec::new(),
    };
}

impl X {
    pub(crate) fn setting(&self) -> Setting {
        match self {
            X::Setting(flag, ..) | X::RateOver(flag, ..) => Setting::from_flag(flag),
            // All cases are at one place, and launches may differ in this.
            X::Percentile => Setting::from_flag("runs"),
        }
    }

    pub(crate) fn least_places(&self) -> usize {
        match self {
            X::Percentile | X::RateOver("rate", ..) => 1,
            _ => 2,
        }
    }
}

impl Y {
    pub(crate) fn metrics(&self, rate: Metric) -> Vec<Metric> {
        match self {
            Y::Linear(metric) | Y::Log(metric) | Y::OfBest(_, metric) => vec![*metric],
            Y::Rate => vec![rate],
            Y::Percentiles(metrics) => metrics.to_vec(),
        }
    }
}

/// Gb/s of large messages, else the message rate.
fn rate_of(groups: &Groups<'_>) -> Metric {
    let mut sizes = groups.samples().map(|it| it.observed.flow.settings.mean_bytes());
    if sizes.any(|bytes| bytes >= LARGE_BYTES) { Metric::GbitPerS } else { Metric::MmsgPerS }
}

/// Words at a load beyond what the system moves, whose latency grows as long as a run lasts.
pub(crate) const OVERLOADED: &str = "overloaded";

/// What does not count, and limits, are on the axis up to so many times the largest figure.
const BEYOND: f64 = 3.0;
const LIMIT_BEYOND: f64 = 10.0;

impl Spec {
    /// What is drawn of a metric, or some percentiles, of a group of lines; `None` without a figure.
    fn chart(
        &self,
        groups: &Groups<'_>,
        group: &Group<'_>,
        y: &Y,
        rate: Metric,
        extra: Vec<Mark>,
    ) -> Option<Chart> {
        if let Y::OfBest(rows, metric) = y {
            return map(group, Setting::from_flag(rows), *metric);
        }
        let metrics = y.metrics(rate);
        let metric = *metrics.last()?;
        let own: Vec<Series> = (0..metrics.len())
            .flat_map(|index| group.lines.iter().map(move |line| (index, line)))
            .map(|(index, line)| Series {
                name: match metrics.len() {
                    1 => groups.name(line),
                    _ => format!("{}, {}", groups.name(line), metrics[index].short_name()),
                },
                style: match metrics.len() {
                    1 => groups.style(line),
                    count => groups.style(line).with_dash(dash(index, count)),
                },
                ..self.series(line, metrics[index], rate, index + 1 == metrics.len())
            })
            .filter(|series| series.figures() > 0)
            .collect();
        let places = group.places();
        let beside = self.beside(groups, group, &places);
        let y_axis = self.y_axis(y, metric, &own, &beside, &extra)?;
        let own_xs = own.iter().flat_map(Series::xs).chain(extra.iter().filter_map(Mark::x));
        let most_x = own_xs.filter(|x| x.is_finite()).fold(0.0, f64::max);
        let x_axis = self.x_axis(&places, most_x, rate)?;
        let (above, below): (Vec<Mark>, Vec<Mark>) =
            extra.into_iter().partition(|mark| matches!(mark, Mark::Dot(_)));
        let lines = beside.into_iter().chain(own).map(Mark::Line);
        let marks = below.into_iter().chain(lines).chain(above);
        let heading = match self.y.len() {
            1 => group.heading.clone(),
            _ => heading(metric, group),
        };
        Some(Chart { heading, ..Chart::new(x_axis, y_axis, marks.collect()) })
    }

    /// It has the lines, what they are held against as far as it is near, and the other marks; `None` without a figure.
    fn y_axis(
        &self,
        y: &Y,
        metric: Metric,
        own: &[Series],
        beside: &[Series],
        extra: &[Mark],
    ) -> Option<Axis> {
        let (limits, peers): (Vec<&Series>, Vec<&Series>) =
            beside.iter().partition(|it| !it.markers);
        let marked = ends(extra.iter().filter_map(Mark::y).collect());
        let (least, most) = together(extent(own.iter().chain(peers)), marked)?;
        let limit_points = limits.iter().flat_map(|it| &it.points).filter_map(|point| point.y);
        let highest = limit_points.filter(|it| *it <= most * LIMIT_BEYOND).fold(most, f64::max);
        let (scale, log) = match y {
            Y::Linear(_) | Y::Rate => (Scale::from_zero(highest), ""),
            _ => (Scale::log10(least, highest).widened(0.06), " (log)"),
        };
        let title = match (metric.unit(), &self.x) {
            ("ns", X::Setting(..)) => "time",
            ("ns", _) if metric.is_of_steps() => "time of a step",
            ("ns", _) => "latency",
            _ => metric.axis(),
        };
        Some(Axis::new(format!("{title}{log}"), scale, unit(metric)))
    }

    fn x_axis(&self, places: &[f64], most: f64, rate: Metric) -> Option<Axis> {
        Some(match self.x {
            X::Setting(_, title, unit) => {
                let scale = Scale::log2(*places.first()?, *places.last()?);
                Axis::new(title, scale.widened(0.03), unit)
            }
            X::RateOver(..) => Axis::new(rate.axis(), Scale::linear(0.0, most * 1.06), unit(rate)),
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
            X::Percentile => Series {
                points: samples
                    .clone()
                    .flat_map(|sample| latency_tail(sample, metric))
                    .map(|(x, ns)| Point::at(x, ns))
                    .collect(),
                hollow: samples.flat_map(|sample| uncounted_tail(sample, metric)).collect(),
                ..Series::default()
            },
            X::RateOver(_, _, words) => over_rates(line, metric, rate, words, is_last),
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
                let (name, style) = match (beside.is_limit, rules) {
                    (true, 0) => (beside.name.to_owned(), SeriesStyle::of_rule(0)),
                    (true, rules) => (
                        format!("{}, {}", beside.name, groups.name(line)),
                        SeriesStyle::of_rule(rules),
                    ),
                    (false, _) => (
                        format!("{}: {}", beside.name, groups.name(line)),
                        groups.style(line).of_peer(),
                    ),
                };
                series.push(Series {
                    name,
                    style,
                    points,
                    markers: !beside.is_limit,
                    ..Series::default()
                });
            }
        }
        series
    }
}

const NOT_MEASURED: &str = "not measured";
/// Least and most width of a cell of a map of parts, and its height.
const CELL_PX: (f64, f64, f64) = (30.0, 64.0, 22.0);
/// The first of its colours on which words have the ground's colour.
const DARK_STEP: usize = 6;

fn parts_of_best() -> Shades {
    let shades = MAP.into_iter().enumerate().map(|(step, colour)| {
        let [from, up_to] = [step, step + 1].map(|end| end as f64 / MAP.len() as f64);
        let label = format!("{:.0} to {:.0} %", from * 100.0, up_to * 100.0);
        Shade::new(up_to, colour, step >= DARK_STEP, label)
    });
    Shades(shades.collect())
}

/// The largest median of a metric at a place, if it is above 0.
fn best_at(group: &Group<'_>, place: f64, metric: Metric) -> Option<f64> {
    let points = group.lines.iter().flat_map(|line| &line.points).filter(|point| point.0 == place);
    let medians = points.filter_map(|(_, sample)| sample.observed.median(metric));
    medians.reduce(f64::max).filter(|best| *best > 0.0)
}

/// The best of the lines' medians by place and by number of the rows' setting, each as a part of the best of its place;
/// `None` where no place has two.
fn map(group: &Group<'_>, rows: Setting, metric: Metric) -> Option<Chart> {
    let number = |sample: &Sample<'_>| rows.number(&sample.observed.flow.settings);
    let points = || group.lines.iter().flat_map(|line| &line.points);
    let mut numbers: Vec<f64> = points().filter_map(|(_, sample)| number(sample)).collect();
    numbers.sort_by(|one, other| other.total_cmp(one));
    numbers.dedup();
    let places = group.places();
    let best_of = |row: usize, column: usize| {
        let own = points()
            .filter(|(place, it)| *place == places[column] && number(it) == Some(numbers[row]));
        let best = own.filter_map(|(_, it)| it.observed.median(metric)).reduce(f64::max);
        best.filter(|best| *best > 0.0)
    };
    let has_two = (0..places.len())
        .any(|column| (0..numbers.len()).filter(|row| best_of(*row, column).is_some()).count() > 1);
    if !has_two {
        return None;
    }
    let sizes: Vec<String> = places.iter().map(|place| text::bytes(*place as u64)).collect();
    let shades = parts_of_best();
    let matrix = Matrix {
        x: Axis::columns("size", sizes.clone()),
        y: Axis::rows(rows.name(), numbers.iter().map(|it| text::fixed(*it, 0))),
        shades: &shades,
        cell_px: CELL_PX,
    };
    let chart = matrix.chart(|row, column| {
        let value = best_of(row, column);
        let part = value.zip(best_at(group, places[column], metric)).map(|(own, best)| own / best);
        let percent = part.map_or(0.0, |part| part * 100.0);
        // A digit after the point below ten.
        let digits = usize::from(percent < 9.95);
        let words = value.map_or(NOT_MEASURED.to_owned(), |value| {
            format!("{percent:.1} %, {}", metric.text(value))
        });
        Some(MatrixCell {
            part,
            texts: vec![format!("{percent:.digits$}")],
            hint: format!("{} {}, {}: {words}", numbers[row], rows.name(), sizes[column]),
        })
    });
    Some(Chart { heading: group.heading.clone(), ..chart })
}

/// The medians of a line's cases above their rates with those words, and what does not count.
fn over_rates(
    line: &Line<'_>,
    metric: Metric,
    rate: Metric,
    words: WordsAt,
    is_last: bool,
) -> Series {
    // A point at 0 is the closed loop: bars show it.
    let placed = line.points.iter().filter(|it| it.0 > 0.0);
    let uncounted = placed.clone().flat_map(|(_, sample)| sample.uncounted());
    let hollow = uncounted.filter_map(|run| Some((run.value(rate)?, run.value(metric)?))).collect();
    let of_cases = placed.filter_map(|(place, sample)| {
        let own = point(sample.spread(metric), sample.spread(rate)?.median);
        let label = words(*place, sample);
        let point = Point {
            // More than one whisker at a place cannot be distinguished.
            interval: own.interval.filter(|_| is_last),
            may_be_beyond: label.as_deref() == Some(OVERLOADED),
            ..own
        };
        Some((point, label.unwrap_or_default()))
    });
    let (points, mut labels): (Vec<Point>, Vec<String>) = of_cases.unzip();
    labels.retain(|_| is_last);
    Series { points, hollow, markers: is_last, labels, ..Series::default() }
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
        rate @ ("Gb/s" | "Mmsg/s") => Unit::Rate(rate),
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
    let interval = spread.filter(|it| it.count > 1);
    Point {
        x,
        y: spread.map(|it| it.median),
        interval: interval.map(|it| (it.low, it.high)),
        ..Point::default()
    }
}

/// The least figure above 0 and the largest, intervals included, and what may be beyond the axis as far as it is near; `None`
/// without a figure.
pub(crate) fn extent<'s>(series: impl Iterator<Item = &'s Series>) -> Option<(f64, f64)> {
    let (mut counted, mut beyond) = (Vec::new(), Vec::new());
    for line in series {
        for point in &line.points {
            let (low, high) = point.interval.unzip();
            let into = if point.may_be_beyond { &mut beyond } else { &mut counted };
            into.extend([point.y, low, high].into_iter().flatten());
        }
        beyond.extend(line.hollow.iter().map(|it| it.1));
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

const MOST_CHARTS: usize = 9;

impl Spec {
    /// The figure; none without a line.
    pub fn figures<'a>(&self, sides: impl Into<Sides<'a>>) -> Vec<Figure> {
        let both = sides.into();
        self.figure(&self.groups(both), both).into_iter().collect()
    }

    pub(crate) fn groups<'a>(&self, sides: Sides<'a>) -> Groups<'a> {
        let axis = self.x.setting();
        let mut apart: Vec<Setting> = self.apart.iter().map(|it| Setting::from_flag(it)).collect();
        apart.extend(self.is_map().then_some(Setting::Device));
        let rule = Rule {
            axis,
            place: &|sample| match self.x {
                X::Percentile => Some(0.0),
                _ => axis.number(&sample.observed.flow.settings),
            },
            apart: &apart,
            most_lines: self.most_lines,
            most_charts: MOST_CHARTS / self.y.len().max(1),
            least_places: if self.is_map() { 1 } else { self.x.least_places() },
        };
        Groups::new((self.rows)(sides), &rule)
    }

    pub(crate) fn figure<'a>(&self, groups: &Groups<'a>, sides: Sides<'a>) -> Option<Figure> {
        let rate = rate_of(groups);
        let charts: Vec<Chart> = self
            .y
            .iter()
            .flat_map(|y| {
                groups.groups.iter().filter_map(move |group| {
                    let extra = (self.extra)(groups, group, sides, rate);
                    self.chart(groups, group, y, rate, extra)
                })
            })
            .collect();
        if !charts.iter().any(|chart| self.has_figures(chart)) {
            return None;
        }
        let metrics: Vec<Metric> = self.y.iter().flat_map(|y| y.metrics(rate)).collect();
        let mut tables = vec![self.table(groups, &self.shown(&metrics, rate))];
        tables.extend((self.tables)(groups));
        let has_spread = charts.iter().flat_map(Chart::series).any(|series| {
            let mut points = series.points.iter();
            points.any(|point| point.interval.is_some())
        });
        let spread = "Points are medians of the runs, whiskers their lowest and highest.";
        let map = "100 % is the best of a column; a cell has the best of its cases.";
        let notes = [(has_spread, spread), (self.is_map(), map)];
        let picture = Picture {
            keys: self.keys(groups, &charts, rate),
            charts,
            tables,
            ..groups.picture(notes.map(|(is_true, note)| is_true.then(|| note.to_owned())))
        };
        Some(picture.named(
            self.id,
            self.title.replace("{y}", metrics.first()?.title()),
            self.caption,
        ))
    }

    fn keys(&self, groups: &Groups<'_>, charts: &[Chart], rate: Metric) -> Vec<Key> {
        if self.is_map() {
            return parts_of_best().keys(charts, NOT_MEASURED);
        }
        let mut keys = marks::keys_of_charts(charts, &groups.names);
        for metrics in self.y.iter().map(|y| y.metrics(rate)).filter(|it| it.len() > 1) {
            // Colours distinguish lines, and dashes percentiles.
            keys.retain(|key| [KeyMark::Marker, KeyMark::Area].contains(&key.mark));
            let mut lines: Vec<Key> = Vec::new();
            for line in groups.lines() {
                let style = groups.style(line).with_dash("");
                let key = Key::new(KeyMark::LineAndMarker, style, groups.name(line));
                if !lines.iter().any(|known| known.label == key.label) {
                    lines.push(key);
                }
            }
            let is_one = lines.len() < 2;
            let plain =
                SeriesStyle { colour: if is_one { style(0).colour } else { INK }, ..style(0) };
            let dashes = metrics.iter().enumerate().rev().map(|(index, metric)| {
                let style = plain.with_dash(dash(index, metrics.len()));
                let of_metric = format!(", {}", metric.short_name());
                let mut drawn = charts.iter().flat_map(Chart::series);
                let is_drawn = drawn.any(|series| series.name.ends_with(&of_metric));
                let why = if is_drawn { "" } else { ": too few messages in each run" };
                Key::new(KeyMark::Line, style, format!("{}{why}", metric.short_name()))
            });
            keys.splice(0..0, lines.into_iter().filter(|_| !is_one).chain(dashes));
        }
        keys
    }

    fn is_map(&self) -> bool {
        self.y.iter().any(|y| matches!(y, Y::OfBest(..)))
    }

    fn has_figures(&self, chart: &Chart) -> bool {
        let mut marks = chart.marks.iter();
        let has_own = marks.any(|mark| matches!(mark, Mark::Dot(_) | Mark::Tiles(_)));
        has_own || chart.series().any(|it| it.figures() >= self.x.least_places())
    }

    /// The metrics in its table.
    fn shown(&self, drawn: &[Metric], rate: Metric) -> Vec<Metric> {
        let mut shown = drawn.to_vec();
        shown.sort();
        match self.x {
            X::RateOver(..) => shown.insert(0, rate),
            X::Percentile => shown.clear(),
            X::Setting(..) => {}
        }
        shown.extend(self.columns);
        shown
    }

    fn table(&self, groups: &Groups<'_>, shown: &[Metric]) -> Table {
        let has_spread = shown.len() < 3
            && groups.samples().any(|it| it.spread(shown[0]).is_some_and(|it| it.count > 1));
        let rows = groups.named_lines().flat_map(|(group, name, line)| {
            let points = line.points.iter();
            points.map(move |(place, sample)| Row {
                group,
                line: name.clone(),
                place: *place,
                sample,
            })
        });
        let mut columns: Vec<(&str, CellOf<'_>)> = Vec::new();
        columns.push(("Line", Box::new(|row| Cell::text(&row.line))));
        match (&self.x, self.x.setting()) {
            (X::Setting(_, title, Unit::Bytes), _) => {
                columns.push((title, Box::new(|row| Cell::Text(text::bytes(row.place as u64)))));
            }
            (X::Setting(_, title, _), _) => {
                columns.push((title, Box::new(|row| Cell::Number(row.place, 0))));
            }
            (X::RateOver(_, title, _), axis) => columns.push((
                title,
                Box::new(move |row| Cell::Text(axis.text(&row.sample.observed.flow.settings))),
            )),
            (X::Percentile, _) => {}
        }
        columns.push(("Runs", Box::new(|row| row.sample.runs_cell())));
        for &metric in shown {
            let names = [metric.column().0, "lowest", "highest"].into_iter().enumerate();
            for (at, name) in names.take(if has_spread { 3 } else { 1 }) {
                columns
                    .push((name, Box::new(move |row| row.sample.spread_cells(metric)[at].clone())));
            }
        }
        for beside in self.beside {
            columns
                .push((beside.name, Box::new(move |row| Cell::number((beside.of)(row.sample), 3))));
        }
        if self.is_map() {
            let metric = shown[0];
            columns.push(("of the best (%)", Box::new(move |row| row.part_of_best(metric))));
        }
        let cells: Vec<CellsOf<'_, Row<'_>>> =
            columns.iter().map(|(name, cell)| (*name, &**cell)).collect();
        Table::from_rows("Medians of the runs that count", rows, &cells)
    }
}

/// A case in the table.
struct Row<'g> {
    group: &'g Group<'g>,
    line: String,
    place: f64,
    sample: &'g Sample<'g>,
}

type CellOf<'g> = Box<dyn Fn(&Row<'g>) -> Cell>;

impl Row<'_> {
    fn part_of_best(&self, metric: Metric) -> Cell {
        let best = best_at(self.group, self.place, metric);
        let part = self.sample.observed.median(metric).zip(best).map(|(own, best)| own / best);
        Cell::number(part.map(|part| part * 100.0), 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::plot::marks::matrix::tests::can_be_read;

    #[test]
    fn words_can_be_read() {
        can_be_read(&parts_of_best());
    }
}
