//! Throughput against latency of closed loops: a path over the send depth, or over the number of QPs, which are what
//! sets how much a closed loop has in flight. It must not know where the figures are shown.

use super::curves::{Spread, is_a_curve, number_column, runs_cell, text_column};
use super::groups::{Group, Line, Rule, grouped};
use super::load_words::LoadUnit;
use super::naming::head;
use super::settings::{Sample, Setting};
use crate::compare::Metric;
use crate::plot::draw::palette::{INK, Look, look};
use crate::plot::draw::{
    Axis, Key, KeyMark, Labels, LineChart, Point, Scale, Series, Sheet, Style, Unit, number,
};
use crate::plot::figure::{Cell, Figure, Table};
use crate::results::load::Loaded;
use settings::Settings;

/// Each has two curves.
const MOST_LINES: usize = 5;
const PERCENTILES: [(Metric, &str); 2] = [(Metric::P50Ns, "2 3"), (Metric::P99Ns, "")];

/// What a path goes over.
struct Over {
    flag: &'static str,
    words: &'static str,
    /// What stands before a number at a point.
    short: &'static str,
    of: fn(&Settings) -> u32,
}

const OVER: [Over; 2] = [
    Over {
        flag: "tx-depth",
        words: "send depth",
        short: "-t",
        of: |settings| settings.tx_depth,
    },
    Over {
        flag: "qps",
        words: "QPs",
        short: "-q",
        of: |settings| settings.qps,
    },
];

/// The figures; none without two depths, or two numbers of QPs, of otherwise one setting.
pub fn figures(results: &[Loaded]) -> Vec<Figure> {
    let samples = Sample::closed_loops(results);
    let of = |over: &Over| {
        let rule = Rule {
            axis: Setting::of(over.flag),
            place: &|sample| sample.number(over.of),
            apart: &[Setting::of("size"), Setting::of("size-mix")],
            most_lines: MOST_LINES,
            most_figures: 6,
            least_places: 2,
        };
        let groups = grouped(samples.clone(), &rule);
        groups.figures(|index, group, notes| figure(over, index, group, notes))
    };
    OVER.iter().flat_map(of).collect()
}

fn figure(over: &Over, index: usize, group: &Group<'_>, notes: &[String]) -> Option<Figure> {
    let (_, first) = group.lines.first()?.points.first()?;
    let mean_bytes = first.flow.settings.mean_bytes();
    let samples = || group.lines.iter().flat_map(|line| &line.points);
    let rates = samples().filter_map(|(_, sample)| Some(throughput(sample)?.high));
    let most = rates.fold(0.0, f64::max);
    let unit = LoadUnit::of(mean_bytes, most);
    let series = series(group, unit);
    if most <= 0.0 || !is_a_curve(&series) {
        return None;
    }
    let axis = Setting::of(over.flag);
    let mut figure = Figure {
        id: format!("latency-by-throughput-{}-{}", over.flag, index + 1),
        title: group.title(&format!("Throughput and latency over {}", over.words)),
        subtitle: group.subtitle(axis),
        description: description(over, group, unit),
        svg: String::new(),
        tables: vec![table(over, group)],
    };
    let points = || series.iter().flat_map(|series| &series.points);
    let ends = points().flat_map(|point| {
        let (low, high) = point.interval.unzip();
        [point.y, low, high]
    });
    let ns: Vec<f64> = ends.flatten().filter(|ns| *ns > 0.0).collect();
    let least = ns.iter().copied().fold(f64::INFINITY, f64::min);
    let longest = ns.iter().copied().fold(1.0, f64::max);
    let xs = || points().map(|point| point.x).filter(|x| x.is_finite());
    let begin = xs().fold(f64::INFINITY, f64::min);
    let end = xs().fold(0.0, f64::max);
    let begins_at_0 = begin < end * 0.5;
    let scale = match begins_at_0 {
        true => Scale::linear(0.0, end * 1.06),
        false => Scale::linear(begin, end).widened(0.08),
    };
    let chart = LineChart {
        x: Axis::new(format!("throughput, {}", unit.words), scale, Unit::Plain),
        y: Axis::new(
            "latency from the post (log)",
            Scale::log10(least, longest).widened(0.08),
            Unit::Nanoseconds,
        ),
        series,
        rules: Vec::new(),
    };
    let mut sheet = Sheet::new(head(&figure));
    sheet.legend(&keys(group));
    let area = sheet.take(380.0);
    let frame = chart.draw(&mut sheet.canvas, area);
    let mut labels = Labels::within(frame.plot);
    let p99s = || chart.series.iter().filter(|series| series.markers);
    let place = |point: &Point| Some((frame.x(point.x)?, frame.y(point.y?)?));
    p99s()
        .flat_map(|series| &series.points)
        .filter_map(place)
        .for_each(|place| labels.keep_free_of_marker(place));
    for (line, series) in group.lines.iter().zip(p99s()) {
        for ((number, _), point) in line.points.iter().zip(&series.points) {
            if let Some(place) = place(point) {
                let text = format!("{} {number}", over.short);
                labels.beside(&mut sheet.canvas, place, &text, Style::default());
            }
        }
    }
    sheet.note(&format!(
        "A line goes from one number to the next ({}): to the right while more in flight brings more throughput, and \
         straight up where it only waits. Latency is from post to completion seen. Medians of the runs.",
        over.short
    ));
    if !begins_at_0 {
        sheet.note("The horizontal axis does not begin at 0.");
    }
    notes.iter().for_each(|note| sheet.note(note));
    figure.svg = sheet.finish();
    Some(figure)
}

