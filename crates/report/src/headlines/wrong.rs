//! What looks wrong in runs: failures, windows that do not count, losses, throughput that does not settle, QPs that are
//! served unevenly. The gravest comes first.

use std::collections::BTreeMap;

use super::noise::{are_few, of_few_runs, scatter};
use crate::compare::Metric;
use crate::evenness::OverTime;
use crate::observe::standing::{self, LeftOut, Standing};
use crate::results::model::{
    CaseResult, DoubtKind, FlowResult, LoadVerdict, PathEvent, PathEventKind, ResultFile, Run,
    StarvedQp,
};
use crate::results::number::plural;

/// Below this Jain's index QPs are served unevenly: at 0.9 a tenth of them may have had nothing.
const UNEVEN: f64 = 0.9;

/// A QP that stands still for so long while others move may wait for a retransmission.
const LONG_STALL_SECONDS: f64 = 0.1;

/// A run and its case.
type Ran<'a> = (&'a CaseResult, &'a Run);

/// Something that is looked for, in words where it is found.
type Check = fn(&[Ran<'_>]) -> Option<String>;

/// What is looked for, with its name where there is no room for the words.
const CHECKS: [(&str, Check); 13] = [
    ("failed runs", failed),
    ("figures that do not count", without_rates),
    ("overload", overloaded),
    ("receivers' rates", not_received),
    ("lost messages", lost_messages),
    ("lost packets", lost_packets),
    ("receivers that were not ready", not_ready),
    ("throughput that did not settle", unsteady),
    ("QPs that stood still", stalled),
    ("starved QPs", starved),
    ("uneven QPs", uneven),
    ("shared cores", shared_cores),
    ("drift", drifting),
];

/// How much is told in full: more than this in one sentence is not read.
const TOLD: usize = 3;

/// The sentence; `None` where nothing was found.
pub(super) fn sentence(results: &[&ResultFile]) -> Option<String> {
    let runs = runs(results);
    let found = CHECKS.iter().map(|(name, check)| (*name, check(&runs)));
    let found = found.chain([("scatter between runs", scattering(results))]);
    let found: Vec<(&str, String)> = found
        .filter_map(|(name, words)| Some((name, words?)))
        .collect();
    let (told, named) = found.split_at(found.len().min(TOLD));
    let mut parts: Vec<String> = told.iter().map(|(_, words)| words.clone()).collect();
    if !named.is_empty() {
        let names: Vec<&str> = named.iter().map(|(name, _)| *name).collect();
        parts.push(format!("also {}", names.join(", ")));
    }
    (!parts.is_empty()).then(|| format!("What looks wrong: {}.", parts.join("; ")))
}

/// The sentence where nothing was found.
pub(super) fn nothing(results: &[&ResultFile]) -> String {
    match runs(results).len() {
        1 => "Nothing looks wrong in the run.".to_owned(),
        count => format!("Nothing looks wrong in {count} runs."),
    }
}

fn runs<'a>(results: &[&'a ResultFile]) -> Vec<Ran<'a>> {
    let cases = results.iter().flat_map(|result| &result.cases);
    let runs = cases.flat_map(|case| case.runs.iter().map(move |run| (case, run)));
    // What a user stopped went as it should until then.
    runs.filter(|(_, run)| !run.interrupted).collect()
}

