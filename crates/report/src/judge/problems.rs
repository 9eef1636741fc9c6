//! What looks wrong in runs: failures, windows that do not count, losses, throughput that does not settle, QPs that are served
//! unevenly, rails that are slower than others of their node. The gravest comes first.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use settings::names;

use super::evenness::{OverTime, WRONG_BELOW};
use super::mesh::{groups, title};
use crate::observe::standing::{self, LeftOut, Standing};
use crate::observe::{Metric, Observed, Spread};
use results::model::{
    CaseResult, DoubtKind, FlowConfig, FlowResult, LoadVerdict, PathEvent, PathEventKind,
    ResultFile, Run, StarvedQp,
};
use statistics::{LEAST_OBSERVATIONS, median};

/// A QP that stands still for so long while others move may wait for a retransmission.
const LONG_STALL_SECONDS: f64 = 0.1;

names! {
    /// What may look wrong, the gravest first.
    #[derive(PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "snake_case")]
    ProblemKind {
        Failed = "failed runs",
        /// Runs' rates are in doubt: they count nowhere.
        Unreliable = "unreliable runs",
        /// More was offered than was served.
        Overloaded = "overload",
        /// The receiver counted another rate than the sender.
        ReceiverDisagrees = "receivers that disagree",
        /// Messages of UC or UD did not come.
        MessagesLost = "lost messages",
        /// Packets were lost or late.
        PacketsLost = "lost packets",
        /// A receiver had no receive posted.
        ReceiverNotReady = "receivers that were not ready",
        /// Throughput did not settle before the window.
        NotSettled = "throughput that did not settle",
        /// A QP stood still while others moved.
        Stalled = "QPs that stood still",
        /// A QP got less than half of its share, and not by chance.
        Starved = "starved QPs",
        Uneven = "uneven QPs",
        CoresShared = "shared cores",
        /// Throughput rose or fell through the window.
        Drift = "drift",
        /// Runs of one case differ by more than single runs may.
        Scatter = "scatter between runs",
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Problem {
    pub kind: ProblemKind,
    /// In so many runs; of a scatter, cases.
    pub count: usize,
    pub of: usize,
    /// The case of the first of them; of a scatter, of the worst.
    pub case: String,
    /// How grave it is: the largest share of messages lost, the longest stall in seconds, the least share of a QP and the least Jain's index, the largest
    /// scatter as a share; 0 where nothing is measured.
    pub most: f64,
    /// What was counted, by name: doubts, events on the path; of a starved QP its index and its QPN.
    pub counts: Vec<(String, u64)>,
    /// What helps, as far as the runs say it: the first hint of those that failed, the remedy of what spoilt most; else empty.
    #[serde(skip)]
    pub hint: String,
}

pub(super) type Ran<'a> = (&'a CaseResult, &'a Run);

/// How grave something is in a run: `None` where it is not there, 0 where nothing is measured.
fn gravity(kind: ProblemKind, case: &CaseResult, run: &Run) -> Option<f64> {
    let flows = run.flows.iter();
    match kind {
        ProblemKind::Failed => unmeasured(matches!(standing::of_run(run), Standing::Bad(_))),
        ProblemKind::Unreliable => {
            unmeasured(matches!(standing::of_run(run), Standing::Doubtful(_)))
        }
        ProblemKind::Overloaded => any_flow(run, |flow| {
            let verdict = flow.load.as_ref().map(|load| load.verdict);
            verdict == Some(LoadVerdict::Overloaded)
        }),
        ProblemKind::ReceiverDisagrees => any_flow(run, |flow| flow.received_otherwise().is_some()),
        ProblemKind::MessagesLost => flows
            .filter_map(|flow| Some(flow.delivery.as_ref()?.lost_share))
            .reduce(f64::max)
            .filter(|share| *share > 0.0),
        ProblemKind::PacketsLost => unmeasured(losses(run).next().is_some()),
        ProblemKind::ReceiverNotReady => unmeasured(run.path_events.iter().any(is_not_ready)),
        ProblemKind::NotSettled => any_flow(run, |flow| flow.window.warmup_steady == Some(false)),
        ProblemKind::Stalled => case
            .flows()
            .filter_map(|flow| OverTime::new(flow.result(run)?, &flow.settings))
            .map(|flow| flow.longest_alone_seconds())
            .reduce(f64::max)
            .filter(|it| *it >= LONG_STALL_SECONDS),
        ProblemKind::Starved => starved(run).map(|qp| qp.share).reduce(f64::min),
        ProblemKind::Uneven => {
            // Shares that were asked for are uneven on purpose.
            let are_asked = case.flows().any(|flow| flow.settings.qp_weights.is_some());
            let least =
                flows.filter_map(|flow| Some(flow.fairness.as_ref()?.jain)).reduce(f64::min);
            least.filter(|jain| *jain < WRONG_BELOW && !are_asked)
        }
        ProblemKind::CoresShared => {
            let mut workers = run.nodes.iter().flat_map(|node| &node.workers);
            unmeasured(
                workers.any(|worker| worker.core_shared_with.is_some_and(|others| others > 0)),
            )
        }
        ProblemKind::Drift => any_flow(run, |flow| flow.window.has_doubt(DoubtKind::Drift)),
        // Of no single run.
        ProblemKind::Scatter => None,
    }
}

/// How grave something is of which there is no measure.
fn unmeasured(is_there: bool) -> Option<f64> {
    is_there.then_some(0.0)
}

fn any_flow(run: &Run, is_affected: fn(&FlowResult) -> bool) -> Option<f64> {
    unmeasured(run.flows.iter().any(is_affected))
}

/// What looks wrong, the gravest first.
pub(super) fn problems(results: &[&ResultFile]) -> Vec<Problem> {
    let runs = runs(results);
    ProblemKind::ALL
        .iter()
        .filter_map(|kind| problem(*kind, &runs))
        .chain(scattering(results))
        .collect()
}

pub(super) fn runs<'a>(results: &[&'a ResultFile]) -> Vec<Ran<'a>> {
    let runs = results
        .iter()
        .flat_map(|result| &result.cases)
        .flat_map(|case| case.runs.iter().map(move |run| (case, run)));
    // What a user stopped went as it should until then.
    runs.filter(|(_, run)| !run.interrupted).collect()
}

