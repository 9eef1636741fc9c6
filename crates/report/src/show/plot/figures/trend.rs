//! Figure: metrics over many result files, by date, or by git revision where all were made on one day, as when two
//! revisions are measured in turns: a chart for each metric that stepped, and words for the others.

use results::load::Loaded;
use statistics::{RatioEstimate, Verdict, ratio, verdict};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use crate::observe::{Metric, format::each_once};
use crate::show::plot::{
    draw::{BETTER, Key, KeyMark, Marker, Scale, SeriesStyle, Tick, WORSE, text},
    figure::{Cell, Figure, Picture, Table},
    marks::{self, Axis, Chart, Dot, Mark, Rule, Series},
    rows::{Group, Groups, Line, Sample, Setting, Sides, groups, minute, revision},
    spec::{extent, heading, over_places, unit},
};

const CAPTION: &str = "Lines join cases with equal settings only. A mark is a step: its 95 % interval, compared with the \
    previous file, is beyond the metric’s margin.";

const HOW_TO_READ: &str = "Points are medians of a file’s runs, whiskers their lowest and highest. Axes need not begin at 0.";

const MOST_CHARTS: usize = 9;
/// A metric's axis is logarithmic from this ratio on.
const WIDE: f64 = 20.0;

/// The figure; none without a case that is in two files.
pub fn figures<'a>(results: impl Into<Sides<'a>>) -> Vec<Figure> {
    let new = results.into().new;
    let Some(moments) = moments(new) else {
        return Vec::new();
    };
    let rule = groups::Rule {
        axis: Setting::Files,
        place: &|sample| moments.place(sample.loaded),
        apart: &[Setting::from_flag("size")],
        most_lines: 6,
        // Those are drawn that stepped.
        most_charts: usize::MAX,
        least_places: 2,
    };
    // The base is a file as others are here.
    let lines = Groups::new(Sample::of_sides(new.into()), &rule);
    let trends = lines.groups.iter().flat_map(|group| {
        Metric::ALL.iter().filter_map(|metric| Trend::new(&lines, group, *metric))
    });
    figure(&lines, trends.collect(), &moments).into_iter().collect()
}

/// A metric of the lines of a chart.
struct Trend<'l> {
    metric: Metric,
    heading: String,
    series: Vec<Series>,
    rows: Vec<Row<'l>>,
}

/// A case of a file, with the name of its line, its place and the step to it.
struct Row<'l> {
    line: String,
    place: f64,
    sample: &'l Sample<'l>,
    step: Option<Step>,
}

