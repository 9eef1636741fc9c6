//! What a set of results says: which case is best, where more of something gains nothing, which node is slow, and what looks
//! wrong. Differences that chance may explain are marked as such. Findings are values; `show::sentences` has their words.

use std::collections::HashMap;

use serde::Serialize;
use settings::{Row, Settings, telling_apart};

use super::mesh::{Fan, Mesh, NodesFinding};
use super::problems::{Figures, of_few_runs, problems, runs, slow_rails};
use crate::observe::format::words;
use crate::observe::{Metric, standing};
use results::model::{CaseResult, ResultFile, Run};

pub use super::problems::{Problem, ProblemKind, SlowRail};

/// All that a result says: computed once, for everybody who shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// Of its cases and runs, the best first and what is wrong last, the gravest of it first.
    pub findings: Vec<Finding>,
    /// Of the nodes of its patterns.
    pub meshes: Vec<Mesh>,
    /// Of its incasts and outcasts.
    pub fans: Vec<Fan>,
}

impl Findings {
    pub fn new(result: &ResultFile) -> Findings {
        let meshes = Mesh::of_file(result);
        let mut findings = findings(&[result]);
        if meshes.iter().flat_map(|it| &it.findings).any(NodesFinding::is_wrong) {
            findings.retain(|it| !matches!(it, Finding::NothingWrong { .. }));
        }
        Findings { findings, meshes, fans: Fan::of_file(result) }
    }

    /// All of it, those of nodes last.
    pub fn all_findings(&self) -> Vec<Finding> {
        let of_meshes = self.meshes.iter().flat_map(|mesh| {
            mesh.findings.iter().map(|finding| (mesh.matrix.title.clone(), finding.clone()))
        });
        let of_fans = self.fans.iter().map(|fan| {
            (
                fan.points.last().map(|point| point.case.clone()).unwrap_or_default(),
                NodesFinding::Fan(fan.clone()),
            )
        });
        let of_nodes =
            of_meshes.chain(of_fans).map(|(case, finding)| Finding::Nodes { case, finding });
        self.findings.iter().cloned().chain(of_nodes).collect()
    }
}

/// What results say of cases and runs, the best first and what is wrong last, the gravest of it first. Cases are compared
/// where all results are of the same nodes and devices.
pub fn findings(results: &[&ResultFile]) -> Vec<Finding> {
    let mut found = Vec::new();
    // A victim beside attackers is no choice between settings.
    let are_choices = results.iter().all(|it| it.beside.is_empty());
    if let Some(compared) = Compared::new(results).filter(|_| are_choices) {
        let [first, second] = compared.metrics.map(|it| (it, compared.subjects(it)));
        let (mut few, by_metric) = (Vec::new(), [&first, &second]);
        for (metric, subjects) in by_metric {
            found.extend(best(subjects, &compared.rows, *metric));
            if subjects.iter().any(|it| it.figures.are_of_few_runs) {
                few.push((*metric, of_few_runs(*metric)));
            }
        }
        if !few.is_empty() && !found.is_empty() {
            found.push(Finding::FewRuns { chance: few });
        }
        found.extend(scaling(&first.1, &compared.rows, first.0));
    }
    let wrong = problems(results);
    let rails: Vec<_> = results.iter().flat_map(|it| slow_rails(it)).collect();
    if wrong.is_empty() && rails.is_empty() && !found.is_empty() {
        found.push(Finding::NothingWrong { runs: runs(results).len() });
    }
    found.extend(wrong.into_iter().map(Finding::Wrong));
    found.extend(rails.into_iter().map(|rail| match rail.rails {
        0..=2 => Finding::RailsDiffer(rail),
        _ => Finding::SlowRail(rail),
    }));
    found
}

