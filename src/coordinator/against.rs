//! `--against perftest`: runs a case with rocebench and with perftest in turns (A B, B A, B A, A B …), until a planned look
//! finds their ratio clear, or there are enough pairs.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use node::perftest::{PerftestLaunch, equipped};
use node::resources::{NodeResources, Route};
use perftest::{Child, Ended, Figure, Job, MIN_MESSAGES, Program, figure, measuring, note};
use plan::Case;
use protocol::error::LinkError;
use protocol::failure::RunFailure;
use protocol::link::Link;
use protocol::message::{Message, PerftestEnd, PerftestMessage, SessionMessage};
use report::observe;
use report::observe::standing::{self, Standing};
use results::model::{PerftestComparison, PerftestPair, Run};
use results::text::seconds_text;
use settings::Stop;
use statistics::{Turn, Verdict};

use super::assemble::PathFacts;
use super::beside::{interim_result, is_new_first, verdict_note};
use super::interface::{Against, Observer, SweepOptions};
use super::nodes::Node;
use super::sweeper::{StopReason, Sweeper};

/// After so many failed pairs in a row there are no more of the case.
const MOST_FAILURES: u32 = 3;

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

const UNCLEAR: &str = "unclear";

/// Names rocebench in a pair.
const OWN: &str = "rocebench";

fn programs(options: &SweepOptions) -> Vec<Program> {
    let mut programs = Vec::new();
    for program in options.sweep.cases.iter().map(Program::for_case) {
        if !programs.contains(&program) {
            programs.push(program);
        }
    }
    programs
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
        Some(_) => equipped(resources, &programs(options)),
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
        (Some(_), Some(server)) => check_programs(&server.link, &programs(options), stop),
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
    let mut pairing = Pairing::new(index, case, against, version);
    let mut failures_in_a_row = 0;
    for number in 1..=against.max_pairs {
        let mut pair = pairing.next(number);
        let done = pairing.pair(sweeper, &mut pair);
        failures_in_a_row = match pair.failure {
            Some(_) => failures_in_a_row + 1,
            None => 0,
        };
        let is_over = done.is_err() || failures_in_a_row == MOST_FAILURES;
        pairing.add(pair, is_over || number == against.max_pairs);
        pairing.publish(sweeper);
        done?;
        if is_over || pairing.is_settled() {
            break;
        }
    }
    Ok(())
}

/// A case and what its pairs came to so far.
struct Pairing<'a> {
    index: usize,
    case: &'a Case,
    against: &'a Against,
    program: Program,
    metric: Metric,
    comparison: PerftestComparison,
    /// The path in use, from the first run that connected.
    path: Option<PathFacts>,
    /// Of the first whole run: its messages and its length in seconds.
    whole: Option<(u64, f64)>,
}

impl<'a> Pairing<'a> {
    fn new(index: usize, case: &'a Case, against: &'a Against, version: Option<&str>) -> Self {
        let program = Program::for_case(case);
        let metric = Metric::new(case, program);
        Pairing {
            index,
            case,
            against,
            program,
            metric,
            comparison: PerftestComparison {
                program: program.name().to_owned(),
                version: version.map(str::to_owned),
                metric: metric.name().to_owned(),
                margin: Some(metric.margin()),
                verdict: UNCLEAR.to_owned(),
                ..PerftestComparison::default()
            },
            path: None,
            whole: None,
        }
    }

    /// Runs the next pair. Half of the pairs that count begin with each program, also after failures. perftest gets the
    /// path that the ends agreed on, which rocebench's run shows.
    fn next(&self, number: u32) -> PerftestPair {
        let own_first = self.path.is_none() || is_new_first(&counting(&self.comparison), number);
        PerftestPair {
            run: number,
            first: if own_first { OWN } else { "perftest" }.to_owned(),
            ..PerftestPair::default()
        }
    }

    /// One run of each. What failed is in the pair.
    fn pair(
        &mut self,
        sweeper: &mut Sweeper<'_>,
        pair: &mut PerftestPair,
    ) -> Result<(), StopReason> {
        let done = if pair.first == OWN {
            self.own(sweeper, pair).and_then(|()| self.theirs(sweeper, pair))
        } else {
            self.theirs(sweeper, pair).and_then(|()| self.own(sweeper, pair))
        };
        if let Err(StopReason::Interrupted) = &done {
            pair.failure.get_or_insert_with(|| "interrupted".into());
        } else if done.is_err() {
            pair.failure.get_or_insert_with(|| "the sweep ended".into());
        }
        done
    }

