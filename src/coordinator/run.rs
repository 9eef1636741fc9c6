//! The coordinator's half of a run: each step is a message to all nodes and an answer from each.
//!
//! prepare → prepared, create → created, connect → ready, (start → warm), measure → measure, ask_clock → clock, open →
//! measured, stop → drained, settle → settled, finish → report, run_done. A run counted in messages also drains after its warm-up. Where
//! set-up is measured, the nodes talk with each other through the coordinator between `ready` and `measured`.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plan::Case;
use settings::Stop;

use crate::coordinator::assemble::{Assembled, Learnt, assemble, nothing_completed};
use crate::coordinator::clocks::Clocks;
use crate::coordinator::grace::Grace;
use crate::coordinator::links::{Links, StepFailure};
use crate::coordinator::members::{Member, members, of_peers, one_of_each_host};
use crate::coordinator::meter::{LongDrain, Meter};
use crate::coordinator::nodes::Node;
use crate::coordinator::observer::Observer;
use crate::coordinator::relay;
use protocol::failure::RunFailure;
use protocol::message::{Message, WarmUp};
use protocol::node_report::NodeReport;
use protocol::time_limits::{ANSWER_LIMIT, SETUP_LIMIT};
use results::model::Run;
use results::utc_now;

/// Longest time for a measurement or a drain: nodes judge by themselves whether something is lost.
const WORK_LIMIT: Duration = Duration::from_secs(7 * 24 * 3600);

/// What is learnt on the way, kept if the run ends early.
#[derive(Default)]
struct Notes {
    /// All nodes have workers.
    is_running: bool,
    warm_up: WarmUp,
    clocks: Clocks,
    is_at_rest: bool,
}

/// A run that begins now.
fn begun(number: u32) -> Run {
    Run { run: number, started_at: utc_now(), ..Run::default() }
}

/// Does one run. Whatever happens, what was measured is in the outcome.
pub(crate) fn run(
    nodes: &[Node],
    case: &Case,
    number: u32,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Assembled {
    let blank = begun(number);
    let members = &members(case, nodes);
    let links = Links { members, stop };
    let mut notes = Notes::default();
    let driven = connect(links, case, number, observer).and_then(|()| {
        notes.is_running = true;
        drive(links, case, observer, &mut notes)
    });
    let mut failure = driven.err().map(StepFailure::failure);
    if let Some(failure) = failure.as_ref().filter(|it| !it.interrupted) {
        observer.failed(failure);
    }
    let reports = if notes.is_running { finish(links, &notes, &mut failure) } else { Vec::new() };
    let Notes { warm_up, clocks, .. } = notes;
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
            member.node.send(&member.prepare(case, run))?;
        }
        for member in wave {
            links.only(member).answers(
                SETUP_LIMIT,
                "prepared",
                |answer| match answer {
                    Message::Prepared => Ok(Some(())),
                    other => Err(other),
                },
                &mut |_, _| {},
            )?;
        }
    }
    let created =
        links.exchange(&Message::Create, SETUP_LIMIT, "created", |answer| match answer {
            Message::Created { arrays, note } => Ok(Some((arrays, note))),
            other => Err(other),
        })?;
    let mut arrays = Vec::new();
    for (member, (of_node, note)) in links.members.iter().zip(created) {
        if let (true, Some(note)) = (member.node.is_own, note) {
            observer.note(&note);
        }
        arrays.push(of_node);
    }
    for (member, of_peers) in links.members.iter().zip(of_peers(links.members, &arrays)?) {
        member.node.send(&Message::Connect(of_peers))?;
    }
    links.answers(
        SETUP_LIMIT,
        "ready",
        |answer| match answer {
            Message::Ready => Ok(Some(())),
            other => Err(other),
        },
        &mut |_, _| {},
    )?;
    Ok(())
}

