//! What looks wrong in runs: failures, windows that do not count, losses, throughput that does not settle, QPs that are
//! served unevenly. The gravest comes first.

use std::collections::BTreeMap;

use serde::Serialize;
use settings::names;

use super::noise::{are_few, of_few_runs, scatter};
use crate::judge::evenness::OverTime;
use crate::observe::standing::{self, LeftOut, Standing};
use crate::observe::{Metric, Observed};
use crate::results::model::{
    CaseResult, DoubtKind, FlowResult, LoadVerdict, PathEvent, PathEventKind, ResultFile, Run,
    StarvedQp,
};

/// Below this Jain's index QPs are served unevenly: at 0.9 a tenth of them may have had nothing.
const UNEVEN: f64 = 0.9;

/// A QP that stands still for so long while others move may wait for a retransmission.
const LONG_STALL_SECONDS: f64 = 0.1;

/// A run and its case.
pub(super) type Ran<'a> = (&'a CaseResult, &'a Run);

names! {
    /// What may look wrong, the gravest first.
    #[derive(PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "snake_case")]
    ProblemKind {
        /// Runs went wrong.
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
        /// QPs were served unevenly.
        Uneven = "uneven QPs",
        /// Workers shared cores.
        CoresShared = "shared cores",
        /// Throughput rose or fell through the window.
        Drift = "drift",
        /// Runs of one case differ by more than single runs may.
        Scatter = "scatter between runs",
    }
}

/// Something that looks wrong.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Problem {
    /// What.
    pub kind: ProblemKind,
    /// In so many runs; of a scatter, cases.
    pub count: usize,
    /// Of so many.
    pub of: usize,
    /// The case of the first of them; of a scatter, of the worst.
    pub case: String,
    /// How grave it is: the largest share of messages lost, the longest stall in seconds, the least share of a QP and the least Jain's index, the largest
    /// scatter as a share; 0 where nothing is measured.
    pub most: f64,
    /// What was counted, by name: doubts, events on the path; of a starved QP its index and its QPN.
    pub counts: Vec<(String, u64)>,
    /// What helps; empty where nothing is known.
    pub remedy: String,
}

/// Something that is looked for.
type Check = fn(&[Ran<'_>]) -> Option<Problem>;

const CHECKS: [Check; 13] = [
    failed,
    unreliable,
    overloaded,
    not_received,
    lost_messages,
    lost_packets,
    not_ready,
    unsteady,
    stalled,
    starved,
    uneven,
    shared_cores,
    drifting,
];

/// What looks wrong, the gravest first.
pub(super) fn problems(results: &[&ResultFile]) -> Vec<Problem> {
    let runs = runs(results);
    let found = CHECKS.iter().filter_map(|check| check(&runs));
    found.chain(scattering(results)).collect()
}

/// The runs that are looked at.
pub(super) fn runs<'a>(results: &[&'a ResultFile]) -> Vec<Ran<'a>> {
    let cases = results.iter().flat_map(|result| &result.cases);
    let runs = cases.flat_map(|case| case.runs.iter().map(move |run| (case, run)));
    // What a user stopped went as it should until then.
    runs.filter(|(_, run)| !run.interrupted).collect()
}

/// A problem of so many of the runs; `None` of none.
fn some(kind: ProblemKind, runs: &[Ran<'_>], is_it: impl Fn(&Run) -> bool) -> Option<Problem> {
    let found: Vec<&Ran<'_>> = runs.iter().filter(|(_, run)| is_it(run)).collect();
    let (case, _) = found.first()?;
    Some(Problem {
        kind,
        count: found.len(),
        of: runs.len(),
        case: case.id.clone(),
        most: 0.0,
        counts: Vec::new(),
        remedy: remedy(kind).to_owned(),
    })
}

/// What helps; empty where nothing is known, or each reason has its own.
fn remedy(kind: ProblemKind) -> &'static str {
    match kind {
        ProblemKind::Overloaded => "Lower --rate, or use more QPs",
        ProblemKind::ReceiverDisagrees | ProblemKind::NotSettled => "Measure longer (-D)",
        ProblemKind::MessagesLost => "Post more receives (--rx-depth), or lower --rate",
        ProblemKind::PacketsLost => {
            "Look for a link with errors and for switches without flow control (rocebench doctor)"
        }
        ProblemKind::ReceiverNotReady => "Post more receives (--rx-depth)",
        ProblemKind::CoresShared => "Use fewer --workers, or name --cores",
        ProblemKind::Drift => "Warm up longer (--warmup)",
        ProblemKind::Scatter => "Measure longer (-D) and more often (--runs)",
        ProblemKind::Failed
        | ProblemKind::Unreliable
        | ProblemKind::Stalled
        | ProblemKind::Starved
        | ProblemKind::Uneven => "",
    }
}

