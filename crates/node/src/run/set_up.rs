//! A node's part in measuring set-up: rounds of QPs that are created, connected and destroyed at two nodes, beside
//! traffic on others. The node that the traffic goes from leads the rounds and measures them; the coordinator passes
//! the messages of both on.
//!
//! (by rdma_cm: cm_listening) → (warm-up of the traffic) → round, array ⇄ array, ready ⇄ ready, gone:
//! once to warm up → measure ⇄ measure → such rounds → measured.

use std::{
    collections::BTreeMap,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use metrics::{
    Clock,
    latency::{Digits, Recorder},
};
use plan::Side;
use protocol::{
    error::LinkError,
    link::{ANSWER_LIMIT, Link, Patience, SETUP_LIMIT},
    message::{Message, Progress, RunMessage, SetUpMessage},
    node_report::SetUpReport,
};
use results::model::{ConnectStep, gbit_per_s};
use settings::Stop;

use crate::run::{
    COMMAND_LIMIT, EarlyEnd, Meter, Run, TICK, progress, progress_of_windows,
    set_up_qps::{Connector, SetupObjects},
    unless_end,
};

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
    let limit = run.case.window_ns().map(Duration::from_nanos);
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

/// Checks the link, the user's wish to stop and the traffic during set-up.
pub(crate) struct Watch<'w, 'a> {
    run: &'w mut Run<'a>,
    /// A message that came between two QPs, and when.
    early: Option<(Message, Instant)>,
    /// Called about every [`TICK`] to show progress.
    show: Box<dyn FnMut(&mut Run<'a>) + 'w>,
    looked_at: Instant,
}

impl<'w, 'a> Watch<'w, 'a> {
    pub(crate) fn new(run: &'w mut Run<'a>, show: impl FnMut(&mut Run<'a>) + 'w) -> Self {
        Watch { run, early: None, show: Box::new(show), looked_at: Instant::now() }
    }

    /// The connection to the coordinator.
    pub(crate) fn link(&self) -> &'a Link {
        self.run.link
    }

    /// Checks whether to go on. Usually takes two loads and a clock reading.
    ///
    /// # Errors
    /// The link's end, the end of the run, the wish to stop, or an error of the traffic.
    pub(crate) fn look(&mut self) -> Result<(), EarlyEnd> {
        self.run.link.check()?;
        if self.run.stop.load(Ordering::Relaxed) {
            return Err(EarlyEnd::Interrupted);
        }
        if self.looked_at.elapsed() >= TICK {
            self.looked_at = Instant::now();
            if self.early.is_none() {
                self.early = self.come()?;
            }
            self.run.check()?;
            (self.show)(self.run);
        }
        Ok(())
    }

    /// A message that has come, and when.
    fn come(&self) -> Result<Option<(Message, Instant)>, EarlyEnd> {
        match self.run.link.recv_stamped(Duration::ZERO, self.run.stop) {
            Ok((message, arrived)) => Ok(Some((unless_end(message)?, arrived))),
            Err(LinkError::Overdue { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// As [`Watch::look`], and also tells the peer, which may be waiting, that this end makes progress.
    pub(crate) fn step(&mut self) -> Result<(), EarlyEnd> {
        self.run.link.progressed();
        self.look()
    }

    /// The next message and when it came.
    ///
    /// # Errors
    /// As [`Watch::look`], and `limit` without a message or movement at the other node.
    pub(crate) fn recv(&mut self, limit: Duration) -> Result<(Message, Instant), EarlyEnd> {
        let (link, stop) = (self.run.link, self.run.stop);
        let mut patience = Patience::new(link.peer_progress(), Instant::now());
        while !patience.is_over(link.peer_progress(), Instant::now(), limit) {
            self.look()?;
            if let Some(early) = self.early.take() {
                return Ok(early);
            }
            match link.recv_stamped(TICK, stop) {
                Ok((message, arrived)) => return Ok((unless_end(message)?, arrived)),
                Err(LinkError::Overdue { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let (peer, seconds) = (link.peer(), limit.as_secs_f64());
        Err(LinkError::Overdue { peer, seconds }.into())
    }

    /// Waits until the peer says that its QPs are in RTS.
    ///
    /// # Errors
    /// As [`Watch::recv`]; another message.
    pub(crate) fn ready(&mut self) -> Result<(), EarlyEnd> {
        match self.recv(SETUP_LIMIT)?.0 {
            Message::Run(RunMessage::Ready) => Ok(()),
            other => Err(self.run.link.unexpected("ready", &other).into()),
        }
    }
}

/// A step; listed in order. Which steps there are depends on the method of connecting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum SetupStep {
    Create,
    /// rdma_cm: resolves IP addresses to the device and the hardware address.
    Resolve,
    /// rdma_cm: resolves the path to that address.
    Route,
    /// rdma_cm: from the request until the answer is confirmed; includes the transitions to RTS.
    Connect,
    Init,
    /// Both ends have the other's connection array.
    Exchange,
    Rtr,
    Rts,
    Destroy,
}

impl SetupStep {
    #[cfg(test)]
    const ALL: [SetupStep; 9] = [
        SetupStep::Create,
        SetupStep::Resolve,
        SetupStep::Route,
        SetupStep::Connect,
        SetupStep::Init,
        SetupStep::Exchange,
        SetupStep::Rtr,
        SetupStep::Rts,
        SetupStep::Destroy,
    ];

    /// Its name in results and messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            SetupStep::Create => "create",
            SetupStep::Resolve => "resolve",
            SetupStep::Route => "route",
            SetupStep::Connect => "connect",
            SetupStep::Init => "init",
            SetupStep::Exchange => "exchange",
            SetupStep::Rtr => "rtr",
            SetupStep::Rts => "rts",
            SetupStep::Destroy => "destroy",
        }
    }

    /// The unit that the step is done for.
    fn per(self) -> &'static str {
        match self {
            SetupStep::Exchange => "round",
            _ => "connection",
        }
    }
}

/// Times of all steps at one node.
pub(crate) struct StepTimes {
    clock: Clock,
    times: BTreeMap<SetupStep, Recorder>,
    stale_rejections: u64,
}

impl StepTimes {
    pub(crate) fn new(clock: &Clock) -> Self {
        StepTimes { clock: clock.clone(), times: BTreeMap::new(), stale_rejections: 0 }
    }

    /// Does a step and records its time, unless it fails.
    pub(crate) fn time<T, E>(
        &mut self,
        step: SetupStep,
        body: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let start = self.clock.raw();
        let done = body()?;
        let end = self.clock.raw();
        self.record(step, self.clock.ns_between(start, end));
        Ok(done)
    }

    /// Adds a time that was measured elsewhere.
    pub(crate) fn record(&mut self, step: SetupStep, ns: u64) {
        self.times.entry(step).or_insert_with(|| Recorder::new(Digits::Three)).record(ns);
    }

    /// Counts requests that rdma_cm rejected because it remembered the last connection of their QP number.
    pub(crate) fn count_stale(&mut self, rejections: u32) {
        self.stale_rejections += u64::from(rejections);
    }

    /// The stale rejections so far.
    pub(crate) fn stale_rejections(&self) -> u64 {
        self.stale_rejections
    }

    /// Discards all times, as between warm-up and measurement.
    pub(crate) fn clear(&mut self) {
        self.stale_rejections = 0;
        self.times.values_mut().for_each(Recorder::clear);
    }

    /// The steps in the form of a result.
    pub(crate) fn results(&self) -> Vec<ConnectStep> {
        self.times
            .iter()
            .filter_map(|(step, recorder)| {
                Some(ConnectStep {
                    step: step.name().to_owned(),
                    per: step.per().to_owned(),
                    time_ns: recorder.latency()?,
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_told_in_their_order_with_their_times() {
        let mut times = StepTimes::new(&Clock::new());
        times.record(SetupStep::Destroy, 5);
        times.record(SetupStep::Create, 7);
        times.clear();
        times.count_stale(2);
        times.clear();
        times.count_stale(3);
        assert_eq!(times.stale_rejections(), 3);
        times.record(SetupStep::Rts, 300);
        times.record(SetupStep::Create, 100);
        times.record(SetupStep::Create, 200);
        let failed: Result<(), &str> = times.time(SetupStep::Init, || Err("no"));
        assert_eq!(failed, Err("no"));
        times.time(SetupStep::Exchange, || Ok::<_, ()>(())).unwrap();
        let steps = times.results();
        let names = steps.iter().map(|it| (&*it.step, &*it.per, it.time_ns.count));
        let expected =
            [("create", "connection", 2), ("exchange", "round", 1), ("rts", "connection", 1)];
        assert!(names.eq(expected), "{steps:?}");
        assert_eq!((steps[0].time_ns.min, steps[0].time_ns.max), (100, 200));
    }

    #[test]
    fn names_tell_steps_apart() {
        assert_eq!(SetupStep::ALL.map(SetupStep::name), ConnectStep::NAMES);
    }
}