/// So many runs, and the case of the first of them; `None` of none.
fn some(runs: &[Ran<'_>], is_it: impl Fn(&Run) -> bool) -> Option<(String, String)> {
    let found: Vec<&Ran<'_>> = runs.iter().filter(|(_, run)| is_it(run)).collect();
    let (case, _) = found.first()?;
    let count = found.len();
    let first = if count == 1 { "" } else { "first " };
    Some((
        format!("{count} of {} {}", runs.len(), plural(runs.len(), "run")),
        format!("{first}{}", case.id),
    ))
}

fn any_flow(run: &Run, is_it: impl Fn(&FlowResult) -> bool) -> bool {
    run.flows.iter().any(is_it)
}

fn failed(runs: &[Ran<'_>]) -> Option<String> {
    let (count, first) = some(runs, |run| {
        matches!(standing::of_run(run), Standing::Bad(_))
    })?;
    Some(format!("{count} failed ({first})"))
}

fn without_rates(runs: &[Ran<'_>]) -> Option<String> {
    let spoilt = |run: &Run| matches!(standing::of_run(run), Standing::Doubtful(_));
    let (count, first) = some(runs, spoilt)?;
    let left_out = LeftOut::of(runs.iter().map(|(_, run)| standing::of_run(run)));
    let all: Vec<&str> = left_out.doubtful.into_keys().map(DoubtKind::name).collect();
    Some(format!(
        "figures of {count} do not count: {} ({first})",
        all.join(", ")
    ))
}

fn overloaded(runs: &[Ran<'_>]) -> Option<String> {
    let is_it = |flow: &FlowResult| {
        let verdict = flow.load.as_ref().map(|load| load.verdict);
        verdict == Some(LoadVerdict::Overloaded)
    };
    let (count, first) = some(runs, |run| any_flow(run, is_it))?;
    Some(format!(
        "more was offered than was served in {count} ({first})"
    ))
}

fn not_received(runs: &[Ran<'_>]) -> Option<String> {
    let is_it = |flow: &FlowResult| flow.received_otherwise().is_some();
    let (count, first) = some(runs, |run| any_flow(run, is_it))?;
    Some(format!(
        "the receiver's rate was not the sender's in {count} ({first})"
    ))
}

fn lost_messages(runs: &[Ran<'_>]) -> Option<String> {
    let share = |flow: &FlowResult| flow.delivery.as_ref().map_or(0.0, |it| it.lost_share);
    let (count, first) = some(runs, |run| any_flow(run, |flow| share(flow) > 0.0))?;
    let flows = runs.iter().flat_map(|(_, run)| &run.flows);
    let most = match flows.map(share).fold(0.0, f64::max) * 100.0 {
        ..0.01 => "less than 0.01".to_owned(),
        most => format!("up to {most:.2}"),
    };
    Some(format!("messages were lost in {count}, {most} % ({first})"))
}

/// Without what followed from a receiver that had no receive posted: packets that were behind the refused one come out of
/// order, and are sent again (InfiniBand specification 9.7.5). Among many nodes it is not known what followed from which.
fn lost_packets(runs: &[Ran<'_>]) -> Option<String> {
    let is_loss = |run: &Run, event: &PathEvent| {
        use PathEventKind::{Resent, SequenceGap, SequenceNak};
        let follows = matches!(event.kind, SequenceGap | SequenceNak | Resent)
            && run.nodes.len() <= 2
            && run.path_events.iter().any(is_not_ready);
        event.count > 0 && event.kind.is_loss() && !follows
    };
    let has_loss = |run: &Run| run.path_events.iter().any(|event| is_loss(run, event));
    let (count, first) = some(runs, has_loss)?;
    let mut sums: BTreeMap<PathEventKind, u64> = BTreeMap::new();
    let events = runs.iter().flat_map(|(_, run)| {
        let events = run.path_events.iter();
        events.filter(|event| is_loss(run, event))
    });
    for event in events {
        let sum = sums.entry(event.kind).or_default();
        *sum = sum.saturating_add(event.count);
    }
    let sums: Vec<String> = sums
        .iter()
        .map(|(kind, sum)| format!("{sum} {}", kind.words()))
        .collect();
    Some(format!(
        "packets were lost or late in {count}: {} ({first})",
        sums.join(", ")
    ))
}

fn is_not_ready(event: &PathEvent) -> bool {
    event.count > 0 && event.kind == PathEventKind::ReceiverNotReady
}

fn not_ready(runs: &[Ran<'_>]) -> Option<String> {
    let (count, first) = some(runs, |run| run.path_events.iter().any(is_not_ready))?;
    Some(format!(
        "receivers had no receive posted in {count} ({first})"
    ))
}

fn unsteady(runs: &[Ran<'_>]) -> Option<String> {
    let is_it = |flow: &FlowResult| flow.window.warmup_steady == Some(false);
    let (count, first) = some(runs, |run| any_flow(run, is_it))?;
    Some(format!(
        "throughput did not settle before {count} ({first})"
    ))
}

fn stalled(runs: &[Ran<'_>]) -> Option<String> {
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
    let (count, first) = some(runs, |run| {
        found.iter().any(|(it, _)| std::ptr::eq(*it, run))
    })?;
    let seconds = found.iter().map(|(_, seconds)| *seconds);
    let seconds = seconds.fold(0.0, f64::max);
    Some(format!(
        "a QP stood still while others moved in {count}, for up to {:.0} ms ({first})",
        seconds * 1e3
    ))
}

fn starved(runs: &[Ran<'_>]) -> Option<String> {
    fn of(run: &Run) -> impl Iterator<Item = &StarvedQp> {
        let fairness = run.flows.iter().filter_map(|flow| flow.fairness.as_ref());
        fairness.flat_map(|it| &it.starved)
    }
    let (count, first) = some(runs, |run| of(run).next().is_some())?;
    let all = runs.iter().flat_map(|(_, run)| of(run));
    let least = all.min_by(|one, other| one.share.total_cmp(&other.share))?;
    Some(format!(
        "a QP got less than half of its share in {count}: QP {} down to {:.2} of it ({first})",
        least.index, least.share
    ))
}

fn uneven(runs: &[Ran<'_>]) -> Option<String> {
    let jain = |flow: &FlowResult| flow.fairness.as_ref().map_or(1.0, |it| it.jain);
    // Shares that were asked for are uneven on purpose.
    let has_shares =
        |case: &CaseResult| case.flows().any(|flow| flow.settings.qp_weights.is_some());
    let runs: Vec<Ran<'_>> = runs
        .iter()
        .copied()
        .filter(|(case, _)| !has_shares(case))
        .collect();
    let (count, first) = some(&runs, |run| any_flow(run, |flow| jain(flow) < UNEVEN))?;
    let flows = runs.iter().flat_map(|(_, run)| &run.flows);
    let least = flows.map(jain).fold(1.0, f64::min);
    Some(format!(
        "QPs were served unevenly in {count}: Jain's index down to {least:.2} ({first})"
    ))
}

fn shared_cores(runs: &[Ran<'_>]) -> Option<String> {
    let is_shared = |run: &Run| {
        let mut workers = run.nodes.iter().flat_map(|node| &node.workers);
        workers.any(|worker| worker.core_shared_with.is_some_and(|others| others > 0))
    };
    let (count, first) = some(runs, is_shared)?;
    Some(format!("workers shared cores in {count} ({first})"))
}

fn drifting(runs: &[Ran<'_>]) -> Option<String> {
    let is_it = |flow: &FlowResult| flow.window.has_doubt(DoubtKind::Drift);
    let (count, first) = some(runs, |run| any_flow(run, is_it))?;
    Some(format!(
        "throughput drifted through the window of {count} ({first})"
    ))
}

/// Cases whose runs differ by more than single runs may.
fn scattering(results: &[&ResultFile]) -> Option<String> {
    let limit = of_few_runs(Metric::GbitPerS);
    let of_case = |case: &CaseResult| -> Option<f64> {
        let runs = case.runs.iter();
        let rates = runs.filter_map(|run| {
            let flow = run
                .flows
                .first()
                .filter(|flow| standing::counts(run, flow))?;
            flow.gbit_per_s()
        });
        let rates: Vec<f64> = rates.collect();
        scatter(&rates).filter(|scatter| !are_few(rates.len()) && *scatter > limit)
    };
    let cases = results.iter().flat_map(|result| &result.cases);
    let found: Vec<(&CaseResult, f64)> = cases
        .filter_map(|case| Some((case, of_case(case)?)))
        .collect();
    let (worst, scatter) = found
        .iter()
        .max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let count = found.len();
    Some(format!(
        "runs of {count} {} scatter in throughput, by up to {:.0} % ({})",
        plural(count, "case"),
        scatter * 100.0,
        worst.id
    ))
}
