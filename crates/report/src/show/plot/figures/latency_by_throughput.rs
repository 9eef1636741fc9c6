//! Throughput against latency of closed loops: a path over the send depth, or over the number of QPs, which are what
//! sets how much a closed loop has in flight. It must not know where the figures are shown.

use super::curves::{is_a_curve, number_column, point, runs_cell, text_column};
use super::facets;
use super::grouping::{Rule, grouped};
use super::groups::{Group, Groups, Line};
use super::load_words::LoadUnit;
use super::naming::{drawn, some_of};
use super::sample::Sample;
use super::settings::Setting;
use crate::observe::{Metric, Spread};
use crate::show::plot::draw::palette::{INK, Look, look};
use crate::show::plot::draw::{
    Axis, Key, KeyMark, Labels, LineChart, Point, Scale, Series, Sheet, Style, Unit, number,
};
use crate::show::plot::figure::{Cell, Figure, Table};
use crate::show::plot::sides::Sides;
use settings::Settings;

/// Each has two curves.
const MOST_LINES: usize = 4;
const MOST_CHARTS: usize = 6;
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

/// The figures, one for each; none without two depths, or two numbers of QPs, of otherwise one setting.
pub fn figures<'a>(results: impl Into<Sides<'a>>) -> Vec<Figure> {
    let samples = Sample::closed_loops(results);
    let of = |over: &Over| {
        let rule = Rule {
            axis: Setting::of(over.flag),
            place: &|sample| sample.number(over.of),
            metrics: &[Metric::MmsgPerS, Metric::P99Ns],
            apart: &[Setting::of("size"), Setting::of("size-mix")],
            most_lines: MOST_LINES,
            most_charts: MOST_CHARTS,
            least_places: 2,
        };
        figure(over, &grouped(samples.clone(), &rule))
    };
    OVER.iter().filter_map(of).collect()
}

/// A chart and the numbers at the points of its lines, whose p99s are the last series.
struct Chart {
    heading: String,
    chart: LineChart,
    numbers: Vec<Vec<f64>>,
    begins_at_0: bool,
}

impl Chart {
    fn of(groups: &Groups<'_>, group: &Group<'_>) -> Option<Chart> {
        let (_, first) = group.lines.first()?.points.first()?;
        let samples = || group.lines.iter().flat_map(|line| &line.points);
        let rates = samples().filter_map(|(_, sample)| Some(throughput(sample)?.high));
        let most = rates.fold(0.0, f64::max);
        let unit = LoadUnit::of(first.flow.settings.mean_bytes(), most);
        let series = series(groups, group, unit);
        if most <= 0.0 || !is_a_curve(&series) {
            return None;
        }
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
        let numbers = |line: &Line<'_>| line.points.iter().map(|point| point.0).collect();
        Some(Chart {
            heading: group.heading(),
            chart: LineChart {
                x: Axis::new(format!("throughput, {}", unit.name), scale, Unit::Plain),
                y: Axis::new(
                    "latency from the post (log)",
                    Scale::log10(least, longest).widened(0.08),
                    Unit::Nanoseconds,
                ),
                series,
                rules: Vec::new(),
            },
            numbers: group.lines.iter().map(numbers).collect(),
            begins_at_0,
        })
    }

    fn draw(&self, sheet: &mut Sheet, place: &facets::Place, over: &Over) {
        let mut chart = self.chart.clone();
        if !place.is_left {
            chart.y.title.clear();
        }
        let frame = chart.draw(&mut sheet.canvas, place.area);
        let mut labels = Labels::within(frame.plot);
        let p99s = || chart.series.iter().filter(|series| series.markers);
        let place = |point: &Point| Some((frame.x(point.x)?, frame.y(point.y?)?));
        p99s()
            .flat_map(|series| &series.points)
            .filter_map(place)
            .for_each(|place| labels.keep_free_of_marker(place));
        for (numbers, series) in self.numbers.iter().zip(p99s()) {
            for (number, point) in numbers.iter().zip(&series.points) {
                if let Some(place) = place(point) {
                    let text = format!("{} {number}", over.short);
                    labels.beside(&mut sheet.canvas, place, &text, Style::default());
                }
            }
        }
    }
}

