//! The coordinator's half of a run: each step is a message to all nodes and an answer from each.
//!
//! prepare → prepared, create → created, connect → ready, (start → warm), measure → measure, ask_clock → clock,
//! open → measured, stop → drained, settle → settled, finish → report, run_done. A run counted in messages also drains
//! after its warm-up. Where set-up is measured, the nodes talk with each other through the coordinator between `ready`
//! and `measured`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use machine::threads;
use plan::Case;
use protocol::endpoints::ConnectingEnds;
use protocol::failure::RunFailure;
use protocol::link::{ANSWER_LIMIT, SETUP_LIMIT};
use protocol::message::{Message, Progress, RunMessage, SetUpMessage, WarmUp};
use protocol::node_report::NodeReport;
use results::{model::Run, utc_now};
use settings::Stop;

use super::assemble::{Assembled, Learnt, assemble, nothing_completed};
use super::interface::Observer;
use super::links::{Clocks, Links, Member, StepFailure, members, one_of_each_host, peer_reports};
use super::nodes::Node;
use super::report_check;

/// Longest time for a measurement or a drain: nodes judge by themselves whether something is lost.
const WORK_LIMIT: Duration = Duration::from_secs(7 * 24 * 3600);

/// How often each direction of a relay looks whether it is to end.
const RELAY_TICK: Duration = Duration::from_millis(10);

/// A drain that takes longer is remarked on.
const LONG_DRAIN: Duration = Duration::from_secs(10);

/// Longest time for all nodes to come to rest, or to report, when there is a reason to end. The user who asked to stop
/// is promised 3 s in all.
const GRACE: Duration = Duration::from_millis(1500);

/// What is learnt on the way, kept if the run ends early.
#[derive(Default)]
struct RunFacts {
    /// All nodes have workers, and so reports.
    is_running: bool,
    warm_up: WarmUp,
    clocks: Clocks,
    is_at_rest: bool,
}

/// Whose QPs a run has, and what becomes of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QpsOfRun {
    /// They are those of the run before, which has kept them; otherwise they are new.
    pub(crate) are_kept: bool,
    /// If nothing fails they are kept for the next run: [`leave`] ends that.
    pub(crate) keep: bool,
}

/// A run that begins now.
fn begun(number: u32) -> Run {
    Run { run: number, started_at: utc_now(), ..Run::default() }
}