    fn own(
        &mut self,
        sweeper: &mut Sweeper<'_>,
        pair: &mut PerftestPair,
    ) -> Result<(), StopReason> {
        let number = pair.run;
        let runs = self.against.pairs.max(number);
        let path = sweeper.run(self.index, self.case, number, runs)?;
        self.path = self.path.or(path);
        let run = sweeper.outcome.result.cases.last();
        let Some(run) = run.and_then(|case| case.runs.last()) else {
            return Ok(());
        };
        let standing = standing::of_run(run);
        if let Standing::Doubtful(_) = standing {
            pair.doubt = Some(standing.words().to_owned());
        }
        if standing.has_figures() {
            pair.rocebench = self.metric.of_run(run);
            if let Some(flow) = run.flows.first() {
                let whole = (flow.totals.messages, flow.window.seconds);
                self.whole.get_or_insert(whole);
            }
        }
        if pair.rocebench.is_none() {
            let why = match standing {
                Standing::Counts | Standing::Doubtful(_) => {
                    "rocebench's run has no figure".to_owned()
                }
                Standing::Stopped => "interrupted".to_owned(),
                Standing::Bad(reason) => format!("rocebench's run {reason}"),
            };
            pair.failure.get_or_insert(why);
        }
        Ok(())
    }

    fn theirs(
        &mut self,
        sweeper: &mut Sweeper<'_>,
        pair: &mut PerftestPair,
    ) -> Result<(), StopReason> {
        let Some(path) = self.path.filter(|_| pair.failure.is_none()) else {
            return Ok(());
        };
        let mut nodes = sweeper.take_nodes()?;
        let Some(server) = nodes.pop() else {
            return Ok(());
        };
        // perftest's client takes the place of this end's node, which may have the device for itself.
        for own in nodes {
            let _ = own.link.send(SessionMessage::Goodbye);
        }
        let job = self.job(path);
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
        self.comparison.arguments = launch.arguments(&job);
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
            Ok(figure) => pair.perftest = self.metric.of_figure(figure),
            Err(PerftestFailure { failure, output }) => {
                pair.failure = Some(failure.message);
                pair.output = output;
                if failure.interrupted {
                    return Err(StopReason::Interrupted);
                }
            }
        }
        Ok(())
    }

    fn job(&self, path: PathFacts) -> Job {
        let (own_messages, own_seconds) = self.whole.unwrap_or((0, 0.0));
        let messages = match self.case.stop() {
            Stop::MessagesPerQp(messages) => Some(messages.max(MIN_MESSAGES)),
            // Only a counted run of it prints a median.
            Stop::DurationNs(_) if self.program.is_latency() => {
                Some(own_messages.clamp(*LATENCY_MESSAGES.start(), *LATENCY_MESSAGES.end()))
            }
            Stop::DurationNs(_) => None,
        };
        // A counted run may be so much slower than ours.
        let counted = match messages {
            Some(_) => Duration::try_from_secs_f64(own_seconds * 10.0).unwrap_or_default(),
            None => Duration::ZERO,
        };
        let limit = (self.against.limit + counted).min(perftest::LONGEST_LIMIT);
        Job {
            program: self.program,
            case: self.case.clone(),
            mtu_bytes: path.mtu_bytes,
            outstanding_reads: path.outstanding_reads,
            messages,
            limit_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// More pairs would change nothing, or are not asked for.
    fn is_settled(&self) -> bool {
        let enough = counting(&self.comparison).len() >= self.against.pairs as usize;
        enough && self.comparison.verdict != UNCLEAR
    }

    fn add(&mut self, pair: PerftestPair, is_last: bool) {
        let comparison = &mut self.comparison;
        comparison.pairs.push(pair);
        let turns = counting(comparison);
        let planned = (self.against.pairs, self.against.max_pairs);
        let metric = (self.metric.margin(), self.metric.higher_is_better());
        let result = interim_result(&turns, planned, metric, is_last);
        comparison.rocebench_median = result.estimate.map(|it| it.new_median);
        comparison.perftest_median = result.estimate.map(|it| it.base_median);
        comparison.ratio = result.estimate.map(|it| it.ratio);
        (comparison.ratio_low, comparison.ratio_high) = result.interval.unzip();
        let word = match result.verdict {
            Verdict::Better => "faster",
            Verdict::Equal => "equal",
            Verdict::Worse => "slower",
            Verdict::Unclear => UNCLEAR,
        };
        let mut notes: Vec<String> = note(self.case).into_iter().collect();
        let count = comparison.pairs.len();
        let in_doubt =
            comparison.pairs.iter().filter(|it| it.failure.is_none() && it.doubt.is_some()).count();
        let why = "do not count, since rocebench's run is in doubt";
        for (left_out, what) in [(count - turns.len() - in_doubt, "failed"), (in_doubt, why)] {
            if left_out > 0 {
                notes.push(format!("{left_out} of {count} pairs {what}"));
            }
        }
        notes.extend(verdict_note(turns.len(), "pairs", is_last, result.verdict));
        comparison.note = (!notes.is_empty()).then(|| notes.join("; "));
        self.comparison.verdict = word.to_owned();
    }

    fn publish(&self, sweeper: &mut Sweeper<'_>) {
        let result = &mut sweeper.outcome.result;
        if let Some(entry) = result.cases.last_mut().filter(|it| it.id == self.case.id) {
            entry.perftest = Some(self.comparison.clone());
        }
        if let Some(pair) = self.comparison.pairs.last() {
            sweeper.observer.pair_finished(self.case, pair, &sweeper.outcome.result);
        }
    }
}

fn counting(comparison: &PerftestComparison) -> Vec<Turn> {
    comparison
        .pairs
        .iter()
        .filter_map(|pair| {
            let (new, base) = pair.counted()?;
            Some(Turn { new_first: pair.first == OWN, base, new })
        })
        .collect()
}

/// By which figure a case is compared with perftest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Metric {
    Bandwidth,
    Rate,
    Latency,
}

