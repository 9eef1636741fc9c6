//! The coordinator's half of one run, from `prepare` to the server's report.
//!
//! prepare → endpoints ⇄ endpoints → ready ⇄ ready → (start: warm-up) → measure ⇄ measure → stop →
//! drained ⇄ drained → report → run_done. A run counted in messages also drains after its warm-up.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::datapath::Phase;
use crate::metrics::Timeline;
use crate::metrics::counters::CounterWatch;
use crate::metrics::steady::SteadyDetector;
use crate::plan::Case;
use report::results::model::Run;
use report::results::utc_now;
use settings::{ConnectMode, Stop, Warmup};

use crate::coordinator::drain::{Grace, drain};
use crate::coordinator::observer::Observer;
use crate::coordinator::stage::{Meter, Stage};
use crate::node::memory_needs::admit;
use crate::node::outcome::{self, direction, per_qp};
use crate::node::qp_contexts_by_cm::dial_qps;
use crate::node::running_node::{self, Broken, Finished, RunningNode};
use crate::node::verbs_objects::{Side, VerbsObjects};
use crate::protocol::end_report::{DeviceCounters, EndReport};
use crate::protocol::failure::RunFailure;
use crate::protocol::link::Link;
use crate::protocol::message::{Drained, Message};
use crate::protocol::time_limits::{ANSWER_LIMIT, SETUP_LIMIT};

/// What a run came to.
pub(crate) struct RunOutcome {
    /// As it stands in the result.
    pub(crate) run: Run,
    /// Why it failed; `None` if it did not.
    pub(crate) failure: Option<RunFailure>,
    /// What the ends agreed on; `None` if they did not come that far.
    pub(crate) path: Option<PathFacts>,
    /// What the server said.
    pub(crate) report: Option<EndReport>,
}

/// What both ends' devices can do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathFacts {
    /// Path MTU in use.
    pub(crate) mtu_bytes: u32,
    /// READs outstanding on one QP.
    pub(crate) outstanding_reads: u8,
}

/// What is learnt on the way, kept if the run ends early.
#[derive(Default)]
struct Notes {
    warmup_seconds: f64,
    warmup_steady: Option<bool>,
    measured: bool,
    drained: Option<Drained>,
    /// Since the user asked to stop.
    grace: Option<Grace>,
    counters: Option<DeviceCounters>,
    timeline: Timeline,
}

/// Does one run. Whatever happens, what was measured is in the outcome.
pub(crate) fn run(
    stage: &Stage<'_>,
    case: &Case,
    number: u32,
    observer: &mut dyn Observer,
) -> RunOutcome {
    let started_at = utc_now();
    let blank = Run {
        run: number,
        started_at,
        ..Run::default()
    };
    let node = match set_up(stage, case, number) {
        Ok(node) => node,
        Err(broken) => {
            let failure = explain(broken, None);
            return RunOutcome::given_up(stage.link, blank, failure, None);
        }
    };
    note_shared_cores(stage, case, observer);
    let mut notes = Notes::default();
    let driven = drive(stage, case, &node, observer, &mut notes);
    conclude(stage, case, node, driven, notes, blank)
}

fn set_up(stage: &Stage<'_>, case: &Case, number: u32) -> Result<RunningNode, Broken> {
    prepare(stage, case, number)?;
    make_running_node(stage, case)
}

/// Has the server begin.
pub(crate) fn prepare(stage: &Stage<'_>, case: &Case, number: u32) -> Result<(), Broken> {
    admit(case, Side::Client, stage.resources)?;
    // Taken before the server takes its own, so that on one host each end has the same cores each time.
    if let Some(moving) = case.moving() {
        stage.resources.cores_for(&moving);
    }
    stage.link.send(&Message::Prepare {
        case: Box::new(case.clone()),
        run: number,
    })?;
    Ok(())
}

