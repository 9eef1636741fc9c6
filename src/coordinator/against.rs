//! `--against perftest`: runs a case with rocebench and with perftest in turns (A B, B A, B A, A B …), until a planned look
//! finds their ratio clear, or there are enough pairs.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use experiment::{Bench, InTurns, Measured, Question};
use node::perftest::{PerftestLaunch, equipped};
use node::resources::{NodeResources, Route};
use perftest::{Child, Ended, Figure, Job, MIN_MESSAGES, Needed, Program, figure, measuring, note};
use plan::Case;
use protocol::error::LinkError;
use protocol::failure::RunFailure;
use protocol::link::Link;
use protocol::message::{Message, PerftestEnd, PerftestMessage, SessionMessage};
use report::observe::standing::{self, Standing};
use results::Metric;
use results::model::{CaseComparison, Run};
use results::text::seconds_text;
use settings::Stop;

use super::assemble::PathFacts;
use super::interface::{Against, Observer, SweepOptions};
use super::nodes::Node;
use super::sweeper::{StopReason, Sweeper};

/// Bounds of the messages of a latency run, which perftest keeps a time of each.
const LATENCY_MESSAGES: std::ops::RangeInclusive<u64> = 1_000..=1_000_000;

/// Messages up to this size are compared by their rate, larger ones by their bandwidth: what the harness costs
/// is a cost of each message.
const SMALL_BYTES: u32 = 8 << 10;

/// How often a waiting end looks around.
const TICK: Duration = Duration::from_millis(10);

/// How often progress is shown.
const SHOW_EVERY: Duration = Duration::from_millis(100);

/// Longest that the server may take to look for programs, or to kill one.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// A client without its server is given this time to say what it saw.
const LAST_WORDS: Duration = Duration::from_secs(1);

fn needed(options: &SweepOptions) -> Vec<Needed> {
    let mut needed = Vec::new();
    for of_case in options.sweep.cases.iter().map(Needed::for_case) {
        if !needed.contains(&of_case) {
            needed.push(of_case);
        }
    }
    needed
}

/// Looks whether this end can run perftest, where that is asked for; perftest's version.
///
/// # Errors
/// What is missing.
pub(super) fn prepare(
    options: &SweepOptions,
    resources: &NodeResources,
) -> Result<Option<String>, RunFailure> {
    match &options.against {
        Some(_) => equipped(resources, &needed(options)),
        None => Ok(None),
    }
}

/// The same of the server.
///
/// # Errors
/// What is missing there, or that it must not.
pub(super) fn ask_server(
    options: &SweepOptions,
    nodes: &[Node],
    stop: &AtomicBool,
) -> Result<(), RunFailure> {
    let remote = nodes.iter().find(|node| !node.is_in_process);
    match (&options.against, remote) {
        (Some(_), Some(server)) => check_programs(&server.link, needed(options), stop),
        _ => Ok(()),
    }
}

/// Runs a case in pairs. What they came to is in the sweep's result, after every pair.
pub(super) fn run_case(
    sweeper: &mut Sweeper<'_>,
    index: usize,
    case: &Case,
    against: &Against,
    version: Option<&str>,
) -> Result<(), StopReason> {
    let program = Program::for_case(case);
    let metric = metric(case, program);
    let perftest = version.map_or_else(|| "perftest".to_owned(), |it| format!("perftest {it}"));
    let comparison = CaseComparison {
        id: case.id.clone(),
        sides: [perftest, "rocebench".to_owned()],
        base_command: vec![program.name().to_owned()],
        ..CaseComparison::default()
    };
    let stop = experiment::Stop { most: against.max_pairs, budget: None };
    let questions = vec![Question::new(metric)];
    let mut in_turns = InTurns::new([comparison], questions, against.pairs, stop);
    let mut pairing = Pairing::new(sweeper, index, case, against);
    in_turns.run(&mut pairing)
}

/// Number of rocebench's side; perftest's is the base.
const ROCEBENCH: usize = 1;

/// By which figure a case is compared with perftest that `program` runs too.
fn metric(case: &Case, program: Program) -> Metric {
    match (program.is_latency(), case.size_bytes) {
        // Of the messages of a run: perftest has medians of its own.
        (true, _) => Metric::P50Ns,
        (false, ..=SMALL_BYTES) => Metric::MmsgPerS,
        (false, _) => Metric::GbitPerS,
    }
}

/// rocebench's figure: of both directions together, of what was sent, as perftest prints it.
fn of_run(metric: Metric, run: &Run) -> Option<f64> {
    if metric == Metric::P50Ns {
        return Some(run.flows.first()?.latency_ns.as_ref()?.p50? as f64);
    }
    let totals = run.flows.iter().map(|flow| &flow.totals);
    let rate: Option<f64> = match metric {
        Metric::GbitPerS => totals.map(|totals| totals.gbit_per_s).sum(),
        _ => totals.map(|totals| totals.mmsg_per_s).sum(),
    };
    rate.filter(|rate| *rate > 0.0)
}

