//! A node's part in measuring set-up: rounds of QPs that are created, connected and destroyed at two nodes, beside
//! traffic on others. The node that the traffic goes from leads the rounds and measures them; the coordinator passes
//! the messages of both on.
//!
//! (by rdma_cm: cm_listening) → (warm-up of the traffic) → setup_round, setup_array ⇄ setup_array, ready ⇄ ready, setup_gone:
//! once to warm up → measure ⇄ measure → such rounds → measured.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use metrics::latency::{Digits, Recorder};
use plan::Side;
use results::model::gbit_per_s;
use settings::Stop;

use crate::running_node::{EarlyEnd, RunningNode};
use crate::server::node_run::{
    COMMAND_LIMIT, Meter, NodeRun, Notes, progress, progress_of_windows,
};
use crate::setup::connector::Connector;
use crate::setup::objects::SetupObjects;
use crate::setup::steps::StepTimes;
use crate::setup::watch::Watch;
use protocol::message::{Message, Progress};
use protocol::node_report::SetUpReport;
use protocol::time_limits::{ANSWER_LIMIT, SETUP_LIMIT};

/// How long the traffic is looked at alone.
const ALONE: Duration = Duration::from_millis(500);

/// What is counted on the way, kept if the run ends early.
struct Tally {
    times: StepTimes,
    setup: Recorder,
    told: SetUpReport,
}

/// Measures set-ups with the other node until the coordinator stops the run; returns its message.
///
/// # Errors
/// A failed step, the other node's failure, or the end of the run.
pub(crate) fn measure(
    run: &NodeRun<'_>,
    node: &RunningNode,
    notes: &mut Notes,
) -> Result<Option<Message>, EarlyEnd> {
    let mut tally = Tally {
        times: StepTimes::new(run.resources.clock()),
        setup: Recorder::new(Digits::Three),
        told: SetUpReport::default(),
    };
    let done = match run.number {
        0 => lead(run, node, notes, &mut tally).map(|()| None),
        _ => follow(run, node, &mut tally).map(Some),
    };
    notes.set_up = Some(SetUpReport {
        setup_ns: tally.setup.latency(),
        steps: tally.times.results(),
        stale_rejections: tally.times.stale_rejections(),
        ..tally.told
    });
    done
}

fn lead(
    run: &NodeRun<'_>,
    node: &RunningNode,
    notes: &mut Notes,
    tally: &mut Tally,
) -> Result<(), EarlyEnd> {
    let (link, stop) = (run.link, run.stop);
    let warmup = run.case.warmup.longest();
    let objects = SetupObjects::new(run.resources.port(), run.case)?;
    let mut quiet = Watch::new(link, stop, node, || ());
    let connector = Connector::prepare(&objects, Side::Initiator, &mut quiet)?;
    drop(quiet);
    let has_traffic = run.case.has_traffic();
    if has_traffic && !warmup.is_zero() {
        phase(run, "warm-up", Some(warmup))?;
        let warm = run.warm(node)?.map_err(|early| unexpected(run, &early))?;
        (tally.told.warmup_seconds, tally.told.warmup_steady) = (warm.seconds, warm.is_steady);
        tally.told.alone_gbit_per_s = alone(run, node)?;
    }
    if !warmup.is_zero() {
        let started = Instant::now();
        phase(run, "first set-up", None)?;
        let mut meter = Meter::new(link);
        let mut watch = Watch::new(link, stop, node, || meter.tell(|| waiting(started)));
        round(&objects, &connector, &mut watch, tally)?;
        drop(watch);
        tally.told.warmup_seconds += started.elapsed().as_secs_f64();
        tally.times.clear();
        tally.setup.clear();
    }
    link.send(&Message::Measure)?;
    let mut watch = Watch::new(link, stop, node, || ());
    match watch.recv(ANSWER_LIMIT)?.0 {
        Message::Measure => {}
        other => return Err(unexpected(run, &other)),
    }
    drop(watch);
    tally.told.is_measured = true;
    notes.open(node);
    if let Some(early) = node.measure(link, stop)? {
        return Err(unexpected(run, &early));
    }
    rounds(run, (&objects, &connector), node, notes, tally)?;
    Ok(link.send(&Message::Measured { messages: tally.told.rounds, seconds: tally.told.seconds })?)
}

fn unexpected(run: &NodeRun<'_>, message: &Message) -> EarlyEnd {
    let expected = "the next message of a set-up";
    run.link.unexpected(expected, message).into()
}

