//! A sweep on its way: its session, its runs one by one, and what it came to so far.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use node::threads::sharing_warning;
use plan::{Case, Flow, Sweep};
use protocol::error::ConnectError;
use protocol::failure::RunFailure;
use protocol::message::RunMessage;
use report::observe::standing::{self, Standing};
use results::history::leave_out_parts;
use results::model::{
    self, CaseComparison, CaseResult, NodeResult, ResultFile, Run, SCHEMA_VERSION,
};
use results::utc_now;
use serde_json::Value;
use statistics::median;

use super::assemble::{Assembled, PathFacts, config};
use super::interface::{Observer, SweepOptions, tool};
use super::nodes::{Node, NodePlaces, Unconnected};
use super::run::{QpsOfRun, not_run, run};

/// What a sweep came to.
pub struct SweepOutcome {
    pub result: ResultFile,
    pub failed_runs: usize,
    /// All failures were of what was asked for, not of the runs.
    pub only_bad_input: bool,
    /// All failed runs had a window without a message.
    pub only_unmeasured: bool,
    /// The user stopped the sweep.
    pub interrupted: bool,
    /// The peer could not be reached again, so cases are missing.
    pub lost: Option<ConnectError>,
}

impl SweepOutcome {
    /// Nothing, of a sweep between these nodes that begins now.
    pub(super) fn new(options: &SweepOptions, nodes: Vec<model::Node>) -> SweepOutcome {
        SweepOutcome {
            result: ResultFile {
                schema_version: SCHEMA_VERSION,
                tool: tool(),
                started_at: utc_now(),
                command_line: options.command_line.clone(),
                nodes,
                cases: Vec::new(),
                stages: Vec::new(),
            },
            failed_runs: 0,
            only_bad_input: true,
            only_unmeasured: true,
            interrupted: false,
            lost: None,
        }
    }
}

/// Why a sweep ends before its last run.
pub(crate) enum StopReason {
    Interrupted,
    /// The peer cannot be reached again.
    Lost(ConnectError),
    /// This end cannot go on.
    Broken(RunFailure),
}

impl StopReason {
    /// What became of the round that it ended.
    pub(super) fn words(&self) -> &'static str {
        match self {
            StopReason::Interrupted => "interrupted",
            StopReason::Lost(_) | StopReason::Broken(_) => "the sweep ended",
        }
    }
}

impl From<Unconnected> for StopReason {
    fn from(error: Unconnected) -> StopReason {
        match error {
            Unconnected::Unreachable(error, _) if error.is_interrupt() => StopReason::Interrupted,
            Unconnected::Unreachable(error, _) => StopReason::Lost(error),
            Unconnected::Failed(failure) if failure.interrupted => StopReason::Interrupted,
            Unconnected::Failed(failure) => StopReason::Broken(failure),
        }
    }
}

/// A sweep on its way.
pub(crate) struct Sweeper<'a> {
    pub(crate) options: &'a SweepOptions,
    /// What is run: that of the options over all rails.
    pub(crate) sweep: Arc<Sweep>,
    /// Its cases, and those that were added.
    pub(super) total: usize,
    pub(super) places: NodePlaces,
    pub(super) facts: Value,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) observer: &'a mut dyn Observer,
    pub(crate) outcome: SweepOutcome,
    /// `None` after a run that failed: all nodes begin afresh, no half of a run is left over.
    pub(crate) nodes: Option<Vec<Node>>,
    /// What was noted about the other nodes' cores.
    pub(super) core_notes: BTreeSet<String>,
}

