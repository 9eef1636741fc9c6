//! One end of a run in progress: connected QPs, their workers, and the checks of both.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::datapath::{
    Counts, Edges, Geometry, Mismatch, Phase, QpContext, Shared, Trouble, WindowProgress,
    WorkerPool, WorkerReport,
};
use crate::metrics::clock::Clock;
use crate::metrics::histogram::digits_for;
use crate::plan::Case;
use settings::Stop;
use verbs::{AsyncEvent, AsyncEvents};

use crate::node::needs::recorders;
use crate::node::stall::{StallDetector, stall_limit};
use crate::node::verbs_objects::VerbsObjects;
use crate::protocol::error::LinkError;
use crate::protocol::failure::{RunFailure, VERIFY_HINT};
use crate::protocol::link::Link;
use crate::protocol::message::{Drained, Message};
use crate::protocol::posts::Posts;

/// Interval of the checks while waiting.
pub const TICK: Duration = Duration::from_millis(10);

/// From the agreement on a window to its start: time for all workers to learn of it.
const WINDOW_LEAD: Duration = Duration::from_millis(20);

/// How much longer this end waits than the peer, which can give the reason.
const AFTER_THE_PEER: Duration = Duration::from_secs(30);

/// How long flushed completions are collected after a failure.
const FLUSH_LIMIT: Duration = Duration::from_millis(200);

/// A running end.
pub struct RunningNode {
    objects: VerbsObjects,
    shared: Arc<Shared>,
    pool: Option<WorkerPool>,
    events: Option<AsyncEvents>,
}

/// An end whose run is over.
pub struct Finished {
    /// Its verbs objects, still allocated.
    pub objects: VerbsObjects,
    /// The workers' reports; empty if the end only offered memory.
    pub workers: Vec<WorkerReport>,
    /// The QPs' numbers.
    pub qpns: Vec<u32>,
    /// When the window was to open and to close.
    pub edges: Edges,
    /// Progress of the workers' windows.
    pub window: WindowProgress,
}

impl RunningNode {
    /// Starts the workers, which receive but do not send yet. `cores` has one entry per worker.
    ///
    /// # Errors
    /// No thread or no such core.
    pub fn start(
        objects: VerbsObjects,
        qp_contexts: Vec<QpContext>,
        case: &Case,
        clock: &Clock,
        cores: &[Option<usize>],
    ) -> Result<RunningNode, RunFailure> {
        let duties = objects.duties();
        let cores = if duties.sends || duties.receives {
            cores
        } else {
            &[]
        };
        let shared = Arc::new(Shared::new(
            case.clone(),
            qp_contexts,
            clock.clone(),
            digits_for(recorders(case)),
            cores.len(),
        ));
        let pool = match cores {
            [] => None,
            cores => Some(WorkerPool::start(&shared, objects.worker_specs(cores))?),
        };
        Ok(RunningNode {
            events: AsyncEvents::new(&objects.port().context).ok(),
            objects,
            shared,
            pool,
        })
    }

    /// The verbs objects.
    pub fn objects(&self) -> &VerbsObjects {
        &self.objects
    }

    /// Tells the workers what to do; sets the budget of a measurement with a message count.
    pub fn set_phase(&self, phase: Phase) {
        let case = self.shared.case();
        if let (Phase::Measure, Stop::MessagesPerQp(messages)) = (phase, case.stop()) {
            let geometry = Geometry::of(case);
            for sender in self
                .shared
                .qp_contexts()
                .iter()
                .filter_map(|qp_context| qp_context.sender.as_ref())
            {
                sender.set_budget(&geometry, messages);
            }
        }
        self.shared.set_phase(phase);
    }

    /// Starts the measurement: returns when all workers know the window. A window with a duration opens 20 ms from
    /// now, with the queues already full.
    ///
    /// # Errors
    /// As [`RunningNode::wait`].
    pub fn start_window(&self, link: &Link, stop: &AtomicBool) -> Result<(), Broken> {
        if let Stop::DurationNs(length_ns) = self.shared.case().stop() {
            if self.objects.duties().sends && !self.all_entered(Phase::Warmup) {
                self.set_phase(Phase::Warmup);
                self.wait(link, stop, |_| self.all_entered(Phase::Warmup))?;
            }
            let clock = self.shared.clock();
            let opens_raw = clock.raw_after(clock.raw(), WINDOW_LEAD.as_nanos() as u64);
            self.shared.set_edges(Edges {
                opens_raw,
                closes_raw: clock.raw_after(opens_raw, length_ns),
            });
        }
        self.set_phase(Phase::Measure);
        self.wait(link, stop, |_| self.all_entered(Phase::Measure))
    }

