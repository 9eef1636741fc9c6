//! Figure: metrics over many result files, by date, or by git revision where all were made on one day, as when two
//! revisions are measured in turns: a chart for each metric that stepped, and words for the others. Since when, and by how much,
//! is said in sentences.

use std::collections::BTreeMap;

use results::load::Loaded;
use statistics::{RatioEstimate, Verdict, fewest_for_a_step, verdict};
use time::{Date, OffsetDateTime, format_description::well_known::Rfc3339};

use crate::judge::compare::nodes;
use crate::observe::{
    Metric,
    format::{counted, each_once},
};
use crate::show::plot::{
    draw::{BETTER, Key, KeyMark, Marker, Scale, SeriesStyle, Tick, WORSE, text},
    figure::{Cell, Drawn, Figure, Picture, Table},
    figures::node_trend::NodeTrend,
    marks::{self, Axis, Chart, Dot, Mark, Rule, Series},
    rows::{Group, Groups, Line, Sample, Setting, Sides, groups, joined, minute, revision},
    spec::{extent, heading, over_places, unit},
};

const CAPTION: &str = "Lines join cases with equal settings only. A mark is a step: from this file on the figures differ from those \
    before by more than the metric’s margin and by more than chance.";

const HOW_TO_READ: &str = "Points are medians of a file’s runs, whiskers their lowest and highest. Axes need not begin at 0.";

const MOST_CHARTS: usize = 9;
const MOST_SENTENCES: usize = 5;
/// A metric's axis is logarithmic from this ratio on.
const WIDE: f64 = 20.0;
/// Fewer files are no series.
const LEAST_FILES: usize = 3;

/// Whether results are of one thing over time: of several days or revisions.
pub(crate) fn is_series(results: &[Loaded]) -> bool {
    Moments::new(results).is_some_and(|moments| moments.is_series())
}

/// The figures and the steps that they show; none without a case, or a pattern of nodes, that is in two files. `sums` are the
/// results with the flows of each case of a pattern as one.
pub(crate) fn drawn<'a>(results: &'a [Loaded], sums: impl Into<Sides<'a>>) -> Drawn {
    let Some(moments) = Moments::new(results) else {
        return Vec::new().into();
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
    let lines = Groups::new(Sample::of_sides(sums.into().new.into()), &rule);
    let mut trends: Vec<Trend<'_>> = lines
        .groups
        .iter()
        .flat_map(|group| Metric::compared().filter_map(|metric| Trend::new(&lines, group, metric)))
        .collect();
    let mut node_trend = NodeTrend::new(&moments);
    let of_nodes = node_trend.as_ref().map_or(0, NodeTrend::series);
    let together = of_nodes + trends.iter().map(|trend| trend.lines.len()).sum::<usize>();
    for line in trends.iter_mut().flat_map(|trend| &mut trend.lines) {
        line.find_steps(together);
    }
    node_trend.iter_mut().for_each(|it| it.find_steps(together));
    let of_cases = trends.iter().flat_map(|trend| trend.found(&moments));
    let found: Vec<Found> =
        node_trend.iter().flat_map(|it| it.found(&moments)).chain(of_cases).collect();
    let fewest = fewest_for_a_step(together);
    let sentences = if together == 0 || !moments.is_series() {
        Vec::new()
    } else if moments.files.len() < fewest {
        of_few(&moments, fewest)
    } else {
        sentences(found, moments.files.len())
    };
    let figures = node_trend.and_then(|it| it.figure(&moments)).into_iter();
    Drawn { figures: figures.chain(figure(&lines, trends, &moments)).collect(), sentences }
}

/// A sentence about a step, and by what it is put in order with others.
pub(super) struct Found {
    /// The place of its file.
    pub(super) place: f64,
    /// Of the steps of a file the smallest is said.
    pub(super) rank: (usize, Metric),
    pub(super) size: f64,
    /// The sentence up to its full stop.
    pub(super) text: String,
}