/// Creates and connects this end's objects, with workers that wait, once the server is doing the same.
pub(crate) fn make_running_node(stage: &Stage<'_>, case: &Case) -> Result<RunningNode, Broken> {
    let (link, stop) = (stage.link, stage.stop);
    let alive = || {
        link.progressed();
        if stop.load(Ordering::Relaxed) {
            return Err(RunFailure::interrupted());
        }
        link.check().map_err(RunFailure::from)
    };
    let mut objects = VerbsObjects::create(
        stage.resources.port(),
        case,
        Side::Client,
        stage.resources.numa_node(),
        alive,
    )?;
    link.send(&Message::Endpoints(Box::new(objects.endpoints())))?;
    let peer = match running_node::recv(link, stop, SETUP_LIMIT, || Ok(()))? {
        Message::Endpoints(peer) => peer,
        other => return Err(link.unexpected("endpoints", &other).into()),
    };
    let qp_contexts = match case.connect {
        ConnectMode::Tcp => objects.connect(&peer, alive)?,
        ConnectMode::Cm => match running_node::recv(link, stop, SETUP_LIMIT, || Ok(()))? {
            Message::CmListening(listening) => dial_qps(&mut objects, &peer, &listening, alive)?,
            other => return Err(link.unexpected("cm_listening", &other).into()),
        },
    };
    let cores = stage.resources.cores_for(case);
    let node = RunningNode::start(objects, qp_contexts, case, stage.resources.clock(), &cores)?;
    link.send(&Message::Ready)?;
    match node.recv(link, stop, SETUP_LIMIT)? {
        Message::Ready => Ok(node),
        other => Err(link.unexpected("ready", &other).into()),
    }
}

/// Says once that workers have no cores of their own, when both ends have taken theirs.
pub(crate) fn note_shared_cores(stage: &Stage<'_>, case: &Case, observer: &mut dyn Observer) {
    if let Some(text) = stage.resources.cores().new_sharing_warning(case) {
        observer.note(&text);
    }
}

/// Warm-up, measurement and drain.
fn drive(
    stage: &Stage<'_>,
    case: &Case,
    node: &RunningNode,
    observer: &mut dyn Observer,
    notes: &mut Notes,
) -> Result<(), Broken> {
    let (link, stop) = (stage.link, stage.stop);
    let counted = matches!(case.stop(), Stop::MessagesPerQp(_));
    if !case.warmup.longest().is_zero() {
        observer.phase("warm-up", Some(case.warmup.longest()));
        link.send(&Message::Start)?;
        let warm = warm_up(stage, case, node, observer)?;
        (notes.warmup_seconds, notes.warmup_steady) = warm;
        if counted {
            drain(stage, case, node, stop, true, observer)?;
        }
    }
    link.send(&Message::Measure)?;
    match node.recv(link, stop, ANSWER_LIMIT)? {
        Message::Measure => {}
        other => return Err(link.unexpected("measure", &other).into()),
    }
    let counters = stage.resources.watch_counters();
    notes.measured = true;
    let measured = measure(stage, case, node, observer, &mut notes.timeline);
    if !counted || measured.is_err() {
        node.set_phase(Phase::Drain);
    }
    notes.counters = counters
        .and_then(CounterWatch::finish)
        .map(|growth| DeviceCounters::of(&growth, "client"));
    let window = node.window();
    match measured {
        // The session goes on where both ends soon come to rest; a long drain would be for nothing.
        Ok(()) if window.completed == 0 => {
            let grace = Grace::begin();
            notes.drained = match drain(stage, case, node, grace.over(), true, observer) {
                Err(Broken::Interrupted) => {
                    let seconds = window.elapsed_ns as f64 * 1e-9;
                    return Err(nothing_completed(seconds).into());
                }
                drained => Some(drained?),
            };
            Ok(())
        }
        Ok(()) => {
            notes.drained = Some(drain(stage, case, node, stop, !counted, observer)?);
            Ok(())
        }
        // Asked to stop: both ends still come to rest, so that what was sent is accounted for.
        Err(Broken::Interrupted) => {
            let grace = notes.grace.insert(Grace::begin());
            notes.drained = drain(stage, case, node, grace.over(), true, observer).ok();
            Err(Broken::Interrupted)
        }
        Err(broken) => Err(broken),
    }
}

/// Lets the traffic of both ends warm up; how long it took in seconds, and whether it came to be steady, where that
/// was asked for.
pub(crate) fn warm_up(
    stage: &Stage<'_>,
    case: &Case,
    node: &RunningNode,
    observer: &mut dyn Observer,
) -> Result<(f64, Option<bool>), Broken> {
    let limit = case.warmup.longest();
    let mut steady = SteadyDetector::new(case.signal_every);
    let mut meter = Meter::new(case);
    let mut is_steady = false;
    node.set_phase(Phase::Warmup);
    node.wait(stage.link, stage.stop, |_| node.all_entered(Phase::Warmup))?;
    let started = Instant::now();
    node.wait(stage.link, stage.stop, |counts| {
        let elapsed = started.elapsed();
        meter.show(elapsed, counts.completed, observer);
        if matches!(case.warmup, Warmup::AutoCapNs(_)) {
            is_steady |= steady.push(elapsed.as_nanos() as u64, counts.completed);
        }
        is_steady || elapsed >= limit
    })?;
    let steady = matches!(case.warmup, Warmup::AutoCapNs(_)).then_some(is_steady);
    Ok((started.elapsed().as_secs_f64(), steady))
}

