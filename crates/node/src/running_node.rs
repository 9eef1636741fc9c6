//! A run in motion at one node: the connected ends of its flows, their workers, and the checks of all of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use datapath::{Counts, Mismatch, Phase, QpContext, WindowEdges, WindowProgress, WorkerPool};
use metrics::{Clock, IntervalLatency};
use plan::Flow;
use settings::Stop;
use verbs::{AsyncEvent, AsyncEvents, Context};

use crate::arrivals::Arrivals;
use crate::flow_end::{FinishedEnd, FlowEnd, RunningEnd};
use crate::node_threads::NodeThreads;
use crate::stall::StallDetector;
use protocol::error::LinkError;
use protocol::failure::{RunFailure, VERIFY_HINT};
use protocol::link::Link;
use protocol::message::{Drained, Message};

/// Interval of the checks while waiting.
pub const TICK: Duration = Duration::from_millis(10);

/// Least time from the word of a window to its start, in which all workers learn of it; the coordinator mostly gives more.
const LEAST_LEAD: Duration = Duration::from_millis(5);

/// Most time to it: the coordinator gives 20 ms and a little for each node.
const MOST_LEAD: Duration = Duration::from_secs(30);

/// How long flushed completions are collected after a failure.
const FLUSH_LIMIT: Duration = Duration::from_millis(200);

/// A node whose run is in motion.
pub struct RunningNode {
    ends: Vec<RunningEnd>,
    /// Serves all ends; `None` if the node only offers memory.
    pool: Option<WorkerPool>,
    /// Of each device that the ends use.
    events: Vec<(Arc<Context>, AsyncEvents)>,
}

impl RunningNode {
    /// Starts the workers of all ends, which receive but do not send yet. `cores` has one entry per thread; `run` is the
    /// number of the run within its case.
    ///
    /// # Errors
    /// No thread, no descriptor or no such core.
    pub fn start(
        flow_ends: Vec<(FlowEnd, Vec<QpContext>)>,
        threads: &NodeThreads,
        cores: &[Option<usize>],
        clock: &Clock,
        run: u32,
    ) -> Result<RunningNode, RunFailure> {
        let ends: Vec<RunningEnd> = flow_ends
            .into_iter()
            .map(|(end, qp_contexts)| RunningEnd::new(end, qp_contexts, clock, run))
            .collect();
        let pool = if ends.iter().any(|end| end.end.objects.workers() > 0) {
            let parts = ends.iter().map(|end| end.end.objects.worker_specs());
            let specs = threads.specs(cores, parts.collect())?;
            let shared: Vec<_> = ends.iter().map(|end| Arc::clone(&end.shared)).collect();
            Some(WorkerPool::start(&shared, specs)?)
        } else {
            None
        };
        let mut events: Vec<(Arc<Context>, AsyncEvents)> = Vec::new();
        for context in ends.iter().map(|it| &it.end.objects.port().context) {
            if events.iter().all(|(known, _)| !Arc::ptr_eq(known, context))
                && let Ok(of_context) = AsyncEvents::new(context)
            {
                events.push((Arc::clone(context), of_context));
            }
        }
        Ok(RunningNode { ends, pool, events })
    }

    fn senders(&self) -> impl Iterator<Item = &RunningEnd> {
        self.ends.iter().filter(|end| end.initiates())
    }

    /// Starts what goes from this node, outside a window.
    ///
    /// # Errors
    /// As [`RunningNode::wait`].
    pub fn warm_up(&self, link: &Link, stop: &AtomicBool) -> Result<Option<Message>, EarlyEnd> {
        self.senders().for_each(|end| end.set_phase(Phase::Warmup));
        self.wait(link, stop, |node| node.all_entered(Phase::Warmup))
    }

    /// Has the ends that only receive count from the next message on, where a run is counted in messages.
    ///
    /// # Errors
    /// As [`RunningNode::wait`].
    pub fn count_received(
        &self,
        link: &Link,
        stop: &AtomicBool,
    ) -> Result<Option<Message>, EarlyEnd> {
        let counting: Vec<_> =
            self.ends.iter().filter(|end| !end.initiates() && !end.is_timed()).collect();
        counting.iter().for_each(|end| end.set_phase(Phase::Measure));
        self.wait(link, stop, |_| counting.iter().all(|end| end.shared.all_entered(Phase::Measure)))
    }