/// What files say that are fewer than a step needs: which nodes changed beside the others, and what to do.
fn of_few(moments: &Moments<'_>, fewest: usize) -> Vec<String> {
    let files: Vec<&Loaded> = moments.files.iter().map(|(_, loaded)| *loaded).collect();
    let count = files.len();
    let changes = nodes::since(&files);
    let none = changes.as_ref().filter(|changes| changes.is_empty());
    let no_node =
        none.map(|_| format!("No node changed for sure beside the others in {count} files."));
    let named = changes.into_iter().flatten().take(MOST_SENTENCES).map(|(index, text)| {
        let since = moments.since(moments.files[index].0);
        format!("Since {since} {text}, beside the other nodes.")
    });
    let when = moments.day_of(fewest.saturating_sub(count));
    let reached = when.map_or_else(String::new, |day| format!(", on {day} at this pace"));
    let more = format!(
        "Too few files for a step: {count} of {fewest}{reached}. Add more; `rocebench compare` judges the last one by its runs."
    );
    no_node.into_iter().chain(named).chain([more]).collect()
}

/// A sentence for each file at which something stepped, the largest step first: of nodes, then of the metric that is shown first.
fn sentences(found: Vec<Found>, files: usize) -> Vec<String> {
    let mut by_place: BTreeMap<u64, Vec<Found>> = BTreeMap::new();
    for one in found {
        by_place.entry(one.place.to_bits()).or_default().push(one);
    }
    let mut firsts: Vec<(f64, String)> = by_place
        .into_values()
        .filter_map(|mut alike| {
            alike.sort_by(|a, b| a.rank.cmp(&b.rank).then(b.size.total_cmp(&a.size)));
            let others = match alike.len() {
                1 => String::new(),
                count => format!("; {} stepped there too", counted(count - 1, "other line")),
            };
            let first = alike.first()?;
            Some((first.size, format!("{}{others}.", first.text)))
        })
        .collect();
    firsts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let more = firsts.len().saturating_sub(MOST_SENTENCES);
    let mut sentences: Vec<String> =
        firsts.into_iter().take(MOST_SENTENCES).map(|(_, text)| text).collect();
    match (sentences.len(), more) {
        (0, _) => sentences.push(format!("No step in {files} files.")),
        (_, 0) => {}
        _ => sentences.push(format!("{more} smaller steps are in the tables.")),
    }
    sentences
}

/// A metric of the lines of a chart.
struct Trend<'l> {
    metric: Metric,
    heading: String,
    lines: Vec<TrendLine<'l>>,
}

/// A line with its metric, what it is of, and its steps.
struct TrendLine<'l> {
    metric: Metric,
    subject: String,
    series: Series,
    points: &'l [(f64, Sample<'l>)],
    steps: Vec<Step>,
}

impl TrendLine<'_> {
    fn find_steps(&mut self, together: usize) {
        let figures: Vec<Option<f64>> = self.series.points.iter().map(|point| point.y).collect();
        self.steps = Step::find(&figures, self.metric, together);
    }

    fn step(&self, index: usize) -> Option<&Step> {
        self.steps.iter().find(|step| step.at == index)
    }
}

