//! Metrics over many result files, by date or by git revision, with what changed marked: a chart for each metric that
//! stepped, and words for the others. It must not know where the figures are shown.

use super::steps::{Step, steps};
use super::time_axis::{Moments, moments};
use crate::observe::Metric;
use crate::show::plot::charts::{extent, point};
use crate::show::plot::draw::palette::{BETTER, Look, Marker, WORSE};
use crate::show::plot::draw::{Key, KeyMark, Scale, Unit};
use crate::show::plot::figure::{Cell, Figure, Table, number_column, text_column};
use crate::show::plot::marks::{Axis, Chart, Dot, Mark, Series, Upright, facets};
use crate::show::plot::naming::drawn;
use crate::show::plot::rows::grouping::{Rule, grouped};
use crate::show::plot::rows::groups::{Group, Groups, Line};
use crate::show::plot::rows::sample::Sample;
use crate::show::plot::rows::settings::{Setting, minute, revision};
use crate::show::plot::sides::Sides;

const MOST_LINES: usize = 6;
const MOST_CHARTS: usize = 9;
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
        apart: &["size"],
        most_lines: MOST_LINES,
        // Those are drawn that stepped.
        most_charts: usize::MAX,
        least_places: 2,
    };
    // The base is a file as others are here.
    let groups = grouped(Sample::all(results.new.into()), &rule);
    let trends = groups.groups.iter().flat_map(|group| {
        let metrics = Metric::ALL.iter();
        metrics.filter_map(|metric| Trend::of(&groups, group, *metric))
    });
    figure(&groups, trends.collect(), &moments)
        .into_iter()
        .collect()
}

/// A metric of a group of lines.
struct Trend<'l> {
    metric: Metric,
    heading: String,
    lines: Vec<(Series, &'l Line<'l>, Vec<Option<Step>>)>,
}