    /// Starts the measurement: returns when all workers know the window. A window with a duration opens when the node's
    /// clock reads `at_ns`, or a moment from now if that is too near, with the queues already full; messages are counted
    /// from then on too.
    ///
    /// # Errors
    /// As [`RunningNode::wait`].
    pub fn open_windows(
        &self,
        link: &Link,
        stop: &AtomicBool,
        clock: &Clock,
        at_ns: u64,
    ) -> Result<Option<Message>, EarlyEnd> {
        let cold: Vec<_> = self
            .senders()
            .filter(|end| end.is_timed() && !end.shared.all_entered(Phase::Warmup))
            .collect();
        if !cold.is_empty() {
            cold.iter().for_each(|end| end.set_phase(Phase::Warmup));
            let early = self
                .wait(link, stop, |_| cold.iter().all(|it| it.shared.all_entered(Phase::Warmup)))?;
            if early.is_some() {
                return Ok(early);
            }
        }
        let now_raw = clock.raw();
        is_near(clock.ns(now_raw), at_ns).map_err(EarlyEnd::Known)?;
        let least_raw = clock.raw_after(now_raw, LEAST_LEAD.as_nanos() as u64);
        let opens_raw = clock.raw_after(0, at_ns).max(least_raw);
        if !self.ends.iter().any(RunningEnd::is_timed) {
            let early = self.wait(link, stop, |_| clock.raw() >= opens_raw)?;
            if early.is_some() {
                return Ok(early);
            }
        }
        for end in self.ends.iter().filter(|end| end.is_timed()) {
            if let Stop::DurationNs(length_ns) = end.shared.flow().stop() {
                end.shared.set_edges(WindowEdges {
                    opens_raw,
                    closes_raw: clock.raw_after(opens_raw, length_ns),
                });
            }
        }
        self.measure(link, stop)
    }

    /// Has all workers measure, from now on where no window is set.
    ///
    /// # Errors
    /// As [`RunningNode::wait`].
    pub fn measure(&self, link: &Link, stop: &AtomicBool) -> Result<Option<Message>, EarlyEnd> {
        self.ends
            .iter()
            .filter(|end| !end.shared.all_entered(Phase::Measure))
            .for_each(|end| end.set_phase(Phase::Measure));
        self.wait(link, stop, |node| {
            node.ends.iter().all(|end| end.shared.all_entered(Phase::Measure))
        })
    }

    /// Whether what goes from this node has been measured.
    pub fn has_measured(&self) -> bool {
        self.senders().all(RunningEnd::has_measured)
    }

    /// The windows of the ends that send, by number of the end.
    pub fn windows(&self) -> impl Iterator<Item = (usize, WindowProgress)> {
        self.ends
            .iter()
            .enumerate()
            .filter(|(_, end)| end.initiates())
            .map(|(index, end)| (index, end.shared.window()))
    }

    /// What each QP of an end has completed since it was made, by index of the QP.
    pub fn read_completed(&self, end: usize, of_qps: &mut [u64]) {
        if let Some(end) = self.ends.get(end) {
            end.shared.read_completed(of_qps);
        }
    }

    /// Latencies of each end that sends, from now on. Those of many ends are of fewer QPs each, so that a look takes no
    /// longer.
    pub fn live_latencies(&self) -> Vec<IntervalLatency> {
        let every = self.senders().count().max(1);
        self.senders()
            .map(|end| {
                IntervalLatency::new(
                    end.shared.live_latencies().into_iter().step_by(every).collect(),
                )
            })
            .collect()
    }

    /// Whether all workers that send have entered `phase`.
    pub fn all_entered(&self, phase: Phase) -> bool {
        self.senders().all(|end| end.shared.all_entered(phase))
    }

    /// Counts so far of the ends that send, each with its flow.
    pub fn sent(&self) -> impl Iterator<Item = (&Flow, Counts)> {
        self.senders().map(|end| (&end.end.flow, end.shared.counts()))
    }

    /// The ends, by number.
    pub fn ends(&self) -> impl Iterator<Item = &FlowEnd> {
        self.ends.iter().map(|it| &it.end)
    }

    /// Has what goes from this node run empty, and closes all windows.
    pub fn drain(&self) {
        for end in &self.ends {
            // An end that only receives goes on receiving; one that counts its messages closes its window later.
            if end.initiates() || matches!(end.shared.flow().stop(), Stop::DurationNs(_)) {
                end.set_phase(Phase::Drain);
            }
        }
    }

    /// Whether the send queues are empty after draining.
    pub fn at_rest(&self) -> bool {
        self.senders().all(|end| end.shared.at_rest())
    }

