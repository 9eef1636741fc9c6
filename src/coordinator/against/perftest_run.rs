//! The coordinator's half of a run of perftest: the server's end first, then the client here, and the figure that
//! it prints.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use results::text::seconds_text;

use perftest::{Child, Ended, Figure, Job, Program, figure, measuring};

use crate::coordinator::observer::Observer;
use node::perftest_launch::PerftestLaunch;
use protocol::error::LinkError;
use protocol::failure::RunFailure;
use protocol::link::Link;
use protocol::message::{Message, PerftestEnd};

/// How often a waiting end looks around.
const TICK: Duration = Duration::from_millis(10);

/// How often progress is shown.
const SHOW_EVERY: Duration = Duration::from_millis(100);

/// Longest that the server may take to look for programs, or to kill one.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// A client without its server is given this time to say what it saw.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A run of perftest without a figure.
#[derive(Clone, Debug)]
pub(crate) struct PerftestFailure {
    pub(crate) failure: RunFailure,
    /// What both ends printed.
    pub(crate) output: Option<String>,
}

impl From<LinkError> for PerftestFailure {
    fn from(error: LinkError) -> Self {
        PerftestFailure { failure: error.into(), output: None }
    }
}

/// Asks the server whether it can run these programs.
///
/// # Errors
/// It must not, or something is missing there.
pub(crate) fn ask(link: &Link, programs: &[Program], stop: &AtomicBool) -> Result<(), RunFailure> {
    address(link)?;
    link.send(&Message::PerftestCheck { programs: programs.to_vec() })?;
    match link.recv(ANSWER_LIMIT, stop)? {
        Message::PerftestChecked { .. } => Ok(()),
        other => Err(link.unexpected("perftest_checked", &other).into()),
    }
}

/// Where perftest's client finds its server. Its older generation speaks IPv4 only.
fn address(link: &Link) -> Result<String, RunFailure> {
    let address = link.peer().ip().to_canonical();
    if address.is_ipv4() {
        return Ok(address.to_string());
    }
    Err(RunFailure::refused(
        format!("perftest needs IPv4, but the server's address is {address}"),
        "name HOST by its IPv4 address",
    ))
}

/// Both ends of one run.
struct Ends {
    /// How the server's end ended, once it is known.
    server: Option<PerftestEnd>,
    client: Option<Ended>,
}

/// Runs a job at both ends.
///
/// # Errors
/// Why there is no figure. Nothing of perftest is left at either end unless the link was lost; then the server
/// notices by itself.
pub(crate) fn run_perftest(
    link: &Link,
    launch: &PerftestLaunch,
    job: &Job,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Figure, PerftestFailure> {
    let mut ends = Ends { server: None, client: None };
    link.send(&Message::PerftestStart(Box::new(job.clone())))?;
    let driven = drive(link, launch, job, stop, observer, &mut ends);
    if let Err(failure) = &driven
        && failure.link_lost
    {
        return Err(with_output(failure.clone(), &ends));
    }
    link.send(&Message::PerftestStop { now: driven.is_err() })?;
    let never = AtomicBool::new(false);
    let limit = if driven.is_ok() { job.limit() + ANSWER_LIMIT } else { ANSWER_LIMIT };
    let deadline = Instant::now() + limit;
    while ends.server.is_none() {
        match link.recv(deadline.saturating_duration_since(Instant::now()), &never)? {
            Message::PerftestEnded(end) => ends.server = Some(*end),
            // It may have begun to listen as it was told to stop.
            Message::PerftestStarted { .. } => {}
            other => return Err(link.unexpected("perftest_ended", &other).into()),
        }
    }
    driven.and_then(|()| conclude(job, &ends)).map_err(|failure| with_output(failure, &ends))
}

/// Until the client has ended well.
fn drive(
    link: &Link,
    launch: &PerftestLaunch,
    job: &Job,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
    ends: &mut Ends,
) -> Result<(), RunFailure> {
    let port = match link.recv(job.limit() + ANSWER_LIMIT, stop)? {
        Message::PerftestStarted { port } => port,
        Message::PerftestEnded(end) => {
            let message = format!("{}'s server: {}", job.program, end.status);
            ends.server = Some(*end);
            return Err(RunFailure::new(message, None));
        }
        other => return Err(link.unexpected("perftest_started", &other).into()),
    };
    let command = launch
        .launch(job, port, Some(&address(link)?))
        .map_err(|error| RunFailure::new(error.to_string(), Some(error.hint())))?;
    let mut child = Child::start(&command)
        .map_err(|error| RunFailure::new(format!("cannot start {}: {error}", job.program), None))?;
    let waited = wait(link, &mut child, job, stop, observer, ends);
    let client = child.finish();
    let status = format!("{}: {}", job.program, client.status);
    let success = client.success;
    ends.client = Some(client);
    waited?;
    if success {
        return Ok(());
    }
    // Its server may wait for ever: it is not to.
    Err(RunFailure::new(status, None))
}

fn wait(
    link: &Link,
    child: &mut Child,
    job: &Job,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
    ends: &mut Ends,
) -> Result<(), RunFailure> {
    let started = Instant::now();
    let mut shown = Duration::ZERO;
    let limit = measuring(&job.case).unwrap_or_default() + job.limit();
    let mut deadline = started + limit;
    while !child.has_ended() {
        if stop.load(Ordering::Relaxed) {
            return Err(RunFailure::interrupted());
        }
        match link.try_recv()? {
            Some(Message::PerftestEnded(end)) => {
                if !end.success {
                    deadline = deadline.min(Instant::now() + LAST_WORDS);
                }
                ends.server = Some(*end);
            }
            Some(other) => return Err(link.unexpected("perftest_ended", &other).into()),
            None => {}
        }
        if Instant::now() > deadline {
            let message = match &ends.server {
                Some(end) if !end.success => {
                    format!("{}'s server ended early: {}", job.program, end.status)
                }
                _ => format!(
                    "{} did not end within {}",
                    job.program,
                    seconds_text(limit.as_secs_f64())
                ),
            };
            return Err(RunFailure::new(message, None));
        }
        let elapsed = started.elapsed();
        if elapsed - shown >= SHOW_EVERY {
            shown = elapsed;
            observer.waiting(elapsed);
        }
        std::thread::sleep(TICK);
    }
    Ok(())
}

fn conclude(job: &Job, ends: &Ends) -> Result<Figure, RunFailure> {
    let Some(client) = &ends.client else {
        return Err(RunFailure::new(format!("{} was not run", job.program), None));
    };
    let figure = figure(job.program, job.case.size_bytes, &client.stdout)
        .map_err(|error| RunFailure::new(format!("{}: {error}", job.program), None))?;
    match ends.server.as_ref().filter(|end| !end.success) {
        Some(server) => {
            let message = format!("{}'s server: {}", job.program, server.status);
            Err(RunFailure::new(message, None))
        }
        None => Ok(figure),
    }
}

fn with_output(failure: RunFailure, ends: &Ends) -> PerftestFailure {
    let mut output = String::new();
    if let Some(client) = &ends.client {
        output += &client.report("client");
    }
    if let Some(server) = &ends.server {
        output += &server.output;
    }
    PerftestFailure { failure, output: (!output.is_empty()).then_some(output) }
}
