//! A sweep on its way: its session, its runs one by one, and what it came to so far.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::node::cores::sharing_warning;
use crate::node::outcome;
use crate::plan::Case;
use crate::protocol::error::ConnectError;
use crate::protocol::failure::RunFailure;
use report::results::model::{CaseResult, ResultFile, Run, WorkerResult};

use super::observer::Observer;
use super::options::SweepOptions;
use super::run::{PathFacts, RunOutcome, run};
use super::session::{LocalServer, Session, reach};
use super::setup_run::run_setup;
use super::stage::Stage;

/// What a sweep came to.
pub struct SweepOutcome {
    /// All that was measured.
    pub result: ResultFile,
    /// Runs that failed.
    pub failed_runs: usize,
    /// All failures were of what was asked for, not of the runs.
    pub only_bad_input: bool,
    /// The user stopped the sweep.
    pub interrupted: bool,
    /// The peer could not be reached again, so cases are missing.
    pub lost: Option<ConnectError>,
}

/// Why a sweep ends before its last run.
pub(crate) enum Halt {
    /// The user stopped it.
    Interrupted,
    /// The peer cannot be reached again.
    Lost(ConnectError),
    /// This end cannot go on.
    Broken(RunFailure),
}

/// How long a server that is still clearing up the last session is asked again.
const BUSY_LIMIT: Duration = Duration::from_secs(5);

/// A sweep on its way.
pub(crate) struct Sweeper<'a> {
    pub(crate) options: &'a SweepOptions,
    pub(super) local: Option<LocalServer>,
    pub(super) facts: Value,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) observer: &'a mut dyn Observer,
    pub(crate) outcome: SweepOutcome,
    /// `None` after a run without a report: both ends begin afresh, no half of a run is left over.
    pub(crate) session: Option<Session>,
    /// What was noted about the server's cores.
    pub(super) said_of_peer: BTreeSet<String>,
}

impl Sweeper<'_> {
    /// The session, which is to be put back where it is still good.
    pub(crate) fn take_session(&mut self) -> Result<Session, Halt> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Halt::Interrupted);
        }
        if let Some(session) = self.session.take() {
            return Ok(session);
        }
        let (ends, local) = (&self.options.ends, self.local.as_ref());
        match reach(ends, local, &self.facts, self.stop, BUSY_LIMIT) {
            Ok((link, peer)) => Session::open(ends, link, peer).map_err(Halt::Broken),
            Err(error) if error.is_interrupt() => Err(Halt::Interrupted),
            Err(error) => Err(Halt::Lost(error)),
        }
    }

    /// Does run `number` of a case, and records it; what was agreed between the ends, if they came that far.
    pub(crate) fn run(
        &mut self,
        index: usize,
        case: &Case,
        number: u32,
        runs: u32,
    ) -> Result<Option<PathFacts>, Halt> {
        let session = self.take_session()?;
        let total = self.options.sweep.cases.len();
        self.observer.run_started(index, total, case, number, runs);
        let stage = Stage {
            link: &session.link,
            resources: &session.resources,
            stop: self.stop,
        };
        let done = match case.is_set_up() {
            true => run_setup(&stage, case, number, self.observer),
            false => run(&stage, case, number, self.observer),
        };
        // With the report both ends are done with the run, whatever came of it.
        let goes_on = done.report.is_some();
        let path = done.path;
        self.note_peers_cores(&session, case, &done.run);
        record(&mut self.outcome, &session, case, done, self.observer);
        if goes_on {
            self.session = Some(session);
        }
        Ok(path)
    }
}

impl Sweeper<'_> {
    /// Says once that the server's workers have no cores of their own. On one host this end's workers mostly have the
    /// same company, which was said before the run.
    fn note_peers_cores(&mut self, session: &Session, case: &Case, run: &Run) {
        let is_shared = |worker: &WorkerResult| worker.core_shared_with.is_some_and(|it| it > 0);
        if session.link.is_within_host() && run.forward.workers.iter().any(is_shared) {
            return;
        }
        let reverse = run.reverse.iter().flat_map(|it| &it.workers);
        let received = run.receiver.iter().flat_map(|it| &it.workers);
        let workers: Vec<_> = reverse
            .chain(received)
            .filter_map(|worker| Some((worker.core? as usize, worker.core_shared_with?)))
            .collect();
        if let Some(text) = sharing_warning(case.poll, &workers)
            && self.said_of_peer.insert(text.clone())
        {
            self.observer.note(&format!("at the server: {text}"));
        }
    }
}

/// Adds a run to the result and shows it.
fn record(
    outcome: &mut SweepOutcome,
    session: &Session,
    case: &Case,
    done: RunOutcome,
    observer: &mut dyn Observer,
) {
    if let Some(failure) = &done.failure {
        count(outcome, failure);
    }
    let is_new = outcome
        .result
        .cases
        .last()
        .is_none_or(|last| last.id != case.id);
    if is_new {
        outcome.result.cases.push(CaseResult {
            id: case.id.clone(),
            config: outcome::config(case, session.resources.port().context.name()),
            runs: Vec::new(),
            perftest: None,
        });
    }
    if let (Some(peer), Some(report)) = (&mut outcome.result.peer, &done.report) {
        peer.device.get_or_insert_with(|| report.device.clone());
    }
    let Some(entry) = outcome.result.cases.last_mut() else {
        return;
    };
    let path_mtu = done.path.map(|path| path.mtu_bytes);
    entry.config.path_mtu = entry.config.path_mtu.or(path_mtu);
    if let Some(report) = &done.report {
        entry.config.peer_device = Some(report.device.name.clone());
    }
    entry.runs.push(done.run);
    if let Some(entry) = outcome.result.cases.last()
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