    /// Progress of the workers' windows.
    pub fn window(&self) -> WindowProgress {
        self.shared.window()
    }

    /// Whether all workers have entered `phase`.
    pub fn all_entered(&self, phase: Phase) -> bool {
        self.shared.all_entered(phase)
    }

    /// Whether the send queues are empty after draining.
    pub fn at_rest(&self) -> bool {
        self.shared.at_rest()
    }

    /// The workers' counts so far.
    pub fn counts(&self) -> Counts {
        self.shared.counts()
    }

    /// Bytes that the device has sent and received, if it reports them without delay.
    fn device_bytes(&self) -> Option<u64> {
        let counters = self.objects.port().context.counters()?;
        let moved = |name: &str| name == "bytes_sent" || name == "bytes_received";
        Some(
            counters
                .iter()
                .filter(|(name, _)| moved(name))
                .map(|(_, bytes)| bytes)
                .sum(),
        )
    }

    /// Checks this end's workers and device.
    ///
    /// # Errors
    /// [`Broken::Workers`] if a worker met an error, which its report explains; or a device event.
    pub fn check(&self) -> Result<(), Broken> {
        let failed = self.shared.has_failed();
        while let Some(event) = self.events.as_ref().and_then(AsyncEvents::next) {
            if let AsyncEvent::CqError { cq } = event {
                // A server's earlier run may have left an event behind.
                if !self
                    .objects
                    .cqs()
                    .iter()
                    .any(|own| AsyncEvents::is_cq(own, cq))
                {
                    continue;
                }
            } else if failed {
                // What the QP's worker saw says more than the event.
                continue;
            }
            let device = self.objects.port().context.name();
            if let Some(failure) = RunFailure::from_event(event, device, self.objects.cq_entries())
            {
                return Err(Broken::Known(failure));
            }
        }
        if failed {
            return Err(Broken::Workers);
        }
        Ok(())
    }

    /// Waits until `done`, and checks both ends meanwhile. Gives the run up when nothing has moved for so long that
    /// something must be lost.
    ///
    /// # Errors
    /// The first reason to end the run.
    pub fn wait(
        &self,
        link: &Link,
        stop: &AtomicBool,
        mut done: impl FnMut(Counts) -> bool,
    ) -> Result<(), Broken> {
        let mut motion = StallDetector::new(self.shared.case(), self.counts(), self.device_bytes());
        loop {
            let counts = self.counts();
            let is_done = done(counts);
            // Check after reading the counts: a worker reports a failure before it counts the failed message, so a
            // failure of the last message is not missed.
            self.check()?;
            link.check()?;
            if is_done {
                return Ok(());
            }
            if stop.load(Ordering::Relaxed) {
                return Err(Broken::Interrupted);
            }
            if motion.goes_on(counts, self.device_bytes())? {
                link.progressed();
            }
            std::thread::sleep(TICK);
        }
    }

    /// Waits until the send queues are empty.
    ///
    /// # Errors
    /// As [`RunningNode::wait`].
    pub fn drain(&self, link: &Link, stop: &AtomicBool) -> Result<(), Broken> {
        self.set_phase(Phase::Drain);
        self.wait(link, stop, |_| self.at_rest())
    }

    /// The message to the peer once this end is drained.
    pub fn drained(&self) -> Drained {
        let case = self.shared.case();
        let senders = self.shared.qp_contexts().iter();
        let posts = case.verify.then(|| Posts {
            positions: Geometry::of(case).ring(),
            packed: senders
                .filter_map(|qp_context| qp_context.sender.as_ref()?.posts())
                .flatten()
                .collect(),
        });
        Drained {
            sent_messages: self.counts().posted,
            posts,
        }
    }

    /// Waits until all messages of the peer have been received.
    ///
    /// # Errors
    /// As [`RunningNode::wait`].
    pub fn await_received(
        &self,
        link: &Link,
        stop: &AtomicBool,
        peer: &Drained,
    ) -> Result<(), Broken> {
        if !self.objects.duties().receives {
            return Ok(());
        }
        self.wait(link, stop, |counts| counts.received >= peer.sent_messages)
    }