    /// Of each end, what it has sent.
    pub fn drained(&self) -> Vec<Drained> {
        self.ends.iter().map(RunningEnd::drained).collect()
    }

    /// Waits for all that was sent to this node, or where it may be lost until nothing comes any more, closes the windows
    /// of what it receives, and with `--verify` checks what shows only at the end. `peers` is what the other end of each
    /// flow has sent.
    ///
    /// # Errors
    /// As [`RunningNode::wait`]; the first mismatch.
    pub fn settle(
        &self,
        link: &Link,
        stop: &AtomicBool,
        peers: &[Drained],
    ) -> Result<Option<Message>, EarlyEnd> {
        let mut arrivals: Vec<Arrivals> =
            self.ends.iter().zip(peers).map(|(end, _)| Arrivals::new(end)).collect();
        let early = self.wait(link, stop, |node| {
            let ends = node.ends.iter().zip(peers).zip(&mut arrivals);
            // Each is looked at each time, for each has a quiet time of its own.
            ends.map(|((end, peer), arrivals)| !arrivals.are_over(end, peer))
                .filter(|is_awaited| *is_awaited)
                .count()
                == 0
        })?;
        if early.is_some() {
            return Ok(early);
        }
        self.ends.iter().filter(|end| !end.initiates()).for_each(|end| end.set_phase(Phase::Drain));
        match self.ends.iter().zip(peers).find_map(|(end, peer)| end.mismatch(peer, link)) {
            None => Ok(None),
            Some(mismatch) => Err(EarlyEnd::Known(wrong_payload(&mismatch))),
        }
    }

    /// Bytes that the devices have sent and received, if they report them without delay.
    fn device_bytes(&self) -> Option<u64> {
        self.events.iter().try_fold(0, |sum, (context, _)| {
            let counters = context.counters()?;
            let bytes = counters
                .iter()
                .filter(|(name, _)| *name == "bytes_sent" || *name == "bytes_received");
            Some(sum + bytes.map(|(_, bytes)| bytes).sum::<u64>())
        })
    }

    /// Checks this node's workers and devices.
    ///
    /// # Errors
    /// [`EarlyEnd::Workers`] if a worker met an error, which its report explains; or a device event.
    pub fn check(&self) -> Result<(), EarlyEnd> {
        let failed = self.ends.iter().any(|end| end.shared.has_failed());
        for (context, events) in &self.events {
            while let Some(event) = events.next() {
                self.judge(context, event, failed)?;
            }
        }
        // Once a look: an SRQ that stays below its limit would raise the event again at once.
        for receives in self.ends().filter_map(|end| end.objects.shared_receives()) {
            receives.rearm().map_err(RunFailure::from)?;
        }
        if failed { Err(EarlyEnd::Workers) } else { Ok(()) }
    }

    fn judge(&self, context: &Context, event: AsyncEvent, failed: bool) -> Result<(), EarlyEnd> {
        let mut entries = 0;
        if let AsyncEvent::SrqLimit { srq } = event {
            // None of them has it if an earlier run has left it behind.
            let mut receives = self.ends().filter_map(|end| end.objects.shared_receives());
            receives.any(|receives| receives.count_limit(srq));
            return Ok(());
        }
        if let AsyncEvent::CqError { cq } = event {
            // An earlier run may have left an event behind.
            match self
                .ends()
                .find(|end| end.objects.cqs().iter().any(|own| AsyncEvents::is_cq(own, cq)))
            {
                Some(end) => entries = end.objects.cq_entries(),
                None => return Ok(()),
            }
        } else if let AsyncEvent::SrqError { srq } = event {
            let mut receives = self.ends().filter_map(|end| end.objects.shared_receives());
            if !receives.any(|receives| receives.is(srq)) {
                return Ok(());
            }
        } else if failed {
            // What the QP's worker saw says more than the event.
            return Ok(());
        }
        match RunFailure::from_event(event, context.name(), entries) {
            Some(failure) => Err(EarlyEnd::Known(failure)),
            None => Ok(()),
        }
    }

