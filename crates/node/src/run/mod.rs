//! A run at a node: it does what the coordinator says, step by step, and reports.

mod checks;
mod flow_end;
mod notes;
mod set_up;
pub(crate) mod set_up_qps;

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use datapath::{Phase, WindowEdges, WorkerPool};
use machine::threads::CoreList;
use metrics::steady::SteadyDetector;
use plan::{Case, Flow, Side};
use protocol::{
    failure::{RunFailure, VERIFY_HINT},
    link::{ANSWER_LIMIT, Link, SETUP_LIMIT},
    message::{Drained, EndArray, Message, Progress, RunMessage, SetUpMessage, WarmUp},
    node_report::{EndReport, NodeReport, QPS_OF_A_MESSAGE},
};
use results::model::QpResult;
use settings::{ConnectMode, Stop, Warmup};
use verbs::{AsyncEvents, Context};

use self::{
    checks::Arrivals,
    flow_end::CreatedEnd,
    notes::{LiveLatency, Notes},
};
pub(crate) use self::{
    checks::{EarlyEnd, TICK, unless_end},
    notes::{Meter, progress, progress_of_windows},
};
pub use self::{flow_end::FlowEnd, notes::Sampled};
use crate::{
    connect_cm::{Listener, check_port},
    memory_place,
    needs::{EndRoles, effective_workers},
    outcome::{self, PortFacts, end_report},
    resources::NodeResources,
    server::{ServerEvent, ServerLog},
    threads::NodeThreads,
    verbs_objects::VerbsObjects,
};

/// Longest time between two commands in a run: the longest measurement, and then some.
pub(crate) const COMMAND_LIMIT: Duration = Duration::from_secs(7 * 24 * 3600);

/// An open loop's throughput is that of its schedule: its warm-up lasts until queues have their length. Those of a
/// server with Poisson arrivals have it after some (1 - load)^-2 service times.
const OPEN_LOOP_WARM_UP: Duration = Duration::from_millis(500);

/// Least time from the word of a window to its start, in which all workers learn of it; the coordinator mostly gives more.
const LEAST_LEAD: Duration = Duration::from_millis(5);

/// Most time to it: the coordinator gives 20 ms and a little for each node.
const MOST_LEAD: Duration = Duration::from_secs(30);

/// How long flushed completions are collected after a failure.
const FLUSH_LIMIT: Duration = Duration::from_millis(200);

/// A run at a node.
pub(crate) struct Run<'a> {
    pub(crate) link: &'a Link,
    /// The wish to end this node.
    pub(crate) stop: &'a AtomicBool,
    pub(crate) resources: &'a NodeResources,
    log: &'a ServerLog,
    /// The case, with the flows that have an end at this node.
    pub(crate) case: &'a Case,
    /// Number of each of them in the coordinator's case.
    flows: &'a [u32],
    /// The number of the run within its case.
    number: u32,
    /// The node's number in the session.
    pub(crate) node: u32,
    state: State,
    /// The ends of its flows, by number; empty until they are connected.
    ends: Vec<FlowEnd>,
    /// What is learnt on the way, kept if the run ends early.
    pub(crate) notes: Notes,
}

/// How far a run is.
enum State {
    /// The cores are reserved, and the ports can be connected as the case asks.
    Prepared,
    /// The verbs objects of all ends exist, and the coordinator has their arrays.
    Created { ends: Vec<CreatedEnd>, threads: NodeThreads },
    /// The ends are connected and their workers run. What these do, their [`Phase`] says.
    Running {
        /// Serves all ends; `None` if the node only offers memory.
        pool: Option<WorkerPool>,
        kept: Kept,
        /// The name of the last message that was obeyed.
        step: &'static str,
        /// Its windows have been opened, or set-ups been measured.
        is_measured: bool,
    },
    /// The workers have ended, and their reports are there. What they need is there if the QPs stay.
    Finished(Option<Kept>),
}

/// What another run on the same QPs needs besides the ends.
struct Kept {
    threads: NodeThreads,
    /// Of each device that the ends use.
    events: Vec<(Arc<Context>, AsyncEvents)>,
}