    /// Waits for the peer to drain. The peer detects a loss itself, and reports it.
    ///
    /// # Errors
    /// As [`RunningNode::recv`].
    pub fn await_drained(&self, link: &Link, stop: &AtomicBool) -> Result<Box<Drained>, Broken> {
        let limit = stall_limit(self.shared.case()) + AFTER_THE_PEER;
        match self.recv(link, stop, limit)? {
            Message::Drained(peer) => Ok(peer),
            other => Err(link.unexpected("drained", &other).into()),
        }
    }

    /// With `--verify`, checks what shows only at the end: written memory, and that all messages arrived. Reports
    /// progress on `link`.
    ///
    /// # Errors
    /// The first mismatch.
    pub fn verify(&self, link: &Link, peer: &Drained) -> Result<(), Broken> {
        let Some(posts) = peer.posts.as_ref().filter(|_| self.shared.case().verify) else {
            return Ok(());
        };
        let qp_contexts = self.shared.qp_contexts().iter();
        let mismatch =
            (0..)
                .zip(qp_contexts)
                .zip(posts.of_qps())
                .find_map(|((qp, qp_context), posts)| {
                    link.progressed();
                    let arrived = || qp_context.receiver.as_ref()?.check_counts(posts);
                    self.objects.check_written(qp, posts).or_else(arrived)
                });
        match mismatch {
            None => Ok(()),
            Some(mismatch) => Err(Broken::Known(wrong_payload(&mismatch))),
        }
    }

    /// Waits for the peer's next message, and checks this end meanwhile.
    ///
    /// # Errors
    /// As [`RunningNode::wait`]; `limit` without a message or movement at the peer.
    pub fn recv(&self, link: &Link, stop: &AtomicBool, limit: Duration) -> Result<Message, Broken> {
        recv(link, stop, limit, || self.check())
    }

    /// Ends the workers and collects their reports. After a failure (`flush`), moves the QPs to ERR first and counts
    /// the flushed completions.
    ///
    /// # Errors
    /// A worker died.
    pub fn finish(self, flush: bool) -> Result<Finished, RunFailure> {
        if flush {
            self.shared.set_phase(Phase::Abort);
            self.objects.flush();
            if self.pool.is_some() {
                std::thread::sleep(FLUSH_LIMIT);
            }
        }
        let workers = self
            .pool
            .map_or_else(|| Ok(Vec::new()), WorkerPool::finish)?;
        let qpns = self
            .shared
            .qp_contexts()
            .iter()
            .map(|qp_context| qp_context.qp.qpn())
            .collect();
        Ok(Finished {
            objects: self.objects,
            workers,
            qpns,
            edges: self.shared.edges(),
            window: self.shared.window(),
        })
    }
}

impl Finished {
    /// The errors that the workers met.
    pub fn troubles(&self) -> impl Iterator<Item = &Trouble> + Clone {
        self.workers.iter().map(|worker| &worker.trouble)
    }
}

/// Why a run ended early.
#[derive(Debug)]
pub enum Broken {
    /// A worker met an error, which its report explains.
    Workers,
    /// This failure.
    Known(RunFailure),
    /// The user asked to stop.
    Interrupted,
}

impl Broken {
    /// The reason as a person should hear it: of a worker what it saw, where its end has come to rest.
    pub fn told(self, finished: Option<&Finished>, interrupted: fn() -> RunFailure) -> RunFailure {
        let seen = || finished.and_then(|it| RunFailure::from_trouble(&it.troubles()));
        match self {
            Broken::Workers => seen().unwrap_or_else(|| {
                let text = "a worker stopped without a reason: this is a fault of rocebench";
                RunFailure::new(text, None)
            }),
            Broken::Known(failure) => failure,
            Broken::Interrupted => interrupted(),
        }
    }
}

impl From<RunFailure> for Broken {
    fn from(failure: RunFailure) -> Self {
        Broken::Known(failure)
    }
}

impl From<LinkError> for Broken {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::Interrupted { .. } => Broken::Interrupted,
            error => Broken::Known(error.into()),
        }
    }
}

/// Waits for the peer's next message; calls `check` meanwhile.
///
/// # Errors
/// The link's end, `limit` without a message or movement at the peer, an interrupt, or an error of `check`.
pub fn recv(
    link: &Link,
    stop: &AtomicBool,
    limit: Duration,
    check: impl Fn() -> Result<(), Broken>,
) -> Result<Message, Broken> {
    let (message, _) = link.recv_while_peer_moves(limit, TICK, stop, check)?;
    Ok(message)
}

fn wrong_payload(mismatch: &Mismatch) -> RunFailure {
    RunFailure::new(
        format!("verification failed: {mismatch}"),
        Some(VERIFY_HINT.into()),
    )
}