/// The same figure of perftest's output.
fn of_figure(metric: Metric, figure: Figure) -> Option<f64> {
    match (metric, figure) {
        (Metric::GbitPerS, Figure::Bandwidth { gbit_per_s, .. }) => Some(gbit_per_s),
        (Metric::MmsgPerS, Figure::Bandwidth { mmsg_per_s, .. }) => Some(mmsg_per_s),
        (Metric::P50Ns, Figure::Latency { median_ns }) => Some(median_ns),
        _ => None,
    }
}

/// A case whose runs take turns with perftest's.
struct Pairing<'a, 'b> {
    sweeper: &'a mut Sweeper<'b>,
    index: usize,
    case: &'a Case,
    against: &'a Against,
    metric: Metric,
    /// perftest's arguments, without the address and port at which its ends meet.
    arguments: Vec<String>,
    /// The path in use, from the first run that connected.
    path: Option<PathFacts>,
    /// Of the first whole run: its messages and its length in seconds.
    whole: Option<(u64, f64)>,
    /// The round whose run of rocebench came to nothing.
    failed_round: u32,
}

impl Bench for Pairing<'_, '_> {
    type Error = StopReason;

    fn measure(&mut self, side: usize, round: u32) -> Result<Measured, StopReason> {
        if side == ROCEBENCH { self.own(round) } else { self.theirs(round) }
    }

    fn words(&self, error: &StopReason) -> String {
        error.words().to_owned()
    }

    /// perftest gets the path that the ends agreed on, which rocebench's run shows.
    fn leader(&self, _: u32) -> Option<usize> {
        self.path.is_none().then_some(ROCEBENCH)
    }

    fn remark(&self, _: usize) -> Option<String> {
        note(self.case)
    }

    fn publish(&mut self, _: usize, comparison: &CaseComparison) {
        let mut published = comparison.clone();
        published.base_command.extend(self.arguments.iter().cloned());
        self.sweeper.publish(self.case, published);
    }
}

impl<'a, 'b> Pairing<'a, 'b> {
    fn new(
        sweeper: &'a mut Sweeper<'b>,
        index: usize,
        case: &'a Case,
        against: &'a Against,
    ) -> Self {
        Pairing {
            sweeper,
            index,
            case,
            against,
            metric: metric(case, Program::for_case(case)),
            arguments: Vec::new(),
            path: None,
            whole: None,
            failed_round: 0,
        }
    }

    fn own(&mut self, round: u32) -> Result<Measured, StopReason> {
        let runs = self.against.pairs.max(round);
        let path = self.sweeper.run(self.index, self.case, round, runs)?;
        self.path = self.path.or(path);
        let run = self.sweeper.outcome.result.cases.last().and_then(|case| case.runs.last());
        let mut measured = Measured::default();
        let Some(run) = run else {
            return Ok(measured);
        };
        let standing = standing::of_run(run);
        if let Standing::Doubtful(_) = standing {
            measured.doubt = Some(format!("rocebench's run is in doubt: {}", standing.words()));
        }
        if standing.has_figures() {
            measured.figures.extend(of_run(self.metric, run).map(Some));
            if let Some(flow) = run.flows.first() {
                let whole = (flow.totals.messages, flow.window.seconds);
                self.whole.get_or_insert(whole);
            }
        }
        if measured.figures.is_empty() {
            self.failed_round = round;
            measured.failure = Some(match standing {
                Standing::Counts | Standing::Doubtful(_) => {
                    "rocebench's run has no figure".to_owned()
                }
                Standing::Stopped => "interrupted".to_owned(),
                Standing::Bad(reason) => format!("rocebench's run {reason}"),
            });
        }
        Ok(measured)
    }

    fn theirs(&mut self, round: u32) -> Result<Measured, StopReason> {
        let Some(path) = self.path.filter(|_| self.failed_round != round) else {
            return Ok(Measured::default());
        };
        let sweeper = &mut *self.sweeper;
        let mut nodes = sweeper.take_nodes()?;
        let Some(server) = nodes.pop() else {
            return Ok(Measured::default());
        };
        // perftest's client takes the place of this end's node, which may have the device for itself.
        for own in nodes {
            let _ = own.link.send(SessionMessage::Goodbye);
        }
        let options = sweeper.options.ends.resources.clone();
        let network = sweeper.places.network_of_first(options.library);
        let route = server.link.route().map_err(RunFailure::from);
        let resources = route
            .and_then(|it| NodeResources::open(options, Some(Route { network, ..it })))
            .map_err(StopReason::Broken)?;
        let launch = PerftestLaunch::new(&resources, self.case).map_err(|error| {
            StopReason::Broken(RunFailure::new(error.to_string(), Some(error.hint())))
        })?;
        // The embedded device is closed, so that other processes may have it; one of the system's stays open.
        let resources = Some(resources).filter(|it| it.port().embedded.is_none());
        let job = job(self.case, self.against, path, self.whole);
        self.arguments = launch.arguments(&job);
        sweeper.observer.phase("perftest", measuring(self.case));
        let (stop, observer) = (sweeper.stop, &mut *sweeper.observer);
        let done = run_perftest(&server.link, &launch, &job, stop, observer);
        drop(resources);
        drop(launch);
        let lost = matches!(&done, Err(failed) if failed.failure.link_lost);
        if !lost && !stop.load(Relaxed) {
            let own = sweeper.reach_own()?;
            sweeper.nodes = Some(vec![own, server]);
        }
        match done {
            Ok(figure) => Ok(Measured {
                figures: of_figure(self.metric, figure).map(Some).into_iter().collect(),
                ..Measured::default()
            }),
            Err(PerftestFailure { failure, .. }) if failure.interrupted => {
                Err(StopReason::Interrupted)
            }
            Err(PerftestFailure { failure, output }) => {
                Ok(Measured { output, ..Measured::failed(failure.message) })
            }
        }
    }
}

