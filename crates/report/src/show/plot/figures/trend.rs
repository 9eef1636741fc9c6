//! Metrics over many result files, by date or by git revision, with what changed marked: a chart for each metric
//! that stepped, and words for the others.

use super::steps::{Step, steps};
use super::time_axis::{Moments, moments};
use crate::observe::Metric;
use crate::show::plot::charts::{extent, heading, over_places, unit};
use crate::show::plot::draw::palette::{BETTER, Look, Marker, WORSE};
use crate::show::plot::draw::{Key, KeyMark, Scale};
use crate::show::plot::figure::{Cell, Figure, Table};
use crate::show::plot::marks::{Axis, Chart, Dot, Mark, Series, Upright, facets};
use crate::show::plot::picture::Picture;
use crate::show::plot::rows::grouping::{Rule, grouped};
use crate::show::plot::rows::groups::{Group, Groups, Line};
use crate::show::plot::rows::sample::Sample;
use crate::show::plot::rows::settings::{Setting, minute, revision};
use crate::show::plot::sides::Sides;

const CAPTION: &str = "Lines join cases with equal settings only. A mark is a step: its 95 % interval, compared with the \
    previous file, is beyond the metric’s margin.";

const MOST_CHARTS: usize = 9;
/// A metric's axis is logarithmic from this ratio on.
const WIDE: f64 = 20.0;

/// The figure; none without a case that is in two files.
pub fn figures<'a>(results: impl Into<Sides<'a>>) -> Vec<Figure> {
    let new = results.into().new;
    let Some(moments) = moments(new) else {
        return Vec::new();
    };
    let rule = Rule {
        axis: Setting::Sitting,
        place: &|sample| moments.place(sample.loaded),
        apart: &["size"],
        most_lines: 6,
        // Those are drawn that stepped.
        most_charts: usize::MAX,
        least_places: 2,
    };
    // The base is a file as others are here.
    let groups = grouped(Sample::of_sides(new.into()), &rule);
    let trends = groups.groups.iter().flat_map(|group| {
        Metric::ALL.iter().filter_map(|metric| Trend::of(&groups, group, *metric))
    });
    figure(&groups, trends.collect(), &moments).into_iter().collect()
}

struct Trend<'l> {
    metric: Metric,
    heading: String,
    lines: Vec<(Series, &'l Line<'l>, Vec<Option<Step>>)>,
}