/// Messages a second.
fn throughput(sample: &Sample<'_>) -> Option<Spread> {
    let spread = Spread::of_metric(sample, Metric::MmsgPerS)?;
    Some(Spread {
        median: spread.median * 1e6,
        low: spread.low * 1e6,
        high: spread.high * 1e6,
        ..spread
    })
}

fn of_percentile(number: usize, dash: &'static str) -> Look {
    Look {
        dash,
        ..look(number)
    }
}

/// The percentiles of all lines, first all of the first one; markers are on the last.
fn series(group: &Group<'_>, unit: LoadUnit) -> Vec<Series> {
    let mut all = Vec::new();
    for (metric, dash) in PERCENTILES {
        for (number, line) in group.lines.iter().enumerate() {
            let point = |(_, sample): &(f64, Sample<'_>)| {
                let throughput = throughput(sample);
                let x = throughput.map_or(f64::NAN, |it| it.median * unit.of_message);
                let latency = Spread::of_metric(sample, metric);
                Spread::point(latency.filter(|_| throughput.is_some()), x)
            };
            all.push(Series {
                name: group.name(line),
                look: of_percentile(number, dash),
                points: line.points.iter().map(point).collect(),
                markers: metric == Metric::P99Ns,
            });
        }
    }
    all
}

fn keys(group: &Group<'_>) -> Vec<Key> {
    let several = group.lines.len() > 1;
    let mut keys = Vec::new();
    if several {
        let lines = group.lines.iter().enumerate();
        keys.extend(lines.map(|(number, line)| Key {
            look: of_percentile(number, ""),
            mark: KeyMark::LineAndMarker,
            label: group.name(line),
        }));
    }
    for (metric, dash) in PERCENTILES.into_iter().rev() {
        let colour = if several { INK } else { look(0).colour };
        keys.push(Key {
            look: Look {
                colour,
                ..of_percentile(0, dash)
            },
            mark: KeyMark::Line,
            label: metric.short_name().to_owned(),
        });
    }
    keys
}

fn description(over: &Over, group: &Group<'_>, unit: LoadUnit) -> String {
    let told = |line: &Line<'_>, (number, sample): &(f64, Sample<'_>)| {
        let p99 = Spread::of_metric(sample, Metric::P99Ns)?;
        Some(format!(
            "{} with {} {number}: {} at a p99 of {}",
            group.name(line),
            over.short,
            unit.per_second(throughput(sample)?.median),
            number::time(p99.median)
        ))
    };
    let of = |line: &Line<'_>| {
        let first = line.points.first().and_then(|point| told(line, point));
        let last = line.points.last().and_then(|point| told(line, point));
        [first, last]
    };
    let all: Vec<String> = group.lines.iter().flat_map(of).flatten().collect();
    format!(
        "Paths of latency over throughput, by {}. {}.",
        over.words,
        all.join("; ")
    )
}

fn table(over: &Over, group: &Group<'_>) -> Table {
    let mut columns = vec![
        text_column("Line"),
        number_column(over.words),
        text_column("Runs"),
    ];
    let metrics = [
        Metric::MmsgPerS,
        Metric::GbitPerS,
        Metric::P50Ns,
        Metric::P99Ns,
    ];
    columns.extend(metrics.map(|metric| number_column(metric.column().0)));
    let row = |name: &str, (number, sample): &(f64, Sample<'_>)| {
        let mut row = vec![
            Cell::Text(name.to_owned()),
            Cell::Number(*number, 0),
            runs_cell(sample),
        ];
        row.extend(metrics.map(|metric| {
            let (_, digits, factor) = metric.column();
            let spread = Spread::of_metric(sample, metric);
            spread.map_or(Cell::Missing, |it| Cell::Number(it.median / factor, digits))
        }));
        row
    };
    let of_line = |line: &Line<'_>| {
        let name = group.name(line);
        let rows = line.points.iter().map(|point| row(&name, point));
        rows.collect::<Vec<_>>()
    };
    Table {
        caption: "Medians of the runs".to_owned(),
        columns,
        rows: group.lines.iter().flat_map(of_line).collect(),
    }
}
