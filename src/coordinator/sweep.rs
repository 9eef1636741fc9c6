//! The coordinator: it runs a sweep, case by case and run by run, against a server on another host or in
//! this process, and puts the result together. What fails is recorded, and the sweep goes on where it can.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::machine::host;
use crate::plan::{Case, Sweep};
use report::results::model::{
    CaseConfig, CaseResult, Host, PerftestPair, ResultFile, Run, SCHEMA_VERSION, WorkerResult,
};

use super::admission;
use crate::coordinator::against::pairs::{self, Against};
use crate::coordinator::run::{PathFacts, RunOutcome, Stage, run};
use crate::coordinator::session::{LocalServer, Session, dial};
use crate::coordinator::setup_run::run_setup;
use crate::node::connect_cm;
use crate::node::cores::crowding;
use crate::node::outcome;
use crate::node::station::{Station, StationError, StationOptions};
use crate::protocol::error::ConnectError;
use crate::protocol::failure::RunFailure;
use crate::protocol::feature::{Feature, FeatureMissing};
use crate::protocol::handshake::PeerInfo;
use crate::protocol::message::Message;
use crate::protocol::token::Token;

/// Where the other end is.
#[derive(Clone, Debug)]
pub enum Target {
    /// A server at this host and port.
    Remote(String, u16),
    /// In this process.
    Local,
}

/// Which two ends meet.
#[derive(Clone, Debug)]
pub struct Ends {
    /// The other.
    pub target: Target,
    /// This end's library, device and cores; in one process also the other's.
    pub station: StationOptions,
    /// The token shared with the server.
    pub token: Option<Token>,
}

/// How to run a sweep.
pub struct SweepOptions {
    /// What to run.
    pub sweep: Sweep,
    /// Who runs it.
    pub ends: Ends,
    /// The program's arguments, secrets left out.
    pub command_line: Vec<String>,
    /// Run each case with perftest as well.
    pub against: Option<Against>,
}

/// What a sweep tells while it runs. Calls come from one thread.
pub trait Observer {
    /// Case number `index` (from 0) of `total` starts; `run` counts from 1 to `runs`.
    fn run_started(&mut self, index: usize, total: usize, case: &Case, run: u32, runs: u32);
    /// Warm-up, measure, drain; with the time it is expected to take, where that is known.
    fn phase(&mut self, name: &str, expected: Option<Duration>);
    /// The rate now, `elapsed` into the phase.
    fn sample(&mut self, elapsed: Duration, gbit_per_s: f64, mmsg_per_s: f64);
    /// Time passes in a phase without a rate.
    fn waiting(&mut self, elapsed: Duration);
    /// A run is over; `result` has it and all before it.
    fn run_finished(&mut self, config: &CaseConfig, run: &Run, result: &ResultFile);
    /// A pair of runs is over, of rocebench and of perftest; `result` has it and all before it.
    fn pair_finished(&mut self, case: &Case, pair: &PerftestPair, result: &ResultFile);
    /// Something that a person should know.
    fn note(&mut self, text: &str);
}

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