/// Does one run. Whatever happens, what was measured is in the outcome.
pub(crate) fn run(
    nodes: &[Node],
    case: &Case,
    (number, qps): (u32, QpsOfRun),
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Assembled {
    let blank = begun(number);
    let members = &members(case, nodes);
    let links = Links { members, stop };
    let mut facts = RunFacts::default();
    let connected =
        if qps.are_kept { again(links, number) } else { connect(links, case, number, observer) };
    let driven = connected.and_then(|()| {
        facts.is_running = true;
        drive(links, case, observer, &mut facts)
    });
    let mut failure = driven.err().map(StepFailure::failure);
    if let Some(failure) = failure.as_ref().filter(|it| !it.interrupted) {
        observer.failed(failure);
    }
    let reports = if facts.is_running {
        finish(links, case, &facts, qps.keep, &mut failure)
    } else {
        Vec::new()
    };
    let RunFacts { warm_up, clocks, .. } = facts;
    let learnt = Learnt { warm_up, clocks };
    assemble(nodes, members, case, blank, &learnt, reports, failure)
}

/// A run that no node was asked for, for this reason.
pub(crate) fn not_run(nodes: &[Node], case: &Case, number: u32, failure: RunFailure) -> Assembled {
    Assembled {
        goes_on: true,
        ..assemble(
            nodes,
            &members(case, nodes),
            case,
            begun(number),
            &Learnt::default(),
            Vec::new(),
            Some(failure),
        )
    }
}

/// Has all nodes create and connect the ends of their flows, whose workers then wait.
fn connect(
    links: Links<'_>,
    case: &Case,
    run: u32,
    observer: &mut dyn Observer,
) -> Result<(), StepFailure> {
    // Nodes of one host one after the other, so that each takes the same cores each time.
    for wave in one_of_each_host(links.members) {
        for member in &wave {
            member.node.send(member.prepare(case, run))?;
        }
        for member in wave {
            links.only(member).answers(
                SETUP_LIMIT,
                "prepared",
                |answer| match answer {
                    Message::Run(RunMessage::Prepared) => Ok(Some(())),
                    other => Err(other),
                },
                &mut |_, _| {},
            )?;
        }
    }
    let created =
        links.exchange(RunMessage::Create, SETUP_LIMIT, "created", |answer| match answer {
            Message::Run(RunMessage::Created { arrays, note }) => Ok(Some((arrays, note))),
            other => Err(other),
        })?;
    let mut arrays = Vec::new();
    for (member, (array, note)) in links.members.iter().zip(created) {
        if let (true, Some(note)) = (member.node.is_own, note) {
            observer.note(&note);
        }
        arrays.push(array);
    }
    let peers_of_members = peer_reports(links.members, &arrays)?;
    for ((member, peers), own) in links.members.iter().zip(peers_of_members).zip(&arrays) {
        if let (true, Some(flow)) = (member.node.is_own, case.flows.first())
            && let (Some(own), Some(peer)) = (own.first(), peers.first())
        {
            let facts = &member.node.facts.device;
            observer.connects(ConnectingEnds {
                settings: flow,
                device: &facts.name,
                gid_index: facts.gid_index,
                own: &own.endpoints,
                peer: &peer.endpoints,
            });
        }
        member.node.send(RunMessage::Connect(peers))?;
    }
    are_ready(links)
}

/// Has all nodes begin another run on the QPs that they have kept.
fn again(links: Links<'_>, run: u32) -> Result<(), StepFailure> {
    links.tell_all(RunMessage::Again { run })?;
    are_ready(links)
}

fn are_ready(links: Links<'_>) -> Result<(), StepFailure> {
    let ready = links.answers(
        SETUP_LIMIT,
        "ready",
        |answer| match answer {
            Message::Run(RunMessage::Ready) => Ok(Some(())),
            other => Err(other),
        },
        &mut |_, _| {},
    );
    ready.map(drop)
}

/// Has the nodes give up the QPs that they have kept.
///
/// # Errors
/// The link to one is lost.
pub(crate) fn leave(nodes: &[Node], case: &Case) -> Result<(), RunFailure> {
    members(case, nodes)
        .iter()
        .try_for_each(|member| member.node.send(RunMessage::RunDone))
        .map_err(StepFailure::failure)
}

fn drive(
    links: Links<'_>,
    case: &Case,
    observer: &mut dyn Observer,
    facts: &mut RunFacts,
) -> Result<(), StepFailure> {
    let counted = matches!(case.stop(), Stop::MessagesPerQp(_));
    if case.is_set_up() {
        relay_set_ups(links, observer)?;
        return come_to_rest(links, case, observer, facts);
    }
    if !case.warmup.longest().is_zero() {
        facts.warm_up = warm_up(links, case, observer)?;
        if counted {
            drain(links, case, observer)?;
        }
    }
    links.exchange(RunMessage::Measure, ANSWER_LIMIT, "measure", |answer| match answer {
        Message::Run(RunMessage::Measure) => Ok(Some(())),
        other => Err(other),
    })?;
    facts.clocks = Clocks::ask(links)?;
    match measure(links, case, &facts.clocks, observer) {
        Ok(measured) => {
            let empty = measured
                .iter()
                .zip(links.members)
                .filter(|(_, member)| case.check.is_none() && member.sends(case))
                .map(|(measured, _)| *measured)
                .find(|(messages, _)| *messages == 0);
            match empty {
                None => come_to_rest(links, case, observer, facts),
                // The session goes on where the nodes soon come to rest; a long drain would be for nothing.
                Some((_, seconds)) => {
                    let grace = Grace::begin();
                    match come_to_rest(links.until(grace.over()), case, observer, facts) {
                        Err(StepFailure::Interrupted) => Err(nothing_completed(seconds).into()),
                        done => done,
                    }
                }
            }
        }
        // Asked to stop: all nodes still come to rest, so that what was sent is accounted for.
        Err(StepFailure::Interrupted) => {
            let grace = Grace::begin();
            let _ = come_to_rest(links.until(grace.over()), case, observer, facts);
            Err(StepFailure::Interrupted)
        }
        Err(broken) => Err(broken),
    }
}

/// How the warm-up of the slowest node went.
fn warm_up(
    links: Links<'_>,
    case: &Case,
    observer: &mut dyn Observer,
) -> Result<WarmUp, StepFailure> {
    observer.phase("warm-up", Some(case.warmup.longest()));
    links.tell_all(RunMessage::Start)?;
    let mut meter = Meter::new(links.members.len());
    let warm = links.answers(
        WORK_LIMIT,
        "warm",
        |answer| match answer {
            Message::Run(RunMessage::Warm(warm)) => Ok(Some(warm)),
            other => Err(other),
        },
        &mut |node, progress| {
            meter.show(node, progress, observer);
        },
    )?;
    let all_steady =
        warm.iter().filter_map(|warm| warm.is_steady).reduce(|one, other| one && other);
    Ok(WarmUp {
        seconds: warm.iter().map(|warm| warm.seconds).fold(0.0, f64::max),
        is_steady: all_steady,
    })
}

/// Each node's messages in its windows, and the length of the longest in seconds.
fn measure(
    links: Links<'_>,
    case: &Case,
    clocks: &Clocks,
    observer: &mut dyn Observer,
) -> Result<Vec<(u64, f64)>, StepFailure> {
    observer.phase("measure", case.window_ns().map(Duration::from_nanos));
    for (member, at_ns) in links.members.iter().zip(clocks.opening()) {
        member.node.send(RunMessage::Open { at_ns, live_latency: observer.shows_latency() })?;
    }
    let mut meter = Meter::new(links.members.len());
    links.answers(
        WORK_LIMIT,
        "measured",
        |answer| match answer {
            Message::Run(RunMessage::Measured { messages, seconds }) => {
                Ok(Some((messages, seconds)))
            }
            other => Err(other),
        },
        &mut |node, progress| {
            meter.show(node, progress, observer);
        },
    )
}

fn come_to_rest(
    links: Links<'_>,
    case: &Case,
    observer: &mut dyn Observer,
    facts: &mut RunFacts,
) -> Result<(), StepFailure> {
    drain(links, case, observer)?;
    facts.is_at_rest = true;
    Ok(())
}

/// Brings all nodes to rest and has them check what only shows then.
fn drain(links: Links<'_>, case: &Case, observer: &mut dyn Observer) -> Result<(), StepFailure> {
    observer.phase("drain", None);
    links.tell_all(RunMessage::Stop)?;
    let mut meter = Meter::new(links.members.len());
    let mut long = LongDrain::new(links.members.len());
    let drained = links.answers(
        WORK_LIMIT,
        "drained",
        |answer| match answer {
            Message::Run(RunMessage::Drained(drained)) => Ok(Some(drained)),
            // The stop has overtaken the answer to an earlier step.
            Message::Run(RunMessage::Warm(_))
            | Message::Run(RunMessage::Clock { .. })
            | Message::Run(RunMessage::Measured { .. }) => Ok(None),
            other => Err(other),
        },
        &mut |node, progress| {
            meter.show(node, progress, observer);
            long.remark(node, progress, case, observer);
        },
    )?;
    for (member, peers) in links.members.iter().zip(peer_reports(links.members, &drained)?) {
        member.node.send(RunMessage::Settle(peers))?;
    }
    links.answers(
        WORK_LIMIT,
        "settled",
        |answer| match answer {
            Message::Run(RunMessage::Settled) => Ok(Some(())),
            other => Err(other),
        },
        &mut |_, _| {},
    )?;
    Ok(())
}

/// Ends the run at all nodes and takes their reports; of fewer nodes, when some did not report, or what cannot be. Who asked to stop is not kept
/// waiting. Of another failure the user has been told: nodes that live have the time that they need on a busy host, for
/// nothing else has their figures.
fn finish(
    links: Links<'_>,
    case: &Case,
    facts: &RunFacts,
    keep: bool,
    failure: &mut Option<RunFailure>,
) -> Vec<(usize, NodeReport)> {
    let flush = !facts.is_at_rest;
    let are_kept = keep && failure.is_none();
    for member in links.members {
        // A link that is lost has no report either.
        let _ = member.node.send(RunMessage::Finish { flush, keep: are_kept });
    }
    let is_interrupted = failure.as_ref().is_some_and(|it| it.interrupted);
    let last = is_interrupted.then(Grace::begin);
    let mut reports = Vec::new();
    for member in links.members {
        let index = member.number as usize;
        let stop = last.as_ref().map_or(links.stop, Grace::over);
        let is_whole = failure.is_none();
        match report(member, links.until(stop), case, (is_whole, are_kept)) {
            Ok(report) => reports.push((index, report)),
            Err(StepFailure::Interrupted) if last.is_none() => {
                let grace = Grace::begin();
                match report(member, links.until(grace.over()), case, (false, are_kept)) {
                    Ok(report) => reports.push((index, report)),
                    Err(broken) => drop(failure.get_or_insert(broken.failure())),
                }
            }
            Err(broken) => drop(failure.get_or_insert(broken.failure())),
        }
    }
    reports
}

fn take_report(case: &Case, message: Message) -> Result<Option<Box<NodeReport>>, Message> {
    match message {
        Message::Run(RunMessage::Report(report)) => Ok(Some(report)),
        // The end of the run has overtaken the answer to an earlier step.
        Message::Run(RunMessage::Ready)
        | Message::Run(RunMessage::Warm(_))
        | Message::Run(RunMessage::Measure)
        | Message::Run(RunMessage::Clock { .. })
        | Message::Run(RunMessage::Measured { .. })
        | Message::Run(RunMessage::Drained(_))
        | Message::Run(RunMessage::Settled) => Ok(None),
        Message::SetUp(_) if case.is_set_up() => Ok(None),
        other => Err(other),
    }
}

/// The report of a node, with all of its QPs. That of a run that `is_whole` has all that the case asks for.
fn report<'a>(
    member: &'a Member<'a>,
    links: Links<'a>,
    case: &Case,
    (is_whole, keeps_qps): (bool, bool),
) -> Result<NodeReport, StepFailure> {
    let (node, one) = (member.node, links.only(member));
    let reported = loop {
        match one.answers(
            ANSWER_LIMIT,
            "report",
            |message| take_report(case, message),
            &mut |_, _| {},
        ) {
            // It failed while another did, and reports nevertheless.
            Err(StepFailure::AtNode(_)) => {}
            reported => break reported?,
        }
    };
    let cannot_be = |reason: String| report_check::failure(&node.name, &reason);
    let mut report = reported.into_iter().next().unwrap_or_default();
    report_check::check_ends(case, member.number, &report).map_err(cannot_be)?;
    for (end, end_report) in (0..).zip(&mut report.ends) {
        let Some(sent) = &mut end_report.sent else {
            continue;
        };
        while sent.qps.len() < end_report.qps as usize {
            let from = u32::try_from(sent.qps.len()).unwrap_or(u32::MAX);
            let ask = Message::Run(RunMessage::AskQps { end, from });
            let qps = one.exchange(ask, ANSWER_LIMIT, "qps", |message| match message {
                Message::Run(RunMessage::Qps(qps)) if !qps.is_empty() => Ok(Some(qps)),
                other => Err(other),
            })?;
            sent.qps.extend(qps.into_iter().flatten());
        }
    }
    report_check::check_ends(case, member.number, &report).map_err(cannot_be)?;
    if is_whole {
        report_check::check_figures(case, member.number, &node.facts.device, &report)
            .map_err(cannot_be)?;
    }
    if !keeps_qps {
        node.send(RunMessage::RunDone)?;
    }
    Ok(*report)
}