fn problem<'a>(kind: ProblemKind, runs: &[Ran<'a>]) -> Option<Problem> {
    let found: Vec<(&CaseResult, &Run, f64)> = runs
        .iter()
        .filter_map(|(case, run)| Some((*case, *run, gravity(kind, case, run)?)))
        .collect();
    let (case, ..) = found.first()?;
    let most = found.iter().map(|(.., most)| *most).reduce(match kind {
        ProblemKind::Starved | ProblemKind::Uneven => f64::min,
        _ => f64::max,
    });
    let (counts, hint) = details(kind, found.iter().map(|(_, run, _)| *run));
    Some(Problem {
        kind,
        count: found.len(),
        of: runs.len(),
        case: case.id.clone(),
        most: most?,
        counts,
        hint,
    })
}

/// What was counted in these runs, by name, and what they say helps.
fn details<'a>(
    kind: ProblemKind,
    runs: impl Iterator<Item = &'a Run>,
) -> (Vec<(String, u64)>, String) {
    let mut counts: Vec<(String, u64)> = Vec::new();
    let mut hint = String::new();
    match kind {
        ProblemKind::Failed => {
            let mut hints = runs.filter_map(|run| run.failure.as_ref()?.hint.clone());
            hint = hints.next().unwrap_or_default();
        }
        ProblemKind::Unreliable => {
            let left_out = LeftOut::new(runs.map(standing::of_run));
            let doubts = left_out.doubtful.iter();
            counts.extend(doubts.clone().map(|(it, count)| (it.name().to_owned(), *count as u64)));
            let worst = doubts.max_by_key(|(doubt, count)| (**count, std::cmp::Reverse(**doubt)));
            hint = worst
                .map(|(doubt, _)| standing::reason(*doubt))
                .map_or_else(String::new, |it| format!("{}. {}", it.cause, it.remedy));
        }
        ProblemKind::PacketsLost => {
            let mut sums: BTreeMap<PathEventKind, u64> = BTreeMap::new();
            for event in runs.flat_map(losses) {
                let sum = sums.entry(event.kind).or_default();
                *sum = sum.saturating_add(event.count);
            }
            counts.extend(sums.iter().map(|(event, sum)| (event.words().to_owned(), *sum)));
        }
        ProblemKind::Starved => {
            let least =
                runs.flat_map(starved).min_by(|one, other| one.share.total_cmp(&other.share));
            let names = least.map(|qp| [("QP", qp.index), ("QPN", qp.qpn)]).into_iter().flatten();
            counts.extend(names.map(|(name, number)| (name.to_owned(), u64::from(number))));
        }
        _ => {}
    }
    (counts, hint)
}

