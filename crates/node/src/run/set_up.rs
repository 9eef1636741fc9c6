//! A node's part in measuring set-up: rounds of QPs that are created, connected and destroyed at two nodes, beside
//! traffic on others. The node that the traffic goes from leads the rounds and measures them; the coordinator passes
//! the messages of both on.
//!
//! (by rdma_cm: cm_listening) → (warm-up of the traffic) → round, array ⇄ array, ready ⇄ ready, gone:
//! once to warm up → measure ⇄ measure → such rounds → measured.

use std::time::{Duration, Instant};

use metrics::latency::{Digits, Recorder};
use plan::Side;
use results::model::gbit_per_s;
use settings::Stop;

use super::{COMMAND_LIMIT, EarlyEnd, Meter, Run, progress, progress_of_windows};
use crate::setup::connector::Connector;
use crate::setup::objects::SetupObjects;
use crate::setup::steps::StepTimes;
use crate::setup::watch::Watch;
use protocol::link::Link;
use protocol::message::{Message, Progress, RunMessage, SetUpMessage};
use protocol::node_report::SetUpReport;
use protocol::time_limits::{ANSWER_LIMIT, SETUP_LIMIT};

/// How long the traffic is looked at alone.
const ALONE: Duration = Duration::from_millis(500);

/// What is counted on the way, kept if the run ends early.
struct Tally {
    times: StepTimes,
    setup: Recorder,
    report: SetUpReport,
}

/// Measures set-ups with the other node until the coordinator stops the run; returns its message.
///
/// # Errors
/// A failed step, the other node's failure, or the end of the run.
pub(super) fn measure(run: &mut Run<'_>) -> Result<Option<Message>, EarlyEnd> {
    let mut tally = Tally {
        times: StepTimes::new(run.resources.clock()),
        setup: Recorder::new(Digits::Three),
        report: SetUpReport::default(),
    };
    let done = match run.node {
        0 => lead(run, &mut tally).map(|()| None),
        _ => follow(run, &mut tally).map(Some),
    };
    run.notes.set_up = Some(SetUpReport {
        setup_ns: tally.setup.latency(),
        steps: tally.times.results(),
        stale_rejections: tally.times.stale_rejections(),
        ..tally.report
    });
    done
}

fn lead(run: &mut Run<'_>, tally: &mut Tally) -> Result<(), EarlyEnd> {
    let link = run.link;
    let warmup = run.case.warmup.longest();
    let objects = SetupObjects::new(run.resources.port(), run.case)?;
    let connector = Connector::prepare(&objects, Side::Initiator, &mut Watch::new(run, |_| ()))?;
    if run.case.has_traffic() && !warmup.is_zero() {
        phase(run, "warm-up", Some(warmup))?;
        let warm = run.warm_up()?.map_err(|early| unexpected(link, &early))?;
        (tally.report.warmup_seconds, tally.report.warmup_steady) = (warm.seconds, warm.is_steady);
        tally.report.alone_gbit_per_s = alone(run)?;
    }
    if !warmup.is_zero() {
        let started = Instant::now();
        phase(run, "first set-up", None)?;
        let mut meter = Meter::new(link);
        let mut watch = Watch::new(run, |_| meter.tell(|| waiting(started)));
        round(&objects, &connector, &mut watch, tally)?;
        drop(watch);
        tally.report.warmup_seconds += started.elapsed().as_secs_f64();
        tally.times.clear();
        tally.setup.clear();
    }
    link.send(RunMessage::Measure)?;
    match Watch::new(run, |_| ()).recv(ANSWER_LIMIT)?.0 {
        Message::Run(RunMessage::Measure) => {}
        other => return Err(unexpected(link, &other)),
    }
    tally.report.is_measured = true;
    run.notes.open(&run.ends);
    if let Some(early) = run.open_now()? {
        return Err(unexpected(link, &early));
    }
    rounds(run, (&objects, &connector), tally)?;
    let SetUpReport { rounds: messages, seconds, .. } = tally.report;
    Ok(link.send(RunMessage::Measured { messages, seconds })?)
}

