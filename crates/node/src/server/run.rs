//! A node's half of a run: it does what the coordinator says, step by step, and reports.

use crate::outcome::end_report;
use std::time::Instant;

use machine::threads::CoreList;
use results::model::QpResult;

use crate::flow_end::FinishedEnd;
use crate::outcome;
use crate::running_node::{self, EarlyEnd, RunningNode, TICK};
use crate::server::flow_ends;
use crate::server::node_run::{
    COMMAND_LIMIT, LiveLatency, Meter, NodeRun, Notes, progress, progress_of_windows,
};
use crate::server::set_up;
use protocol::failure::RunFailure;
use protocol::message::{Drained, Message, Progress};
use protocol::node_report::{EndReport, NodeReport, QPS_OF_A_MESSAGE};
use protocol::time_limits::ANSWER_LIMIT;

/// Serves one run.
///
/// # Errors
/// Why it ended early; the coordinator is still to be told, unless the link is lost.
pub(crate) fn serve_run(run: &NodeRun<'_>) -> Result<(), RunFailure> {
    // In the order of the nodes, so that on one host each has the same cores each time.
    run.resources.cores().hold(flow_ends::workers(run));
    flow_ends::check(run)?;
    run.link.send(&Message::Prepared)?;
    let node = match flow_ends::connect(run) {
        Ok(node) => node,
        Err(EarlyEnd::Finish { .. }) => return run.report(Vec::new(), Notes::default(), true),
        Err(broken) => return Err(broken.failure(&[], RunFailure::server_stopped)),
    };
    let mut notes = Notes::default();
    let broken = match run.drive(&node, &mut notes) {
        Ok(never) => match never {},
        Err(broken) => broken,
    };
    let (flush, failed) = match broken {
        EarlyEnd::Finish { flush } => (flush, None),
        broken => (true, Some(broken)),
    };
    let finished = node.finish(flush)?;
    notes.read_counters(run.window());
    let Some(broken) = failed else {
        return run.report(finished, notes, flush);
    };
    let is_interrupted = matches!(broken, EarlyEnd::Interrupted);
    let failure = broken.failure(&finished, RunFailure::server_stopped);
    if failure.link_lost || is_interrupted {
        return Err(failure);
    }
    run.link.send(&Message::Failed(Box::new((&failure).into())))?;
    // What was under way when it failed is of no use any more.
    while !matches!(run.link.recv(ANSWER_LIMIT, run.stop)?, Message::Finish { .. }) {}
    run.report(finished, notes, flush)?;
    Err(failure)
}

/// Nothing: a run ends by the coordinator's word or by a failure.
enum Never {}

