//! Metrics over many result files, by date or by git revision, with what changed marked: a chart for each metric that
//! stepped, and words for the others. It must not know where the figures are shown.

use super::curves::{cells, is_a_curve, largest, number_column, series, text_column};
use super::facets::{self, MOST_CHARTS};
use super::grouping::{Rule, grouped};
use super::groups::{Group, Groups, Line};
use super::naming::{drawn, some_of};
use super::sample::Sample;
use super::settings::{Setting, minute};
use super::steps::{Step, steps};
use super::time_axis::{Moments, moments};
use crate::observe::Metric;
use crate::show::plot::draw::palette::{BETTER, Look, Marker, RULE, WORSE};
use crate::show::plot::draw::{
    Axis, AxisFrame, Canvas, Key, KeyMark, LineChart, Paint, Scale, Series, Sheet, Unit,
};
use crate::show::plot::figure::{Cell, Figure, Table};
use crate::show::plot::sides::Sides;

const MOST_LINES: usize = 6;
/// A metric's axis is logarithmic from this ratio on.
const WIDE: f64 = 20.0;

/// The figure; none without a case that is in two files.
pub fn figures<'a>(results: impl Into<Sides<'a>>) -> Vec<Figure> {
    let results = results.into();
    let Some(moments) = moments(results.new) else {
        return Vec::new();
    };
    let rule = Rule {
        axis: Setting::Sitting,
        place: &|sample| moments.place(sample.loaded),
        // The charts are chosen by their steps.
        metrics: &[],
        apart: &[Setting::of("size")],
        most_lines: MOST_LINES,
        most_charts: usize::MAX,
        least_places: 2,
    };
    // The base is a file as others are here.
    let groups = grouped(Sample::all(results.new.into()), &rule);
    let charts = groups.groups.iter().flat_map(|group| {
        let metrics = Metric::ALL.iter();
        metrics.filter_map(|metric| Chart::of(&groups, group, *metric))
    });
    figure(&groups, &charts.collect::<Vec<_>>(), &moments)
        .into_iter()
        .collect()
}

struct Drawn<'l> {
    name: String,
    places: Vec<f64>,
    samples: Vec<&'l Sample<'l>>,
    steps: Vec<Option<Step>>,
}

/// A metric of a group of lines.
struct Chart<'l> {
    metric: Metric,
    /// What tells the group from others.
    of: String,
    series: Vec<Series>,
    lines: Vec<Drawn<'l>>,
    /// The largest clear step, as the distance of its ratio from 1; 0 without one.
    largest_step: f64,
}