    /// Waits until `done`, and checks this node and its link meanwhile. Gives the run up when nothing has moved for so
    /// long that something must be lost. Returns a message of the coordinator if one came first.
    ///
    /// # Errors
    /// The first reason to end the run.
    pub fn wait(
        &self,
        link: &Link,
        stop: &AtomicBool,
        mut done: impl FnMut(&RunningNode) -> bool,
    ) -> Result<Option<Message>, EarlyEnd> {
        let ends = || self.ends.iter().map(|end| (end.shared.flow(), end.shared.counts()));
        let mut motion = StallDetector::new(ends(), self.device_bytes(), Instant::now());
        loop {
            let is_done = done(self);
            // Check after reading the counts: a worker reports a failure before it counts the failed message, so a
            // failure of the last message is not missed.
            self.check()?;
            if is_done {
                return Ok(None);
            }
            if let Some(message) = link.try_recv()? {
                return unless_end(message).map(Some);
            }
            if stop.load(Ordering::Relaxed) {
                return Err(EarlyEnd::Interrupted);
            }
            if motion.goes_on(ends(), self.device_bytes(), Instant::now())? {
                link.progressed();
            }
            std::thread::sleep(TICK);
        }
    }

    /// Waits for the coordinator's next message, and checks this node meanwhile.
    ///
    /// # Errors
    /// As [`RunningNode::wait`]; `limit` without a message or movement there.
    pub fn recv(
        &self,
        link: &Link,
        stop: &AtomicBool,
        limit: Duration,
    ) -> Result<Message, EarlyEnd> {
        recv(link, stop, limit, || self.check())
    }

    /// Ends the workers and collects their reports. After a failure (`flush`), moves the QPs to ERR first and counts
    /// the flushed completions.
    ///
    /// # Errors
    /// A worker died.
    pub fn finish(self, flush: bool) -> Result<Vec<FinishedEnd>, RunFailure> {
        if flush {
            for end in &self.ends {
                end.shared.set_phase(Phase::Abort);
                end.end.objects.flush();
            }
            if self.pool.is_some() {
                std::thread::sleep(FLUSH_LIMIT);
            }
        }
        let mut of_ends =
            self.pool.map(WorkerPool::finish).transpose()?.unwrap_or_default().into_iter();
        Ok(self
            .ends
            .into_iter()
            .map(|RunningEnd { end, shared }| {
                let workers = of_ends.next().unwrap_or_default();
                FinishedEnd { workers, end, edges: shared.edges(), window: shared.window() }
            })
            .collect())
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

/// Why a run ended early at a node.
#[derive(Debug)]
pub enum EarlyEnd {
    /// A worker met an error, which its report explains.
    Workers,
    Known(RunFailure),
    /// The node was asked to stop.
    Interrupted,
    /// The coordinator ends the run.
    Finish {
        /// What is still in the queues is given up.
        flush: bool,
    },
}

impl EarlyEnd {
    /// The reason as a person should hear it: of a worker what it saw, where its end has come to rest.
    pub fn failure(self, finished: &[FinishedEnd], interrupted: fn() -> RunFailure) -> RunFailure {
        let troubles = finished.iter().flat_map(FinishedEnd::troubles);
        match self {
            EarlyEnd::Workers => RunFailure::from_trouble(&troubles).unwrap_or_else(|| {
                let text = "a worker stopped without a reason: this is a fault of rocebench";
                RunFailure::new(text, None)
            }),
            EarlyEnd::Known(failure) => failure,
            EarlyEnd::Interrupted | EarlyEnd::Finish { .. } => interrupted(),
        }
    }
}

impl From<RunFailure> for EarlyEnd {
    fn from(failure: RunFailure) -> Self {
        EarlyEnd::Known(failure)
    }
}

impl From<LinkError> for EarlyEnd {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::Interrupted { .. } => EarlyEnd::Interrupted,
            error => EarlyEnd::Known(error.into()),
        }
    }
}

/// Waits for the coordinator's next message; calls `check` meanwhile.
///
/// # Errors
/// The link's end, `limit` without a message or movement there, an interrupt, the run's end, or an error of `check`.
pub fn recv(
    link: &Link,
    stop: &AtomicBool,
    limit: Duration,
    check: impl Fn() -> Result<(), EarlyEnd>,
) -> Result<Message, EarlyEnd> {
    let (message, _) = link.recv_while_peer_moves(limit, TICK, stop, check)?;
    unless_end(message)
}

/// A message, unless it ends the run.
pub(crate) fn unless_end(message: Message) -> Result<Message, EarlyEnd> {
    match message {
        Message::Finish { flush } => Err(EarlyEnd::Finish { flush }),
        message => Ok(message),
    }
}

fn wrong_payload(mismatch: &Mismatch) -> RunFailure {
    RunFailure::new(format!("verification failed: {mismatch}"), Some(VERIFY_HINT.into()))
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