impl Metric {
    /// Of a case that `program` runs too.
    fn new(case: &Case, program: Program) -> Metric {
        match (program.is_latency(), case.size_bytes) {
            (true, _) => Metric::Latency,
            (false, ..=SMALL_BYTES) => Metric::Rate,
            (false, _) => Metric::Bandwidth,
        }
    }

    /// The same figure where results are compared with results.
    fn of_results(self) -> observe::Metric {
        match self {
            Metric::Bandwidth => observe::Metric::GbitPerS,
            Metric::Rate => observe::Metric::MmsgPerS,
            Metric::Latency => observe::Metric::P50Ns,
        }
    }

    /// As a result file names it.
    fn name(self) -> &'static str {
        match self {
            // Not of all messages: perftest has medians of its own.
            Metric::Latency => "latency_ns",
            other => other.of_results().name(),
        }
    }

    /// How much of a difference does not matter.
    fn margin(self) -> f64 {
        self.of_results().default_margin()
    }

    fn higher_is_better(self) -> bool {
        self.of_results().higher_is_better()
    }

    /// rocebench's: of both directions together, of what was sent, as perftest prints it.
    fn of_run(self, run: &Run) -> Option<f64> {
        if self == Metric::Latency {
            return Some(run.flows.first()?.latency_ns.as_ref()?.p50? as f64);
        }
        let totals = run.flows.iter().map(|flow| &flow.totals);
        let rate: Option<f64> = match self {
            Metric::Bandwidth => totals.map(|totals| totals.gbit_per_s).sum(),
            _ => totals.map(|totals| totals.mmsg_per_s).sum(),
        };
        rate.filter(|rate| *rate > 0.0)
    }

    /// The same figure of perftest's output.
    fn of_figure(self, figure: Figure) -> Option<f64> {
        match (self, figure) {
            (Metric::Bandwidth, Figure::Bandwidth { gbit_per_s, .. }) => Some(gbit_per_s),
            (Metric::Rate, Figure::Bandwidth { mmsg_per_s, .. }) => Some(mmsg_per_s),
            (Metric::Latency, Figure::Latency { median_ns }) => Some(median_ns),
            _ => None,
        }
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
fn check_programs(link: &Link, programs: &[Program], stop: &AtomicBool) -> Result<(), RunFailure> {
    server_address(link)?;
    link.send(PerftestMessage::Check { programs: programs.to_vec() })?;
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