impl<'l> Trend<'l> {
    fn new(groups: &Groups<'_>, group: &'l Group<'l>, metric: Metric) -> Option<Trend<'l>> {
        let (mut series, mut rows) = (Vec::new(), Vec::new());
        for line in group.lines.iter().filter(|line| is_told(metric, line)) {
            let (name, style) = (groups.name(line), groups.style(line));
            let steps = steps(line.points.iter().map(|(_, sample)| sample), metric);
            rows.extend(line.points.iter().zip(steps).map(|((place, sample), step)| Row {
                line: name.clone(),
                place: *place,
                sample,
                step,
            }));
            series.push(Series { name, style, markers: true, ..over_places(line, metric) });
        }
        let is_drawn = series.iter().any(|series| series.figures() > 1);
        is_drawn.then(|| Trend { metric, heading: heading(metric, group), series, rows })
    }

    /// The largest clear step, as the distance of its ratio from 1; 0 without one.
    fn largest_step(&self) -> f64 {
        let steps = self.rows.iter().filter_map(|row| row.step);
        let clear = steps.filter(|step| step.better.is_some());
        let sizes = clear.map(|step| step.estimate.ratio.ln().abs());
        sizes.filter(|size| size.is_finite()).fold(0.0, f64::max)
    }

    fn chart(&self, moments: &Moments<'_>) -> Option<Chart> {
        let (least, most) = extent(self.series.iter())?;
        let changes = moments.changes().map(|(x, _)| Mark::Rule(Rule::upright(x)));
        let rings = self.rows.iter().filter_map(|row| {
            let (step, better) = (row.step?, row.step?.better?);
            let at = (row.place, step.estimate.new_median);
            let dot = Dot::new(&row.line, at, step_style(better), step.words(self.metric));
            Some(Mark::Dot(Dot { ring: Some(better), ..dot }))
        });
        let x = Axis::named(moments.axis_title, moments.scale(), moments.ticks());
        let y = Axis::new(self.metric.axis(), scale(self.metric, least, most), unit(self.metric));
        let marks = changes.chain(self.series.iter().cloned().map(Mark::Line)).chain(rings);
        Some(Chart { heading: self.heading.clone(), ..Chart::new(x, y, marks.collect()) })
    }

    fn table(&self) -> Table {
        Table::from_rows(
            format!("{}: medians of the runs that count", self.heading),
            &self.rows,
            &[
                ("Line", &|row| Cell::text(&row.line)),
                ("Begun (UTC)", &|row| Cell::text(minute(&row.sample.loaded.result.started_at))),
                ("Revision", &|row| {
                    revision(&row.sample.loaded.result).map_or(Cell::Missing, Cell::Text)
                }),
                ("Runs", &|row| row.sample.runs_cell()),
                (self.metric.column().0, &|row| row.sample.spread_cells(self.metric)[0].clone()),
                ("lowest", &|row| row.sample.spread_cells(self.metric)[1].clone()),
                ("highest", &|row| row.sample.spread_cells(self.metric)[2].clone()),
                ("Against the previous file", &|row| {
                    row.step.map_or(Cell::Missing, |step| Cell::Text(step.words(self.metric)))
                }),
            ],
        )
    }
}

/// The figure of the metrics that stepped most; without a step of the first.
fn figure(
    groups: &Groups<'_>,
    mut trends: Vec<Trend<'_>>,
    moments: &Moments<'_>,
) -> Option<Figure> {
    let is_steady = |metric: &&Metric| {
        let mut same = trends.iter().filter(|trend| trend.metric == **metric).peekable();
        same.peek().is_some() && same.all(|trend| trend.largest_step() == 0.0)
    };
    let steady: Vec<&str> = Metric::ALL.iter().filter(is_steady).map(|it| it.title()).collect();
    let stepped = trends.iter().filter(|trend| trend.largest_step() > 0.0).count();
    trends.sort_by(|a, b| b.largest_step().total_cmp(&a.largest_step()));
    trends.truncate(stepped.clamp(1, MOST_CHARTS));
    let charts: Vec<Chart> = trends.iter().filter_map(|trend| trend.chart(moments)).collect();
    charts.first()?;
    let revisions: Vec<String> = moments.changes().map(|(_, revision)| revision).collect();
    let keys = [
        Key::new(KeyMark::Line, SeriesStyle::of_rule(2), "git revision changed"),
        Key::new(KeyMark::Marker, step_style(true), "step to better"),
        Key::new(KeyMark::Marker, step_style(false), "step to worse"),
    ];
    let own_notes = [
        Some(HOW_TO_READ.to_owned()),
        (!steady.is_empty()).then(|| format!("No clear step: {}.", steady.join(", "))),
        (stepped > MOST_CHARTS)
            .then(|| format!("{} more charts have smaller steps.", stepped - MOST_CHARTS)),
        (!revisions.is_empty())
            .then(|| format!("Revisions from left to right: {}.", revisions.join(", "))),
    ];
    let picture = Picture {
        keys: [marks::keys_of_charts(&charts, &groups.names), keys.into()].concat(),
        charts,
        tables: trends.iter().map(Trend::table).collect(),
        ..groups.picture(own_notes)
    };
    Some(picture.named("trend-of-metrics", format!("Trend over {}", moments.kind), CAPTION))
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

fn step_style(better: bool) -> SeriesStyle {
    let (colour, marker) = if better { (BETTER, Marker::Circle) } else { (WORSE, Marker::Square) };
    SeriesStyle { colour, marker, hollow: true, ..SeriesStyle::default() }
}

/// Runs that an interval needs on each side.
const LEAST_RUNS: usize = 3;

/// From a file to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    estimate: RatioEstimate,
    /// Better or worse beyond the metric's margin; `None` if neither, or if there are too few runs.
    better: Option<bool>,
    few: bool,
}

/// The step to each sample from the one before with figures; `None` where there is nothing to compare.
fn steps<'s, 'a: 's>(
    samples: impl Iterator<Item = &'s Sample<'a>>,
    metric: Metric,
) -> Vec<Option<Step>> {
    let mut before: Vec<f64> = Vec::new();
    let of_samples = samples.map(|sample| {
        let now: Vec<f64> = sample.values(metric).filter(|value| value.is_finite()).collect();
        let found = step(&before, &now, metric);
        if !now.is_empty() {
            before = now;
        }
        found
    });
    of_samples.collect()
}

