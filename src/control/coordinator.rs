//! The coordinator: it runs a sweep, case by case and run by run, against a server on another host or in
//! this process, and puts the result together. What fails is recorded, and the sweep goes on where it can.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::plan::{Case, Sweep};
use crate::results::host;
use crate::results::model::{CaseConfig, CaseResult, Host, ResultFile, Run, SCHEMA_VERSION};

use super::error::ConnectError;
use super::failure::RunFailure;
use super::handshake::{PeerInfo, connect};
use super::link::Link;
use super::message::Message;
use super::outcome;
use super::run::{RunOutcome, Stage, run};
use super::server::{Server, ServerOptions};
use super::station::{Route, Station, StationError, StationOptions};
use super::token::Token;

/// How long a server that is still clearing up the last session is asked again.
const BUSY_LIMIT: Duration = Duration::from_secs(5);

/// Where the other end is.
#[derive(Clone, Debug)]
pub enum Target {
    /// A server at this host and port.
    Remote(String, u16),
    /// In this process.
    Local,
}

/// How to run a sweep.
pub struct SweepOptions {
    /// What to run.
    pub sweep: Sweep,
    /// Against whom.
    pub target: Target,
    /// This end's library, device and cores; in one process also the other's.
    pub station: StationOptions,
    /// The token shared with the server.
    pub token: Option<Token>,
    /// The program's arguments, secrets left out.
    pub command_line: Vec<String>,
}

/// What a sweep tells while it runs. Calls come from one thread.
pub trait Observer {
    /// Case number `index` (from 0) of `total` starts; `run` counts from 1 to `runs`.
    fn run_started(&mut self, index: usize, total: usize, case: &Case, run: u32, runs: u32);
    /// Warm-up, measure, drain; with the time it is expected to take, where that is known.
    fn phase(&mut self, name: &str, expected: Option<Duration>);
    /// The rate now, `elapsed` into the phase.
    fn sample(&mut self, elapsed: Duration, gbit_per_s: f64, mmsg_per_s: f64);
    /// A run is over; `result` has it and all before it.
    fn run_finished(&mut self, config: &CaseConfig, run: &Run, result: &ResultFile);
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
    Link(#[from] super::error::LinkError),
}

impl SweepError {
    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        match self {
            SweepError::Connect(error) => error.hint(),
            SweepError::Station(error) => error.hint(),
            SweepError::Link(error) => error.hint(),
            SweepError::Local(_) => None,
        }
    }

    /// Whether the request is at fault.
    pub fn is_bad_input(&self) -> bool {
        match self {
            SweepError::Connect(error) => error.bad_input(),
            SweepError::Station(error) => error.is_bad_input(),
            SweepError::Link(error) => error.bad_input(),
            SweepError::Local(_) => false,
        }
    }

    /// Whether the user stopped it.
    pub fn is_interrupt(&self) -> bool {
        matches!(self, SweepError::Connect(error) if error.is_interrupt())
    }
}

/// The other end in this process.
struct LocalServer {
    port: u16,
    token: Token,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl LocalServer {
    fn start(options: &SweepOptions, facts: &Value) -> Result<LocalServer, SweepError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(SweepError::Local)?;
        let port = listener.local_addr().map_err(SweepError::Local)?.port();
        // Nobody else on this machine gets into a private session.
        let secret = super::token::nonce().map_err(SweepError::Local)?;
        let token =
            Token::new(secret).map_err(|error| SweepError::Local(std::io::Error::other(error)))?;
        let server_options = ServerOptions {
            station: options.station.of_the_other_end(),
            token: Some(token.clone()),
            host: facts.clone(),
            once: false,
        };
        let server = Server::new(
            listener,
            server_options,
            Arc::new(|event| {
                tracing::debug!(?event, "the end in this process");
            }),
        )
        .map_err(SweepError::Local)?;
        let stop = Arc::new(AtomicBool::new(false));
        let for_server = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("server".into())
            .spawn(move || {
                if let Err(error) = server.run(&for_server) {
                    tracing::warn!(%error, "the end in this process stopped listening");
                }
            })
            .map_err(SweepError::Local)?;
        Ok(LocalServer {
            port,
            token,
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A connection with the port for it.
struct Session {
    link: Link,
    peer: PeerInfo,
    station: Station,
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
    // Without a device there is no need to bother the peer.
    Station::open(options.station.clone(), None)?;
    let local = match options.target {
        Target::Local => Some(LocalServer::start(options, &facts)?),
        Target::Remote(..) => None,
    };
    let first = dial(options, local.as_ref(), &facts, stop, false)?;
    let again = || dial(options, local.as_ref(), &facts, stop, true);
    own_host.device = Some(outcome::device(first.station.port()));
    let mut outcome = SweepOutcome {
        result: ResultFile {
            schema_version: SCHEMA_VERSION,
            tool: host::tool(),
            started_at: host::utc_now(),
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
    let ends = if local.is_some() { 2 } else { 1 };
    let crowded = options
        .sweep
        .cases
        .iter()
        .find_map(|case| first.station.crowded(case, ends));
    if let Some(text) = crowded {
        observer.note(&text);
    }
    let mut session = Some(first);
    let total = options.sweep.cases.len();
    'sweep: for (index, case) in options.sweep.cases.iter().enumerate() {
        for number in 1..=options.sweep.runs {
            if stop.load(Ordering::Relaxed) {
                outcome.interrupted = true;
                break 'sweep;
            }
            let current = match session.take().map_or_else(again, Ok) {
                Ok(current) => current,
                Err(error) if error.is_interrupt() => {
                    outcome.interrupted = true;
                    break 'sweep;
                }
                Err(SweepError::Connect(error)) => {
                    outcome.lost = Some(error);
                    break 'sweep;
                }
                Err(error) => return Err(error),
            };
            observer.run_started(index, total, case, number, options.sweep.runs);
            let stage = Stage {
                link: &current.link,
                station: &current.station,
                stop,
            };
            let done = run(&stage, case, number, observer);
            // After a failure both ends begin afresh: no half of a run is left over.
            let goes_on = done.report.is_some() && done.run.complete;
            record(&mut outcome, &current, case, done, observer);
            if goes_on {
                session = Some(current);
            }
        }
    }
    if let Some(session) = session {
        // The server ends the session by itself if this does not arrive.
        let _ = session.link.send(&Message::Goodbye);
    }
    Ok(outcome)
}

/// Opens a session. `patient` waits for a server that is still clearing up the session before.
fn dial(
    options: &SweepOptions,
    local: Option<&LocalServer>,
    facts: &Value,
    stop: &AtomicBool,
    patient: bool,
) -> Result<Session, SweepError> {
    let loopback = Ipv4Addr::LOCALHOST.to_string();
    let (host, port, token) = match (&options.target, local) {
        (Target::Remote(host, port), _) => (host.as_str(), *port, options.token.as_ref()),
        (Target::Local, local) => (
            loopback.as_str(),
            local.map_or(0, |local| local.port),
            local.map(|local| &local.token),
        ),
    };
    let started = Instant::now();
    let (link, peer) = loop {
        match connect(host, port, token, facts, stop) {
            Err(ConnectError::Busy { .. }) if patient && started.elapsed() < BUSY_LIMIT => {
                std::thread::sleep(Duration::from_millis(50));
            }
            other => break other?,
        }
    };
    let route = Route::between(link.local()?.ip(), link.peer().ip());
    let station = Station::open(options.station.clone(), Some(route))?;
    Ok(Session {
        link,
        peer,
        station,
    })
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
    entry.config.mtu = entry.config.mtu.or(done.mtu_bytes);
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