fn measure(
    stage: &Stage<'_>,
    case: &Case,
    node: &RunningNode,
    observer: &mut dyn Observer,
    timeline: &mut Timeline,
) -> Result<(), Broken> {
    let (link, stop) = (stage.link, stage.stop);
    let mut meter = Meter::new(case);
    let limit = match case.stop() {
        Stop::DurationNs(ns) => Some(Duration::from_nanos(ns)),
        Stop::MessagesPerQp(_) => None,
    };
    observer.phase("measure", limit);
    node.start_window(link, stop)?;
    node.wait(link, stop, |_| {
        let window = node.window();
        timeline.push(window.elapsed_ns, window.completed);
        let elapsed = Duration::from_nanos(window.elapsed_ns);
        meter.show(elapsed, window.completed, observer);
        match case.stop() {
            Stop::DurationNs(_) => window.is_closed,
            Stop::MessagesPerQp(each) => window.completed >= each.saturating_mul(case.qps.into()),
        }
    })
}

/// Ends the run at this end, takes the server's report, and puts the result together.
fn conclude(
    stage: &Stage<'_>,
    case: &Case,
    node: RunningNode,
    driven: Result<(), Broken>,
    notes: Notes,
    blank: Run,
) -> RunOutcome {
    let at_rest = notes.drained.is_some();
    let path = Some(PathFacts {
        mtu_bytes: node.objects().path_mtu_bytes(),
        outstanding_reads: node.objects().outstanding_reads(),
    });
    let finished = match node.finish(!at_rest) {
        Ok(finished) => finished,
        Err(failure) => {
            return RunOutcome::given_up(stage.link, blank, failure, path);
        }
    };
    let mut failure = driven.err().map(|broken| explain(broken, Some(&finished)));
    let can_report = at_rest && failure.as_ref().is_none_or(|failure| failure.interrupted);
    let mut report = settle(stage, can_report, notes.grace, &mut failure);
    if let (None, Some(report)) = (&failure, &report) {
        failure = unaccounted(case, &finished, report);
    }
    let mut run = Run {
        complete: failure.is_none(),
        ..blank
    };
    record_counters(stage, &mut run, notes.counters, report.as_mut());
    let timeline = notes.measured.then_some(notes.timeline);
    tell_traffic(stage, case, &finished, timeline, &mut run);
    if let Some(report) = &mut report {
        run.reverse = report.direction.take();
        run.receiver = report.receiver.take().filter(|_| !case.bidirectional);
    }
    for direction in std::iter::once(&mut run.forward).chain(&mut run.reverse) {
        direction.window.warmup_seconds = notes.warmup_seconds;
        direction.window.warmup_steady = notes.warmup_steady;
    }
    let failure = failure.or_else(|| empty_window(&run));
    RunOutcome::new(run, failure, path, report)
}

/// Takes the server's report, where it can come. A failure that leaves none is told to the server.
pub(crate) fn settle(
    stage: &Stage<'_>,
    can_report: bool,
    grace: Option<Grace>,
    failure: &mut Option<RunFailure>,
) -> Option<EndReport> {
    if can_report {
        match take_report(stage, grace) {
            Ok(report) => return Some(report),
            Err(lost) => drop(failure.get_or_insert(lost)),
        }
    }
    if let Some(failure) = failure {
        failure.tell(stage.link);
    }
    None
}

/// What this end's workers measured in the window; `timeline` is `None` where none was begun.
pub(crate) fn tell_traffic(
    stage: &Stage<'_>,
    case: &Case,
    finished: &Finished,
    timeline: Option<Timeline>,
    run: &mut Run,
) {
    let Some(timeline) = timeline else {
        run.forward.totals.errors = finished.troubles().map(|trouble| trouble.errors()).sum();
        return;
    };
    run.forward = direction(case, finished, stage.resources.clock());
    let cores = stage.resources.cores();
    cores.tell_shared(&mut run.forward.workers);
    outcome::tell_timeline(case, timeline, finished.window, run);
}

