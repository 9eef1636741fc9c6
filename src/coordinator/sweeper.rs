//! A sweep on its way: its session, its runs one by one, and what it came to so far.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use node::cores::sharing_warning;
use plan::{Case, Sweep};
use protocol::error::ConnectError;
use protocol::failure::RunFailure;
use results::model::{CaseResult, NodeResult, ResultFile, Run};

use super::assemble::{Assembled, PathFacts, config};
use super::maxima::Rated;
use super::nodes::{Node, NodePlaces};
use super::observer::Observer;
use super::options::SweepOptions;
use super::run::{not_run, run};
use super::unconnected::Unconnected;

/// What a sweep came to.
pub struct SweepOutcome {
    pub result: ResultFile,
    pub failed_runs: usize,
    /// All failures were of what was asked for, not of the runs.
    pub only_bad_input: bool,
    /// The user stopped the sweep.
    pub interrupted: bool,
    /// The peer could not be reached again, so cases are missing.
    pub lost: Option<ConnectError>,
}

/// Why a sweep ends before its last run.
pub(crate) enum StopReason {
    Interrupted,
    /// The peer cannot be reached again.
    Lost(ConnectError),
    /// This end cannot go on.
    Broken(RunFailure),
}

impl From<Unconnected> for StopReason {
    fn from(error: Unconnected) -> StopReason {
        match error {
            Unconnected::Unreachable(error) if error.is_interrupt() => StopReason::Interrupted,
            Unconnected::Unreachable(error) => StopReason::Lost(error),
            Unconnected::Failed(failure) if failure.interrupted => StopReason::Interrupted,
            Unconnected::Failed(failure) => StopReason::Broken(failure),
        }
    }
}

/// A sweep on its way.
pub(crate) struct Sweeper<'a> {
    pub(crate) options: &'a SweepOptions,
    /// What is run: that of the options over all rails.
    pub(crate) sweep: &'a Sweep,
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
    pub(super) said_of_peer: BTreeSet<String>,
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
                let mut done = self.run_with(&nodes, &rated.case, number);
                rated.tell(&mut done.run);
                done
            }
            Err(failure) => not_run(&nodes, case, number, failure),
        };
        let goes_on = done.goes_on;
        let path = done.paths.first().copied().flatten();
        record(&mut self.outcome, &nodes, (index, case), done, self.observer);
        self.nodes = Some(nodes).filter(|_| goes_on);
        Ok(path)
    }

    /// Does a trial of a search, which is not recorded as a run of a case.
    pub(crate) fn trial(&mut self, case: &Case, number: u32) -> Result<Run, StopReason> {
        let nodes = self.take_nodes()?;
        let done = self.run_with(&nodes, case, number);
        self.nodes = Some(nodes).filter(|_| done.goes_on);
        Ok(done.run)
    }

    fn run_with(&mut self, nodes: &[Node], case: &Case, number: u32) -> Assembled {
        let done = run(nodes, case, number, self.stop, self.observer);
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
                if self.said_of_peer.insert(text.clone()) {
                    self.observer.note(&text);
                }
            }
        }
    }
}

/// Adds a run of a case, which may have runs before those of others, to the result and shows it.
fn record(
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
            perftest: None,
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
        }
    }
    entry.runs.push(done.run);
    if let Some(entry) = outcome.result.cases.get(index)
        && let Some(run) = entry.runs.last()
    {
        observer.run_finished(&entry.config, run, &outcome.result);
    }
}

fn count(outcome: &mut SweepOutcome, failure: &RunFailure) {
    if failure.interrupted {
        outcome.interrupted = true;
    } else {
        outcome.failed_runs += 1;
        outcome.only_bad_input &= failure.bad_input;
    }
}