fn drive(
    links: Links<'_>,
    case: &Case,
    observer: &mut dyn Observer,
    notes: &mut Notes,
) -> Result<(), StepFailure> {
    let counted = matches!(case.stop(), Stop::MessagesPerQp(_));
    if case.is_set_up() {
        relay::measure(links, observer)?;
        return come_to_rest(links, case, observer, notes);
    }
    if !case.warmup.longest().is_zero() {
        notes.warm_up = warm_up(links, case, observer)?;
        if counted {
            drain(links, case, observer)?;
        }
    }
    links.exchange(&Message::Measure, ANSWER_LIMIT, "measure", |answer| match answer {
        Message::Measure => Ok(Some(())),
        other => Err(other),
    })?;
    notes.clocks = Clocks::ask(links)?;
    match measure(links, case, &notes.clocks, observer) {
        Ok(measured) => {
            let empty = measured
                .iter()
                .zip(links.members)
                .filter(|(_, member)| member.sends(case))
                .map(|(measured, _)| *measured)
                .find(|(messages, _)| *messages == 0);
            match empty {
                None => come_to_rest(links, case, observer, notes),
                // The session goes on where the nodes soon come to rest; a long drain would be for nothing.
                Some((_, seconds)) => {
                    let grace = Grace::begin();
                    match come_to_rest(links.until(grace.over()), case, observer, notes) {
                        Err(StepFailure::Interrupted) => Err(nothing_completed(seconds).into()),
                        done => done,
                    }
                }
            }
        }
        // Asked to stop: all nodes still come to rest, so that what was sent is accounted for.
        Err(StepFailure::Interrupted) => {
            let grace = Grace::begin();
            let _ = come_to_rest(links.until(grace.over()), case, observer, notes);
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
    links.tell_all(&Message::Start)?;
    let mut meter = Meter::new(links.members.len());
    let warm = links.answers(
        WORK_LIMIT,
        "warm",
        |answer| match answer {
            Message::Warm(warm) => Ok(Some(warm)),
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
    let limit = match case.stop() {
        Stop::DurationNs(ns) => Some(Duration::from_nanos(ns)),
        Stop::MessagesPerQp(_) => None,
    };
    observer.phase("measure", limit);
    for (member, at_ns) in links.members.iter().zip(clocks.opening()) {
        member.node.send(&Message::Open { at_ns, live_latency: observer.shows_latency() })?;
    }
    let mut meter = Meter::new(links.members.len());
    links.answers(
        WORK_LIMIT,
        "measured",
        |answer| match answer {
            Message::Measured { messages, seconds } => Ok(Some((messages, seconds))),
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
    notes: &mut Notes,
) -> Result<(), StepFailure> {
    drain(links, case, observer)?;
    notes.is_at_rest = true;
    Ok(())
}

/// Brings all nodes to rest and has them check what only shows then.
fn drain(links: Links<'_>, case: &Case, observer: &mut dyn Observer) -> Result<(), StepFailure> {
    observer.phase("drain", None);
    links.tell_all(&Message::Stop)?;
    let mut meter = Meter::new(links.members.len());
    let mut long = LongDrain::new(links.members.len());
    let drained = links.answers(
        WORK_LIMIT,
        "drained",
        |answer| match answer {
            Message::Drained(drained) => Ok(Some(drained)),
            // The stop has overtaken the answer to an earlier step.
            Message::Warm(_) | Message::Clock { .. } | Message::Measured { .. } => Ok(None),
            other => Err(other),
        },
        &mut |node, progress| {
            meter.show(node, progress, observer);
            long.remark(node, progress, case, observer);
        },
    )?;
    for (member, of_peers) in links.members.iter().zip(of_peers(links.members, &drained)?) {
        member.node.send(&Message::Settle(of_peers))?;
    }
    links.answers(
        WORK_LIMIT,
        "settled",
        |answer| match answer {
            Message::Settled => Ok(Some(())),
            other => Err(other),
        },
        &mut |_, _| {},
    )?;
    Ok(())
}

/// Ends the run at all nodes and takes their reports; of fewer nodes, when some did not report. Who asked to stop is not kept
/// waiting. Of another failure the user has been told: nodes that live have the time that they need on a busy host, for
/// nothing else has their figures.
fn finish(
    links: Links<'_>,
    notes: &Notes,
    failure: &mut Option<RunFailure>,
) -> Vec<(usize, NodeReport)> {
    let flush = !notes.is_at_rest;
    for member in links.members {
        // A link that is lost has no report either.
        let _ = member.node.send(&Message::Finish { flush });
    }
    let is_interrupted = failure.as_ref().is_some_and(|it| it.interrupted);
    let last = is_interrupted.then(Grace::begin);
    let mut reports = Vec::new();
    for member in links.members {
        let index = member.number as usize;
        let stop = last.as_ref().map_or(links.stop, Grace::over);
        match report(member, links.until(stop)) {
            Ok(report) => reports.push((index, report)),
            Err(StepFailure::Interrupted) if last.is_none() => {
                let grace = Grace::begin();
                match report(member, links.until(grace.over())) {
                    Ok(report) => reports.push((index, report)),
                    Err(broken) => drop(failure.get_or_insert(broken.failure())),
                }
            }
            Err(broken) => drop(failure.get_or_insert(broken.failure())),
        }
    }
    reports
}

fn take_report(message: Message) -> Result<Option<Box<NodeReport>>, Message> {
    match message {
        Message::Report(report) => Ok(Some(report)),
        // The end of the run has overtaken the answer to an earlier step.
        Message::Ready
        | Message::Warm(_)
        | Message::Measure
        | Message::Clock { .. }
        | Message::Measured { .. }
        | Message::Drained(_)
        | Message::Settled
        | Message::Phase { .. }
        | Message::SetupRound
        | Message::SetupArray(_)
        | Message::SetupGone
        | Message::CmListening(_) => Ok(None),
        other => Err(other),
    }
}

/// The report of a node, with all of its QPs.
fn report<'a>(member: &'a Member<'a>, links: Links<'a>) -> Result<NodeReport, StepFailure> {
    let (node, one) = (member.node, links.only(member));
    let reported = loop {
        match one.answers(ANSWER_LIMIT, "report", take_report, &mut |_, _| {}) {
            // It failed while another did, and reports nevertheless.
            Err(StepFailure::AtNode(_)) => {}
            reported => break reported?,
        }
    };
    let mut report = reported.into_iter().next().unwrap_or_default();
    for (end, of_end) in (0..).zip(&mut report.ends) {
        let Some(sent) = &mut of_end.sent else {
            continue;
        };
        while sent.qps.len() < of_end.qps as usize {
            let from = u32::try_from(sent.qps.len()).unwrap_or(u32::MAX);
            let ask = Message::AskQps { end, from };
            let qps = one.exchange(&ask, ANSWER_LIMIT, "qps", |message| match message {
                Message::Qps(qps) if !qps.is_empty() => Ok(Some(qps)),
                other => Err(other),
            })?;
            sent.qps.extend(qps.into_iter().flatten());
        }
    }
    node.send(&Message::RunDone)?;
    Ok(*report)
}