/// Has two nodes measure set-ups: passes the messages of each on to the other, until the first one has measured.
///
/// # Errors
/// The first failure of a node or its link, or the user's wish to stop.
fn relay_set_ups(links: Links<'_>, observer: &mut dyn Observer) -> Result<(), StepFailure> {
    let [first, second] = links.members else {
        let text = "set-up is measured between two nodes";
        return Err(RunFailure::new(text, None).into());
    };
    let (first, second) = (first.node, second.node);
    links.tell_all(SetUpMessage::Begin)?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let back = threads::spawn_scoped(scope, "relay", || {
            let done = pass_on(second, first, || is_over.load(Ordering::Relaxed), |_| false);
            is_over.store(true, Ordering::Relaxed);
            done
        })
        .map_err(RunFailure::from)?;
        let mut shown = Shown { meter: Meter::new(1), observer };
        let forth = pass_on(
            first,
            second,
            || is_over.load(Ordering::Relaxed) || links.stop.load(Ordering::Relaxed),
            |message| shown.takes(message),
        );
        is_over.store(true, Ordering::Relaxed);
        // Where both failed, the node that followed did so first, or its failure says more than what came of it.
        match (back.join().unwrap_or(Ok(())), forth) {
            (Err(broken), _) | (Ok(()), Err(broken)) => Err(broken),
            (Ok(()), Ok(())) if links.stop.load(Ordering::Relaxed) => Err(StepFailure::Interrupted),
            (Ok(()), Ok(())) => Ok(()),
        }
    })
}