impl<'a> Run<'a> {
    /// Reserves the cores of run number `run` at node number `node`, and checks that its ports can be connected.
    ///
    /// # Errors
    /// They cannot; the link's end.
    pub(crate) fn prepare(
        link: &'a Link,
        stop: &'a AtomicBool,
        resources: &'a NodeResources,
        log: &'a ServerLog,
        (case, flows): (&'a Case, &'a [u32]),
        (number, node): (u32, u32),
    ) -> Result<Run<'a>, RunFailure> {
        let (state, ends, notes) = (State::Prepared, Vec::new(), Notes::default());
        let run = Run { link, stop, resources, log, case, flows, number, node, state, ends, notes };
        // In the order of the nodes, so that on one host each has the same cores each time.
        resources.cores().hold(run.workers());
        if case.is_set_up() && case.connect == ConnectMode::Cm {
            check_port(resources.port())?;
        }
        for (_, flow, side) in case.ends_at(node) {
            let port = resources.port_of(flow.device(side))?;
            if flow.connect == ConnectMode::Cm {
                check_port(&port)?;
            }
        }
        link.send(RunMessage::Prepared)?;
        Ok(run)
    }

    /// Serves the run to its end, and those that follow on its QPs.
    ///
    /// # Errors
    /// Why it ended early; the coordinator is still to be told, unless the link is lost.
    pub(crate) fn serve(mut self) -> Result<(), RunFailure> {
        while let Some(number) = self.serve_one()? {
            self.begin_again(number)?;
        }
        Ok(())
    }

    /// Serves a run to its end; returns the number of the next one on its QPs, if there is one.
    fn serve_one(&mut self) -> Result<Option<u32>, RunFailure> {
        let mut early_end = self.obey();
        if matches!(early_end, EarlyEnd::Finish { keep: true, .. }) {
            match self.enter(Phase::Refill, |_| true) {
                Ok(None) => {}
                Ok(Some(message)) => early_end = self.link.unexpected("ask_qps", &message).into(),
                Err(broken) => early_end = broken,
            }
        }
        let was_running = matches!(self.state, State::Running { .. });
        let (flush, keep, broken) = match early_end {
            EarlyEnd::Finish { flush, keep } => (flush, keep, None),
            broken => (true, false, Some(broken)),
        };
        self.finish(flush, keep)?;
        self.notes.read_counters(self.window());
        let Some(broken) = broken else {
            return self.report(flush);
        };
        let is_interrupted = matches!(broken, EarlyEnd::Interrupted);
        let failure = broken.failure(&self.ends);
        if !was_running || failure.link_lost || is_interrupted {
            return Err(failure);
        }
        self.link.send(RunMessage::Failed(Box::new((&failure).into())))?;
        // What was under way when it failed is of no use any more.
        while !matches!(
            self.link.recv(ANSWER_LIMIT, self.stop)?,
            Message::Run(RunMessage::Finish { .. })
        ) {}
        self.report(flush)?;
        Err(failure)
    }

    /// Does what the coordinator says until the run ends; returns why.
    fn obey(&mut self) -> EarlyEnd {
        let mut early = None;
        loop {
            match self.step(early) {
                Ok(message) => early = message,
                Err(early_end) => return early_end,
            }
        }
    }

    /// The order of steps: names of the messages that may come now besides `finish`, and how long the next one may take.
    fn expects(&self) -> (&'static str, Duration) {
        match self.state {
            State::Prepared => ("create", SETUP_LIMIT),
            State::Created { .. } => ("connect", SETUP_LIMIT),
            State::Running { step, is_measured, .. } => {
                let next = match step {
                    "connect" if self.case.is_set_up() => "set_up_begin",
                    "connect" => "start or measure",
                    "start" => "measure or stop",
                    "measure" => "ask_clock",
                    "ask_clock" => "ask_clock or open",
                    "open" | "set_up_begin" => "stop",
                    "stop" => "settle",
                    "settle" if !is_measured => "measure",
                    _ => "finish",
                };
                (next, COMMAND_LIMIT)
            }
            State::Finished(None) => ("ask_qps or run_done", ANSWER_LIMIT),
            State::Finished(Some(_)) => ("ask_qps, run_done or again", COMMAND_LIMIT),
        }
    }

    /// Does what the coordinator's next message says, which is `early` if that came already. Returns a message that came
    /// before this was done.
    fn step(&mut self, early: Option<Message>) -> Result<Option<Message>, EarlyEnd> {
        let (expected, limit) = self.expects();
        // A wish to stop alone does not wait for the answer to the step before.
        let is_early = early.is_some();
        let message = match early {
            Some(message) => message,
            None => self.recv(limit)?,
        };
        let kind = message.kind();
        if !expected.split(" or ").any(|name| name == kind) || (is_early && kind != "stop") {
            return Err(self.link.unexpected(expected, &message).into());
        }
        if let State::Running { step, is_measured, .. } = &mut self.state {
            *step = kind;
            *is_measured |= matches!(kind, "open" | "set_up_begin");
        }
        match message {
            Message::Run(RunMessage::Create) => self.create()?,
            Message::Run(RunMessage::Connect(peers)) => self.connect(&peers)?,
            Message::Run(RunMessage::Start) => return self.start(),
            Message::Run(RunMessage::Measure) => return self.count(),
            Message::Run(RunMessage::AskClock) => {
                let clock = self.resources.clock();
                self.link.send(RunMessage::Clock { ns: clock.ns(clock.raw()) })?;
            }
            Message::Run(RunMessage::Open { at_ns, live_latency }) => {
                return self.measure(at_ns, live_latency);
            }
            Message::Run(RunMessage::Stop) => return self.drain(),
            Message::Run(RunMessage::Settle(peers)) => return self.settle(&peers),
            Message::SetUp(SetUpMessage::Begin) => return set_up::measure(self),
            other => return Err(self.link.unexpected(expected, &other).into()),
        }
        Ok(None)
    }

    /// Creates the verbs objects of all ends at this node, for the threads that will serve them.
    fn create(&mut self) -> Result<(), EarlyEnd> {
        let count = self.workers();
        let mut groups = self.resources.threads_of_rails(count);
        let over_none = groups.len();
        groups.extend((0..Flow::WORKER_SETS).map(|set| self.worker_set(set).collect()));
        let mut threads = NodeThreads::in_groups(count, self.case.poll, groups);
        let mut ends = Vec::new();
        for (index, planned, side) in self.case.ends_at(self.node) {
            let port = &self.resources.port_of(planned.device(side))?;
            let numa_node = self.resources.numa_node_at(port);
            let mut flow = planned.clone();
            let rail = self.resources.rail_of(port);
            let of_group =
                threads.take_group(rail.unwrap_or(over_none + usize::from(flow.worker_set)));
            flow.memory_at = memory_place::chosen(&flow, side, port, rail.unwrap_or_default())?;
            if rail.is_some() {
                flow.workers = flow.workers.min(u32::try_from(of_group).unwrap_or(u32::MAX));
            }
            let objects =
                VerbsObjects::create(port, &flow, side, numa_node, &mut threads, || self.alive())?;
            let listener = match (flow.connect, side) {
                (ConnectMode::Cm, Side::Target) => Some(Listener::open(port)?),
                _ => None,
            };
            let number = self.flows.get(index).copied().unwrap_or_default();
            ends.push(CreatedEnd { number, flow, side, objects, listener });
        }
        // All nodes have reserved their cores by now.
        let cores = self.resources.cores();
        let note = cores.new_sharing_warning(self.case.poll, count);
        if let Some(text) = &note {
            (self.log)(ServerEvent::Note { text });
        }
        let mut embedded = ends
            .iter()
            .map(|end| &end.objects.port().context)
            .filter(|context| context.library().is_embedded())
            .peekable();
        if embedded.peek().is_some() {
            let free = cores.without_workers();
            embedded.for_each(|context| context.place_engine(&free));
        }
        let arrays = ends.iter().map(|end| EndArray {
            flow: end.number,
            side: end.side,
            endpoints: end.objects.endpoints(),
            listening: end.listener.as_ref().map(Listener::listening),
        });
        self.link.send(RunMessage::Created { arrays: arrays.collect(), note })?;
        self.state = State::Created { ends, threads };
        Ok(())
    }

    /// Connects all ends to `peers`, the other ends of their flows, and starts the workers, which receive but do not send
    /// yet.
    ///
    /// # Errors
    /// An array that does not fit, a failed call, no thread, no descriptor or no such core.
    fn connect(&mut self, peers: &[EndArray]) -> Result<(), EarlyEnd> {
        let State::Created { ends: created, threads } =
            std::mem::replace(&mut self.state, State::Prepared)
        else {
            return Ok(());
        };
        let expected = created.len();
        if peers.len() != expected {
            let text = format!("{} arrays came for {expected} ends of flows", peers.len());
            return Err(RunFailure::new(text, None).into());
        }
        if let (Some(end), Some(peer)) = (created.first(), peers.first()) {
            end.log_connecting(peer, self.log);
        }
        let clock = self.resources.clock();
        let mut ends = Vec::with_capacity(expected);
        for (end, peer) in created.into_iter().zip(peers) {
            ends.push(
                end.connect(peer, (clock, self.number), self.ends_fail_alone(), || self.alive())?,
            );
        }
        let mut events: Vec<(Arc<Context>, AsyncEvents)> = Vec::new();
        for context in ends.iter().map(|end| &end.objects.port().context) {
            if events.iter().all(|(known, _)| !Arc::ptr_eq(known, context))
                && let Ok(of_context) = AsyncEvents::new(context)
            {
                events.push((Arc::clone(context), of_context));
            }
        }
        Ok(self.start_workers(ends, Kept { threads, events })?)
    }

    /// Starts the workers of these ends, and tells that they are ready.
    fn start_workers(&mut self, mut ends: Vec<FlowEnd>, kept: Kept) -> Result<(), RunFailure> {
        if self.case.lock_step {
            flow_end::join_steps(&mut ends);
        }
        let pool = if ends.iter().any(|end| end.objects.workers() > 0) {
            let cores = self.resources.cores_for(self.workers());
            let parts = ends.iter().map(|end| end.objects.worker_specs());
            let specs = kept.threads.specs(&cores, parts.collect())?;
            let shared: Vec<_> = ends.iter().map(|end| Arc::clone(&end.shared)).collect();
            Some(WorkerPool::start(&shared, specs)?)
        } else {
            None
        };
        self.link.send(RunMessage::Ready)?;
        self.ends = ends;
        self.state = State::Running { pool, kept, step: "connect", is_measured: false };
        Ok(())
    }

    /// Begins another run on the QPs of the one that is over.
    ///
    /// # Errors
    /// They were not kept; as [`Run::connect`].
    fn begin_again(&mut self, number: u32) -> Result<(), RunFailure> {
        let State::Finished(Some(kept)) = std::mem::replace(&mut self.state, State::Prepared)
        else {
            let text = "another run on QPs that were not kept: this is a fault of rocebench";
            return Err(RunFailure::new(text, None));
        };
        (self.number, self.notes) = (number, Notes::default());
        let clock = self.resources.clock();
        let ends = std::mem::take(&mut self.ends)
            .into_iter()
            .map(|end| end.for_run((clock, number)))
            .collect::<Result<_, _>>()?;
        self.start_workers(ends, kept)
    }

    /// Worker threads that have work at this node.
    fn workers(&self) -> usize {
        self.worker_set(Flow::WORKER_SETS - 1).end
    }

    /// Those of them that serve the flows of a set, behind those of the sets before it: as many as the case has, unless all
    /// its flows have work for fewer.
    fn worker_set(&self, set: u8) -> Range<usize> {
        let count = |of_set: u8| {
            let needed: usize = self
                .case
                .ends_at(self.node)
                .filter(|(_, flow, side)| {
                    let roles = EndRoles::new(flow, *side);
                    flow.worker_set == of_set && (roles.sends || roles.receives)
                })
                .map(|(_, flow, _)| effective_workers(flow))
                .sum();
            needed.min(self.case.workers as usize)
        };
        let first = (0..set).map(count).sum();
        first..first + count(set)
    }

    /// Has those of the ends enter `phase` that are not in it, and waits until all their workers have.
    fn enter(
        &mut self,
        phase: Phase,
        is_meant: impl Fn(&FlowEnd) -> bool,
    ) -> Result<Option<Message>, EarlyEnd> {
        for end in self.ends.iter().filter(|end| is_meant(end)) {
            if !end.shared.all_entered(phase) {
                end.set_phase(phase);
            }
        }
        self.wait(|run| {
            run.ends.iter().filter(|end| is_meant(end)).all(|end| end.shared.all_entered(phase))
        })
    }

    /// Lets the traffic that goes from this node warm up.
    fn start(&mut self) -> Result<Option<Message>, EarlyEnd> {
        let warm = self.warm_up()?;
        if let Ok(warm) = warm {
            self.link.send(RunMessage::Warm(warm))?;
        }
        Ok(warm.err())
    }

    /// Lets the traffic from this node warm up; returns how that went, or a message that came first.
    ///
    /// # Errors
    /// As [`Run::wait`].
    pub(crate) fn warm_up(&mut self) -> Result<Result<WarmUp, Message>, EarlyEnd> {
        let limit = self.case.warmup.longest();
        let is_auto = matches!(self.case.warmup, Warmup::AutoCapNs(_));
        let mut steady: Vec<_> = flow_end::senders(&self.ends)
            .map(|end| {
                let window_ns = end.flow.window_ns();
                let window_s = window_ns.map_or(f64::INFINITY, |ns| ns as f64 / 1e9);
                (SteadyDetector::before(window_s, end.flow.signal_every), false)
            })
            .collect();
        if steady.is_empty() {
            return Ok(Ok(WarmUp::default()));
        }
        if let Some(early) = self.enter(Phase::Warmup, FlowEnd::initiates)? {
            return Ok(Err(early));
        }
        let started = Instant::now();
        let mut meter = Meter::new(self.link);
        let early = self.wait(|run| {
            let elapsed = started.elapsed();
            let ns = elapsed.as_nanos() as u64;
            meter.tell(|| progress(&run.ends, ns));
            if is_auto {
                for ((detector, is_steady), end) in
                    steady.iter_mut().zip(flow_end::senders(&run.ends))
                {
                    let is_on = end.flow.on_times().is_none_or(|times| times.is_on_at_first());
                    *is_steady |= if !is_on {
                        true
                    } else if end.flow.is_closed_loop() {
                        detector.push(ns, end.shared.counts().completed)
                    } else {
                        elapsed >= OPEN_LOOP_WARM_UP
                    };
                }
            }
            steady.iter().all(|(_, is_steady)| *is_steady) || elapsed >= limit
        })?;
        Ok(match early {
            Some(early) => Err(early),
            None => Ok(WarmUp {
                seconds: started.elapsed().as_secs_f64(),
                is_steady: is_auto.then(|| steady.iter().all(|(_, is_steady)| *is_steady)),
            }),
        })
    }

    /// Prepares the window: what is sent after the answer counts. Where a run is counted in messages, the ends that only
    /// receive count from the next one on.
    fn count(&mut self) -> Result<Option<Message>, EarlyEnd> {
        let early = self.enter(Phase::Measure, |end| !end.initiates() && !end.is_timed())?;
        if early.is_none() {
            self.link.send(RunMessage::Measure)?;
        }
        Ok(early)
    }

    /// Measures in a window that opens when the node's clock reads `at_ns`.
    fn measure(&mut self, at_ns: u64, live_latency: bool) -> Result<Option<Message>, EarlyEnd> {
        self.notes.watch_counters(&self.ends, self.resources.port());
        self.notes.open(&self.ends);
        if self.window().is_some_and(|window| window < 10 * TICK) {
            self.notes.watch_cpu(&self.ends, self.resources.port(), true);
        }
        if let State::Running { pool: Some(pool), .. } = &self.state {
            let cores = self.resources.cores_for(self.workers()).into_iter().flatten();
            let threads = pool.thread_numbers().to_vec();
            self.notes.watch_state(self.resources.port(), threads, cores.collect());
        }
        // Its memory is taken before the window opens.
        let mut latency = live_latency.then(|| LiveLatency::new(&self.ends));
        if let Some(early) = self.open_windows(at_ns)? {
            return Ok(Some(early));
        }
        let mut meter = Meter::new(self.link);
        let early = self.wait(|run| {
            run.notes.sample(&run.ends);
            run.notes.watch_cpu(&run.ends, run.resources.port(), false);
            meter.tell(|| Progress {
                p99_ns: latency.as_mut().and_then(LiveLatency::p99_ns),
                path_events: run.notes.path_events().filter(|_| live_latency),
                ..progress_of_windows(&run.ends)
            });
            flow_end::senders(&run.ends).all(FlowEnd::has_measured)
        })?;
        // A node that only receives has nothing to wait for: its window is over with the others'.
        if flow_end::senders(&self.ends).next().is_some() {
            self.notes.read_counters(self.window());
        }
        if early.is_none() {
            let windows = || flow_end::senders(&self.ends).map(|end| end.shared.window());
            let ns = windows().map(|window| window.elapsed_ns).max();
            self.link.send(RunMessage::Measured {
                messages: windows().map(|window| window.completed).sum(),
                seconds: ns.unwrap_or(0) as f64 * 1e-9,
            })?;
        }
        Ok(early)
    }

    /// Starts the measurement: returns when all workers know the window. A window with a duration opens when the node's
    /// clock reads `at_ns`, or a moment from now if that is too near, with the queues already full; messages are counted
    /// from then on too.
    fn open_windows(&mut self, at_ns: u64) -> Result<Option<Message>, EarlyEnd> {
        let early = self.enter(Phase::Warmup, |end| end.initiates() && end.is_timed())?;
        if early.is_some() {
            return Ok(early);
        }
        let clock = self.resources.clock();
        let now_raw = clock.raw();
        is_near(clock.ns(now_raw), at_ns).map_err(EarlyEnd::Known)?;
        let least_raw = clock.raw_after(now_raw, LEAST_LEAD.as_nanos() as u64);
        let opens_raw = clock.raw_after(0, at_ns).max(least_raw);
        if !self.ends.iter().any(FlowEnd::is_timed) {
            let first = self.wait(|_| clock.raw() >= opens_raw)?;
            if first.is_some() {
                return Ok(first);
            }
        }
        for end in &self.ends {
            if let Stop::DurationNs(length_ns) = end.flow.stop() {
                let closes_raw = clock.raw_after(opens_raw, length_ns);
                end.shared.set_edges(WindowEdges { opens_raw, closes_raw });
            }
        }
        self.open_now()
    }

    /// Has all workers measure, from now on where no window is set.
    ///
    /// # Errors
    /// As [`Run::wait`].
    pub(crate) fn open_now(&mut self) -> Result<Option<Message>, EarlyEnd> {
        self.enter(Phase::Measure, |_| true)
    }

    /// Has what goes from this node run empty, and closes all windows.
    fn drain(&mut self) -> Result<Option<Message>, EarlyEnd> {
        self.notes.read_counters(self.window());
        for end in &self.ends {
            // An end that only receives goes on receiving; one that counts its messages closes its window later.
            if end.initiates() || end.is_timed() {
                end.set_phase(Phase::Drain);
            }
        }
        let started = Instant::now();
        let mut meter = Meter::new(self.link);
        let before = progress(&self.ends, 0);
        let early = self.wait(|run| {
            meter.tell(|| {
                let now = progress(&run.ends, started.elapsed().as_nanos() as u64);
                Progress {
                    messages: now.messages - before.messages,
                    bytes: now.bytes - before.bytes,
                    ..now
                }
            });
            flow_end::senders(&run.ends).all(|end| end.has_failed() || end.shared.at_rest())
        })?;
        if early.is_none() {
            let drained = self.ends.iter().map(FlowEnd::drained).collect();
            self.link.send(RunMessage::Drained(drained))?;
        }
        Ok(early)
    }

    /// Waits for all that was sent to this node, or where it may be lost until nothing comes any more, closes the windows
    /// of what it receives, and with `--verify` checks what shows only at the end. `peers` is what the other end of each
    /// flow has sent.
    ///
    /// # Errors
    /// As [`Run::wait`]; `peers` that do not tell of all QPs; the first mismatch.
    fn settle(&mut self, peers: &[Drained]) -> Result<Option<Message>, EarlyEnd> {
        let is_whole = peers.len() == self.ends.len()
            && self.ends.iter().zip(peers).all(|(end, peer)| end.is_told_all(peer));
        if !is_whole {
            let text = "the other ends of the flows did not say of all QPs what they have sent";
            return Err(RunFailure::new(text, None).into());
        }
        let mut of_ends: Vec<Arrivals> = self.ends.iter().map(Arrivals::new).collect();
        let early = self.wait(|run| {
            let mut are_over = true;
            for ((end, peer), arrivals) in run.ends.iter().zip(peers).zip(&mut of_ends) {
                // Each is looked at each time, for each has a quiet time of its own.
                are_over &= arrivals.are_over(end, peer);
            }
            are_over
        })?;
        if early.is_some() {
            return Ok(early);
        }
        for end in self.ends.iter().filter(|end| !end.initiates()) {
            end.set_phase(Phase::Drain);
        }
        for end in &self.ends {
            end.objects.check_memory().map_err(RunFailure::from)?;
        }
        let mut ends = self.ends.iter().zip(peers);
        if let Some(mismatch) = ends.find_map(|(end, peer)| end.mismatch(peer, self.link)) {
            let text = format!("verification failed: {mismatch}");
            return Err(RunFailure::new(text, Some(VERIFY_HINT.into())).into());
        }
        self.link.send(RunMessage::Settled)?;
        Ok(None)
    }

    /// Ends the workers and collects their reports. After a failure (`flush`), moves the QPs to ERR first and counts
    /// the flushed completions.
    ///
    /// # Errors
    /// A worker died.
    fn finish(&mut self, flush: bool, keep: bool) -> Result<(), RunFailure> {
        let State::Running { pool, kept, .. } =
            std::mem::replace(&mut self.state, State::Finished(None))
        else {
            return Ok(());
        };
        self.state = State::Finished(Some(kept).filter(|_| keep && !flush));
        if flush {
            for end in &self.ends {
                end.set_phase(Phase::Abort);
                end.objects.flush();
            }
            if pool.is_some() {
                std::thread::sleep(FLUSH_LIMIT);
            }
        }
        let of_ends = pool.map(WorkerPool::finish).transpose()?.unwrap_or_default();
        for (end, reports) in self.ends.iter_mut().zip(of_ends) {
            end.reports = reports;
        }
        Ok(())
    }

    /// The end of a run: what this node measured, and the coordinator's word that it has it; with the number of the next run
    /// on the same QPs, if there is one.
    fn report(&mut self, flushed: bool) -> Result<Option<u32>, RunFailure> {
        let is_kept = matches!(self.state, State::Finished(Some(_)));
        let mut notes = std::mem::take(&mut self.notes);
        notes.sampled.resize_with(self.ends.len(), || None);
        let mut ports = vec![PortFacts::new(self.resources.port())];
        for port in self.ends.iter().map(|end| end.objects.port()) {
            if !ports.iter().any(|known| known.is_of(port)) {
                ports.push(PortFacts::new(port));
            }
        }
        let clock = self.resources.clock();
        let engine_cores =
            self.resources.port().context.engine_cores().map(|cores| CoreList(cores).to_string());
        let timed = self.ends.iter().find(|end| end.is_timed());
        let opens_raw = timed.map(|end| end.shared.edges().opens_raw).filter(|raw| *raw > 0);
        let sampled = self.ends.iter().zip(notes.sampled);
        let mut ends: Vec<EndReport> =
            sampled.map(|(end, sampled)| end_report(end, sampled, &ports, clock)).collect();
        let mut workers = outcome::workers(&self.ends, clock);
        // The next run has the memory. Where the user is to hear of a failure, that does not wait for it.
        if !flushed && !is_kept {
            self.ends.clear();
        }
        self.resources.cores().tell_shared(&mut workers);
        let kept = QPS_OF_A_MESSAGE / ends.len().max(1);
        let rest: Vec<Vec<QpResult>> = ends.iter_mut().map(|end| end.shorten(kept)).collect();
        self.link.send(RunMessage::Report(Box::new(NodeReport {
            devices: ports.into_iter().map(|facts| facts.device).collect(),
            ends,
            workers,
            counters: notes.counters,
            loss_unknown: notes.loss_unknown,
            engine_cpu_seconds: notes.cpu_times.engine_seconds,
            engine_cores,
            machine_cpu_seconds: notes.cpu_times.machine_seconds,
            state: notes.state,
            link_down_ns: opens_raw.map_or_else(Vec::new, |raw| self.resources.link_down_ns(raw)),
            set_up: notes.set_up,
            doubts: notes.doubts,
        })))?;
        if !is_kept {
            self.ends.clear();
        }
        let (expected, limit) = self.expects();
        loop {
            let next = self.link.recv_while_peer_moves(limit, TICK, self.stop, || self.check());
            match next.map_err(|broken| broken.failure(&[]))?.0 {
                Message::Run(RunMessage::AskQps { end, from }) => {
                    let qps = rest.get(end as usize).map_or(&[][..], Vec::as_slice);
                    let first = (from as usize).saturating_sub(kept).min(qps.len());
                    let last = qps.len().min(first + QPS_OF_A_MESSAGE);
                    self.link.send(RunMessage::Qps(qps[first..last].to_vec()))?;
                }
                Message::Run(RunMessage::RunDone) => return Ok(None),
                Message::Run(RunMessage::Again { run }) if is_kept => return Ok(Some(run)),
                other => return Err(self.link.unexpected(expected, &other).into()),
            }
        }
    }

    /// Whether the others go on where an end fails.
    fn ends_fail_alone(&self) -> bool {
        self.case.check.is_some()
    }

    /// How long its windows are, where they are of one length.
    fn window(&self) -> Option<Duration> {
        let windows = self.case.flows.iter().map(|flow| flow.window_ns());
        let common = windows.reduce(|one, other| one.filter(|_| one == other)).flatten();
        common.map(Duration::from_nanos)
    }

    /// Goes on as long as the link and this node's owner want it.
    fn alive(&self) -> Result<(), RunFailure> {
        self.link.progressed();
        if self.stop.load(Ordering::Relaxed) {
            return Err(RunFailure::server_stopped());
        }
        self.link.check().map_err(RunFailure::from)
    }
}

/// Whether a window can be waited for that opens at `at_ns` by a clock that reads `now_ns`.
///
/// # Errors
/// It cannot: this clock was set back, or another node's was set forward, since the two were compared.
fn is_near(now_ns: u64, at_ns: u64) -> Result<(), RunFailure> {
    let lead = Duration::from_nanos(at_ns.saturating_sub(now_ns));
    if lead <= MOST_LEAD {
        return Ok(());
    }
    let text = format!("this node's clock jumped: the window would open in {} s", lead.as_secs());
    let hint = "run again: pausing or moving a virtual machine does this";
    Err(RunFailure::new(text, Some(hint.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_far_ahead_is_no_window_to_wait_for() {
        let now_ns = 5_000_000_000;
        for at_ns in [0, now_ns, now_ns + 20_000_000, now_ns + 30_000_000_000] {
            is_near(now_ns, at_ns).unwrap();
        }
        let hour_ns = 3_600_000_000_000;
        let refused = is_near(now_ns, now_ns + hour_ns).unwrap_err();
        assert!(refused.message.ends_with("would open in 3600 s"), "{}", refused.message);
        is_near(now_ns, u64::MAX).unwrap_err();
    }
}