/// One thing that results say.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum Finding {
    /// The cases with the best figure, within the scatter of runs.
    Best {
        metric: Metric,
        /// The smallest of their medians.
        low: f64,
        high: f64,
        /// How many cases they are.
        cases: usize,
        of_cases: usize,
        /// Their names; of many cases the settings that they share.
        names: Vec<String>,
    },
    /// Cases within the scatter of runs whose figures are far apart nevertheless.
    NoClearWinner {
        metric: Metric,
        /// The smallest of their medians.
        low: f64,
        high: f64,
        /// How many cases they are.
        cases: usize,
    },
    /// Runs are too few to know how they scatter.
    FewRuns {
        /// Differences up to this share may be chance, by metric.
        chance: Vec<(Metric, f64)>,
    },
    /// What more of a setting gains.
    Scaling {
        metric: Metric,
        shape: Shape,
        /// Where it begins: the words of the setting, and the figure.
        from: (String, f64),
        to: (String, f64),
        /// What the cases share; empty where they differ in one setting alone.
        of: String,
    },
    /// A rail is slower than the others of its node.
    SlowRail(SlowRail),
    /// The same of two rails, which do not show which of them is as it should be.
    RailsDiffer(SlowRail),
    Wrong(Problem),
    /// Nothing of the kind was found.
    NothingWrong {
        runs: usize,
    },
    /// What the runs of a pattern say of its nodes.
    #[serde(untagged)]
    Nodes {
        /// The case, or the rounds of a case.
        case: String,
        #[serde(flatten)]
        finding: NodesFinding,
    },
}

impl Finding {
    /// Whether something is to be done about it.
    pub fn is_wrong(&self) -> bool {
        match self {
            Finding::Wrong(_) | Finding::SlowRail(_) | Finding::RailsDiffer(_) => true,
            Finding::Nodes { finding, .. } => finding.is_wrong(),
            _ => false,
        }
    }

    /// The case, or rounds of a case, that it is about; of several the first.
    pub fn case(&self) -> Option<&str> {
        match self {
            Finding::Wrong(problem) => Some(&problem.case),
            Finding::SlowRail(rail) | Finding::RailsDiffer(rail) => Some(&rail.case),
            Finding::Nodes { case, .. } => Some(case),
            _ => None,
        }
    }
}

/// How a figure goes over a setting's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Its values differ by no more than runs scatter.
    Level,
    /// It is less at the second of two values.
    Falls,
    /// It is more at the second of two values.
    Grows,
    /// It grows up to the last value.
    StillGrows,
    /// It grows until a value, and no further.
    GrowsUntil,
    /// It is highest somewhere before the end, and falls from there.
    HighestThenFalls,
    Highest,
}

/// Cases that move as much as they can between two nodes, each with its runs in all results.
pub(super) struct Compared<'a> {
    cases: Vec<(&'a CaseResult, Vec<&'a Run>)>,
    pub(super) rows: Vec<&'static Row>,
    /// The figures by which they are compared, that which scales first: of transfers, or of set-ups where there are no
    /// transfers.
    pub(super) metrics: [Metric; 2],
}

pub(super) struct Subject<'a> {
    pub(super) case: &'a CaseResult,
    pub(super) figures: Figures,
}

impl<'a> Compared<'a> {
    /// `None` where the results are of different nodes or devices, or there are no two cases.
    pub(super) fn new(results: &[&'a ResultFile]) -> Option<Compared<'a>> {
        let (first, others) = results.split_first()?;
        if others.iter().any(|other| host_devices(other) != host_devices(first)) {
            return None;
        }
        let mut known_cases: Vec<(&'a CaseResult, Vec<&'a Run>)> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for case in results.iter().flat_map(|result| &result.cases).filter(|case| {
            let mut flows = case.flows();
            case.config.pattern.is_none() && flows.all(|flow| flow.settings.rate.is_closed())
        }) {
            let place = *places.entry(&case.id).or_insert(known_cases.len());
            match known_cases.get_mut(place) {
                Some((known, runs)) if known.config == case.config => runs.extend(&case.runs),
                // Another sweep gave another case the same name.
                Some(_) => return None,
                None => known_cases.push((case, case.runs.iter().collect())),
            }
        }
        let (set_ups, transfers): (Vec<_>, Vec<_>) =
            known_cases.into_iter().partition(|(case, _)| case.config.is_set_up());
        let (cases, metrics) = if transfers.is_empty() {
            (set_ups, [Metric::ConnectionsPerS, Metric::SetupP99Ns])
        } else {
            (transfers, [Metric::GbitPerS, Metric::P99Ns])
        };
        let settings = cases.iter().map(|(case, _)| case.config.settings.clone());
        let mut rows = telling_apart(&settings.collect::<Vec<_>>());
        rows.retain(|row| !row.may_differ);
        (cases.len() > 1).then_some(Compared { cases, rows, metrics })
    }

    pub(super) fn subjects(&self, metric: Metric) -> Vec<Subject<'a>> {
        self.cases
            .iter()
            .filter_map(|(case, runs)| {
                let figures: Vec<f64> = runs
                    .iter()
                    .filter(|run| standing::run_counts(run))
                    .filter_map(|run| of_run(run, metric))
                    .collect();
                let figures = Figures::new(metric, &figures)?;
                Some(Subject { case, figures })
            })
            .collect()
    }
}

/// Throughput of all flows together, the worst latency of a flow.
fn of_run(run: &Run, metric: Metric) -> Option<f64> {
    if metric.is_of_setup() {
        return metric.of(run, None);
    }
    let figures: Vec<f64> =
        run.flows.iter().map(|flow| metric.of(run, Some(flow))).collect::<Option<_>>()?;
    figures.into_iter().reduce(if metric.higher_is_better() {
        |one, other| one + other
    } else {
        f64::max
    })
}

impl Subject<'_> {
    pub(super) fn settings(&self) -> &Settings {
        &self.case.config.settings
    }