/// Passes on what comes from one node to the other, but for what `takes` takes, until the first has measured or `ends`.
fn pass_on(
    from: &Node,
    to: &Node,
    ends: impl Fn() -> bool,
    mut takes: impl FnMut(&Message) -> bool,
) -> Result<(), StepFailure> {
    let mut progress = from.link.peer_progress();
    while !ends() {
        let moved = from.link.peer_progress();
        if moved != std::mem::replace(&mut progress, moved) {
            to.link.progressed();
        }
        match from.next(RELAY_TICK)? {
            Some(Message::Run(RunMessage::Measured { .. })) => return Ok(()),
            Some(message) if !takes(&message) => to.send(message)?,
            Some(_) | None => {}
        }
    }
    Ok(())
}

/// What the leading node tells the user.
struct Shown<'a> {
    meter: Meter,
    observer: &'a mut dyn Observer,
}

impl Shown<'_> {
    fn takes(&mut self, message: &Message) -> bool {
        match message {
            Message::Run(RunMessage::Progress(progress)) => self.progress(progress),
            Message::SetUp(SetUpMessage::Phase { name, expected_ms }) => {
                self.meter = Meter::new(1);
                self.observer.phase(name, expected_ms.map(Duration::from_millis));
            }
            _ => return false,
        }
        true
    }

    fn progress(&mut self, progress: &Progress) {
        match progress.messages {
            0 => self.observer.waiting(Duration::from_nanos(progress.elapsed_ns)),
            _ => self.meter.show(0, progress, self.observer),
        }
    }
}