/// Packets that were lost or late, without what followed from a receiver that had no receive posted: packets that were behind
/// the refused one come out of order, and are sent again (InfiniBand specification 9.7.5). Among many nodes it is not known
/// what followed from which.
fn losses(run: &Run) -> impl Iterator<Item = &PathEvent> {
    use PathEventKind::{Resent, SequenceGap, SequenceNak};
    let explains = run.nodes.len() <= 2 && run.path_events.iter().any(is_not_ready);
    run.path_events.iter().filter(move |event| {
        let follows = explains && matches!(event.kind, SequenceGap | SequenceNak | Resent);
        event.count > 0 && event.kind.is_loss() && !follows
    })
}

fn is_not_ready(event: &PathEvent) -> bool {
    event.count > 0 && event.kind == PathEventKind::ReceiverNotReady
}

fn starved(run: &Run) -> impl Iterator<Item = &StarvedQp> {
    run.flows.iter().filter_map(|flow| flow.fairness.as_ref()).flat_map(|it| &it.starved)
}

/// Cases whose runs differ by more than single runs may.
fn scattering(results: &[&ResultFile]) -> Option<Problem> {
    let cases = results.iter().flat_map(|result| &result.cases);
    let found: Vec<(f64, &CaseResult)> = cases
        .clone()
        .filter_map(|case| -> Option<(f64, &CaseResult)> {
            let spread = Observed::of_case(case).next()?.spread(Metric::GbitPerS)?;
            let scatter = (spread.high - spread.low) / spread.median;
            let is_wide = scatter > of_few_runs(Metric::GbitPerS) && scatter.is_finite();
            (is_wide && !are_few(spread.count)).then_some((scatter, case))
        })
        .collect();
    let worst = found.iter().max_by(|(one, _), (other, _)| one.total_cmp(other));
    let (most, worst) = worst?;
    Some(Problem {
        kind: ProblemKind::Scatter,
        count: found.len(),
        of: cases.count(),
        case: worst.id.clone(),
        most: *most,
        counts: Vec::new(),
        hint: String::new(),
    })
}

/// A rail that is slower than the others of its node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlowRail {
    /// The case, or the rounds of a case.
    pub case: String,
    pub metric: Metric,
    /// The node and the rail; of flows that all go between the same two rails both ends.
    pub ends: Vec<(String, String)>,
    /// The median over its flows.
    pub value: f64,
    /// The median over the flows of the node's other rails.
    pub usual: f64,
    pub rails: usize,
}

/// An end of flows at a rail: the node, whether they go to it, and the rail.
type End = (String, bool, String);

#[derive(Default)]
struct Moved {
    /// Of each run that counts.
    figures: Vec<f64>,
    /// The same over the median of all rails of the same flow in the run.
    ratios: Vec<f64>,
    /// Which flows they are, by case and place.
    flows: BTreeSet<(usize, usize)>,
}

/// The rails of a result that are slower than others of their node.
pub(super) fn slow_rails(result: &ResultFile) -> Vec<SlowRail> {
    groups(result).into_iter().flat_map(|cases| of_cases(&cases)).collect()
}