impl Sweeper<'_> {
    /// The nodes, which are to be put back where their links are still good.
    pub(crate) fn take_nodes(&mut self) -> Result<Vec<Node>, StopReason> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(StopReason::Interrupted);
        }
        if let Some(nodes) = self.nodes.take() {
            return Ok(nodes);
        }
        let ends = &self.options.ends;
        let connected = self.places.connect(ends, &self.facts, self.stop);
        connected.map_err(StopReason::from)
    }

    /// This end's node, with which the session was ended.
    pub(crate) fn reach_own(&self) -> Result<Node, StopReason> {
        let own = self.places.reach_local(0, &self.facts, self.stop);
        own.map_err(StopReason::from)
    }

    /// Does the runs of a case, and one more for each in doubt, up to twice as many.
    pub(super) fn run_case(&mut self, index: usize, case: &Case) -> Result<(), StopReason> {
        let mut runs = case.runs;
        let mut number = 1;
        while number <= runs {
            self.run(index, case, number, runs)?;
            let run = self.outcome.result.cases.get(index).and_then(|entry| entry.runs.last());
            let is_doubtful = run.is_some_and(|run| standing::of_run(run).is_doubtful());
            if is_doubtful && runs < case.most_runs() {
                runs += 1;
                self.observer.runs_added(std::slice::from_ref(case));
            }
            number += 1;
        }
        Ok(())
    }

    /// Does run `number` of a case, and records it; what the ends of its first flow agreed on, if they came that far.
    pub(crate) fn run(
        &mut self,
        index: usize,
        case: &Case,
        number: u32,
        runs: u32,
    ) -> Result<Option<PathFacts>, StopReason> {
        let nodes = self.take_nodes()?;
        let total = self.total;
        self.observer.run_started(index, total, case, number, runs);
        let rated = Rated::new(case, &self.sweep.cases, &self.outcome.result);
        let done = match rated {
            Ok(rated) => {
                let mut done = self.run_with(&nodes, &rated.case, (number, QpsOfRun::default()));
                rated.add_maxima(&mut done.run);
                done
            }
            Err(failure) => not_run(&nodes, case, number, failure),
        };
        let goes_on = done.goes_on;
        let path = done.paths.first().copied().flatten();
        record(&mut self.outcome, &nodes, (index, case), done, self.observer);
        for node in nodes.iter().filter(|node| goes_on && node.facts.shows_results) {
            // A lost link is found by the next run.
            let _ =
                node.link.send(RunMessage::Show(Box::new(last_run(&self.outcome.result, index))));
        }
        self.nodes = Some(nodes).filter(|_| goes_on);
        Ok(path)
    }

    /// Does a trial of a search, which is not recorded as a run of a case.
    pub(crate) fn trial(&mut self, case: &Case, number: u32) -> Result<Run, StopReason> {
        let nodes = self.take_nodes()?;
        let done = self.run_with(&nodes, case, (number, QpsOfRun::default()));
        self.nodes = Some(nodes).filter(|_| done.goes_on);
        Ok(done.run)
    }

    /// Records what a case came to beside its base, where it has a run, and shows its last round.
    pub(super) fn publish(&mut self, case: &Case, comparison: CaseComparison) {
        let cases = &mut self.outcome.result.cases;
        let Some(entry) = cases.iter_mut().find(|entry| entry.id == case.id) else {
            return;
        };
        let config = entry.config.clone();
        let comparison = entry.comparison.insert(CaseComparison { config, ..comparison }).clone();
        self.observer.round_finished(case, &comparison, &self.outcome.result);
    }

    pub(super) fn run_with(
        &mut self,
        nodes: &[Node],
        case: &Case,
        run_of_case: (u32, QpsOfRun),
    ) -> Assembled {
        let done = run(nodes, case, run_of_case, self.stop, self.observer);
        if let (false, Some(failure)) = (done.goes_on, &done.failure) {
            nodes.iter().for_each(|node| failure.tell(&node.link));
        }
        self.note_cores(nodes, case, &done.run);
        done
    }

    /// Says once that the workers of other nodes have no cores of their own. On one host this end's workers mostly have
    /// the same company, which was said before the run.
    fn note_cores(&mut self, nodes: &[Node], case: &Case, run: &Run) {
        let nodes: Vec<(&Node, &NodeResult)> =
            nodes.iter().filter_map(|node| Some((node, run.node(&node.name)?))).collect();
        let is_noted = nodes.iter().filter(|(node, _)| node.is_own).any(|(_, result)| {
            result.workers.iter().any(|worker| worker.core_shared_with.is_some_and(|it| it > 0))
        });
        for (node, result) in nodes.into_iter().filter(|(node, _)| !node.is_own) {
            if is_noted && node.link.is_within_host() {
                continue;
            }
            let workers: Vec<_> = result
                .workers
                .iter()
                .filter_map(|worker| Some((worker.core? as usize, worker.core_shared_with?)))
                .collect();
            if let Some(text) = sharing_warning(case.poll, &workers) {
                let text = format!("{}{text}", node.whose());
                if self.core_notes.insert(text.clone()) {
                    self.observer.note(&text);
                }
            }
        }
    }
}

/// The last run of a case alone, for a node that shows it.
fn last_run(result: &ResultFile, index: usize) -> ResultFile {
    let case = result.cases.get(index).map(|case| CaseResult {
        id: case.id.clone(),
        config: case.config.clone(),
        runs: case.runs.last().map(without_parts).into_iter().collect(),
        ..CaseResult::default()
    });
    result.with_cases(case.into_iter().collect())
}

/// The figures of flows and machines, without those of QPs and workers and without courses over time.
fn without_parts(run: &Run) -> Run {
    let mut whole = run.clone();
    leave_out_parts(&mut whole);
    whole.nodes.iter_mut().for_each(|node| node.workers.clear());
    whole
}

/// Adds a run of a case, which may have runs before those of others, to the result and shows it.
pub(super) fn record(
    outcome: &mut SweepOutcome,
    nodes: &[Node],
    (index, case): (usize, &Case),
    done: Assembled,
    observer: &mut dyn Observer,
) {
    if let Some(failure) = &done.failure {
        count(outcome, failure);
    }
    for (node, devices) in outcome.result.nodes.iter_mut().zip(&done.devices) {
        for device in devices {
            if !node.devices.iter().any(|known| known.is_port_of(device)) {
                node.devices.push(device.clone());
            }
        }
    }
    if index >= outcome.result.cases.len() {
        outcome.result.cases.push(CaseResult {
            id: case.id.clone(),
            config: config(case, nodes),
            runs: Vec::new(),
            searches: Vec::new(),
            comparison: None,
            diagnosis: None,
        });
    }
    let Some(entry) = outcome.result.cases.get_mut(index) else {
        return;
    };
    let mut flows = entry.config.flows.iter_mut();
    for (flow, path) in case.flows.iter().zip(&done.paths) {
        let directions = if flow.bidirectional { 2 } else { 1 };
        for config in flows.by_ref().take(directions) {
            config.path_mtu = config.path_mtu.or(path.map(|path| path.mtu_bytes));
            config.wire = config.wire.or(path.and_then(|path| path.wire));
        }
    }
    entry.runs.push(done.run);
    if let Some(recorded) = outcome.result.cases.get(index)
        && let Some(run) = recorded.runs.last()
    {
        observer.run_finished(&recorded.config, run, &outcome.result);
    }
}