/// Shows the rate of all nodes together.
struct Meter {
    of_nodes: Vec<Pace>,
}

/// What a node told last, and its rates then.
#[derive(Clone, Copy, Default)]
struct Pace {
    last: Progress,
    gbit_per_s: f64,
    mmsg_per_s: f64,
    /// Waits to be shown with those of the other nodes.
    p99_ns: Option<u64>,
    tells_p99: bool,
}

impl Meter {
    fn new(nodes: usize) -> Meter {
        Meter { of_nodes: vec![Pace::default(); nodes] }
    }

    /// Shows the sum of the rates when the first node that sends has told its own.
    fn show(&mut self, node: usize, progress: &Progress, observer: &mut dyn Observer) {
        let Some(pace) = self.of_nodes.get_mut(node) else {
            return;
        };
        if progress.messages > 0 {
            tracing::trace!("node {node} has completed {} messages", progress.messages);
        }
        let ns = progress.elapsed_ns.saturating_sub(pace.last.elapsed_ns);
        if ns > 0 {
            let bytes = progress.bytes.saturating_sub(pace.last.bytes);
            let messages = progress.messages.saturating_sub(pace.last.messages);
            pace.gbit_per_s = bytes as f64 * 8.0 / ns as f64;
            pace.mmsg_per_s = messages as f64 * 1e3 / ns as f64;
        }
        pace.last = *progress;
        if let Some(p99_ns) = self.p99_ns(node, progress.p99_ns) {
            observer.latency(p99_ns);
        }
        let is_first = self.of_nodes[..node].iter().all(|before| before.last.elapsed_ns == 0);
        if is_first {
            let elapsed = Duration::from_nanos(progress.elapsed_ns);
            let gbit_per_s = self.of_nodes.iter().map(|it| it.gbit_per_s).sum();
            let mmsg_per_s = self.of_nodes.iter().map(|it| it.mmsg_per_s).sum();
            let events = self.of_nodes.iter().filter_map(|it| it.last.path_events);
            if let Some(count) = events.reduce(u64::saturating_add) {
                observer.path_events(count);
            }
            observer.sample(elapsed, gbit_per_s, mmsg_per_s);
        }
    }

    /// The highest p99 of all nodes, once a round: when the first node that tells its own has told it, or another one the
    /// second since.
    fn p99_ns(&mut self, node: usize, reported_ns: Option<u64>) -> Option<u64> {
        let pace = self.of_nodes.get_mut(node)?;
        let before_ns = pace.p99_ns;
        pace.p99_ns = before_ns.max(Some(reported_ns?));
        pace.tells_p99 = true;
        let is_first = self.of_nodes.iter().position(|it| it.tells_p99) == Some(node);
        if !is_first && before_ns.is_none() {
            return None;
        }
        self.of_nodes.iter_mut().filter_map(|it| it.p99_ns.take()).max()
    }
}

/// Says once that a drain takes long.
struct LongDrain {
    of_nodes: Vec<Progress>,
    is_remarked: bool,
}

impl LongDrain {
    fn new(nodes: usize) -> LongDrain {
        LongDrain { of_nodes: vec![Progress::default(); nodes], is_remarked: false }
    }

