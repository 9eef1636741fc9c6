//! Metrics over many result files, by date or by git revision, with what changed marked. It must not know where
//! the figures are shown.

use super::curves::{Spread, number_column, text_column};
use super::groups::{Group, Groups, Line, Rule, grouped};
use super::naming::head;
use super::settings::{Sample, Setting, minute};
use super::steps::{Step, steps};
use super::time_axis::{Moments, moments};
use crate::compare::Metric;
use crate::plot::draw::palette::{BETTER, Look, MUTED, Marker, RULE, WORSE, look};
use crate::plot::draw::text::{ASCENT, SMALL_PX, width_px};
use crate::plot::draw::{
    Anchor, Axis, AxisFrame, Canvas, Key, KeyMark, LineChart, Paint, Rect, Scale, Series, Sheet,
    Style, Unit, number,
};
use crate::plot::figure::{Cell, Figure, Table};
use crate::results::load::Loaded;

const MOST_LINES: usize = 6;
const MOST_GROUPS: usize = 4;
/// A metric's axis is logarithmic from this ratio on.
const WIDE: f64 = 20.0;

/// The figures, one a metric for each group of cases; none without a case that is in two files.
pub fn figures(results: &[Loaded]) -> Vec<Figure> {
    let Some(moments) = moments(results) else {
        return Vec::new();
    };
    let rule = Rule {
        axis: Setting::Sitting,
        place: &|sample| moments.place(sample.loaded),
        apart: &[Setting::of("size")],
        most_lines: MOST_LINES,
        most_figures: MOST_GROUPS,
        least_places: 2,
    };
    let Groups { groups, notes } = grouped(Sample::all(results), &rule);
    let mut figures = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        for &metric in Metric::ALL {
            figures.extend(figure(index, metric, group, &moments, &notes));
        }
    }
    figures
}

struct Drawn<'l> {
    name: String,
    places: Vec<f64>,
    samples: Vec<&'l Sample<'l>>,
    steps: Vec<Option<Step>>,
}

fn figure(
    index: usize,
    metric: Metric,
    group: &Group<'_>,
    moments: &Moments,
    notes: &[String],
) -> Option<Figure> {
    let (name, axis) = (metric.title(), metric.axis());
    let unit = match metric.unit() {
        "ns" => Unit::Nanoseconds,
        _ => Unit::Plain,
    };
    let places = group.places();
    let of_run = |sample: &Sample<'_>| Spread::of_metric(sample, metric);
    let shown = || {
        let all = group.lines.iter().enumerate();
        all.filter(|(_, line)| is_told(metric, line))
    };
    let of_line = |(number, line)| {
        super::curves::series(&group.name(line), look(number), line, &places, &of_run)
    };
    let series: Vec<Series> = shown().map(of_line).collect();
    if !super::curves::is_a_curve(&series) {
        return None;
    }
    let lines: Vec<Drawn<'_>> = shown()
        .zip(&series)
        .map(|((_, line), series)| {
            let samples: Vec<&Sample<'_>> = line.points.iter().map(|(_, sample)| sample).collect();
            Drawn {
                name: series.name.clone(),
                places: line.points.iter().map(|(place, _)| *place).collect(),
                steps: steps(&samples, metric),
                samples,
            }
        })
        .collect();
    let mut figure = Figure {
        id: format!("trend-{}-{}", super::naming::slug(metric.name()), index + 1),
        title: group.title(&format!("{name} over {}", moments.kind())),
        subtitle: group.subtitle(Setting::Sitting),
        description: description(name, &lines),
        svg: String::new(),
        tables: vec![table(axis, metric, &lines)],
    };
    let values = || {
        let points = series.iter().flat_map(|series| &series.points);
        let ends = points.flat_map(|point| [point.y, point.interval.map(|(low, _)| low)]);
        ends.flatten().filter(|value| *value > 0.0)
    };
    let (least, most) = (
        values().fold(f64::INFINITY, f64::min),
        super::curves::largest(&series).unwrap_or(1.0),
    );
    let (scale, begins_at_0) = scale(metric, least, most);
    let mut x = Axis::new(moments.axis_title(), moments.scale(), Unit::Plain);
    x.ticks = Some(moments.ticks());
    let mut sheet = Sheet::new(head(&figure));
    let mut chart = LineChart {
        x,
        y: Axis::new(axis, scale, unit),
        series,
        rules: Vec::new(),
    };
    let mut keys = chart.keys();
    keys.extend(marks());
    sheet.legend(&keys);
    let area = sheet.take(330.0);
    let lines_of_series = std::mem::take(&mut chart.series);
    let frame = chart.draw(&mut sheet.canvas, area);
    changes(&mut sheet.canvas, &frame, moments, area, axis);
    lines_of_series
        .iter()
        .for_each(|series| series.draw(&mut sheet.canvas, &frame));
    lines
        .iter()
        .for_each(|line| line.mark(&mut sheet.canvas, &frame, metric));
    sheet.note(&format!(
        "Points are medians of a file's complete runs, whiskers their smallest and largest. A step is marked where the \
         95 % interval of its ratio to the file before is beyond {} %, with 3 runs or more on both sides.",
        number::fixed(metric.default_margin() * 100.0, 0)
    ));
    if !begins_at_0 {
        sheet.note("The vertical axis does not begin at 0, so that small steps can be seen.");
    }
    notes.iter().for_each(|note| sheet.note(note));
    figure.svg = sheet.finish();
    Some(figure)
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

/// Revisions other than the one before, with their names above where they fit beside the axis' title.
fn changes(canvas: &mut Canvas, frame: &AxisFrame, moments: &Moments, area: Rect, title: &str) {
    const BETWEEN: f64 = 12.0;
    let mut free_from = area.x + width_px(title, SMALL_PX, false) + BETWEEN;
    for (place, revision) in moments.changes() {
        let Some(x) = frame.x(place) else {
            continue;
        };
        let (top, bottom) = ((x, frame.plot.y - 6.0), (x, frame.plot.bottom()));
        canvas.line(top, bottom, Paint::line(RULE, 1.5).dashed("2 4"));
        let label = format!("→ {revision}");
        let half = width_px(&label, SMALL_PX, false) / 2.0;
        if x - half >= free_from && x + half <= area.right() {
            let style = Style {
                anchor: Anchor::Middle,
                colour: MUTED,
                ..Style::default()
            };
            canvas.text(x, area.y + SMALL_PX * ASCENT, &label, style);
            free_from = x + half + BETWEEN;
        }
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
    }
}

fn description(name: &str, lines: &[Drawn<'_>]) -> String {
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
    let all: Vec<String> = lines.iter().map(of).collect();
    format!(
        "{name} of the same cases in several result files. {}.",
        all.join("; ")
    )
}

fn table(axis: &str, metric: Metric, lines: &[Drawn<'_>]) -> Table {
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
            let spread = Spread::of_metric(sample, metric);
            let file = &sample.loaded.result;
            let mut row = vec![
                Cell::Text(line.name.clone()),
                Cell::Text(minute(&file.started_at)),
                super::settings::revision(file).map_or(Cell::Missing, Cell::Text),
                Cell::Number(spread.map_or(0.0, |spread| spread.count as f64), 0),
            ];
            row.extend(Spread::cells(spread, factor, 3));
            row.push(step.map_or(Cell::Missing, |step| Cell::Text(step.words(metric))));
            rows.push(row);
        }
    }
    Table {
        caption: "Medians of each file's complete runs, and the ratio to the file before"
            .to_owned(),
        columns,
        rows,
    }
}