/// A sweep that could not begin.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// No connection to the server.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// No device here.
    #[error(transparent)]
    Station(#[from] StationError),
    /// The other end could not be started in this process.
    #[error("cannot start the other end in this process: {0}")]
    Local(#[source] std::io::Error),
    /// The link broke before the first run.
    #[error(transparent)]
    Link(#[from] crate::protocol::error::LinkError),
    /// An end cannot do what the sweep asks for.
    #[error(transparent)]
    Refused(RunFailure),
    /// The server is too old, or was not started for it.
    #[error(transparent)]
    FeatureMissing(#[from] FeatureMissing),
}

impl SweepError {
    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        match self {
            SweepError::Connect(error) => error.hint(),
            SweepError::Station(error) => error.hint(),
            SweepError::Link(error) => error.hint(),
            SweepError::Local(_) => None,
            SweepError::Refused(failure) => failure.hint.clone(),
            SweepError::FeatureMissing(missing) => Some(missing.hint()),
        }
    }

    /// Whether the request is at fault.
    pub fn is_bad_input(&self) -> bool {
        match self {
            SweepError::Connect(error) => error.bad_input(),
            SweepError::Station(error) => error.is_bad_input(),
            SweepError::Link(error) => error.bad_input(),
            SweepError::Local(_) => false,
            SweepError::Refused(failure) => failure.bad_input,
            SweepError::FeatureMissing(_) => true,
        }
    }

    /// Whether the user stopped it.
    pub fn is_interrupt(&self) -> bool {
        match self {
            SweepError::Connect(error) => error.is_interrupt(),
            SweepError::Refused(failure) => failure.interrupted,
            _ => false,
        }
    }
}

/// Runs a sweep.
///
/// # Errors
/// Why it could not begin. What fails later is in the outcome.
pub fn run_sweep(
    options: &SweepOptions,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<SweepOutcome, SweepError> {
    let mut own_host = host::read();
    let facts = serde_json::to_value(&own_host).unwrap_or_default();
    // Without a device, or without what is compared with, there is no need to bother the peer.
    connect_cm::check_faults(options)?;
    let station = Station::open(options.ends.station.clone(), None)?;
    connect_cm::check_sweep(options, &station)?;
    let version = pairs::prepare(options, &station)?;
    drop(station);
    let local = match options.ends.target {
        Target::Local => Some(LocalServer::start(&options.ends, &facts)?),
        Target::Remote(..) => None,
    };
    let first = dial(&options.ends, local.as_ref(), &facts, stop, false)?;
    demand_features(options, &first)?;
    pairs::ask_server(options, &first, stop)?;
    admission::check_sweep(&options.sweep, &first, stop).map_err(SweepError::Refused)?;
    own_host.device = Some(outcome::device(first.station.port()));
    let outcome = SweepOutcome {
        result: ResultFile {
            schema_version: SCHEMA_VERSION,
            tool: host::tool(),
            started_at: report::results::utc_now(),
            command_line: options.command_line.clone(),
            host: own_host,
            peer: local.is_none().then(|| peer_host(&first.peer)),
            cases: Vec::new(),
        },
        failed_runs: 0,
        only_bad_input: true,
        interrupted: false,
        lost: None,
    };
    if let Some(text) = first.station.remark() {
        observer.note(&text);
    }
    let mut sweeper = Sweeper {
        options,
        local,
        facts,
        stop,
        observer,
        outcome,
        session: Some(first),
        said_of_peer: BTreeSet::new(),
    };
    match sweeper.all_cases(version.as_deref()) {
        Ok(()) => {}
        Err(Halt::Interrupted) => sweeper.outcome.interrupted = true,
        Err(Halt::Lost(error)) => sweeper.outcome.lost = Some(error),
        Err(Halt::Broken(error)) => return Err(error),
    }
    if let Some(session) = sweeper.session {
        // The server ends the session by itself if this does not arrive.
        let _ = session.link.send(&Message::Goodbye);
    }
    Ok(sweeper.outcome)
}

/// Asks no more of the server than it can do.
fn demand_features(options: &SweepOptions, session: &Session) -> Result<(), FeatureMissing> {
    options
        .sweep
        .cases
        .iter()
        .flat_map(Feature::needed_by)
        .try_for_each(|feature| feature.demand(session.link.peer(), &session.peer.features))
}

/// Why a sweep ends before its last run.
pub(crate) enum Halt {
    /// The user stopped it.
    Interrupted,
    /// The peer cannot be reached again.
    Lost(ConnectError),
    /// This end cannot go on.
    Broken(SweepError),
}

/// A sweep on its way.
pub(crate) struct Sweeper<'a> {
    pub(crate) options: &'a SweepOptions,
    local: Option<LocalServer>,
    facts: Value,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) observer: &'a mut dyn Observer,
    pub(crate) outcome: SweepOutcome,
    /// `None` after a run without a report: both ends begin afresh, no half of a run is left over.
    pub(crate) session: Option<Session>,
    /// What was noted about the server's cores.
    said_of_peer: BTreeSet<String>,
}

impl Sweeper<'_> {
    fn all_cases(&mut self, perftest_version: Option<&str>) -> Result<(), Halt> {
        let sweep = &self.options.sweep;
        for (index, case) in sweep.cases.iter().enumerate() {
            if let Some(against) = &self.options.against {
                pairs::run_case(self, index, case, against, perftest_version)?;
                continue;
            }
            for number in 1..=sweep.runs {
                self.run(index, case, number, sweep.runs)?;
            }
        }
        Ok(())
    }

    /// The session, which is to be put back where it is still good.
    pub(crate) fn take_session(&mut self) -> Result<Session, Halt> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Halt::Interrupted);
        }
        let again = || {
            dial(
                &self.options.ends,
                self.local.as_ref(),
                &self.facts,
                self.stop,
                true,
            )
        };
        match self.session.take().map_or_else(again, Ok) {
            Ok(session) => Ok(session),
            Err(error) if error.is_interrupt() => Err(Halt::Interrupted),
            Err(SweepError::Connect(error)) => Err(Halt::Lost(error)),
            Err(error) => Err(Halt::Broken(error)),
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
            station: &session.station,
            stop: self.stop,
        };
        let done = match case.setup {
            Some(_) => run_setup(&stage, case, number, self.observer),
            None => run(&stage, case, number, self.observer),
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
        if let Some(text) = crowding(case.poll, &workers)
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
            config: outcome::config(case, session.station.port().context.name()),
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
    entry.config.mtu = entry.config.mtu.or(done.path.map(|path| path.mtu_bytes));
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

fn peer_host(peer: &PeerInfo) -> Host {
    // A server that says something else about itself still runs cases.
    serde_json::from_value(peer.host.clone()).unwrap_or_else(|_| Host {
        hostname: peer.address.ip().to_string(),
        ..Host::default()
    })
}