fn of_cases(cases: &[&CaseResult]) -> Vec<SlowRail> {
    let metric = if cases.first().is_some_and(|case| case.config.is_closed_loop()) {
        Metric::GbitPerS
    } else {
        Metric::P50Ns
    };
    let mut ends: BTreeMap<End, Moved> = BTreeMap::new();
    for (number, case) in cases.iter().enumerate() {
        for run in &case.runs {
            add(&mut ends, number, (case, run), metric);
        }
    }
    let sides: BTreeSet<(&String, bool)> = ends.keys().map(|(node, to, _)| (node, *to)).collect();
    let mut found: Vec<(SlowRail, &BTreeSet<(usize, usize)>)> = Vec::new();
    for side in sides {
        let rails: Vec<(&End, &Moved)> =
            ends.iter().filter(|((node, to, _), _)| (node, *to) == side).collect();
        for ((node, _, rail), moved, usual) in slow_ones(&rails, metric) {
            let end = (node.clone(), rail.clone());
            // With no other flows it is not known at which end the cause is.
            if let Some((same, _)) = found.iter_mut().find(|(_, flows)| **flows == moved.flows) {
                same.ends.push(end);
                continue;
            }
            // It is slow in both directions.
            if found.iter().any(|(other, _)| other.ends.contains(&end)) {
                continue;
            }
            let slow = SlowRail {
                case: title(cases),
                metric,
                ends: vec![end],
                value: median(&moved.figures).unwrap_or(usual),
                usual,
                rails: rails.len(),
            };
            found.push((slow, &moved.flows));
        }
    }
    found.into_iter().map(|(slow, _)| slow).collect()
}

/// Adds what the flows of a run moved to the rails at their ends.
fn add(
    ends: &mut BTreeMap<End, Moved>,
    number: usize,
    (case, run): (&CaseResult, &Run),
    metric: Metric,
) {
    // All that one flow has become, by its name.
    let mut over: BTreeMap<&str, Vec<(usize, &FlowConfig, f64)>> = BTreeMap::new();
    for (place, (config, flow)) in case.config.flows.iter().zip(&run.flows).enumerate() {
        if let Some((name, _)) = config.over_rails()
            && standing::counts(run, flow)
            && let Some(figure) = metric.of(run, Some::<&FlowResult>(flow))
        {
            over.entry(name).or_default().push((place, config, figure));
        }
    }
    for rails in over.values().filter(|it| it.len() > 1) {
        let figures: Vec<f64> = rails.iter().map(|(.., figure)| *figure).collect();
        let Some(middle) = median(&figures).filter(|middle| *middle > 0.0) else {
            continue;
        };
        for (place, config, figure) in rails {
            let Some((_, [from, to])) = config.over_rails() else {
                continue;
            };
            for (node, is_to, rail) in [(&config.from, false, from), (&config.to, true, to)] {
                let end = (node.clone(), is_to, rail.to_owned());
                let moved = ends.entry(end).or_default();
                moved.figures.push(*figure);
                moved.ratios.push(figure / middle);
                moved.flows.insert((number, *place));
            }
        }
    }
}

/// The rails of a node that are slower than its others by more than the runs scatter, each with the median of those.
fn slow_ones<'a>(rails: &[(&'a End, &'a Moved)], metric: Metric) -> Vec<(&'a End, &'a Moved, f64)> {
    let sign = if metric.higher_is_better() { 1.0 } else { -1.0 };
    let mut by_worth: Vec<(f64, (&End, &Moved))> = rails
        .iter()
        .map(|rail| (sign * median(&rail.1.ratios).unwrap_or_default(), *rail))
        .collect();
    by_worth.sort_by(|(one, _), (two, _)| one.total_cmp(two));
    let sorted: Vec<(&End, &Moved)> = by_worth.into_iter().map(|(_, rail)| rail).collect();
    // Less than half may be slow; the last one that stands out from what is faster, so that several do not hide each other.
    let most = (rails.len().saturating_sub(1) / 2).max(1);
    let count = (1..=most)
        .rev()
        .find(|number| {
            let (slow, others) = sorted.split_at((*number).min(sorted.len()));
            let last = slow.split_at(number.saturating_sub(1)).1;
            ratios(last, metric)
                .zip(ratios(others, metric))
                .is_some_and(|(own, usual)| !own.may_equal(&usual))
        })
        .unwrap_or(0);
    let (slow, others) = sorted.split_at(count.min(sorted.len()));
    let of_others: Vec<f64> =
        others.iter().flat_map(|(_, moved)| &moved.figures).copied().collect();
    let usual = median(&of_others).unwrap_or_default();
    slow.iter().map(|(end, moved)| (*end, *moved, usual)).collect()
}