impl<'l> Trend<'l> {
    fn of(groups: &Groups<'_>, group: &'l Group<'l>, metric: Metric) -> Option<Trend<'l>> {
        let of_line = |line: &'l Line<'l>| {
            let points = line.points.iter();
            let points = points.map(|(place, sample)| point(sample.spread(metric), *place));
            let hollow = line.points.iter().flat_map(|(place, sample)| {
                let values = sample.uncounted().filter_map(|run| run.value(metric));
                values.map(|value| (*place, value)).collect::<Vec<_>>()
            });
            let series = Series {
                name: groups.name(line),
                look: groups.look(line),
                points: points.collect(),
                hollow: hollow.collect(),
                markers: true,
                labels: Vec::new(),
            };
            let samples: Vec<&Sample<'_>> = line.points.iter().map(|(_, sample)| sample).collect();
            (series, line, steps(&samples, metric))
        };
        let lines = group.lines.iter().filter(|line| is_told(metric, line));
        let lines: Vec<_> = lines.map(of_line).collect();
        let heading = match group.heading() {
            of if of.is_empty() => metric.title().to_owned(),
            of => format!("{}: {of}", metric.title()),
        };
        let is_drawn = lines.iter().any(|(series, ..)| series.figures() > 1);
        is_drawn.then_some(Trend {
            metric,
            heading,
            lines,
        })
    }

    /// The largest clear step, as the distance of its ratio from 1; 0 without one.
    fn largest_step(&self) -> f64 {
        let steps = self
            .lines
            .iter()
            .flat_map(|(_, _, steps)| steps.iter().flatten());
        let clear = steps.filter(|step| step.better.is_some());
        let sizes = clear.map(|step| step.estimate.ratio.ln().abs());
        sizes.filter(|size| size.is_finite()).fold(0.0, f64::max)
    }

    fn chart(&self, moments: &Moments) -> Option<Chart> {
        let series = self.lines.iter().map(|(series, ..)| series);
        let (least, most) = extent(series.clone())?;
        let unit = match self.metric.unit() {
            "ns" => Unit::Nanoseconds,
            _ => Unit::Plain,
        };
        let mut x = Axis::new(moments.axis_title(), moments.scale(), Unit::Plain);
        x.ticks = Some(moments.ticks());
        let changes = moments.changes();
        let changes = changes.map(|(x, _)| upright(x));
        let rings = self.lines.iter().flat_map(|(series, line, steps)| {
            let steps = line.points.iter().zip(steps);
            steps.filter_map(|((place, _), step)| ring(&series.name, *place, (*step)?, self.metric))
        });
        let lines = series.cloned().map(Mark::Line);
        Some(Chart {
            heading: self.heading.clone(),
            x,
            y: Axis::new(self.metric.axis(), scale(self.metric, least, most), unit),
            marks: changes.chain(lines).chain(rings.map(Mark::Dot)).collect(),
        })
    }

    fn table(&self) -> Table {
        let texts = ["Line", "Begun (UTC)", "Revision", "Runs"].map(text_column);
        let names = [self.metric.column().0, "lowest", "highest"].map(number_column);
        let mut columns = [texts.as_slice(), &names].concat();
        columns.push(text_column("Against the file before"));
        let mut rows = Vec::new();
        for (series, line, steps) in &self.lines {
            for ((_, sample), step) in line.points.iter().zip(steps) {
                let file = &sample.loaded.result;
                let mut row = vec![
                    Cell::Text(series.name.clone()),
                    Cell::Text(minute(&file.started_at)),
                    revision(file).map_or(Cell::Missing, Cell::Text),
                    sample.runs_cell(),
                ];
                row.extend(Cell::of_spread(self.metric, sample.spread(self.metric)));
                row.push(step.map_or(Cell::Missing, |step| Cell::Text(step.words(self.metric))));
                rows.push(row);
            }
        }
        Table {
            caption: format!("{}: medians of the runs that count", self.heading),
            columns,
            rows,
        }
    }
}

fn upright(x: f64) -> Mark {
    Mark::Upright(Upright {
        x,
        label: String::new(),
    })
}

/// A ring around a point at which the metric stepped.
fn ring(name: &str, place: f64, step: Step, metric: Metric) -> Option<Dot> {
    let better = step.better?;
    Some(Dot {
        name: name.to_owned(),
        at: (place, step.estimate.new_median),
        look: step_look(better),
        ring: Some(better),
        hint: step.words(metric),
        label: String::new(),
    })
}

/// The figure of the metrics that stepped most; without a step of the first.
fn figure(groups: &Groups<'_>, mut all: Vec<Trend<'_>>, moments: &Moments) -> Option<Figure> {
    let stepped = all
        .iter()
        .filter(|trend| trend.largest_step() > 0.0)
        .count();
    let is_steady = |metric: &&Metric| {
        let mut same = all
            .iter()
            .filter(|trend| trend.metric == **metric)
            .peekable();
        same.peek().is_some() && same.all(|trend| trend.largest_step() == 0.0)
    };
    let steady: Vec<&str> = Metric::ALL
        .iter()
        .filter(is_steady)
        .map(|it| it.title())
        .collect();
    all.sort_by(|a, b| b.largest_step().total_cmp(&a.largest_step()));
    all.truncate(stepped.clamp(1, MOST_CHARTS));
    let charts: Vec<Chart> = all
        .iter()
        .filter_map(|trend| trend.chart(moments))
        .collect();
    charts.first()?;
    let revisions: Vec<&str> = moments.changes().map(|(_, revision)| revision).collect();
    let figure = Figure {
        id: "trend-of-metrics".to_owned(),
        title: format!("Trend over {}", moments.kind()),
        subtitle: groups.subtitle(Setting::Sitting),
        description: "Only cases with equal settings are joined. A step is marked where the 95 % interval of the ratio to the \
                      file before is beyond the metric’s margin."
            .to_owned(),
        tables: all.iter().map(Trend::table).collect(),
        ..Figure::default()
    };
    Some(drawn(figure, |sheet| {
        let mut keys = facets::keys(&charts, &groups.names);
        keys.extend(marks());
        sheet.legend(&keys);
        facets::draw(sheet, &charts, 300.0);
        sheet.note("Points are medians of a file’s runs, whiskers their lowest and highest. Axes need not begin at 0.");
        if !steady.is_empty() {
            sheet.note(&format!("No clear step: {}.", steady.join(", ")));
        }
        if stepped > MOST_CHARTS {
            sheet.note(&format!(
                "{} more charts have smaller steps.",
                stepped - MOST_CHARTS
            ));
        }
        if !revisions.is_empty() {
            sheet.note(&format!(
                "Revisions from left to right: {}.",
                revisions.join(", ")
            ));
        }
        groups.notes.iter().for_each(|note| sheet.note(note));
    }))
}

/// Whether the metric says something of the system: the throughput of an open loop is what was offered.
fn is_told(metric: Metric, line: &Line<'_>) -> bool {
    let is_throughput = matches!(metric, Metric::GbitPerS | Metric::MmsgPerS);
    let is_open = |(_, sample): &(f64, Sample<'_>)| !sample.is_closed_loop();
    !is_throughput || !line.points.iter().any(is_open)
}

/// A metric's axis: steps of a few percent are to be seen.
fn scale(metric: Metric, least: f64, most: f64) -> Scale {
    if most / least > WIDE {
        Scale::log10(least, most).widened(0.04)
    } else if least > most * 0.5 && metric != Metric::Fairness {
        Scale::linear(least * 0.95, most * 1.02)
    } else {
        Scale::from_zero(most)
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
