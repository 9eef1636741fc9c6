//! What looks wrong in runs: failures, windows that do not count, losses, throughput that does not settle, QPs that are
//! served unevenly. The gravest comes first.

use std::collections::BTreeMap;

use serde::Serialize;
use settings::names;

use super::noise::{are_few, of_few_runs};
use crate::judge::evenness::{OverTime, WRONG_BELOW};
use crate::observe::standing::{self, LeftOut, Standing};
use crate::observe::{Metric, Observed};
use results::model::{
    CaseResult, DoubtKind, FlowResult, LoadVerdict, PathEvent, PathEventKind, ResultFile, Run,
    StarvedQp,
};

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
            let worst = doubts.max_by_key(|(kind, count)| (**count, std::cmp::Reverse(**kind)));
            hint = worst
                .map(|(kind, _)| standing::reason(*kind))
                .map_or_else(String::new, |it| format!("{}. {}", it.cause, it.remedy));
        }
        ProblemKind::PacketsLost => {
            let mut sums: BTreeMap<PathEventKind, u64> = BTreeMap::new();
            for event in runs.flat_map(losses) {
                let sum = sums.entry(event.kind).or_default();
                *sum = sum.saturating_add(event.count);
            }
            counts.extend(sums.iter().map(|(kind, sum)| (kind.words().to_owned(), *sum)));
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