/// perftest's part of a pair on this path; `whole` are messages and seconds of rocebench's first whole run.
fn job(case: &Case, against: &Against, path: PathFacts, whole: Option<(u64, f64)>) -> Job {
    let program = Program::for_case(case);
    let (own_messages, own_seconds) = whole.unwrap_or((0, 0.0));
    let messages = match case.stop() {
        Stop::MessagesPerQp(messages) => Some(messages.max(MIN_MESSAGES)),
        // Only a counted run of it prints a median.
        Stop::DurationNs(_) if program.is_latency() => {
            Some(own_messages.clamp(*LATENCY_MESSAGES.start(), *LATENCY_MESSAGES.end()))
        }
        Stop::DurationNs(_) => None,
    };
    // A counted run may be so much slower than ours.
    let counted = match messages {
        Some(_) => Duration::try_from_secs_f64(own_seconds * 10.0).unwrap_or_default(),
        None => Duration::ZERO,
    };
    let limit = (against.limit + counted).min(perftest::LONGEST_LIMIT);
    Job {
        program,
        case: case.clone(),
        mtu_bytes: path.mtu_bytes,
        outstanding_reads: path.outstanding_reads,
        messages,
        limit_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
    }
}

/// A run of perftest without a figure.
#[derive(Clone, Debug)]
struct PerftestFailure {
    failure: RunFailure,
    /// What perftest printed at both ends.
    output: Option<String>,
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
fn check_programs(link: &Link, needed: Vec<Needed>, stop: &AtomicBool) -> Result<(), RunFailure> {
    server_address(link)?;
    link.send(PerftestMessage::Check { needed })?;
    match link.recv(ANSWER_LIMIT, stop)? {
        Message::Perftest(PerftestMessage::Checked { .. }) => Ok(()),
        other => Err(link.unexpected("perftest_checked", &other).into()),
    }
}

/// Where perftest's client finds its server. Its older generation speaks IPv4 only.
fn server_address(link: &Link) -> Result<String, RunFailure> {
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

/// Runs a job at both ends: the server's first, then the client here, whose figure it is.
///
/// # Errors
/// Why there is no figure. Nothing of perftest is left at either end unless the link was lost; then the server
/// notices by itself.
fn run_perftest(
    link: &Link,
    launch: &PerftestLaunch,
    job: &Job,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Figure, PerftestFailure> {
    let mut ends = Ends { server: None, client: None };
    link.send(PerftestMessage::Start(Box::new(job.clone())))?;
    let driven = drive(link, launch, job, stop, observer, &mut ends);
    if let Err(failure) = &driven
        && failure.link_lost
    {
        return Err(with_output(failure.clone(), &ends));
    }
    link.send(PerftestMessage::Stop { now: driven.is_err() })?;
    let never = AtomicBool::new(false);
    let limit = if driven.is_ok() { job.limit() + ANSWER_LIMIT } else { ANSWER_LIMIT };
    let deadline = Instant::now() + limit;
    while ends.server.is_none() {
        match link.recv(deadline.saturating_duration_since(Instant::now()), &never)? {
            Message::Perftest(PerftestMessage::Ended(end)) => ends.server = Some(*end),
            // It may have begun to listen as it was told to stop.
            Message::Perftest(PerftestMessage::Started { .. }) => {}
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
        Message::Perftest(PerftestMessage::Started { port }) => port,
        Message::Perftest(PerftestMessage::Ended(end)) => {
            let message = format!("{}'s server: {}", job.program, end.status);
            ends.server = Some(*end);
            return Err(RunFailure::new(message, None));
        }
        other => return Err(link.unexpected("perftest_started", &other).into()),
    };
    let command = launch
        .launch(job, port, Some(&server_address(link)?))
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
        if stop.load(Relaxed) {
            return Err(RunFailure::interrupted());
        }
        match link.try_recv()? {
            Some(Message::Perftest(PerftestMessage::Ended(end))) => {
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

#[cfg(test)]
#[path = "against_tests.rs"]
mod tests;