impl<'l> Trend<'l> {
    fn new(groups: &Groups<'_>, group: &'l Group<'l>, metric: Metric) -> Option<Trend<'l>> {
        let lines: Vec<TrendLine<'l>> = group
            .lines
            .iter()
            .filter(|line| is_told(metric, line))
            .map(|line| {
                let (name, style) = (groups.name(line), groups.style(line));
                TrendLine {
                    metric,
                    subject: joined([group.heading.clone(), name.clone()]),
                    series: Series { name, style, markers: true, ..over_places(line, metric) },
                    points: &line.points,
                    steps: Vec::new(),
                }
            })
            .collect();
        let is_drawn = lines.iter().any(|line| line.series.figures() > 1);
        is_drawn.then(|| Trend { metric, heading: heading(metric, group), lines })
    }

    /// The largest step, as the distance of its ratio from 1; 0 without one.
    fn largest_step(&self) -> f64 {
        let steps = self.lines.iter().flat_map(|line| &line.steps);
        let sizes = steps.map(Step::size);
        sizes.filter(|size| size.is_finite()).fold(0.0, f64::max)
    }

    fn found(&self, moments: &Moments<'_>) -> impl Iterator<Item = Found> {
        let steps =
            self.lines.iter().flat_map(|line| line.steps.iter().map(move |step| (line, step)));
        steps.map(move |(line, step)| {
            let RatioEstimate { base_median, new_median, ratio, .. } = step.estimate;
            let (place, noun) = (line.points[step.at].0, self.metric.noun());
            let than = if ratio < 1.0 { "lower" } else { "higher" };
            let (since, interval) = (moments.since(place), step.interval());
            let [before, behind] = [base_median, new_median].map(|value| self.metric.text(value));
            let text = format!(
                "{}: {noun} is {} {than} since {since}: {behind}, before {before}; 95 % interval {interval}",
                line.subject,
                percent(ratio - 1.0)
            );
            Found { place, rank: (2, self.metric), size: step.size(), text }
        })
    }

    fn chart(&self, moments: &Moments<'_>) -> Option<Chart> {
        let (least, most) = extent(self.lines.iter().map(|line| &line.series))?;
        let rings = self.lines.iter().flat_map(|line| {
            line.steps.iter().filter_map(|step| {
                let point = line.series.points.get(step.at)?;
                Some(step.ring(&line.subject, (point.x, point.y?), self.metric))
            })
        });
        let y = Axis::new(self.metric.axis(), scale(self.metric, least, most), unit(self.metric));
        let series = self.lines.iter().map(|line| Mark::Line(line.series.clone()));
        let marks = moments.rules().chain(series).chain(rings).collect();
        Some(Chart { heading: self.heading.clone(), ..Chart::new(moments.axis(), y, marks) })
    }

    fn table(&self) -> Table {
        let rows = self.lines.iter().flat_map(|line| {
            let points = (0..).zip(line.points);
            points.map(move |(index, (_, sample))| (line, sample, line.step(index)))
        });
        Table::from_rows(
            format!("{}: medians of the runs that count", self.heading),
            rows,
            &[
                ("Line", &|(line, ..)| Cell::text(&line.series.name)),
                ("Begun (UTC)", &|(_, sample, _)| {
                    Cell::text(minute(&sample.loaded.result.started_at))
                }),
                ("Revision", &|(_, sample, _)| {
                    revision(&sample.loaded.result).map_or(Cell::Missing, Cell::Text)
                }),
                ("Runs", &|(_, sample, _)| sample.runs_cell()),
                (self.metric.column().0, &|row| row.1.spread_cells(self.metric)[0].clone()),
                ("lowest", &|row| row.1.spread_cells(self.metric)[1].clone()),
                ("highest", &|row| row.1.spread_cells(self.metric)[2].clone()),
                ("Step", &|(.., step)| {
                    step.map_or(Cell::Missing, |it| Cell::Text(it.words(self.metric)))
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
    let steady: Vec<&str> = Metric::compared()
        .filter(|metric| {
            let mut same = trends.iter().filter(|trend| trend.metric == *metric).peekable();
            same.peek().is_some() && same.all(|trend| trend.largest_step() == 0.0)
        })
        .map(Metric::title)
        .collect();
    let stepped = trends.iter().filter(|trend| trend.largest_step() > 0.0).count();
    trends.sort_by(|a, b| b.largest_step().total_cmp(&a.largest_step()));
    trends.truncate(stepped.clamp(1, MOST_CHARTS));
    let charts: Vec<Chart> = trends.iter().filter_map(|trend| trend.chart(moments)).collect();
    charts.first()?;
    let revisions: Vec<String> = moments.changes().map(|(_, revision)| revision).collect();
    let own_notes = [
        Some(HOW_TO_READ.to_owned()),
        (!steady.is_empty()).then(|| format!("No step: {}.", steady.join(", "))),
        (stepped > MOST_CHARTS)
            .then(|| format!("{} more charts have smaller steps.", stepped - MOST_CHARTS)),
        (!revisions.is_empty())
            .then(|| format!("Revisions from left to right: {}.", revisions.join(", "))),
    ];
    let picture = Picture {
        keys: [marks::keys_of_charts(&charts, &groups.names), step_keys(&charts)].concat(),
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
pub(super) fn scale(metric: Metric, least: f64, most: f64) -> Scale {
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

/// What rules and rings mean, of those that there are.
pub(super) fn step_keys(charts: &[Chart]) -> Vec<Key> {
    let change = Key::new(KeyMark::Line, SeriesStyle::of_rule(2), "git revision changed");
    let marks = || charts.iter().flat_map(|chart| &chart.marks);
    let has_rule = marks().any(|mark| matches!(mark, Mark::Rule(_)));
    let rings = [(true, "step to better"), (false, "step to worse")].into_iter().filter(|ring| {
        marks().any(|mark| matches!(mark, Mark::Dot(dot) if dot.ring == Some(ring.0)))
    });
    let of_rings =
        rings.map(|(better, label)| Key::new(KeyMark::Marker, step_style(better), label));
    has_rule.then_some(change).into_iter().chain(of_rings).collect()
}

/// A step of a line that is beyond its metric's margin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    /// Index of the first point behind it.
    pub(super) at: usize,
    pub(super) estimate: RatioEstimate,
    better: bool,
}

impl Step {
    /// Those of a line, as one of so many that are judged together.
    pub(super) fn find(figures: &[Option<f64>], metric: Metric, together: usize) -> Vec<Step> {
        let known: Vec<(usize, f64)> =
            (0..).zip(figures).filter_map(|(at, figure)| Some((at, (*figure)?))).collect();
        let values: Vec<f64> = known.iter().map(|(_, value)| *value).collect();
        let found = statistics::steps(&values, together).into_iter();
        found
            .filter_map(|statistics::Step { at, estimate }| {
                let (margin, more_is_better) = (metric.default_margin(), metric.higher_is_better());
                let better = match verdict(&estimate, margin, more_is_better) {
                    Verdict::Better => true,
                    Verdict::Worse => false,
                    Verdict::Equal | Verdict::Unclear => return None,
                };
                Some(Step { at: known[at].0, estimate, better })
            })
            .collect()
    }

    /// How far its ratio is from 1, the same for a half and for twice.
    pub(super) fn size(&self) -> f64 {
        self.estimate.ratio.ln().abs()
    }

    pub(super) fn ring(&self, name: &str, at: (f64, f64), metric: Metric) -> Mark {
        let dot = Dot::new(name, at, step_style(self.better), self.words(metric));
        Mark::Dot(Dot { ring: Some(self.better), ..dot })
    }

    /// The change in percent with its interval, and the word for it.
    pub(super) fn words(&self, metric: Metric) -> String {
        let word = if self.better { "better" } else { "worse" };
        let (name, change) = (metric.short_name(), change_in_percent(self.estimate.ratio));
        format!("{name} {change} ({}), {word}", self.interval())
    }

    /// Both ends of the interval of the change, in percent.
    pub(super) fn interval(&self) -> String {
        let [low, high] = [self.estimate.low, self.estimate.high].map(change_in_percent);
        format!("{low} to {high}")
    }
}

pub(super) fn change_in_percent(ratio: f64) -> String {
    let change = (ratio - 1.0) * 100.0;
    let sign = if change >= 0.05 { "+" } else { "" };
    format!("{sign}{}\u{a0}%", text::fixed(change, 1))
}

/// How much it is more or less, in percent.
pub(super) fn percent(change: f64) -> String {
    format!("{}\u{a0}%", text::fixed(change.abs() * 100.0, 1))
}

/// Where files are on the axis, in the order of their places.
pub(super) struct Moments<'a> {
    pub(super) files: Vec<(f64, &'a Loaded)>,
    /// What the axis is of, in a word and in its title.
    pub(super) kind: &'static str,
    axis_title: &'static str,
    label: fn(&Loaded) -> String,
}

fn begun(loaded: &Loaded) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(&loaded.result.started_at, &Rfc3339).ok()
}

fn revision_of(loaded: &Loaded) -> String {
    revision(&loaded.result).unwrap_or_else(|| "no revision".to_owned())
}

impl<'a> Moments<'a> {
    /// Places for files; `None` for less than two. Files whose time cannot be read have no place by date.
    fn new(results: &'a [Loaded]) -> Option<Moments<'a>> {
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
            ("time", "begun on (UTC)", |file| {
                minute(&file.result.started_at).chars().take(10).collect()
            })
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

    fn place(&self, loaded: &Loaded) -> Option<f64> {
        let found = self.files.iter().find(|file| file.1.path == loaded.path);
        found.map(|file| file.0)
    }

    fn scale(&self) -> Scale {
        let [first, last] =
            [self.files.first(), self.files.last()].map(|file| file.map_or(0.0, |file| file.0));
        Scale::linear(first, last).widened(0.03)
    }

    pub(super) fn axis(&self) -> Axis {
        Axis::named(self.axis_title, self.scale(), self.ticks())
    }

    /// Whether they are of several days or revisions, and more than two.
    pub(super) fn is_series(&self) -> bool {
        let days = self.files.iter().map(|(_, loaded)| loaded.result.started_at.get(..10));
        self.files.len() >= LEAST_FILES
            && (each_once(days).len() > 1 || self.changes().next().is_some())
    }

    /// When there will be so many more files, where these are of several days.
    fn day_of(&self, more: usize) -> Option<Date> {
        let [first, last] = [self.files.first()?, self.files.last()?].map(|file| begun(file.1));
        let span = last? - first?;
        let gaps = self.files.len().saturating_sub(1).max(1);
        let day = last?.checked_add(span * (more as f64 / gaps as f64))?.date();
        (first?.date() != last?.date()).then_some(day)
    }

    /// When the file at a place was begun, and its revision if that changed there.
    pub(super) fn since(&self, place: f64) -> String {
        let at = self.files.iter().position(|file| file.0 == place).unwrap_or_default();
        let Some((_, loaded)) = self.files.get(at) else {
            return String::new();
        };
        let before = at.checked_sub(1).map(|before| revision_of(self.files[before].1));
        let begun = format!("{} UTC", minute(&loaded.result.started_at));
        match revision(&loaded.result).filter(|_| before != Some(revision_of(loaded))) {
            Some(revision) => format!("revision {revision} ({begun})"),
            None => begun,
        }
    }

    /// Lines where the revision changed, unless it did so at most files.
    pub(super) fn rules(&self) -> impl Iterator<Item = Mark> {
        let is_seldom = self.changes().count() * 2 < self.files.len();
        let changes = self.changes().filter(move |_| is_seldom);
        changes.map(|(x, _)| Mark::Rule(Rule::upright(x)))
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

    /// Of ten files at 100 and, behind one without a figure, ten at what follows.
    #[test]
    fn a_step_needs_files_and_a_margin() {
        let found = |behind: f64| {
            let figures = [vec![Some(100.0); 10], vec![None], vec![Some(behind); 10]].concat();
            Step::find(&figures, Metric::GbitPerS, 10)
        };
        let ends =
            [90.0, 110.0, 99.0].map(|behind| found(behind).first().map(|it| (it.at, it.better)));
        assert_eq!(ends, [Some((11, false)), Some((11, true)), None]);
        let few = [[Some(100.0); 5], [Some(50.0); 5]].concat();
        assert_eq!(Step::find(&few, Metric::GbitPerS, 10), []);
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
        let moments = Moments::new(&files).unwrap();
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
        let moments = Moments::new(&files).unwrap();
        let labels: Vec<_> = moments.ticks().into_iter().map(|tick| tick.label).collect();
        assert_eq!(labels, ["aaa", "bbb", "aaa-dirty"]);
        assert_eq!(moments.place(&files[3]), Some(1.0));
        assert!(Moments::new(&files[..1]).is_none());
    }
}