fn phase(run: &NodeRun<'_>, name: &str, expected: Option<Duration>) -> Result<(), EarlyEnd> {
    Ok(run.link.send(&Message::Phase {
        name: name.to_owned(),
        expected_ms: expected.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
    })?)
}

/// Time passes, and nothing that has a rate goes on.
fn waiting(since: Instant) -> Progress {
    Progress { elapsed_ns: since.elapsed().as_nanos() as u64, ..Progress::default() }
}

/// The traffic's rate without set-ups.
fn alone(run: &NodeRun<'_>, node: &RunningNode) -> Result<Option<f64>, EarlyEnd> {
    phase(run, "traffic alone", Some(ALONE))?;
    let before = progress(node, 0).bytes;
    let started = Instant::now();
    let (mut last, mut seconds) = (before, 0.0);
    let early = node.wait(run.link, run.stop, |node| {
        last = progress(node, 0).bytes;
        seconds = started.elapsed().as_secs_f64();
        seconds >= ALONE.as_secs_f64()
    })?;
    match early {
        Some(early) => Err(unexpected(run, &early)),
        None => Ok(gbit_per_s(last - before, seconds)),
    }
}

/// Rounds until the window is over; what is begun is finished.
fn rounds(
    run: &NodeRun<'_>,
    (objects, connector): (&SetupObjects<'_>, &Connector),
    node: &RunningNode,
    notes: &mut Notes,
    tally: &mut Tally,
) -> Result<(), EarlyEnd> {
    let stop = run.case.stop();
    let limit = match stop {
        Stop::DurationNs(ns) => Some(Duration::from_nanos(ns)),
        Stop::MessagesPerQp(_) => None,
    };
    phase(run, "set up", limit)?;
    let has_traffic = run.case.has_traffic();
    let started = Instant::now();
    let notes = RefCell::new(notes);
    let mut meter = Meter::new(run.link);
    let mut watch = Watch::new(run.link, run.stop, node, || {
        notes.borrow_mut().sample(node);
        meter.tell(|| if has_traffic { progress_of_windows(node) } else { waiting(started) });
    });
    loop {
        round(objects, connector, &mut watch, tally)?;
        tally.told.rounds += 1;
        tally.told.seconds = started.elapsed().as_secs_f64();
        let is_over = match stop {
            Stop::DurationNs(ns) => started.elapsed() >= Duration::from_nanos(ns),
            Stop::MessagesPerQp(wanted) => tally.told.rounds >= wanted,
        };
        if is_over {
            return Ok(());
        }
    }
}

/// Sets the QPs of a round up at both nodes and destroys them.
fn round(
    objects: &SetupObjects<'_>,
    connector: &Connector,
    watch: &mut Watch<'_>,
    tally: &mut Tally,
) -> Result<(), EarlyEnd> {
    let started = Instant::now();
    let link = watch.link();
    link.send(&Message::SetupRound)?;
    let connected = connector.connect(objects, Side::Initiator, watch, &mut tally.times)?;
    tally.told.path = Some((connected.path_mtu_bytes, connected.outstanding_reads));
    link.send(&Message::Ready)?;
    watch.ready()?;
    let ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
    tally.setup.record(ns);
    objects.destroy(connected, watch, &mut tally.times)?;
    match watch.recv(SETUP_LIMIT)?.0 {
        Message::SetupGone => Ok(()),
        other => Err(link.unexpected("setup_gone", &other).into()),
    }
}

/// Sets QPs up as the other node's rounds ask, until the coordinator stops the run.
fn follow(run: &NodeRun<'_>, node: &RunningNode, tally: &mut Tally) -> Result<Message, EarlyEnd> {
    let link = run.link;
    let objects = SetupObjects::new(run.resources.port(), run.case)?;
    let mut watch = Watch::new(link, run.stop, node, || ());
    let connector = Connector::prepare(&objects, Side::Target, &mut watch)?;
    loop {
        match watch.recv(COMMAND_LIMIT)?.0 {
            Message::SetupRound => {
                let times = &mut tally.times;
                let connected = connector.connect(&objects, Side::Target, &mut watch, times)?;
                link.send(&Message::Ready)?;
                watch.ready()?;
                objects.destroy(connected, &mut watch, times)?;
                link.send(&Message::SetupGone)?;
            }
            Message::Measure => {
                tally.told.is_measured = true;
                tally.times.clear();
                link.send(&Message::Measure)?;
            }
            stop @ Message::Stop => return Ok(stop),
            other => return Err(unexpected(run, &other)),
        }
    }
}