fn count(outcome: &mut SweepOutcome, failure: &RunFailure) {
    if failure.interrupted {
        outcome.interrupted = true;
    } else {
        outcome.failed_runs += 1;
        outcome.only_bad_input &= failure.bad_input;
        outcome.only_unmeasured &= failure.unmeasured;
    }
}

/// A case that nodes can run, and what its shares of `--rate` are of: the message rates of the same case as a closed
/// loop, which ran before in the sweep.
struct Rated {
    /// With messages a second in place of shares.
    case: Case,
    /// For each of its flows, messages a second of the closed loop; `None` where its rate is no share.
    maxima: Vec<Option<f64>>,
}

/// Messages a second: the median over the runs that count of what each moved, in 10^6 a second. Where none counts, over those
/// in doubt: a load that is asked for need not be exact, and its own figures say what became of it.
pub(super) fn median_per_second<'a>(
    runs: impl Iterator<Item = &'a Run>,
    mmsg_per_s: impl Fn(&Run) -> Option<f64>,
) -> Option<f64> {
    let (mut counted, mut doubtful) = (Vec::new(), Vec::new());
    for run in runs {
        let standing = standing::of_run(run);
        match mmsg_per_s(run).filter(|_| standing.has_figures()) {
            Some(rate) if standing == Standing::Counts => counted.push(rate),
            rate => doubtful.extend(rate),
        }
    }
    let rate = median(&counted).or_else(|| median(&doubtful))?;
    Some(rate * 1e6)
}

impl Rated {
    /// The case with its shares known from the cases of the sweep that have run.
    ///
    /// # Errors
    /// The closed loop came to no result.
    fn new(case: &Case, cases: &[Case], measured: &ResultFile) -> Result<Rated, RunFailure> {
        let Some(closed) = case.closed_loop() else {
            return Ok(Rated { case: case.clone(), maxima: vec![None; case.flows.len()] });
        };
        let id = cases
            .iter()
            .find(|it| it.settings == closed.settings && it.flows == closed.flows)
            .map(|it| &it.id);
        let runs = (measured.cases.iter()).filter(|it| Some(&it.id) == id).flat_map(|it| &it.runs);
        let maximum =
            |flow: &Flow| median_per_second(runs.clone(), |run| run.flow(&flow.name)?.mmsg_per_s());
        let rated = case.with_maxima(maximum).ok_or_else(|| {
            let closed_id = id.map_or("the closed loop", |id| id);
            let text = format!(
                "its rate is a share of the closed loop's rate, but {closed_id} has no result"
            );
            let hint = "fix that case first, or give --rate in messages a second";
            RunFailure::new(text, Some(hint.to_owned()))
        })?;
        Ok(Rated {
            maxima: case
                .flows
                .iter()
                .map(|flow| flow.rate.share().and_then(|_| maximum(flow)))
                .collect(),
            case: rated,
        })
    }

    /// Tells a run's flows what their shares are of.
    fn add_maxima(&self, run: &mut Run) {
        let directions = self.case.flows.iter().zip(&self.maxima).flat_map(|(flow, maximum)| {
            std::iter::repeat_n(maximum, if flow.bidirectional { 2 } else { 1 })
        });
        for (flow, maximum) in run.flows.iter_mut().zip(directions) {
            if let Some(load) = &mut flow.load {
                load.maximum_per_second = *maximum;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use results::model::{Doubt, DoubtKind, FlowResult};

    use super::*;

    #[test]
    fn runs_in_doubt_are_asked_where_none_counts_and_failed_ones_never() {
        let numbered = |number, complete, kind: Option<DoubtKind>| {
            let mut flow = FlowResult::default();
            flow.window.doubts.extend(kind.map(|kind| Doubt { kind, message: String::new() }));
            Run { run: number, complete, flows: vec![flow], ..Run::default() }
        };
        let missed = Some(DoubtKind::EdgeMissed);
        let runs = [
            numbered(1, true, None),
            numbered(3, true, None),
            numbered(9, true, missed),
            numbered(7, false, None),
        ];
        let median_of =
            |some: &[Run]| median_per_second(some.iter(), |run: &Run| Some(f64::from(run.run)));
        assert_eq!(median_of(&runs), Some(2e6));
        assert_eq!(median_of(&runs[2..]), Some(9e6));
        assert_eq!(median_of(&runs[3..]), None);
    }
}