impl NodeRun<'_> {
    fn drive(&self, node: &RunningNode, notes: &mut Notes) -> Result<Never, EarlyEnd> {
        let mut early = None;
        loop {
            let message = match early.take() {
                Some(message) => message,
                None => node.recv(self.link, self.stop, COMMAND_LIMIT)?,
            };
            early = match message {
                Message::Start => self.warm_up(node)?,
                Message::Measure => self.count(node)?,
                Message::AskClock => {
                    let clock = self.resources.clock();
                    self.link.send(&Message::Clock { ns: clock.ns(clock.raw()) })?;
                    None
                }
                Message::Open { at_ns, live_latency } => {
                    self.measure(node, notes, at_ns, live_latency)?
                }
                Message::Stop => self.drain(node, notes)?,
                Message::Settle(peers) => self.settle(node, &peers)?,
                Message::SetUp => set_up::measure(self, node, notes)?,
                other => {
                    let expected =
                        "start, measure, ask_clock, open, stop, settle, set_up or finish";
                    return Err(self.link.unexpected(expected, &other).into());
                }
            };
        }
    }

    /// Lets the traffic that goes from this node warm up.
    fn warm_up(&self, node: &RunningNode) -> Result<Option<Message>, EarlyEnd> {
        let done = self.warm(node)?;
        if let Ok(warm) = done {
            self.link.send(&Message::Warm(warm))?;
        }
        Ok(done.err())
    }

    /// Prepares the window: what is sent after the answer counts.
    fn count(&self, node: &RunningNode) -> Result<Option<Message>, EarlyEnd> {
        let early = node.count_received(self.link, self.stop)?;
        if early.is_none() {
            self.link.send(&Message::Measure)?;
        }
        Ok(early)
    }

    fn measure(
        &self,
        node: &RunningNode,
        notes: &mut Notes,
        at_ns: u64,
        live_latency: bool,
    ) -> Result<Option<Message>, EarlyEnd> {
        notes.watch_counters(node, self.resources.port());
        notes.open(node);
        if self.window().is_some_and(|window| window < 10 * TICK) {
            notes.watch_cpu(node, self.resources.port(), true);
        }
        // Its memory is taken before the window opens.
        let mut latency = live_latency.then(|| LiveLatency::new(node));
        let clock = self.resources.clock();
        if let Some(early) = node.open_windows(self.link, self.stop, clock, at_ns)? {
            return Ok(Some(early));
        }
        let mut meter = Meter::new(self.link);
        let early = node.wait(self.link, self.stop, |node| {
            notes.sample(node);
            notes.watch_cpu(node, self.resources.port(), false);
            meter.tell(|| Progress {
                p99_ns: latency.as_mut().and_then(LiveLatency::p99_ns),
                ..progress_of_windows(node)
            });
            node.has_measured()
        })?;
        // A node that only receives has nothing to wait for: its window is over with the others'.
        if node.windows().next().is_some() {
            notes.read_counters(self.window());
        }
        if early.is_none() {
            let windows = || node.windows().map(|(_, window)| window);
            let ns = windows().map(|window| window.elapsed_ns).max();
            self.link.send(&Message::Measured {
                messages: windows().map(|window| window.completed).sum(),
                seconds: ns.unwrap_or(0) as f64 * 1e-9,
            })?;
        }
        Ok(early)
    }

    fn drain(&self, node: &RunningNode, notes: &mut Notes) -> Result<Option<Message>, EarlyEnd> {
        notes.read_counters(self.window());
        node.drain();
        let started = Instant::now();
        let mut meter = Meter::new(self.link);
        let before = progress(node, 0);
        let early = node.wait(self.link, self.stop, |node| {
            meter.tell(|| {
                let now = progress(node, started.elapsed().as_nanos() as u64);
                Progress {
                    messages: now.messages - before.messages,
                    bytes: now.bytes - before.bytes,
                    ..now
                }
            });
            node.at_rest()
        })?;
        if early.is_none() {
            self.link.send(&Message::Drained(node.drained()))?;
        }
        Ok(early)
    }

    fn settle(&self, node: &RunningNode, peers: &[Drained]) -> Result<Option<Message>, EarlyEnd> {
        let early = node.settle(self.link, self.stop, peers)?;
        if early.is_none() {
            self.link.send(&Message::Settled)?;
        }
        Ok(early)
    }

    /// The end of a run: what this node measured, and the coordinator's word that it has it.
    fn report(
        &self,
        finished: Vec<FinishedEnd>,
        mut notes: Notes,
        flushed: bool,
    ) -> Result<(), RunFailure> {
        notes.sampled.resize_with(finished.len(), || None);
        let mut devices = vec![outcome::device(self.resources.port())];
        for end in &finished {
            let device = outcome::device(end.end.objects.port());
            if !devices.iter().any(|known| known.is_port_of(&device)) {
                devices.push(device);
            }
        }
        let ends = finished.iter().zip(notes.sampled);
        let clock = self.resources.clock();
        let engine_cores =
            self.resources.port().context.engine_cores().map(|cores| CoreList(cores).to_string());
        let mut ends: Vec<EndReport> =
            ends.map(|(end, sampled)| end_report(end, sampled, clock)).collect();
        let mut workers = outcome::workers(&finished, clock);
        // The next run has the memory. Where the user is to hear of a failure, that does not wait for it.
        let still_there = Some(finished).filter(|_| flushed);
        self.resources.cores().tell_shared(&mut workers);
        let kept = QPS_OF_A_MESSAGE / ends.len().max(1);
        let rest: Vec<Vec<QpResult>> = ends.iter_mut().map(|end| end.shorten(kept)).collect();
        self.link.send(&Message::Report(Box::new(NodeReport {
            devices,
            ends,
            workers,
            counters: notes.counters,
            loss_unknown: notes.loss_unknown,
            engine_cpu_seconds: notes.cpu_times.engine_seconds,
            engine_cores,
            machine_cpu_seconds: notes.cpu_times.machine_seconds,
            set_up: notes.set_up,
        })))?;
        drop(still_there);
        loop {
            let message = running_node::recv(self.link, self.stop, ANSWER_LIMIT, || Ok(()));
            match message.map_err(|broken| broken.failure(&[], RunFailure::server_stopped))? {
                Message::AskQps { end, from } => {
                    let rest = rest.get(end as usize).map_or(&[][..], Vec::as_slice);
                    let first = (from as usize).saturating_sub(kept).min(rest.len());
                    let last = rest.len().min(first + QPS_OF_A_MESSAGE);
                    self.link.send(&Message::Qps(rest[first..last].to_vec()))?;
                }
                Message::RunDone => return Ok(()),
                other => return Err(self.link.unexpected("ask_qps or run_done", &other).into()),
            }
        }
    }
}
