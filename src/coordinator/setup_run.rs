//! The coordinator's half of a run that measures set-up: rounds of QPs that are created, connected and destroyed at
//! both ends, beside traffic on others.
//!
//! prepare → (traffic: as in any run, up to ready) → (by rdma_cm: cm_listening) → (traffic: warm-up) → setup_round, setup_array ⇄ setup_array, ready ⇄ ready,
//! setup_gone: once to warm up → measure ⇄ measure → such rounds → stop → (traffic: drained ⇄ drained) → report →
//! run_done.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use crate::datapath::Phase;
use crate::metrics::Timeline;
use crate::metrics::histogram::{Digits, Recorder};
use crate::plan::Case;
use report::results::model::{Connect, Run, Window};
use report::results::rates::gbit_per_s;
use report::results::utc_now;
use settings::{ConnectMode, Stop};

use crate::coordinator::drain::drain;
use crate::coordinator::observer::Observer;
use crate::coordinator::run::{
    PathFacts, RunOutcome, explain, make_running_node, note_shared_cores, prepare, settle,
    tell_traffic, warm_up,
};
use crate::coordinator::stage::{Meter, Stage};
use crate::node::needs::Side;
use crate::node::outcome::latency;
use crate::node::running_node::{Broken, Finished, RunningNode};
use crate::node::setup::connector::Connector;
use crate::node::setup::objects::SetupObjects;
use crate::node::setup::steps::StepTimes;
use crate::node::setup::watch::Watch;
use crate::protocol::message::Message;
use crate::protocol::time_limits::{ANSWER_LIMIT, SETUP_LIMIT};

/// How long the traffic is looked at alone.
const ALONE: Duration = Duration::from_millis(500);

/// What is counted on the way, kept if the run ends early.
struct Tally {
    times: StepTimes,
    rounds: u64,
    seconds: f64,
    setup: Recorder,
    window: Window,
    alone_gbit_per_s: Option<f64>,
    timeline: Timeline,
    path: Option<PathFacts>,
    is_measured: bool,
}

/// Traffic on QPs of its own.
struct Traffic {
    case: Case,
    node: RunningNode,
}

/// Does one run. Whatever happens, what was measured is in the outcome.
pub(crate) fn run_setup(
    stage: &Stage<'_>,
    case: &Case,
    number: u32,
    observer: &mut dyn Observer,
) -> RunOutcome {
    let blank = Run {
        run: number,
        started_at: utc_now(),
        ..Run::default()
    };
    let mut tally = Tally {
        times: StepTimes::new(stage.resources.clock()),
        rounds: 0,
        seconds: 0.0,
        setup: Recorder::new(Digits::Three),
        window: Window::default(),
        alone_gbit_per_s: None,
        timeline: Timeline::default(),
        path: None,
        is_measured: false,
    };
    let traffic = match begin(stage, case, number) {
        Ok(traffic) => traffic,
        Err(broken) => {
            let failure = explain(broken, None);
            return RunOutcome::given_up(stage.link, blank, failure, None);
        }
    };
    if let Some(traffic) = &traffic {
        note_shared_cores(stage, &traffic.case, observer);
    }
    let driven = drive(stage, case, traffic.as_ref(), observer, &mut tally);
    conclude(stage, case, traffic, driven, tally, blank)
}

fn begin(stage: &Stage<'_>, case: &Case, number: u32) -> Result<Option<Traffic>, Broken> {
    prepare(stage, case, number)?;
    let Some(moving) = case.moving() else {
        return Ok(None);
    };
    Ok(Some(Traffic {
        node: make_running_node(stage, &moving)?,
        case: moving,
    }))
}

fn drive(
    stage: &Stage<'_>,
    case: &Case,
    traffic: Option<&Traffic>,
    observer: &mut dyn Observer,
    tally: &mut Tally,
) -> Result<(), Broken> {
    let (link, stop) = (stage.link, stage.stop);
    let objects = SetupObjects::new(stage.resources.port(), case, Side::Client)?;
    let warms_up = !case.warmup.longest().is_zero();
    let node = traffic.map(|traffic| &traffic.node);
    let connector = Connector::prepare(
        &objects,
        Side::Client,
        &mut Watch::new(link, stop, node, || ()),
    )?;
    if let (Some(traffic), true) = (traffic, warms_up) {
        observer.phase("warm-up", Some(case.warmup.longest()));
        link.send(&Message::Start)?;
        let warm = warm_up(stage, &traffic.case, &traffic.node, observer)?;
        (tally.window.warmup_seconds, tally.window.warmup_steady) = warm;
        tally.alone_gbit_per_s = alone(stage, traffic, observer)?;
    }
    if warms_up {
        let started = Instant::now();
        observer.phase("first set-up", None);
        let mut watch = Watch::new(link, stop, node, || observer.waiting(started.elapsed()));
        round(&objects, &connector, &mut watch, tally)?;
        drop(watch);
        tally.window.warmup_seconds += started.elapsed().as_secs_f64();
        tally.times.clear();
        tally.setup.clear();
    }
    link.send(&Message::Measure)?;
    let mut watch = Watch::new(link, stop, node, || ());
    match watch.recv(ANSWER_LIMIT)?.0 {
        Message::Measure => {}
        other => return Err(link.unexpected("measure", &other).into()),
    }
    tally.is_measured = true;
    if let Some(node) = node {
        node.set_phase(Phase::Measure);
        node.wait(link, stop, |_| node.all_entered(Phase::Measure))?;
    }
    let measured = measure(stage, (&objects, &connector), traffic, observer, tally);
    if let Some(node) = node {
        node.set_phase(Phase::Drain);
    }
    measured?;
    match traffic {
        Some(Traffic { case, node }) => drain(stage, case, node, stop, true, observer).map(|_| ()),
        None => Ok(link.send(&Message::Stop { now: true })?),
    }
}