fn ratios(rails: &[(&End, &Moved)], metric: Metric) -> Option<Figures> {
    let ratios: Vec<f64> = rails.iter().flat_map(|(_, moved)| &moved.ratios).copied().collect();
    Figures::new(metric, &ratios)
}

/// Of too few runs to know how they scatter, this many times the usual margin of a metric says nothing.
const FEW_RUNS_MARGINS: f64 = 3.0;

/// Figures of one case, of each run that counts, and their median.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figures {
    pub(super) median: f64,
    /// Whether the runs are too few to know how they scatter.
    pub(super) are_of_few_runs: bool,
    /// How far apart two medians like it may be by chance whatever the runs say, as a share of the larger one.
    tolerance: f64,
    /// Where more runs could lie: the range of the figures, made twice as wide on a logarithmic scale. Few runs seldom have
    /// the extremes, and a case that moves between two speeds says nothing about one that is slower than both.
    reach: [f64; 2],
}

impl Figures {
    /// `None` without a run that counts.
    pub(super) fn new(metric: Metric, of_runs: &[f64]) -> Option<Figures> {
        let spread = Spread::new(of_runs.iter().copied()).filter(|it| it.median > 0.0)?;
        let are_of_few_runs = are_few(spread.count);
        let beyond = (spread.high / spread.low).sqrt();
        Some(Figures {
            median: spread.median,
            are_of_few_runs,
            tolerance: if are_of_few_runs { of_few_runs(metric) } else { metric.default_margin() },
            reach: [spread.low / beyond, spread.high * beyond],
        })
    }

    /// Whether chance may be all that is between them.
    pub(super) fn may_equal(&self, other: &Figures) -> bool {
        let (low, high) = (self.median.min(other.median), self.median.max(other.median));
        let is_near = 1.0 - low / high <= self.tolerance.max(other.tolerance);
        is_near || (self.reach[0] <= other.reach[1] && other.reach[0] <= self.reach[1])
    }
}

/// Whether so many runs are too few to know how they scatter.
pub(super) fn are_few(runs: usize) -> bool {
    runs < LEAST_OBSERVATIONS
}