fn step(before: &[f64], now: &[f64], metric: Metric) -> Option<Step> {
    let estimate = ratio(before, now, 0.95)?;
    let few = before.len() < LEAST_RUNS || now.len() < LEAST_RUNS;
    let word = verdict(&estimate, metric.default_margin(), metric.higher_is_better());
    let better = match word {
        Verdict::Better if !few => Some(true),
        Verdict::Worse if !few => Some(false),
        _ => None,
    };
    Some(Step { estimate, better, few })
}

impl Step {
    /// The change in percent with its interval, and the word for it.
    fn words(&self, metric: Metric) -> String {
        let RatioEstimate { ratio, low, high, .. } = self.estimate;
        let [ratio, low, high] = [ratio, low, high].map(change_in_percent);
        if self.few {
            return format!("{ratio} (too few runs to judge)");
        }
        let word = match self.better {
            Some(true) => "better",
            Some(false) => "worse",
            None => "no clear step",
        };
        let name = metric.short_name();
        format!("{name} {ratio} ({low} to {high}), {word}")
    }
}

fn change_in_percent(ratio: f64) -> String {
    let change = (ratio - 1.0) * 100.0;
    let sign = if change >= 0.05 { "+" } else { "" };
    format!("{sign}{}\u{a0}%", text::fixed(change, 1))
}

/// Where files are on the axis, in the order of their places.
struct Moments<'a> {
    files: Vec<(f64, &'a Loaded)>,
    /// What the axis is of, in a word and in its title.
    kind: &'static str,
    axis_title: &'static str,
    label: fn(&Loaded) -> String,
}

fn begun(loaded: &Loaded) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(&loaded.result.started_at, &Rfc3339).ok()
}

fn revision_of(loaded: &Loaded) -> String {
    revision(&loaded.result).unwrap_or_else(|| "no revision".to_owned())
}

/// Places for files; `None` for less than two. Files whose time cannot be read have no place by date.
fn moments(results: &[Loaded]) -> Option<Moments<'_>> {
    let mut files: Vec<(&Loaded, OffsetDateTime)> =
        results.iter().filter_map(|loaded| Some((loaded, begun(loaded)?))).collect();
    files.sort_by(|a, b| (a.1, &a.0.path).cmp(&(b.1, &b.0.path)));
    let (first, last) = (files.first()?.1, files.last()?.1);
    if files.len() < 2 {
        return None;
    }
    let revisions = each_once(files.iter().map(|(loaded, _)| revision_of(loaded)));
    let is_of_days = first.date() != last.date();
    let (kind, axis_title, label): (_, _, fn(&Loaded) -> String) = if is_of_days {
        ("time", "begun on (UTC)", |it| minute(&it.result.started_at).chars().take(10).collect())
    } else if revisions.len() == 1 {
        let title = "begun at (UTC), files side by side";
        ("time", title, |it| minute(&it.result.started_at).chars().skip(11).collect())
    } else {
        // Within a revision files stand side by side, in the order in which they were made.
        files.sort_by_key(|(loaded, _)| {
            let own = revision_of(loaded);
            revisions.iter().position(|other| *other == own)
        });
        ("revisions", "git revision, files side by side in order of time", revision_of)
    };
    let places = (0_u32..).map(f64::from).zip(files).map(|(index, (loaded, at))| {
        // Files of the same second stay apart and in order.
        let of_days = (at - first).as_seconds_f64() + index * 1e-3;
        (if is_of_days { of_days } else { index }, loaded)
    });
    Some(Moments { files: places.collect(), kind, axis_title, label })
}