/// The traffic's rate without set-ups.
fn alone(
    stage: &Stage<'_>,
    traffic: &Traffic,
    observer: &mut dyn Observer,
) -> Result<Option<f64>, Broken> {
    observer.phase("traffic alone", Some(ALONE));
    let node = &traffic.node;
    let (started, before) = (Instant::now(), node.counts().completed);
    let (mut last, mut seconds) = (before, 0.0);
    node.wait(stage.link, stage.stop, |counts| {
        last = counts.completed;
        seconds = started.elapsed().as_secs_f64();
        seconds >= ALONE.as_secs_f64()
    })?;
    let bytes = (last - before) * u64::from(traffic.case.size_bytes);
    Ok(gbit_per_s(bytes, seconds))
}

/// Rounds until the window is over; what is begun is finished.
fn measure(
    stage: &Stage<'_>,
    (objects, connector): (&SetupObjects<'_>, &Connector),
    traffic: Option<&Traffic>,
    observer: &mut dyn Observer,
    tally: &mut Tally,
) -> Result<(), Broken> {
    let case = objects.case;
    let limit = match case.stop() {
        Stop::DurationNs(ns) => Some(Duration::from_nanos(ns)),
        Stop::MessagesPerQp(_) => None,
    };
    observer.phase("set up", limit);
    let timeline = RefCell::new(std::mem::take(&mut tally.timeline));
    let started = Instant::now();
    let node = traffic.map(|traffic| &traffic.node);
    let mut meter = Meter::new(case);
    let show = || {
        let elapsed = started.elapsed();
        match node {
            Some(node) => {
                let window = node.window();
                let mut timeline = timeline.borrow_mut();
                timeline.push(window.elapsed_ns, window.completed);
                meter.show(elapsed, window.completed, observer);
            }
            None => observer.waiting(elapsed),
        }
    };
    let mut watch = Watch::new(stage.link, stage.stop, node, show);
    let mut rounds = || {
        loop {
            round(objects, connector, &mut watch, tally)?;
            tally.rounds += 1;
            tally.seconds = started.elapsed().as_secs_f64();
            let is_over = match case.stop() {
                Stop::DurationNs(ns) => started.elapsed() >= Duration::from_nanos(ns),
                Stop::MessagesPerQp(wanted) => tally.rounds >= wanted,
            };
            if is_over {
                return Ok(());
            }
        }
    };
    let done = rounds();
    drop(watch);
    tally.timeline = timeline.into_inner();
    done
}

/// Sets the QPs of a round up at both ends and destroys them.
fn round(
    objects: &SetupObjects<'_>,
    connector: &Connector,
    watch: &mut Watch<'_>,
    tally: &mut Tally,
) -> Result<(), Broken> {
    let started = Instant::now();
    let link = watch.link();
    link.send(&Message::SetupRound)?;
    let connected = connector.connect(objects, Side::Client, watch, &mut tally.times)?;
    tally.path = Some(PathFacts {
        mtu_bytes: connected.path_mtu_bytes,
        outstanding_reads: connected.outstanding_reads,
    });
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

/// Ends the run at this end, takes the server's report, and puts the result together.
fn conclude(
    stage: &Stage<'_>,
    case: &Case,
    traffic: Option<Traffic>,
    driven: Result<(), Broken>,
    tally: Tally,
    blank: Run,
) -> RunOutcome {
    let (moving, finished) = match traffic.map(|it| (it.case, it.node.finish(driven.is_err()))) {
        Some((moving, Ok(finished))) => (Some(moving), Some(finished)),
        Some((_, Err(failure))) => {
            return RunOutcome::given_up(stage.link, blank, failure, tally.path);
        }
        None => (None, None),
    };
    let mut failure = driven
        .err()
        .map(|broken| explain(broken, finished.as_ref()));
    let can_report = failure.is_none();
    let mut report = settle(stage, can_report, None, &mut failure);
    let mut run = Run {
        complete: failure.is_none(),
        connect: tally.is_measured.then(|| connect(case, &tally)),
        ..blank
    };
    run.forward.window = Window {
        seconds: tally.seconds,
        ..tally.window.clone()
    };
    if let (Some(connect), Some(report)) = (&mut run.connect, &mut report) {
        connect.peer_steps = std::mem::take(&mut report.setup_steps);
    }
    let path = tally.path;
    if let (Some(moving), Some(finished)) = (&moving, &finished) {
        of_traffic(stage, moving, finished, tally, &mut run);
    }
    RunOutcome::new(run, failure, path, report)
}

fn connect(case: &Case, tally: &Tally) -> Connect {
    let connections = tally.rounds * u64::from(case.qps);
    Connect {
        rounds: tally.rounds,
        connections,
        seconds: tally.seconds,
        connections_per_second: (tally.rounds > 0).then(|| connections as f64 / tally.seconds),
        setup_ns: latency(&tally.setup),
        steps: tally.times.told(),
        peer_steps: Vec::new(),
        traffic_alone_gbit_per_s: tally.alone_gbit_per_s,
        stale_rejections: (case.connect == ConnectMode::Cm).then(|| tally.times.stale_rejections()),
    }
}

/// What the traffic moved in the window, which its workers opened and closed just around the rounds.
fn of_traffic(stage: &Stage<'_>, moving: &Case, finished: &Finished, tally: Tally, run: &mut Run) {
    let warmed = run.forward.window.clone();
    let timeline = tally.is_measured.then_some(tally.timeline);
    tell_traffic(stage, moving, finished, timeline, run);
    run.forward.window.warmup_seconds = warmed.warmup_seconds;
    run.forward.window.warmup_steady = warmed.warmup_steady;
}