impl<'l> Chart<'l> {
    fn of(groups: &Groups<'_>, group: &'l Group<'l>, metric: Metric) -> Option<Chart<'l>> {
        let places = group.places();
        let of_run = |sample: &Sample<'_>| sample.spread(metric);
        let shown = || group.lines.iter().filter(|line| is_told(metric, line));
        let of_line = |line| {
            let name = groups.name(line);
            series(&name, groups.look(line), line, &places, &of_run)
        };
        let series: Vec<Series> = shown().map(of_line).collect();
        let lines = shown().zip(&series).map(|(line, series)| {
            let samples: Vec<&Sample<'_>> = line.points.iter().map(|(_, sample)| sample).collect();
            Drawn {
                name: series.name.clone(),
                places: line.points.iter().map(|(place, _)| *place).collect(),
                steps: steps(&samples, metric),
                samples,
            }
        });
        let lines: Vec<Drawn<'_>> = lines.collect();
        is_a_curve(&series).then_some(Chart {
            largest_step: largest_step(&lines),
            metric,
            of: group.heading(),
            series,
            lines,
        })
    }

    fn heading(&self) -> String {
        match self.of.as_str() {
            "" => self.metric.title().to_owned(),
            of => format!("{}: {of}", self.metric.title()),
        }
    }

    fn axes(&self, moments: &Moments) -> (LineChart, bool) {
        let values = || {
            let points = self.series.iter().flat_map(|series| &series.points);
            let ends = points.flat_map(|point| [point.y, point.interval.map(|(low, _)| low)]);
            ends.flatten().filter(|value| *value > 0.0)
        };
        let least = values().fold(f64::INFINITY, f64::min);
        let most = largest(&self.series).unwrap_or(1.0);
        let (scale, begins_at_0) = scale(self.metric, least, most);
        let unit = match self.metric.unit() {
            "ns" => Unit::Nanoseconds,
            _ => Unit::Plain,
        };
        let mut x = Axis::new(moments.axis_title(), moments.scale(), Unit::Plain);
        x.ticks = Some(moments.ticks());
        let chart = LineChart {
            x,
            y: Axis::new(self.metric.axis(), scale, unit),
            series: self.series.clone(),
            rules: Vec::new(),
        };
        (chart, begins_at_0)
    }
}

fn largest_step(lines: &[Drawn<'_>]) -> f64 {
    let steps = lines.iter().flat_map(|line| line.steps.iter().flatten());
    let clear = steps.filter(|step| step.better.is_some());
    let sizes = clear.map(|step| step.estimate.ratio.ln().abs());
    sizes.filter(|size| size.is_finite()).fold(0.0, f64::max)
}

fn figure(groups: &Groups<'_>, all: &[Chart<'_>], moments: &Moments) -> Option<Figure> {
    // Those that stepped most; without a step the first metric of each group.
    let mut by_step: Vec<usize> = (0..all.len()).collect();
    by_step.sort_by(|a, b| all[*b].largest_step.total_cmp(&all[*a].largest_step));
    let stepped = all.iter().filter(|chart| chart.largest_step > 0.0).count();
    by_step.truncate(match stepped {
        0 => all.first().map_or(0, |_| 1),
        stepped => stepped.min(MOST_CHARTS),
    });
    by_step.sort_unstable();
    let charts: Vec<&Chart<'_>> = by_step.iter().filter_map(|index| all.get(*index)).collect();
    charts.first()?;
    let is_steady = |metric: &&Metric| {
        let mut same = all
            .iter()
            .filter(|chart| chart.metric == **metric)
            .peekable();
        same.peek().is_some() && same.all(|chart| chart.largest_step == 0.0)
    };
    let steady = Metric::ALL.iter().filter(is_steady);
    let steady: Vec<&str> = steady.map(|metric| metric.title()).collect();
    let left_out = stepped.saturating_sub(MOST_CHARTS);
    let descriptions: Vec<String> = charts.iter().map(|chart| chart.description()).collect();
    let tables = charts.iter().map(|chart| chart.table()).collect();
    let revisions: Vec<&str> = moments.changes().map(|(_, revision)| revision).collect();
    let figure = Figure {
        id: "trend-of-metrics".to_owned(),
        title: format!("Trend over {}", moments.kind()),
        subtitle: groups.subtitle(Setting::Sitting),
        description: format!("{}.", some_of(&descriptions)),
        tables,
        ..Figure::default()
    };
    let drawn_charts: Vec<(String, LineChart)> = charts
        .iter()
        .map(|chart| (chart.heading(), chart.axes(moments).0))
        .collect();
    let headings: Vec<String> = drawn_charts.iter().map(|(it, _)| it.clone()).collect();
    let all_begin_at_0 = charts.iter().all(|chart| chart.axes(moments).1);
    Some(drawn(figure, |sheet| {
        let mut keys = facets::keys(&drawn_charts, &groups.names);
        keys.extend(marks());
        sheet.legend(&keys);
        let places = facets::places(sheet, &headings, 300.0);
        for ((chart, (_, axes)), place) in charts.iter().zip(&drawn_charts).zip(&places) {
            chart.draw(sheet, axes, place, moments);
        }
        sheet.note(
            "Points are medians of a file's runs that count, whiskers their smallest and largest. A step is marked where \
             the 95 % interval of its ratio to the file before is beyond the metric's margin, with 3 runs or more on \
             both sides.",
        );
        if !all_begin_at_0 {
            sheet.note("Vertical axes need not begin at 0, so that small steps can be seen.");
        }
        if !steady.is_empty() {
            sheet.note(&format!("Without a clear step: {}.", steady.join(", ")));
        }
        if left_out > 0 {
            sheet.note(&format!("{left_out} more charts have smaller steps."));
        }
        if !revisions.is_empty() {
            sheet.note(&format!(
                "From left to right the revision changed to {}.",
                revisions.join(", ")
            ));
        }
        groups.notes.iter().for_each(|note| sheet.note(note));
    }))
}

impl Chart<'_> {
    fn draw(&self, sheet: &mut Sheet, axes: &LineChart, place: &facets::Place, moments: &Moments) {
        let mut chart = axes.clone();
        chart.series.clear();
        if !place.is_lowest {
            chart.x.title.clear();
        }
        let canvas = &mut sheet.canvas;
        let frame = chart.draw(canvas, place.area);
        for (place, _) in moments.changes() {
            if let Some(x) = frame.x(place) {
                let (top, bottom) = ((x, frame.plot.y - 6.0), (x, frame.plot.bottom()));
                canvas.line(top, bottom, Paint::line(RULE, 1.5).dashed("2 4"));
            }
        }
        self.series
            .iter()
            .for_each(|series| series.draw(canvas, &frame));
        self.lines
            .iter()
            .for_each(|line| line.mark(canvas, &frame, self.metric));
        axes.label_ends(canvas, &frame);
    }
}