    /// Whether it has the same of these settings as another.
    pub(super) fn is_like(&self, other: &Subject<'_>, rows: &[&Row]) -> bool {
        rows.iter().all(|row| row.is_equal(self.settings(), other.settings()))
    }

    /// `write, 4 QPs, CQ shared`: the values of these settings; the case's name where they are none.
    pub(super) fn named(&self, rows: &[&Row]) -> String {
        let values: Vec<String> = rows
            .iter()
            .map(|row| words(row, self.settings()))
            .filter(|words| !words.is_empty())
            .collect();
        if values.is_empty() { self.case.id.clone() } else { values.join(", ") }
    }
}

/// A host, and what carried its traffic: devices with their faults.
type HostDevices<'a> = (&'a str, Vec<(&'a str, Option<&'a String>)>);

fn host_devices(result: &ResultFile) -> Vec<HostDevices<'_>> {
    result
        .nodes
        .iter()
        .map(|node| {
            let devices = node.devices.iter().map(|device| (&*device.name, device.faults.as_ref()));
            (&*node.host.hostname, devices.collect())
        })
        .collect()
}

/// Cases that are named one by one.
const NAMED: usize = 2;

/// Cases within the scatter of runs are equal up to this difference; beyond it there is no winner.
const ALIKE: f64 = 0.2;