fn figure(over: &Over, groups: &Groups<'_>) -> Option<Figure> {
    let charts = groups.groups.iter();
    let charts: Vec<Chart> = charts
        .filter_map(|group| Chart::of(groups, group))
        .collect();
    charts.first()?;
    let figure = Figure {
        id: format!("latency-by-throughput-{}", over.flag),
        title: format!("Throughput and latency over {}", over.words),
        subtitle: groups.subtitle(Setting::of(over.flag)),
        description: description(over, groups),
        tables: vec![table(over, groups)],
        ..Figure::default()
    };
    let headings: Vec<String> = charts.iter().map(|chart| chart.heading.clone()).collect();
    let all_begin_at_0 = charts.iter().all(|chart| chart.begins_at_0);
    Some(drawn(figure, |sheet| {
        sheet.legend(&keys(groups));
        let places = facets::places(sheet, &headings, 380.0);
        for (chart, place) in charts.iter().zip(&places) {
            chart.draw(sheet, place, over);
        }
        sheet.note(&format!(
            "A line goes from one number to the next ({}): to the right while more messages in flight bring more \
             throughput, and straight up where they only wait. Latency is from post to completion seen. Medians of \
             the runs.",
            over.short
        ));
        if !all_begin_at_0 {
            sheet.note("Not every horizontal axis begins at 0.");
        }
        groups.notes.iter().for_each(|note| sheet.note(note));
    }))
}

/// Messages a second.
fn throughput(sample: &Sample<'_>) -> Option<Spread> {
    let spread = sample.spread(Metric::MmsgPerS)?;
    Some(Spread {
        median: spread.median * 1e6,
        low: spread.low * 1e6,
        high: spread.high * 1e6,
        ..spread
    })
}

/// The percentiles of all lines, first all of the first one; markers are on the last.
fn series(groups: &Groups<'_>, group: &Group<'_>, unit: LoadUnit) -> Vec<Series> {
    let mut all = Vec::new();
    for (metric, dash) in PERCENTILES {
        for line in &group.lines {
            let point = |(_, sample): &(f64, Sample<'_>)| {
                let throughput = throughput(sample);
                let x = throughput.map_or(f64::NAN, |it| it.median * unit.of_message);
                let latency = sample.spread(metric);
                point(latency.filter(|_| throughput.is_some()), x)
            };
            all.push(Series {
                name: format!("{}, {}", groups.name(line), metric.short_name()),
                look: Look {
                    dash,
                    ..groups.look(line)
                },
                points: line.points.iter().map(point).collect(),
                markers: metric == Metric::P99Ns,
            });
        }
    }
    all
}

fn keys(groups: &Groups<'_>) -> Vec<Key> {
    let mut keys: Vec<Key> = Vec::new();
    for line in groups.lines() {
        let label = groups.name(line);
        if !keys.iter().any(|known| known.label == label) {
            keys.push(Key {
                look: Look {
                    dash: "",
                    ..groups.look(line)
                },
                mark: KeyMark::LineAndMarker,
                label,
            });
        }
    }
    if keys.len() < 2 {
        keys.clear();
    }
    let colour = if keys.is_empty() { look(0).colour } else { INK };
    keys.extend(PERCENTILES.into_iter().rev().map(|(metric, dash)| Key {
        look: Look {
            colour,
            dash,
            ..look(0)
        },
        mark: KeyMark::Line,
        label: metric.short_name().to_owned(),
    }));
    keys
}

fn description(over: &Over, groups: &Groups<'_>) -> String {
    let told = |name: &str, (number, sample): &(f64, Sample<'_>)| {
        let p99 = sample.spread(Metric::P99Ns)?;
        let rate = throughput(sample)?.median;
        let unit = LoadUnit::of(sample.flow.settings.mean_bytes(), rate);
        Some(format!(
            "{name} with {} {number}: {} at a p99 of {}",
            over.short,
            unit.per_second(rate),
            number::time(p99.median)
        ))
    };
    let of = |(name, line): (String, &Line<'_>)| {
        let first = line.points.first().and_then(|point| told(&name, point));
        let last = line.points.last().and_then(|point| told(&name, point));
        [first, last]
    };
    let all: Vec<String> = groups.named_lines().flat_map(of).flatten().collect();
    format!(
        "Paths of latency over throughput, by {}. {}.",
        over.words,
        some_of(&all)
    )
}

fn table(over: &Over, groups: &Groups<'_>) -> Table {
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
            let spread = sample.spread(metric);
            spread.map_or(Cell::Missing, |it| Cell::Number(it.median / factor, digits))
        }));
        row
    };
    let of_line = |(name, line): (String, &Line<'_>)| {
        let rows = line.points.iter().map(|point| row(&name, point));
        rows.collect::<Vec<_>>()
    };
    Table {
        caption: "Medians of the runs".to_owned(),
        columns,
        rows: groups.named_lines().flat_map(of_line).collect(),
    }
}