/// Whether the metric says something of the system: the throughput of an open loop is what was offered.
fn is_told(metric: Metric, line: &Line<'_>) -> bool {
    let is_throughput = matches!(metric, Metric::GbitPerS | Metric::MmsgPerS);
    let is_open = |(_, sample): &(f64, Sample<'_>)| !sample.is_closed_loop();
    !is_throughput || !line.points.iter().any(is_open)
}

/// A metric's axis, and whether it begins at 0: steps of a few percent are to be seen.
fn scale(metric: Metric, least: f64, most: f64) -> (Scale, bool) {
    if most / least > WIDE {
        (Scale::log10(least, most).widened(0.04), false)
    } else if least > most * 0.5 && metric != Metric::Fairness {
        (Scale::linear(least * 0.95, most * 1.02), false)
    } else {
        (Scale::from_zero(most), true)
    }
}

fn step_look(better: bool) -> Look {
    Look {
        colour: if better { BETTER } else { WORSE },
        marker: if better {
            Marker::Circle
        } else {
            Marker::Square
        },
        dash: "",
        hollow: true,
        thin: false,
    }
}

fn marks() -> Vec<Key> {
    let mark = |better, label: &str| Key {
        look: step_look(better),
        mark: KeyMark::Marker,
        label: label.to_owned(),
    };
    let revision = Key {
        look: Look {
            dash: "2 4",
            ..Look::of_rule(0)
        },
        mark: KeyMark::Line,
        label: "git revision changed".to_owned(),
    };
    vec![
        revision,
        mark(true, "step to better"),
        mark(false, "step to worse"),
    ]
}

impl Drawn<'_> {
    /// Rings around the points at which the metric stepped.
    fn mark(&self, canvas: &mut Canvas, frame: &AxisFrame, metric: Metric) {
        canvas.begin_series(&self.name);
        for (place, step) in self.places.iter().zip(&self.steps) {
            let Some(step) = step.filter(|step| step.better.is_some()) else {
                continue;
            };
            let better = step.better == Some(true);
            if let (Some(x), Some(y)) = (frame.x(*place), frame.y(step.estimate.new_median)) {
                canvas.ring(
                    (x, y),
                    step_look(better).colour,
                    better,
                    &step.words(metric),
                );
            }
        }
        canvas.end_group();
    }
}

impl Chart<'_> {
    fn description(&self) -> String {
        let of = |line: &Drawn<'_>| {
            let count = |better| {
                let steps = line.steps.iter().flatten();
                steps.filter(|step| step.better == Some(better)).count()
            };
            format!(
                "{}: {} files, {} steps to better and {} to worse",
                line.name,
                line.samples.len(),
                count(true),
                count(false)
            )
        };
        let all: Vec<String> = self.lines.iter().map(of).collect();
        format!("{}, {}", self.heading(), some_of(&all))
    }

    fn table(&self) -> Table {
        let (metric, axis, lines) = (self.metric, self.metric.axis(), &self.lines);
        let (factor, name) = match metric.unit() {
            "ns" => (1e-3, format!("{axis} (µs)")),
            _ => (1.0, axis.to_owned()),
        };
        let columns = vec![
            text_column("Line"),
            text_column("Begun (UTC)"),
            text_column("Revision"),
            number_column("Runs"),
            number_column(name),
            number_column("lowest"),
            number_column("highest"),
            text_column("Against the file before"),
        ];
        let mut rows = Vec::new();
        for line in lines {
            for (sample, step) in line.samples.iter().zip(&line.steps) {
                let spread = sample.spread(metric);
                let file = &sample.loaded.result;
                let mut row = vec![
                    Cell::Text(line.name.clone()),
                    Cell::Text(minute(&file.started_at)),
                    super::settings::revision(file).map_or(Cell::Missing, Cell::Text),
                    Cell::Number(spread.map_or(0.0, |spread| spread.count as f64), 0),
                ];
                row.extend(cells(spread, factor, 3));
                row.push(step.map_or(Cell::Missing, |step| Cell::Text(step.words(metric))));
                rows.push(row);
            }
        }
        Table {
            caption: format!(
                "{}: medians of each file's runs that count, and the ratio to the file before",
                self.heading()
            ),
            columns,
            rows,
        }
    }
}
