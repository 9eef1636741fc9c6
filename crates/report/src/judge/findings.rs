//! What a set of results says: which case is best, where more of something gains nothing, which node is slow, and what looks
//! wrong. Differences that chance may explain are marked as such.

use std::collections::HashMap;

use settings::{Row, Settings, listed, telling_apart};

use super::caveats::caveats;
use super::check::Check;
use super::convergence::convergence;
use super::finding::{Finding, Subject, add_command};
use super::mesh::{Mesh, fans};
use super::problems::{Figures, of_few_runs, problems, runs};
use super::searches::{loads, searches};
use super::stages::stages;
use crate::observe::format::words;
use crate::observe::{Metric, standing};
use results::model::{CaseResult, ResultFile, Run};

/// All that a result says: computed once, for everybody who shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// Of its stages, cases and runs: what became of stages, what searches found, what is to be known of all, the best, and what is wrong, the gravest of it
    /// first.
    pub findings: Vec<Finding>,
    /// Of the nodes of its patterns.
    pub meshes: Vec<Mesh>,
    /// Of its incasts and outcasts.
    pub fans: Vec<Finding>,
    /// Of the paths that `mesh --check` checked.
    pub check: Option<Check>,
}

impl Findings {
    pub fn new(result: &ResultFile) -> Findings {
        let Some(check) = Check::of_file(result) else {
            return Findings::of_measured(result);
        };
        // Rounds of a check tell of paths alone.
        let cases = result.cases.iter().filter(|case| case.config.check.is_none());
        let measured = result.with_cases(cases.cloned().collect());
        Findings { check: Some(check), ..Findings::of_measured(&measured) }
    }

    fn of_measured(result: &ResultFile) -> Findings {
        let meshes = Mesh::of_file(result);
        let mut findings: Vec<Finding> = stages(result).collect();
        findings.extend(searches(&result.cases));
        let are_met = findings.iter().all(|finding| !finding.is_problem());
        findings.extend(caveats(result));
        findings.extend(convergence(result));
        findings.extend(self::findings(&[result]));
        if !are_met || meshes.iter().flat_map(|mesh| &mesh.findings).any(Finding::is_problem) {
            findings.retain(|finding| finding.id != NOTHING_WRONG);
        }
        Findings { findings, meshes, fans: fans(result), check: None }
    }

    /// All of it, first what is wrong at a place.
    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        let findings = || {
            let of_nodes = self.meshes.iter().flat_map(|mesh| &mesh.findings);
            let of_paths = self.check.iter().flat_map(|check| &check.findings);
            self.findings.iter().chain(of_nodes).chain(&self.fans).chain(of_paths)
        };
        let others = findings().filter(|finding| !finding.names_place());
        findings().filter(|finding| finding.names_place()).chain(others)
    }
}

const NOTHING_WRONG: &str = "nothing_wrong";

/// What results say of cases and runs, the best first and what is wrong last, the gravest of it first. Cases are compared
/// where all results are of the same nodes and devices.
pub fn findings(results: &[&ResultFile]) -> Vec<Finding> {
    // A victim beside attackers is no choice between settings.
    let are_choices = results.iter().flat_map(|it| &it.cases).all(|case| {
        let comparison = case.comparison.as_ref();
        comparison.is_none_or(|it| !it.base_command.is_empty())
    });
    let compared = Compared::new(results).filter(|_| are_choices);
    let mut found = compared.map_or_else(Vec::new, |compared| compared.findings());
    found.extend(loads(results));
    let mut problems = problems(results);
    if let [only] = results {
        add_command(&mut problems, only);
    }
    if problems.is_empty() && !found.is_empty() {
        let runs = runs(results).len();
        let text = format!("Nothing looks wrong in {runs} runs.");
        found.push(Finding::note(NOTHING_WRONG, Subject::default(), text).with("runs", runs));
    }
    found.extend(problems);
    found
}

/// Cases that move as much as they can between two nodes, each with its runs in all results.
struct Compared<'a> {
    cases: Vec<(&'a CaseResult, Vec<&'a Run>)>,
    /// Settings in which they differ.
    rows: Vec<&'static Row>,
    /// The figures by which they are compared, that which scales first: of transfers, or of set-ups where there are no
    /// transfers.
    metrics: [Metric; 2],
}

struct Choice<'a> {
    case: &'a CaseResult,
    figures: Figures,
}