/// How far apart figures of single runs are for sure: 0.09 is 9 %.
pub(super) fn of_few_runs(metric: Metric) -> f64 {
    FEW_RUNS_MARGINS * metric.default_margin()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::findings::{Finding, Findings};
    use results::model::{CLIENT, SERVER};
    use results::sample;

    /// A case with a flow over each rail, of which each run moved so much in Gb/s.
    fn over_rails(runs: &[&[f64]]) -> ResultFile {
        let mut file = sample::result();
        file.cases.truncate(1);
        let case = &mut file.cases[0];
        let (config, run) = (case.config.flows[0].clone(), case.runs[0].clone());
        let rails = 0..runs[0].len();
        let over = |rail: usize, name: &str| format!("{name}@mlx5_{rail}");
        case.config.flows = rails
            .map(|rail| FlowConfig {
                name: over(rail, "forward"),
                from_device: Some(format!("mlx5_{rail}")),
                to_device: Some(format!("mlx5_{rail}")),
                ..config.clone()
            })
            .collect();
        case.runs = runs
            .iter()
            .map(|figures| {
                let mut run = run.clone();
                let flow = run.flows[0].clone();
                run.flows = figures
                    .iter()
                    .enumerate()
                    .map(|(rail, gbit_per_s)| {
                        let mut flow = flow.clone();
                        flow.name = over(rail, "forward");
                        flow.totals.gbit_per_s = Some(*gbit_per_s);
                        flow
                    })
                    .collect();
                run
            })
            .collect();
        file
    }

    fn names(file: &ResultFile) -> Vec<String> {
        slow_rails(file).into_iter().map(|it| it.ends[0].1.clone()).collect()
    }

    #[test]
    fn the_rail_that_is_slower_than_the_others_is_told_with_both_of_its_ends() {
        let file = over_rails(&[&[98.0, 97.0, 49.0, 99.0]]);
        let found = slow_rails(&file);
        let ends = [CLIENT, SERVER].map(|node| (node.to_owned(), "mlx5_2".to_owned()));
        assert_eq!((found.len(), &found[0].ends[..]), (1, &ends[..]));
        assert_eq!((found[0].value, found[0].usual, found[0].rails), (49.0, 98.0, 4));
        let findings = Findings::new(&file).findings;
        assert!(findings.iter().any(|it| matches!(it, Finding::SlowRail(_)) && it.is_wrong()));
        // Several do not hide each other.
        let eight = over_rails(&[&[98.0, 97.0, 49.0, 99.0, 98.0, 97.0, 45.0, 99.0]]);
        assert_eq!(names(&eight), ["mlx5_6", "mlx5_2"]);
    }

    #[test]
    fn what_runs_scatter_makes_no_slow_rail() {
        let few: [&[f64]; 3] = [&[98.0, 92.0, 95.0, 99.0], &[98.0, 70.0], &[50.0]];
        let found = few.map(|run| names(&over_rails(&[run])).len());
        assert_eq!(found, [0, 1, 0]);
        let both_ways =
            over_rails(&[&[98.0, 70.0, 97.0], &[75.0, 98.0, 97.0], &[98.0, 97.0, 70.0]]);
        assert_eq!(names(&both_ways).len(), 0);
        let same: &[f64] = &[98.0, 97.0, 90.0];
        assert_eq!(names(&over_rails(&[same; 3])), ["mlx5_2"]);
        assert_eq!(names(&over_rails(&[same])).len(), 0);
    }

    #[test]
    fn of_two_rails_none_is_known_to_be_usual() {
        let findings = Findings::new(&over_rails(&[&[98.0, 70.0]])).findings;
        assert!(matches!(&findings[..], [Finding::RailsDiffer(_)]), "{findings:?}");
    }

    fn may_equal(one: &[f64], other: &[f64]) -> bool {
        let [one, other] = [one, other].map(|it| Figures::new(Metric::GbitPerS, it).unwrap());
        assert_eq!(one.may_equal(&other), other.may_equal(&one));
        one.may_equal(&other)
    }

    #[test]
    fn single_runs_have_to_be_further_apart() {
        assert!(may_equal(&[100.0], &[92.0]));
        assert!(!may_equal(&[100.0], &[90.0]));
        assert!(!may_equal(&[100.0; 3], &[92.0; 3]));
        assert!(may_equal(&[100.0; 3], &[98.0; 3]));
        assert!(may_equal(&[100.0; 3], &[92.0]), "the other is a single run");
    }

    #[test]
    fn what_runs_scatter_is_no_difference() {
        assert!(may_equal(&[90.0, 100.0, 110.0], &[85.0, 85.0, 85.0]));
        assert!(!may_equal(&[90.0, 100.0, 110.0], &[75.0, 75.0, 75.0]));
        assert_eq!(Figures::new(Metric::GbitPerS, &[]), None);
    }

    #[test]
    fn a_case_with_two_speeds_is_not_like_one_that_is_slower_than_both() {
        let two_speeds = [11.0, 12.0, 29.0, 30.0, 30.0];
        assert!(!may_equal(&two_speeds, &[1.2, 1.3, 1.4]));
        assert!(may_equal(&two_speeds, &[9.0, 10.0, 11.0]));
    }
}