/// The cases with the best figure; `None` where there are no two cases with figures.
pub(super) fn best(
    subjects: &[Subject<'_>],
    rows: &[&'static Row],
    metric: Metric,
) -> Option<Finding> {
    if subjects.len() < 2 {
        return None;
    }
    let best = if metric.higher_is_better() {
        subjects.iter().max_by(by_median)
    } else {
        subjects.iter().min_by(by_median)
    }?;
    let mut like_best: Vec<&Subject<'_>> =
        subjects.iter().filter(|it| it.figures.may_equal(&best.figures)).collect();
    like_best.sort_by(by_median);
    let [low, high] = [like_best.first()?, like_best.last()?].map(|it| it.figures.median);
    let cases = like_best.len();
    if high > low * (1.0 + ALIKE) {
        return Some(Finding::NoClearWinner { metric, low, high, cases });
    }
    let names = match cases {
        ..=NAMED => like_best.iter().map(|it| it.named(rows)).collect(),
        _ => in_common(&like_best, rows),
    };
    Some(Finding::Best { metric, low, high, cases, of_cases: subjects.len(), names })
}

/// The settings that these share, of those in which all cases differ.
fn in_common(subjects: &[&Subject<'_>], rows: &[&'static Row]) -> Vec<String> {
    rows.iter()
        .filter(|row| {
            let mut pairs = subjects.windows(2);
            pairs.all(|pair| pair[0].is_like(pair[1], &[row]))
        })
        .filter_map(|row| Some(words(row, subjects.first()?.settings())))
        .filter(|words| !words.is_empty())
        .collect()
}

/// Settings of which people ask first what more of them gains.
const FIRST: [&str; 4] = ["qps", "workers", "size", "tx-depth"];

/// Values from which on there is a curve to speak of.
const CURVE: usize = 3;

/// What more gains; `None` where no two cases differ in one number alone.
pub(super) fn scaling(
    subjects: &[Subject<'_>],
    rows: &[&'static Row],
    metric: Metric,
) -> Option<Finding> {
    let best = subjects.iter().max_by(by_median)?;
    let mut axes: Vec<&'static Row> = rows.to_vec();
    axes.sort_by_key(|row| {
        let place = FIRST.iter().position(|flag| *flag == row.flag);
        place.unwrap_or(FIRST.len())
    });
    let curves: Vec<_> = axes
        .into_iter()
        .filter_map(|axis| {
            let mut fixed = rows.to_vec();
            fixed.retain(|row| row.field != axis.field);
            Some((axis, points(subjects, best, axis, &fixed)?, fixed))
        })
        .collect();
    let (axis, points, fixed) =
        curves.iter().find(|(_, points, _)| points.len() >= CURVE).or(curves.first())?;
    let (shape, from, to) = shape(points)?;
    let [from, to] = [from, to].map(|point| (words(axis, point.settings()), point.figures.median));
    Some(Finding::Scaling {
        metric,
        shape,
        from,
        to,
        of: if fixed.is_empty() { String::new() } else { best.named(fixed) },
    })
}

pub(super) fn by_median(one: &&Subject<'_>, other: &&Subject<'_>) -> std::cmp::Ordering {
    one.figures.median.total_cmp(&other.figures.median)
}

/// The cases that are like `best` in all `fixed` settings, by their value on the axis; `None` where they are no curve.
fn points<'a, 's>(
    subjects: &'a [Subject<'s>],
    best: &Subject<'_>,
    axis: &Row,
    fixed: &[&Row],
) -> Option<Vec<&'a Subject<'s>>> {
    let mut points: Vec<(f64, &Subject<'_>)> = subjects
        .iter()
        .filter(|it| it.is_like(best, fixed))
        .map(|it| Some((axis.number(it.settings())?, it)))
        .collect::<Option<_>>()?;
    points.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let are_apart = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
    (are_apart && points.len() > 1)
        .then(|| points.into_iter().map(|(_, subject)| subject).collect())
}

fn does_not_grow(one: &Subject<'_>, next: &Subject<'_>) -> bool {
    one.figures.median >= next.figures.median || one.figures.may_equal(&next.figures)
}

/// The shape of a curve, and the points that show it.
fn shape<'p, 'a>(points: &[&'p Subject<'a>]) -> Option<(Shape, &'p Subject<'a>, &'p Subject<'a>)> {
    let (most, highest) =
        points.iter().enumerate().max_by(|(_, one), (_, other)| by_median(one, other))?;
    let is_most: Vec<bool> =
        points.iter().map(|point| point.figures.may_equal(&highest.figures)).collect();
    let last = points.len() - 1;
    let enough = is_most.iter().position(|is_most| *is_most)?;
    let (shape, from, to) = if last == 1 {
        // Of two points nothing is said about where it stops.
        let shape = match (is_most[0], is_most[1]) {
            (true, true) => Shape::Level,
            (true, false) => Shape::Falls,
            (false, _) => Shape::Grows,
        };
        (shape, 0, last)
    } else if is_most.iter().all(|is_most| *is_most) {
        (Shape::Level, 0, last)
    } else if enough == last {
        (Shape::StillGrows, last - 1, last)
    } else if enough > 0 && is_most[enough..].iter().all(|is_most| *is_most) {
        (Shape::GrowsUntil, enough, last)
    } else if !is_most[last]
        && points[most..].windows(2).all(|pair| does_not_grow(pair[0], pair[1]))
    {
        (Shape::HighestThenFalls, most, last)
    } else {
        (Shape::Highest, most, last)
    };
    Some((shape, points[from], points[to]))
}

#[cfg(test)]
#[path = "findings_tests.rs"]
mod tests;