fn unexpected(link: &Link, message: &Message) -> EarlyEnd {
    link.unexpected("the next message of a set-up", message).into()
}

fn phase(run: &Run<'_>, name: &str, expected: Option<Duration>) -> Result<(), EarlyEnd> {
    Ok(run.link.send(SetUpMessage::Phase {
        name: name.to_owned(),
        expected_ms: expected.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
    })?)
}

/// Time passes, and nothing that has a rate goes on.
fn waiting(since: Instant) -> Progress {
    Progress { elapsed_ns: since.elapsed().as_nanos() as u64, ..Progress::default() }
}

/// The traffic's rate without set-ups.
fn alone(run: &mut Run<'_>) -> Result<Option<f64>, EarlyEnd> {
    phase(run, "traffic alone", Some(ALONE))?;
    let before = progress(&run.ends, 0).bytes;
    let started = Instant::now();
    let (mut last, mut seconds) = (before, 0.0);
    let early = run.wait(|run| {
        last = progress(&run.ends, 0).bytes;
        seconds = started.elapsed().as_secs_f64();
        seconds >= ALONE.as_secs_f64()
    })?;
    match early {
        Some(early) => Err(unexpected(run.link, &early)),
        None => Ok(gbit_per_s(last - before, seconds)),
    }
}

/// Rounds until the window is over; what is begun is finished.
fn rounds(
    run: &mut Run<'_>,
    (objects, connector): (&SetupObjects<'_>, &Connector),
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
    let mut meter = Meter::new(run.link);
    let mut watch = Watch::new(run, |run| {
        run.notes.sample(&run.ends);
        meter.tell(|| if has_traffic { progress_of_windows(&run.ends) } else { waiting(started) });
    });
    loop {
        round(objects, connector, &mut watch, tally)?;
        tally.report.rounds += 1;
        tally.report.seconds = started.elapsed().as_secs_f64();
        let is_over = match stop {
            Stop::DurationNs(ns) => started.elapsed() >= Duration::from_nanos(ns),
            Stop::MessagesPerQp(wanted) => tally.report.rounds >= wanted,
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
    watch: &mut Watch<'_, '_>,
    tally: &mut Tally,
) -> Result<(), EarlyEnd> {
    let started = Instant::now();
    let link = watch.link();
    link.send(SetUpMessage::Round)?;
    let connected = connector.connect(objects, Side::Initiator, watch, &mut tally.times)?;
    tally.report.path = Some((connected.path_mtu_bytes, connected.outstanding_reads));
    link.send(RunMessage::Ready)?;
    watch.ready()?;
    let ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
    tally.setup.record(ns);
    objects.destroy(connected, watch, &mut tally.times)?;
    match watch.recv(SETUP_LIMIT)?.0 {
        Message::SetUp(SetUpMessage::Gone) => Ok(()),
        other => Err(link.unexpected("set_up_gone", &other).into()),
    }
}

/// Sets QPs up as the other node's rounds ask, until the coordinator stops the run.
fn follow(run: &mut Run<'_>, tally: &mut Tally) -> Result<Message, EarlyEnd> {
    let link = run.link;
    let objects = SetupObjects::new(run.resources.port(), run.case)?;
    let mut watch = Watch::new(run, |_| ());
    let connector = Connector::prepare(&objects, Side::Target, &mut watch)?;
    loop {
        match watch.recv(COMMAND_LIMIT)?.0 {
            Message::SetUp(SetUpMessage::Round) => {
                let times = &mut tally.times;
                let connected = connector.connect(&objects, Side::Target, &mut watch, times)?;
                link.send(RunMessage::Ready)?;
                watch.ready()?;
                objects.destroy(connected, &mut watch, times)?;
                link.send(SetUpMessage::Gone)?;
            }
            Message::Run(RunMessage::Measure) => {
                tally.report.is_measured = true;
                tally.times.clear();
                link.send(RunMessage::Measure)?;
            }
            stop @ Message::Run(RunMessage::Stop) => return Ok(stop),
            other => return Err(unexpected(link, &other)),
        }
    }
}