impl Moments<'_> {
    fn place(&self, loaded: &Loaded) -> Option<f64> {
        let found = self.files.iter().find(|file| file.1.path == loaded.path);
        found.map(|file| file.0)
    }

    fn scale(&self) -> Scale {
        let [first, last] =
            [self.files.first(), self.files.last()].map(|file| file.map_or(0.0, |file| file.0));
        Scale::linear(first, last).widened(0.03)
    }

    /// The first file of each label has it.
    fn ticks(&self) -> Vec<Tick> {
        let mut ticks: Vec<Tick> = Vec::new();
        for (value, loaded) in &self.files {
            let label = (self.label)(loaded);
            if ticks.last().is_none_or(|last| last.label != label) {
                ticks.push(Tick { value: *value, label });
            }
        }
        ticks
    }

    /// Where the revision changed, half way between the two files, and to what.
    fn changes(&self) -> impl Iterator<Item = (f64, String)> {
        self.files
            .windows(2)
            .map(|pair| (pair, [pair[0].1, pair[1].1].map(revision_of)))
            .filter(|(_, [before, after])| before != after)
            .map(|(pair, [_, after])| (f64::midpoint(pair[0].0, pair[1].0), after))
    }
}

#[cfg(test)]
mod tests {
    use results::sample;

    use super::*;

    #[test]
    fn a_step_needs_runs_and_a_margin() {
        let of = |before: &[f64], now: &[f64]| step(before, now, Metric::GbitPerS).unwrap().better;
        assert_eq!(of(&[100.0, 101.0, 100.5], &[90.0, 90.5, 91.0]), Some(false));
        assert_eq!(of(&[90.0, 90.5, 91.0], &[100.0, 101.0, 100.5]), Some(true));
        assert_eq!(of(&[100.0, 101.0, 100.5], &[100.2, 101.0, 100.4]), None);
        assert_eq!(of(&[100.0, 101.0], &[50.0, 50.5]), None);
        assert_eq!(step(&[], &[1.0], Metric::GbitPerS), None);
    }

    fn file(name: &str, started_at: &str, git: &str) -> Loaded {
        let mut file = sample::file(Vec::new());
        file.path = name.into();
        file.result.started_at = started_at.to_owned();
        file.result.tool.git = Some(git.to_owned());
        file
    }

    #[test]
    fn several_days_are_an_axis_of_time() {
        let files = [
            file("b", "2026-11-03T00:00:00Z", "bbb"),
            file("a", "2026-11-01T00:00:00Z", "aaa"),
            file("c", "2026-11-04T00:00:00Z", "bbb"),
            file("broken", "yesterday", "bbb"),
        ];
        let moments = moments(&files).unwrap();
        let places =
            files.each_ref().map(|file| moments.place(file).map(|place| (place / 86400.0).round()));
        assert_eq!(places, [Some(2.0), Some(0.0), Some(3.0), None]);
        assert_eq!(moments.changes().count(), 1);
        assert_eq!(moments.kind, "time");
    }

    #[test]
    fn one_day_of_two_revisions_is_an_axis_of_revisions() {
        let files = [
            file("a", "2026-11-01T00:00:00Z", "aaa"),
            file("b", "2026-11-01T00:10:00Z", "bbb"),
            file("c", "2026-11-01T00:20:00Z", "aaa-dirty"),
            file("d", "2026-11-01T00:30:00Z", "aaa"),
        ];
        let moments = moments(&files).unwrap();
        let labels: Vec<_> = moments.ticks().into_iter().map(|tick| tick.label).collect();
        assert_eq!(labels, ["aaa", "bbb", "aaa-dirty"]);
        assert_eq!(moments.place(&files[3]), Some(1.0));
        assert!(super::moments(&files[..1]).is_none());
    }
}