fn any_flow(run: &Run, is_it: impl Fn(&FlowResult) -> bool) -> bool {
    run.flows.iter().any(is_it)
}

fn failed(runs: &[Ran<'_>]) -> Option<Problem> {
    let is_bad = |run: &Run| matches!(standing::of_run(run), Standing::Bad(_));
    let mut problem = some(ProblemKind::Failed, runs, is_bad)?;
    let hints = runs.iter().filter_map(|(_, run)| run.failure.as_ref());
    if let Some(hint) = hints.filter_map(|failure| failure.hint.clone()).next() {
        problem.remedy = hint;
    }
    Some(problem)
}

fn unreliable(runs: &[Ran<'_>]) -> Option<Problem> {
    let spoilt = |run: &Run| matches!(standing::of_run(run), Standing::Doubtful(_));
    let problem = some(ProblemKind::Unreliable, runs, spoilt)?;
    let left_out = LeftOut::of(runs.iter().map(|(_, run)| standing::of_run(run)));
    let by_count = |it: &(&DoubtKind, &usize)| (*it.1, std::cmp::Reverse(*it.0));
    let worst = left_out.doubtful.iter().max_by_key(by_count);
    let counts = left_out.doubtful.iter();
    let counts = counts.map(|(kind, count)| (kind.name().to_owned(), *count as u64));
    Some(Problem {
        remedy: worst.map_or_else(String::new, |(kind, _)| {
            let reason = standing::reason(*kind);
            format!("{}. {}", reason.cause, reason.remedy)
        }),
        counts: counts.collect(),
        ..problem
    })
}

fn overloaded(runs: &[Ran<'_>]) -> Option<Problem> {
    let is_it = |flow: &FlowResult| {
        let verdict = flow.load.as_ref().map(|load| load.verdict);
        verdict == Some(LoadVerdict::Overloaded)
    };
    some(ProblemKind::Overloaded, runs, |run| any_flow(run, is_it))
}

fn not_received(runs: &[Ran<'_>]) -> Option<Problem> {
    let is_it = |flow: &FlowResult| flow.received_otherwise().is_some();
    some(ProblemKind::ReceiverDisagrees, runs, |run| {
        any_flow(run, is_it)
    })
}

fn lost_messages(runs: &[Ran<'_>]) -> Option<Problem> {
    let share = |flow: &FlowResult| flow.delivery.as_ref().map_or(0.0, |it| it.lost_share);
    let is_it = |flow: &FlowResult| share(flow) > 0.0;
    let problem = some(ProblemKind::MessagesLost, runs, |run| any_flow(run, is_it))?;
    let flows = runs.iter().flat_map(|(_, run)| &run.flows);
    Some(Problem {
        most: flows.map(share).fold(0.0, f64::max),
        ..problem
    })
}

/// Without what followed from a receiver that had no receive posted: packets that were behind the refused one come out of
/// order, and are sent again (InfiniBand specification 9.7.5). Among many nodes it is not known what followed from which.
fn lost_packets(runs: &[Ran<'_>]) -> Option<Problem> {
    let is_loss = |run: &Run, event: &PathEvent| {
        use PathEventKind::{Resent, SequenceGap, SequenceNak};
        let follows = matches!(event.kind, SequenceGap | SequenceNak | Resent)
            && run.nodes.len() <= 2
            && run.path_events.iter().any(is_not_ready);
        event.count > 0 && event.kind.is_loss() && !follows
    };
    let has_loss = |run: &Run| run.path_events.iter().any(|event| is_loss(run, event));
    let problem = some(ProblemKind::PacketsLost, runs, has_loss)?;
    let mut sums: BTreeMap<PathEventKind, u64> = BTreeMap::new();
    let events = runs.iter().flat_map(|(_, run)| {
        let events = run.path_events.iter();
        events.filter(|event| is_loss(run, event))
    });
    for event in events {
        let sum = sums.entry(event.kind).or_default();
        *sum = sum.saturating_add(event.count);
    }
    let counts = sums.iter();
    let counts = counts.map(|(kind, sum)| (kind.words().to_owned(), *sum));
    Some(Problem {
        counts: counts.collect(),
        ..problem
    })
}

fn is_not_ready(event: &PathEvent) -> bool {
    event.count > 0 && event.kind == PathEventKind::ReceiverNotReady
}

fn not_ready(runs: &[Ran<'_>]) -> Option<Problem> {
    let is_it = |run: &Run| run.path_events.iter().any(is_not_ready);
    some(ProblemKind::ReceiverNotReady, runs, is_it)
}

fn unsteady(runs: &[Ran<'_>]) -> Option<Problem> {
    let is_it = |flow: &FlowResult| flow.window.warmup_steady == Some(false);
    some(ProblemKind::NotSettled, runs, |run| any_flow(run, is_it))
}

fn stalled(runs: &[Ran<'_>]) -> Option<Problem> {
    let longest = |&(case, run): &Ran<'_>| -> f64 {
        let flows = case.flows();
        let over_time = flows.filter_map(|flow| OverTime::of(flow.result(run)?, &flow.settings));
        let longest = over_time.map(|flow| flow.longest_alone_seconds());
        longest.fold(0.0, f64::max)
    };
    let found = runs.iter().map(|ran| (ran.1, longest(ran)));
    let found: Vec<(&Run, f64)> = found
        .filter(|(_, seconds)| *seconds >= LONG_STALL_SECONDS)
        .collect();
    let problem = some(ProblemKind::Stalled, runs, |run| {
        found.iter().any(|(it, _)| std::ptr::eq(*it, run))
    })?;
    let seconds = found.iter().map(|(_, seconds)| *seconds);
    Some(Problem {
        most: seconds.fold(0.0, f64::max),
        ..problem
    })
}

fn starved(runs: &[Ran<'_>]) -> Option<Problem> {
    fn of(run: &Run) -> impl Iterator<Item = &StarvedQp> {
        let fairness = run.flows.iter().filter_map(|flow| flow.fairness.as_ref());
        fairness.flat_map(|it| &it.starved)
    }
    let problem = some(ProblemKind::Starved, runs, |run| of(run).next().is_some())?;
    let all = runs.iter().flat_map(|(_, run)| of(run));
    let least = all.min_by(|one, other| one.share.total_cmp(&other.share))?;
    let [index, qpn] = [least.index, least.qpn].map(u64::from);
    Some(Problem {
        most: least.share,
        counts: vec![("QP".to_owned(), index), ("QPN".to_owned(), qpn)],
        ..problem
    })
}

fn uneven(runs: &[Ran<'_>]) -> Option<Problem> {
    let jain = |flow: &FlowResult| flow.fairness.as_ref().map_or(1.0, |it| it.jain);
    // Shares that were asked for are uneven on purpose.
    let has_shares =
        |case: &CaseResult| case.flows().any(|flow| flow.settings.qp_weights.is_some());
    let runs: Vec<Ran<'_>> = runs
        .iter()
        .copied()
        .filter(|(case, _)| !has_shares(case))
        .collect();
    let is_uneven = |flow: &FlowResult| jain(flow) < UNEVEN;
    let problem = some(ProblemKind::Uneven, &runs, |run| any_flow(run, is_uneven))?;
    let flows = runs.iter().flat_map(|(_, run)| &run.flows);
    Some(Problem {
        most: flows.map(jain).fold(1.0, f64::min),
        ..problem
    })
}

fn shared_cores(runs: &[Ran<'_>]) -> Option<Problem> {
    let is_shared = |run: &Run| {
        let mut workers = run.nodes.iter().flat_map(|node| &node.workers);
        workers.any(|worker| worker.core_shared_with.is_some_and(|others| others > 0))
    };
    some(ProblemKind::CoresShared, runs, is_shared)
}

fn drifting(runs: &[Ran<'_>]) -> Option<Problem> {
    let is_it = |flow: &FlowResult| flow.window.has_doubt(DoubtKind::Drift);
    some(ProblemKind::Drift, runs, |run| any_flow(run, is_it))
}

/// Cases whose runs differ by more than single runs may.
fn scattering(results: &[&ResultFile]) -> Option<Problem> {
    let limit = of_few_runs(Metric::GbitPerS);
    let of_case = |case: &CaseResult| -> Option<f64> {
        let rates = Observed::of_case(case).next()?.values(Metric::GbitPerS);
        scatter(&rates).filter(|scatter| !are_few(rates.len()) && *scatter > limit)
    };
    let cases = || results.iter().flat_map(|result| &result.cases);
    let found: Vec<(&CaseResult, f64)> = cases()
        .filter_map(|case| Some((case, of_case(case)?)))
        .collect();
    let (worst, most) = found
        .iter()
        .max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    Some(Problem {
        kind: ProblemKind::Scatter,
        count: found.len(),
        of: cases().count(),
        case: worst.id.clone(),
        most: *most,
        counts: Vec::new(),
        remedy: remedy(ProblemKind::Scatter).to_owned(),
    })
}