/// Both ends' counters, and what they say. One device is told once.
fn record_counters(
    stage: &Stage<'_>,
    run: &mut Run,
    own: Option<DeviceCounters>,
    report: Option<&mut EndReport>,
) {
    let own_port = stage.resources.port();
    let own_device = outcome::device(own_port);
    let is_other_device = |peer: &EndReport| {
        let peer = &peer.device;
        let differs = (&own_device.name, own_device.port) != (&peer.name, peer.port);
        // Embedded ones of one name may have addresses of their own.
        let address_differs = own_port.embedded.is_some() && own_device.gid != peer.gid;
        differs || address_differs || !stage.link.is_within_host()
    };
    let peer = report
        .filter(|report| is_other_device(report))
        .and_then(|report| report.counters.take());
    let counted = |end: Option<DeviceCounters>, events: &mut Vec<_>| {
        end.map(|mut end| {
            events.append(&mut end.events);
            end.grown
        })
    };
    run.device_counters = counted(own, &mut run.path_events);
    run.peer_device_counters = counted(peer, &mut run.path_events);
}

/// The server's report; also of a run that was interrupted, for as long as `grace` has.
fn take_report(stage: &Stage<'_>, grace: Option<Grace>) -> Result<EndReport, RunFailure> {
    let link = stage.link;
    let recv = |stop: &AtomicBool| running_node::recv(link, stop, ANSWER_LIMIT, || Ok(()));
    let report = match grace {
        Some(grace) => recv(grace.over()),
        None => match recv(stage.stop) {
            Err(Broken::Interrupted) => recv(Grace::begin().over()),
            answer => answer,
        },
    };
    let report = match report.map_err(|broken| explain(broken, None))? {
        Message::Report(report) => *report,
        other => return Err(link.unexpected("report", &other).into()),
    };
    link.send(&Message::RunDone)?;
    Ok(report)
}

/// Every message that a QP sent must have been received on its peer, once.
fn unaccounted(case: &Case, finished: &Finished, report: &EndReport) -> Option<RunFailure> {
    if !case.op.profile().receives {
        return None;
    }
    let sent = per_qp(finished, |worker, qp| {
        worker.qps.get(qp).map_or(0, |qp| qp.posted_in_all)
    });
    sent.iter()
        .zip(&report.received_in_all)
        .enumerate()
        .find(|(_, (sent, received))| sent != received)
        .map(|(qp, (sent, received))| {
            RunFailure::new(
                format!("QP {qp} sent {sent} messages and its peer received {received}"),
                Some(
                    "completions were lost or doubled: look at both ends' `dmesg`, and report it"
                        .into(),
                ),
            )
        })
}

/// A window in which a direction completed nothing has measured nothing.
fn empty_window(run: &Run) -> Option<RunFailure> {
    let empty = std::iter::once(&run.forward)
        .chain(&run.reverse)
        .find(|direction| direction.totals.messages == 0)?;
    Some(nothing_completed(empty.window.seconds))
}

fn nothing_completed(seconds: f64) -> RunFailure {
    let hint = "measure longer with -D, or until messages are done with -n; or lower --size, --qps or --tx-depth; or use fewer workers than cores";
    RunFailure::new(
        format!("no message completed in the window of {seconds:.3} s"),
        Some(hint.into()),
    )
}

/// The reason as a person should hear it.
pub(crate) fn explain(broken: Broken, finished: Option<&Finished>) -> RunFailure {
    broken.told(finished, RunFailure::interrupted)
}

impl RunOutcome {
    /// Of a run that is over; what failed stands in it.
    pub(crate) fn new(
        mut run: Run,
        failure: Option<RunFailure>,
        path: Option<PathFacts>,
        report: Option<EndReport>,
    ) -> RunOutcome {
        if let Some(failure) = &failure {
            run.complete = false;
            run.interrupted = failure.interrupted;
            run.failure = Some(failure.to_result());
        }
        RunOutcome {
            run,
            failure,
            path,
            report,
        }
    }

    /// Of a run that has nothing to report; the server is told.
    pub(crate) fn given_up(
        link: &Link,
        run: Run,
        failure: RunFailure,
        path: Option<PathFacts>,
    ) -> RunOutcome {
        failure.tell(link);
        RunOutcome::new(run, Some(failure), path, None)
    }
}