    fn remark(
        &mut self,
        node: usize,
        progress: &Progress,
        case: &Case,
        observer: &mut dyn Observer,
    ) {
        if let Some(text) = self.text(node, progress, case) {
            observer.note(&text);
        }
    }

    fn text(&mut self, node: usize, progress: &Progress, case: &Case) -> Option<String> {
        if let Some(last) = self.of_nodes.get_mut(node) {
            *last = *progress;
        }
        let elapsed = Duration::from_nanos(progress.elapsed_ns);
        if elapsed < LONG_DRAIN || self.is_remarked {
            return None;
        }
        self.is_remarked = true;
        let left: u64 = self.of_nodes.iter().map(|it| it.outstanding).sum();
        let rest = match self.of_nodes.iter().map(|it| it.messages).sum::<u64>() {
            0 => String::new(),
            done => {
                let seconds = elapsed.as_secs_f64() * left as f64 / done as f64;
                format!(", about {seconds:.0} s at this rate")
            }
        };
        let largest = case.flows.iter().max_by_key(|flow| flow.size_bytes);
        let sizes = largest.map_or(case.sizes_text(), |flow| flow.sizes_text());
        Some(format!(
            "the window is over; {left} messages of {sizes} are still in the send queues{rest}; a smaller \
             --tx-depth or --size shortens this"
        ))
    }
}

/// The time that is left once the user has asked to stop, or nothing was measured: a stop flag that is set when it is over.
struct Grace {
    over: Arc<AtomicBool>,
    /// Ends the timer when dropped.
    _timer: Sender<()>,
}

impl Grace {
    fn begin() -> Grace {
        Grace::new(GRACE)
    }

    fn new(time: Duration) -> Grace {
        let over = Arc::new(AtomicBool::new(false));
        let (timer, dropped) = bounded(0);
        let for_timer = Arc::clone(&over);
        let spawned = threads::spawn("grace", move || {
            if dropped.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
                for_timer.store(true, Ordering::Relaxed);
            }
        });
        if spawned.is_err() {
            over.store(true, Ordering::Relaxed);
        }
        Grace { over, _timer: timer }
    }

    fn over(&self) -> &AtomicBool {
        &self.over
    }
}

#[cfg(test)]
mod tests {
    use plan::Case;
    use results::sample::has;
    use testing::wait::wait_until;

    use super::*;

    #[test]
    fn a_long_drain_is_remarked_on_once_with_what_all_nodes_still_send() {
        let mut case = Case::sample();
        case.flows[0].size_bytes = 1 << 20;
        let mut drain = LongDrain::new(2);
        let at = |seconds: u64, messages, outstanding| Progress {
            elapsed_ns: seconds * 1_000_000_000,
            messages,
            outstanding,
            ..Progress::default()
        };
        assert_eq!(drain.text(0, &at(9, 10, 40), &case), None);
        assert_eq!(drain.text(1, &at(9, 10, 20), &case), None);
        let text = drain.text(0, &at(10, 20, 30), &case).unwrap();
        // 30 messages in 10 s, and 50 are left.
        let left = "50 messages of 1MiB are still in the send queues, about 17 s";
        has(text, [left]);
        assert_eq!(drain.text(1, &at(20, 0, 1), &case), None, "said once");
    }

    #[test]
    fn the_highest_p99_of_all_nodes_is_shown_once_a_round() {
        let mut meter = Meter::new(3);
        assert_eq!(meter.p99_ns(0, None), None);
        assert_eq!(meter.p99_ns(1, Some(10)), Some(10));
        assert_eq!(meter.p99_ns(2, Some(30)), None);
        assert_eq!(meter.p99_ns(1, None), None);
        assert_eq!(meter.p99_ns(1, Some(20)), Some(30));
        // The other node has had no messages since.
        assert_eq!(meter.p99_ns(1, Some(20)), Some(20));
        // The first one has none any more.
        assert_eq!(meter.p99_ns(2, Some(40)), None);
        assert_eq!(meter.p99_ns(2, Some(35)), Some(40));
        assert_eq!(meter.p99_ns(9, Some(20)), None);
    }

    #[test]
    fn grace_ends_and_not_before_its_time() {
        let is_over = |grace: &Grace| grace.over().load(Ordering::Relaxed);
        let (long, short) = (Grace::new(Duration::MAX), Grace::new(Duration::ZERO));
        wait_until("the end", Duration::from_secs(1), || is_over(&short));
        assert!(!is_over(&long));
    }
}