impl<'l> Trend<'l> {
    fn of(groups: &Groups<'_>, group: &'l Group<'l>, metric: Metric) -> Option<Trend<'l>> {
        let lines: Vec<_> = group
            .lines
            .iter()
            .filter(|line| is_told(metric, line))
            .map(|line| {
                let series = Series {
                    name: groups.name(line),
                    look: groups.look(line),
                    markers: true,
                    ..over_places(line, metric)
                };
                let samples: Vec<&Sample<'_>> =
                    line.points.iter().map(|(_, sample)| sample).collect();
                (series, line, steps(&samples, metric))
            })
            .collect();
        let is_drawn = lines.iter().any(|(series, ..)| series.figures() > 1);
        is_drawn.then(|| Trend { metric, heading: heading(metric, group), lines })
    }

    /// The largest clear step, as the distance of its ratio from 1; 0 without one.
    fn largest_step(&self) -> f64 {
        self.lines
            .iter()
            .flat_map(|(_, _, steps)| steps.iter().flatten())
            .filter(|step| step.better.is_some())
            .map(|step| step.estimate.ratio.ln().abs())
            .filter(|size| size.is_finite())
            .fold(0.0, f64::max)
    }

    fn chart(&self, moments: &Moments<'_>) -> Option<Chart> {
        let series = self.lines.iter().map(|(series, ..)| series);
        let (least, most) = extent(series.clone())?;
        let changes = moments.changes().map(|(x, _)| Mark::Upright(Upright { x }));
        let rings = self.lines.iter().flat_map(|(series, line, steps)| {
            line.points
                .iter()
                .zip(steps)
                .filter_map(|((place, _), step)| ring(&series.name, *place, (*step)?, self.metric))
        });
        let lines = series.cloned().map(Mark::Line);
        let y = scale(self.metric, least, most);
        let x = Axis::named(moments.axis_title(), moments.scale(), moments.ticks());
        let y = Axis::new(self.metric.axis(), y, unit(self.metric));
        let marks = changes.chain(lines).chain(rings.map(Mark::Dot));
        Some(Chart { heading: self.heading.clone(), ..Chart::new(x, y, marks.collect()) })
    }

    fn table(&self) -> Table {
        let mut rows = Vec::new();
        for (series, line, steps) in &self.lines {
            for ((_, sample), step) in line.points.iter().zip(steps) {
                let file = &sample.loaded.result;
                let mut row = vec![
                    Cell::text(&series.name),
                    Cell::text(minute(&file.started_at)),
                    revision(file).map_or(Cell::Missing, Cell::Text),
                    sample.runs_cell(),
                ];
                row.extend(Cell::of_spread(self.metric, sample.spread(self.metric)));
                row.push(step.map_or(Cell::Missing, |step| Cell::Text(step.words(self.metric))));
                rows.push(row);
            }
        }
        let names = [
            "Line",
            "Begun (UTC)",
            "Revision",
            "Runs",
            self.metric.column().0,
            "lowest",
            "highest",
            "Against the previous file",
        ];
        let caption = format!("{}: medians of the runs that count", self.heading);
        Table::new(caption, names, rows)
    }
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
fn figure(
    groups: &Groups<'_>,
    mut trends: Vec<Trend<'_>>,
    moments: &Moments<'_>,
) -> Option<Figure> {
    let steady: Vec<&str> = Metric::ALL
        .iter()
        .filter(|metric| {
            let mut same = trends.iter().filter(|trend| trend.metric == **metric).peekable();
            same.peek().is_some() && same.all(|trend| trend.largest_step() == 0.0)
        })
        .map(|it| it.title())
        .collect();
    let stepped = trends.iter().filter(|trend| trend.largest_step() > 0.0).count();
    trends.sort_by(|a, b| b.largest_step().total_cmp(&a.largest_step()));
    trends.truncate(stepped.clamp(1, MOST_CHARTS));
    let charts: Vec<Chart> = trends.iter().filter_map(|trend| trend.chart(moments)).collect();
    charts.first()?;
    let revisions: Vec<String> = moments.changes().map(|(_, revision)| revision).collect();
    let change = Look::of_rule(0).with_dash("2 4");
    let keys = [
        Key::new(KeyMark::Line, change, "git revision changed"),
        Key::new(KeyMark::Marker, step_look(true), "step to better"),
        Key::new(KeyMark::Marker, step_look(false), "step to worse"),
    ];
    let notes = [
        Some(
            "Points are medians of a file’s runs, whiskers their lowest and highest. Axes need not begin at 0."
                .to_owned(),
        ),
        (!steady.is_empty()).then(|| format!("No clear step: {}.", steady.join(", "))),
        (stepped > MOST_CHARTS)
            .then(|| format!("{} more charts have smaller steps.", stepped - MOST_CHARTS)),
        (!revisions.is_empty())
            .then(|| format!("Revisions from left to right: {}.", revisions.join(", "))),
    ];
    let notes = notes.into_iter().flatten().chain(groups.notes.clone()).collect();
    let picture = Picture {
        subtitle: groups.subtitle(Setting::Sitting),
        keys: [facets::keys(&charts, &groups.names), keys.into()].concat(),
        charts,
        notes,
        tables: trends.iter().map(Trend::table).collect(),
    };
    Some(picture.named("trend-of-metrics", format!("Trend over {}", moments.kind()), CAPTION))
}

/// Whether the metric says something of the system: the throughput of an open loop is what was offered.
fn is_told(metric: Metric, line: &Line<'_>) -> bool {
    let is_throughput = matches!(metric, Metric::GbitPerS | Metric::MmsgPerS);
    !is_throughput || !line.points.iter().any(|(_, sample)| !sample.is_closed_loop())
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
    let (colour, marker) = if better { (BETTER, Marker::Circle) } else { (WORSE, Marker::Square) };
    Look { colour, marker, hollow: true, ..Look::default() }
}