impl<'a> Compared<'a> {
    /// `None` where the results are of different nodes or devices, or there are no two cases.
    fn new(results: &[&'a ResultFile]) -> Option<Compared<'a>> {
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

    fn findings(&self) -> Vec<Finding> {
        let by_metric = self.metrics.map(|metric| (metric, self.choices(metric)));
        let (mut found, mut few) = (Vec::new(), Vec::new());
        for (metric, choices) in &by_metric {
            found.extend(best(choices, &self.rows, *metric));
            if choices.iter().any(|it| it.figures.are_of_few_runs) {
                few.push(*metric);
            }
        }
        if !few.is_empty() && !found.is_empty() {
            found.push(few_runs(&few));
        }
        let [(metric, choices), _] = &by_metric;
        found.extend(scaling(choices, &self.rows, *metric));
        if self.cases.iter().all(|(case, _)| case.config.ping_pong) {
            found.extend(latency_curve(&self.choices(Metric::P50Ns), &self.rows));
        }
        found
    }

    fn choices(&self, metric: Metric) -> Vec<Choice<'a>> {
        self.cases
            .iter()
            .filter_map(|(case, runs)| {
                let figures: Vec<f64> = runs
                    .iter()
                    .filter(|run| standing::run_counts(run))
                    .filter_map(|run| of_run(run, metric))
                    .collect();
                let figures = Figures::new(metric, &figures)?;
                Some(Choice { case, figures })
            })
            .collect()
    }
}

/// Throughput of all flows together, the worst latency of a flow.
pub fn of_run(run: &Run, metric: Metric) -> Option<f64> {
    if metric.is_of_run() {
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

impl Choice<'_> {
    fn settings(&self) -> &Settings {
        &self.case.config.settings
    }

    /// Whether it has the same of these settings as another.
    fn is_like(&self, other: &Choice<'_>, rows: &[&Row]) -> bool {
        rows.iter().all(|row| row.is_equal(self.settings(), other.settings()))
    }

    /// `write, 4 QPs, CQ shared`: the values of these settings; the case's name where they are none.
    fn named(&self, rows: &[&Row]) -> String {
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

/// Cases within the scatter of runs are equal up to this difference; beyond it there is no winner.
const ALIKE: f64 = 0.2;

/// The cases with the best figure; `None` where there are no two cases with figures.
fn best(choices: &[Choice<'_>], rows: &[&'static Row], metric: Metric) -> Option<Finding> {
    if choices.len() < 2 {
        return None;
    }
    let best = if metric.higher_is_better() {
        choices.iter().max_by(by_median)
    } else {
        choices.iter().min_by(by_median)
    }?;
    let mut like_best: Vec<&Choice<'_>> =
        choices.iter().filter(|it| it.figures.may_equal(&best.figures)).collect();
    like_best.sort_by(by_median);
    let [low, high] = [like_best.first()?, like_best.last()?].map(|it| it.figures.median);
    let (cases, of) = (like_best.len(), choices.len());
    let (noun, range) = (metric.noun(), metric.range(low, high));
    let most = if metric.higher_is_better() { "Most" } else { "Lowest" };
    let are_apart = high > low * (1.0 + ALIKE);
    let text = match &like_best[..] {
        _ if are_apart => format!(
            "No clear winner in {noun}: {cases} cases from {range}. The runs scatter too much."
        ),
        [_, _] if of == 2 => format!("Both cases have about the same {noun}: {range}."),
        _ if cases == of => format!("All {of} cases have about the same {noun}: {range}."),
        [one] => format!("{most} {noun}: {range} with {}.", one.named(rows)),
        [one, two] => {
            let (one, two) = (one.named(rows), two.named(rows));
            format!("{most} {noun}: {range} with {one}, and with {two}.")
        }
        many => match in_common(many, rows).join(", ") {
            shared if shared.is_empty() => {
                format!("{most} {noun}: {range} in {cases} of {of} cases.")
            }
            shared => format!("{most} {noun}: {range} in {cases} of {of} cases ({shared})."),
        },
    };
    let id = if are_apart { "no_clear_winner" } else { "best" };
    let name = metric.name();
    Some(
        Finding::note(id, subject(like_best), text)
            .with(format!("low_{name}"), low)
            .with(format!("high_{name}"), high)
            .with("of_cases", of),
    )
}

fn subject<'s, 'a: 's>(choices: impl IntoIterator<Item = &'s Choice<'a>>) -> Subject {
    let ids = choices.into_iter().map(|choice| choice.case.id.clone());
    Subject { cases: ids.collect(), ..Subject::default() }
}

/// The settings that these share, of those in which all cases differ.
fn in_common(choices: &[&Choice<'_>], rows: &[&'static Row]) -> Vec<String> {
    rows.iter()
        .filter(|row| {
            let mut pairs = choices.windows(2);
            pairs.all(|pair| pair[0].is_like(pair[1], &[row]))
        })
        .filter_map(|row| Some(words(row, choices.first()?.settings())))
        .filter(|words| !words.is_empty())
        .collect()
}

/// Runs are too few to know how they scatter.
fn few_runs(metrics: &[Metric]) -> Finding {
    let shares: Vec<String> = metrics
        .iter()
        .map(|metric| format!("{:.0} % in {}", of_few_runs(*metric) * 100.0, metric.noun()))
        .collect();
    let shares = listed(&shares);
    let text = format!("Use --runs 5: with so few runs, differences up to {shares} may be chance.");
    let finding = Finding::note("few_runs", Subject::default(), text);
    metrics.iter().fold(finding, |finding, metric| {
        finding.with(format!("chance_{}", metric.name()), of_few_runs(*metric))
    })
}

/// Settings of which people ask first what more of them gains.
const FIRST: [&str; 4] = ["qps", "workers", "size", "tx-depth"];

/// Values from which on there is a curve to speak of.
const CURVE: usize = 3;

/// A setting, the cases that differ from the best in it alone, by its value, and the other settings in which cases differ.
type Curve<'a, 's> = (&'static Row, Vec<&'a Choice<'s>>, Vec<&'static Row>);

/// The curve of which people ask first; `None` where no two cases differ in one number alone.
fn curve<'a, 's>(
    choices: &'a [Choice<'s>],
    best: &Choice<'_>,
    rows: &[&'static Row],
) -> Option<Curve<'a, 's>> {
    let mut axes: Vec<&'static Row> = rows.to_vec();
    axes.sort_by_key(|row| {
        let place = FIRST.iter().position(|flag| *flag == row.flag);
        place.unwrap_or(FIRST.len())
    });
    let mut curves: Vec<Curve<'_, '_>> = axes
        .into_iter()
        .filter_map(|axis| {
            let mut fixed = rows.to_vec();
            fixed.retain(|row| row.field != axis.field);
            Some((axis, points(choices, best, axis, &fixed)?, fixed))
        })
        .collect();
    curves.sort_by_key(|(_, points, _)| points.len() < CURVE);
    curves.into_iter().next()
}

/// Up to which factor latencies are near each other.
const TWICE: f64 = 2.0;

/// Up to which size, or how many QPs, messages take about as long as the fastest; of ping-pongs, where latency is the question.
fn latency_curve(choices: &[Choice<'_>], rows: &[&'static Row]) -> Option<Finding> {
    let (axis, points, _) = curve(choices, choices.iter().min_by(by_median)?, rows)?;
    let longest = points[0].figures.median * TWICE;
    let near = points.iter().take_while(|point| point.figures.median <= longest).count();
    let shown = [("from", 0), ("near", near - 1), ("to", points.len() - 1)];
    let [first, knee, last] = shown.map(|(_, place)| {
        let point = points[place];
        (words(axis, point.settings()), Metric::P50Ns.text(point.figures.median))
    });
    let mut text = format!("Median latency: {} with {}", first.1, first.0);
    if near > 1 {
        text += &format!(", at most twice that up to {} ({})", knee.0, knee.1);
    }
    if near < points.len() {
        text += &format!("; {} with {}", last.1, last.0);
    }
    let finding = Finding::note("latency_curve", subject(points.iter().copied()), text + ".");
    Some(with_points(finding, axis, Metric::P50Ns, &shown.map(|(name, at)| (name, points[at]))))
}

/// With the value on the axis and the figure of points of a curve, by names.
fn with_points(
    finding: Finding,
    axis: &Row,
    metric: Metric,
    named: &[(&str, &Choice<'_>)],
) -> Finding {
    named.iter().fold(finding, |finding, (name, point)| {
        finding
            .with(format!("{name}_{}", axis.field), axis.number(point.settings()))
            .with(format!("{name}_{}", metric.name()), point.figures.median)
    })
}

/// What more QPs, workers, bytes or depth bring, by the best case's curve.
fn scaling(choices: &[Choice<'_>], rows: &[&'static Row], metric: Metric) -> Option<Finding> {
    let best = choices.iter().max_by(by_median)?;
    let (axis, points, fixed) = curve(choices, best, rows)?;
    let (id, from, to, [is, until]) = shape(&points)?;
    let noun = match metric {
        Metric::GbitPerS => "Throughput".to_owned(),
        other => format!("The number of {}", other.noun()),
    };
    let at = |place: usize| {
        let point = points[place];
        let (words, median) = (words(axis, point.settings()), point.figures.median);
        format!("{words} ({})", metric.text(median))
    };
    let shared = if fixed.is_empty() { String::new() } else { best.named(&fixed) };
    let shared = if shared.is_empty() { shared } else { format!(" ({shared})") };
    let end = if until.is_empty() { String::new() } else { until.to_owned() + &at(to) };
    let text = if id == ENOUGH {
        let enough = words(axis, points[from].settings());
        let [least, most] = [from, to].map(|place| points[place].figures.median);
        let (verb, than) = if least * (1.0 + metric.default_margin()) < most {
            ("may suffice", "; the runs scatter too much to tell that from ")
        } else if enough.ends_with('s') {
            ("suffice", until)
        } else {
            ("suffices", until)
        };
        format!("{enough} {verb}{shared}: {}{than}{}.", metric.text(least), at(to))
    } else {
        format!("{noun} {is}{}{end}{shared}.", at(from))
    };
    let finding = Finding::note(id, subject(points.iter().copied()), text);
    Some(with_points(finding, axis, metric, &[("from", points[from]), ("to", points[to])]))
}

fn by_median(one: &&Choice<'_>, other: &&Choice<'_>) -> std::cmp::Ordering {
    one.figures.median.total_cmp(&other.figures.median)
}

/// The cases that are like `best` in all `fixed` settings, by their value on the axis; `None` where they are no curve.
fn points<'a, 's>(
    choices: &'a [Choice<'s>],
    best: &Choice<'_>,
    axis: &Row,
    fixed: &[&Row],
) -> Option<Vec<&'a Choice<'s>>> {
    let mut points: Vec<(f64, &Choice<'_>)> = choices
        .iter()
        .filter(|it| it.is_like(best, fixed))
        .map(|it| Some((axis.number(it.settings())?, it)))
        .collect::<Option<_>>()?;
    points.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let are_apart = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
    (are_apart && points.len() > 1)
        .then(|| points.into_iter().map(|(_, subject)| subject).collect())
}

/// Id of a curve from one of whose points on more of it gains nothing.
const ENOUGH: &str = "scaling_grows_until";

fn does_not_grow(one: &Choice<'_>, next: &Choice<'_>) -> bool {
    one.figures.median >= next.figures.median || one.figures.may_equal(&next.figures)
}

/// The id of a curve's shape, the places of the two points that show it, and the words before each; the second has no words
/// where it shows nothing. `None` where points that chance may set apart are not alike.
fn shape(points: &[&Choice<'_>]) -> Option<(&'static str, usize, usize, [&'static str; 2])> {
    let (most, highest) =
        points.iter().enumerate().max_by(|(_, one), (_, other)| by_median(one, other))?;
    let is_most: Vec<bool> =
        points.iter().map(|point| point.figures.may_equal(&highest.figures)).collect();
    let last = points.len() - 1;
    let enough = is_most.iter().position(|is_most| *is_most)?;
    let falls = || points[most..].windows(2).all(|pair| does_not_grow(pair[0], pair[1]));
    let lowest = points.iter().map(|point| point.figures.median).fold(f64::INFINITY, f64::min);
    let is_level = is_most.iter().all(|is_most| *is_most);
    if is_level && highest.figures.median > lowest * (1.0 + ALIKE) {
        return None;
    }
    Some(if is_level {
        ("scaling_level", 0, last, ["is about the same from ", " to "])
    } else if last == 1 && enough == 0 {
        // Of two points nothing is said about where it stops.
        ("scaling_falls", 0, last, ["falls from ", " to "])
    } else if last == 1 {
        ("scaling_grows", 0, last, ["grows from ", " to "])
    } else if enough == last {
        ("scaling_still_grows", last - 1, last, ["still grows at the end, from ", " to "])
    } else if enough > 0 && is_most[enough..].iter().all(|is_most| *is_most) {
        (ENOUGH, enough, last, ["", ", no more with "])
    } else if !is_most[last] && falls() {
        ("scaling_highest_then_falls", most, last, ["is highest with ", ", and falls until "])
    } else {
        ("scaling_highest", most, last, ["is highest with ", ""])
    })
}

#[cfg(test)]
#[path = "findings_tests.rs"]
mod tests;
