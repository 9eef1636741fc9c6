//! The state of one flow that its workers at a node share with the thread that controls them.

use std::sync::atomic::Ordering::{self, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock};

use crossbeam_utils::CachePadded;
use metrics::Clock;
use metrics::latency::{Digits, LiveCounters, SampleCounters, Samples};
use settings::{CqMode, Settings};
use verbs::{StampClock, Wakeup};

use crate::operation::mix;
use crate::{Geometry, QpContext, SharedReceives, StepPart};

/// What the workers do. They read it once per pass over their CQs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Phase {
    /// Receive what comes; send nothing yet.
    Idle,
    /// Send, and record nothing yet.
    Warmup,
    /// Send, and record within the window.
    Measure,
    /// Let the queues run empty; record nothing.
    Drain,
    /// Post the receives that are used up, for the workers of another run on the same QPs.
    Refill,
    /// Post nothing more at all: something failed.
    Abort,
    Exit,
}

/// One worker's counts since the start, written by it alone.
#[derive(Default)]
pub struct Counters {
    pub posted: AtomicU64,
    pub completed: AtomicU64,
    pub received: AtomicU64,
    /// These have no order to the others.
    pub(super) polls: AtomicU64,
    pub(super) empty_polls: AtomicU64,
    pub(super) receives_posted: AtomicU64,
    /// The phase that it has entered: it has filled the send queues if the phase requires it, and published its
    /// counts up to then.
    pub(super) entered: AtomicU32,
    /// Raw clock readings when its window opened and closed; 0 for not yet.
    pub(super) opened_raw: AtomicU64,
    pub(super) closed_raw: AtomicU64,
    /// Messages that it had completed when the window opened.
    pub(super) completed_before: AtomicU64,
    pub(super) completed_by_end: AtomicU64,
}

/// The instants between which all workers of an end measure, as raw clock readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowEdges {
    /// First instant of the window.
    pub opens_raw: u64,
    /// First instant after the window.
    pub closes_raw: u64,
}

impl WindowEdges {
    /// A window that opens when a worker enters [`Phase::Measure`] and closes when it enters another phase.
    pub const OF_PHASE: WindowEdges = WindowEdges { opens_raw: 0, closes_raw: u64::MAX };

    fn to_array(self) -> [u64; 2] {
        [self.opens_raw, self.closes_raw]
    }
}

/// Progress of the windows of an end's workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowProgress {
    /// Messages completed in the windows.
    pub completed: u64,
    /// Time since the windows were to open, or since the first one opened; stops when they close.
    pub elapsed_ns: u64,
    /// Whether all windows have closed.
    pub is_closed: bool,
}

/// Sums of all workers' counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub posted: u64,
    pub completed: u64,
    pub received: u64,
}

/// What all workers have done since the start besides messages; each count is a little old.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    pub polls: u64,
    /// How many of them found nothing.
    pub empty_polls: u64,
    /// Receives that they posted in place of used ones.
    pub receives_posted: u64,
}

/// A run of one flow, as its workers see it.
pub struct Shared {
    pub(super) flow: Settings,
    pub(super) geometry: Geometry,
    pub(super) qp_contexts: Vec<QpContext>,
    /// The SRQ of its receiving end, if it has one.
    pub(super) shared_receives: Option<Arc<SharedReceives>>,
    pub(super) clock: Clock,
    /// The device's, where latencies end at its stamps.
    pub(super) stamp_clock: Option<StampClock>,
    /// In lock-step: its part of the node's streams.
    pub(super) lock_step: Option<StepPart>,
    pub(super) digits: Digits,
    /// This end answers what comes.
    pub(super) answers: bool,
    /// Of the planned times of an open loop.
    pub(super) seed: u64,
    /// Of its QPs; 0 if unknown.
    path_mtu_bytes: u32,
    phase: CachePadded<AtomicU32>,
    failed: CachePadded<AtomicBool>,
    counters: Vec<CachePadded<Counters>>,
    pub(super) qp_counts: QpCounts,
    watched: Watched,
    /// The raw clock readings of [`WindowEdges`].
    edges: [AtomicU64; 2],
    /// Wakes each thread that serves the flow and sleeps.
    wakeups: OnceLock<Vec<Arc<Wakeup>>>,
}

impl Shared {
    /// A run of `flow` over these QPs, which `workers` threads serve.
    pub fn new(
        flow: Settings,
        qp_contexts: Vec<QpContext>,
        clock: Clock,
        digits: Digits,
        workers: usize,
    ) -> Self {
        Shared {
            geometry: Geometry::from_flow(&flow),
            seed: flow.seed,
            path_mtu_bytes: 0,
            answers: false,
            flow,
            qp_counts: QpCounts::new(qp_contexts.len(), workers),
            watched: Watched::new(qp_contexts.len()),
            qp_contexts,
            shared_receives: None,
            clock,
            stamp_clock: None,
            lock_step: None,
            digits,
            phase: CachePadded::new(AtomicU32::new(Phase::Idle as u32)),
            failed: CachePadded::new(AtomicBool::new(false)),
            counters: (0..workers).map(|_| CachePadded::default()).collect(),
            edges: WindowEdges::OF_PHASE.to_array().map(AtomicU64::new),
            wakeups: OnceLock::new(),
        }
    }

    /// Makes the planned times of an open loop those of this end of a flow in this run: others have others.
    #[must_use]
    pub fn with_stream(mut self, stream: u64) -> Self {
        self.seed = mix(self.seed).wrapping_add(stream);
        self
    }

    /// Tells whether this end begins what it sends. In a ping-pong the other end answers.
    #[must_use]
    pub fn with_initiative(mut self, initiates: bool) -> Self {
        self.answers = !initiates && self.flow.is_answered();
        self
    }

    /// Tells the path MTU of its QPs.
    #[must_use]
    pub fn with_path_mtu(mut self, bytes: u32) -> Self {
        self.path_mtu_bytes = bytes;
        self
    }

    /// Payload of the largest packet of its messages.
    pub(super) fn largest_packet_bytes(&self) -> u32 {
        let largest = self.flow.sizes().map(|(bytes, _)| bytes).max();
        self.path_mtu_bytes.min(largest.unwrap_or(0))
    }

    /// Takes receives from an SRQ.
    #[must_use]
    pub fn with_shared_receives(mut self, receives: Option<Arc<SharedReceives>>) -> Self {
        self.shared_receives = receives;
        self
    }

    /// Ends latencies at the device's stamps of completions, by its clock; the CQs must have stamps.
    #[must_use]
    pub fn with_stamps(mut self, clock: Option<StampClock>) -> Self {
        self.stamp_clock = clock;
        self
    }

    /// Moves its messages in lock-step with the other ends of its node.
    pub fn set_lock_step(&mut self, part: Option<StepPart>) {
        self.lock_step = part;
    }

    pub fn flow(&self) -> &Settings {
        &self.flow
    }

    pub fn qp_contexts(&self) -> &[QpContext] {
        &self.qp_contexts
    }

    /// Its QPs, for another run.
    pub fn into_qp_contexts(self) -> Vec<QpContext> {
        self.qp_contexts
    }

    /// The clock of all times of the run.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Tells the workers what to do, and wakes those that sleep.
    pub fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u32, Ordering::Release);
        for wakeup in self.wakeups.get().into_iter().flatten() {
            wakeup.wake();
        }
    }

    /// Sets when the window opens and closes; call it before setting [`Phase::Measure`]. The default is
    /// [`WindowEdges::OF_PHASE`].
    pub fn set_edges(&self, edges: WindowEdges) {
        // Setting the phase afterwards makes them visible.
        for (cell, edge) in self.edges.iter().zip(edges.to_array()) {
            cell.store(edge, Relaxed);
        }
    }

    /// When the window opens and closes.
    pub fn edges(&self) -> WindowEdges {
        let [opens_raw, closes_raw] = self.edges.each_ref().map(|cell| cell.load(Relaxed));
        WindowEdges { opens_raw, closes_raw }
    }

    /// Progress of the workers' windows.
    pub fn window(&self) -> WindowProgress {
        let mut progress =
            WindowProgress { is_closed: !self.counters.is_empty(), ..WindowProgress::default() };
        let edges = self.edges();
        let (mut first_raw, mut last_raw) = (u64::MAX, 0);
        for counters in &self.counters {
            let opened_raw = counters.opened_raw.load(Ordering::Acquire);
            let closed_raw = counters.closed_raw.load(Ordering::Acquire);
            let is_closed = closed_raw != 0;
            progress.is_closed &= is_closed;
            if opened_raw == 0 {
                continue;
            }
            let now = if is_closed {
                counters.completed_by_end.load(Relaxed)
            } else {
                counters.completed.load(Ordering::Acquire)
            };
            let before = counters.completed_before.load(Relaxed);
            progress.completed += now.saturating_sub(before);
            first_raw = first_raw.min(opened_raw);
            last_raw = last_raw.max(closed_raw);
        }
        // A worker opens its window at its last look before the edge.
        if edges != WindowEdges::OF_PHASE {
            first_raw = first_raw.min(edges.opens_raw);
        }
        if !progress.is_closed {
            last_raw = self.clock.raw().min(edges.closes_raw);
        }
        progress.elapsed_ns = self.clock.ns_between(first_raw, last_raw);
        progress
    }

    /// Stores the wakeups, before the first thread starts.
    pub(super) fn set_wakeups(&self, wakeups: Vec<Arc<Wakeup>>) {
        // Threads are started only once.
        let _ = self.wakeups.set(wakeups);
    }

    #[inline]
    pub(super) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Idle,
            1 => Phase::Warmup,
            2 => Phase::Measure,
            3 => Phase::Drain,
            4 => Phase::Refill,
            5 => Phase::Abort,
            _ => Phase::Exit,
        }
    }

    /// Whether a worker met an error.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Relaxed)
    }

    pub(super) fn set_failed(&self) {
        self.failed.store(true, Relaxed);
    }

    pub(super) fn counters(&self, worker: usize) -> Option<&Counters> {
        self.counters.get(worker).map(|counters| &**counters)
    }

    /// Whether all workers have entered `phase`. Counts are meaningless before, because filling the send queues of a
    /// slow device takes time.
    pub fn all_entered(&self, phase: Phase) -> bool {
        self.counters
            .iter()
            .all(|counters| counters.entered.load(Ordering::Acquire) == phase as u32)
    }

    /// Whether all workers drain and nothing is in flight. Equal sums alone do not prove it: a worker may be about to
    /// post in a phase that it entered late, or may have posted messages whose completions another worker already
    /// counts.
    pub fn at_rest(&self) -> bool {
        if !self.all_entered(Phase::Drain) {
            return false;
        }
        let counts = self.counts();
        counts.posted == counts.completed
    }

    /// All counts so far. Reads completed before posted, while a worker writes posted first. So if all workers drain,
    /// equal sums mean that nothing is in flight.
    pub fn counts(&self) -> Counts {
        let received = self.sum(|counters| &counters.received);
        let completed = self.sum(|counters| &counters.completed);
        let posted = self.sum(|counters| &counters.posted);
        Counts { posted, completed, received }
    }

    pub fn activity(&self) -> Activity {
        Activity {
            polls: self.sum(|counters| &counters.polls),
            empty_polls: self.sum(|counters| &counters.empty_polls),
            receives_posted: self.sum(|counters| &counters.receives_posted),
        }
    }

    fn sum(&self, counter: impl Fn(&Counters) -> &AtomicU64) -> u64 {
        self.counters.iter().map(|counters| counter(counters).load(Ordering::Acquire)).sum()
    }

    /// Posted messages of each QP completed since the start, by index of the QP.
    pub fn read_completed(&self, of_qps: &mut [u64]) {
        self.qp_counts.read(of_qps);
    }

    /// A recorder of a QP's latencies in a worker's counters.
    pub(super) fn new_samples(
        &self,
        counters: &Arc<SampleCounters>,
        qp: usize,
        worker: usize,
    ) -> Samples {
        let samples = counters.recorder();
        // Of a QP that all workers serve, one at random is looked at.
        let chosen = mix(qp as u64) as usize % self.counters.len().max(1);
        if !self.contended() || worker == chosen {
            self.watched.offer(qp, &samples);
        }
        samples
    }

    /// Latencies of some of its QPs, to be read while they are recorded; of none before the workers run.
    pub fn live_latencies(&self) -> Vec<LiveCounters> {
        self.watched.recorders()
    }

    /// Whether its end posts sends.
    pub(super) fn sends(&self) -> bool {
        let mut contexts = self.qp_contexts.iter();
        contexts.any(|qp_context| qp_context.sender.is_some())
    }

    /// Whether several workers may handle completions of one QP.
    pub(super) fn contended(&self) -> bool {
        self.flow.cq == CqMode::Shared && self.counters.len() > 1
    }
}

// Messages that each QP's sender has completed since the start, for the thread that samples. Each worker has cells of its
// own, which it alone writes with plain stores; no cache line has cells of two workers.

/// Cells of a padded block, which they fill.
const CELLS: usize = 16;

type Cells = Box<[CachePadded<[AtomicU64; CELLS]>]>;

/// The counts of all workers of an end.
pub(super) struct QpCounts {
    workers: Vec<Cells>,
}

impl QpCounts {
    /// Memory that a worker keeps per QP of the run, in bytes.
    pub(super) const BYTES_PER_QP: usize = size_of::<AtomicU64>();

    pub(super) fn new(qps: usize, workers: usize) -> QpCounts {
        QpCounts {
            workers: (0..workers)
                .map(|_| (0..qps.div_ceil(CELLS)).map(|_| CachePadded::default()).collect())
                .collect(),
        }
    }

    /// A worker's cells, by index of the QP; at least one for each QP.
    pub(super) fn of_worker(&self, worker: usize) -> impl Iterator<Item = &AtomicU64> {
        self.workers.get(worker).into_iter().flatten().flat_map(|block| block.iter())
    }

    /// Writes the counts of all workers together, by index of the QP.
    pub(super) fn read(&self, into: &mut [u64]) {
        into.fill(0);
        for worker in 0..self.workers.len() {
            for (sum, cell) in into.iter_mut().zip(self.of_worker(worker)) {
                *sum += cell.load(Relaxed);
            }
        }
    }
}

// Latencies of some QPs of an end, for a thread that reads them while they are recorded.
//
// A look takes each cache line of counters that a worker has written since the last one from that worker, which waits
// about 100 ns for each to come back. Latencies of a QP lie in some 100 lines, so 16 QPs cost their workers together
// about 160 µs a look.

/// The most QPs that are watched.
const MOST: usize = 16;

/// Recorders of some QPs, spread evenly over all.
pub(super) struct Watched {
    /// One QP of each group of so many is watched.
    group: usize,
    qps: usize,
    recorders: Box<[OnceLock<LiveCounters>]>,
}

impl Watched {
    pub(super) fn new(qps: usize) -> Watched {
        let group = qps.div_ceil(MOST).max(1);
        Watched {
            group,
            qps,
            recorders: (0..qps.div_ceil(group)).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Keeps a recorder of this QP, if it is one of those; the first one that is offered.
    pub(super) fn offer(&self, qp: usize, samples: &Samples) {
        let number = qp / self.group;
        let of_group = self.group.min(self.qps.saturating_sub(number * self.group)).max(1);
        // At random, because equal distances would be those of the QPs of one worker.
        if qp % self.group == mix(number as u64) as usize % of_group
            && let Some(recorder) = self.recorders.get(number)
        {
            let _ = recorder.set(samples.live());
        }
    }

    pub(super) fn recorders(&self) -> Vec<LiveCounters> {
        self.recorders.iter().filter_map(|recorder| recorder.get().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use metrics::latency::Digits;

    use super::*;

    #[test]
    fn counts_are_those_of_all_workers_and_no_line_is_shared() {
        let counts = QpCounts::new(17, 2);
        for worker in 0..2 {
            let cells: Vec<_> = counts.of_worker(worker).collect();
            assert!(cells.len() >= 17);
            cells[16].store(5 + worker as u64, Relaxed);
            let first = std::ptr::from_ref(cells[0]).addr();
            assert_eq!(first % align_of::<CachePadded<u8>>(), 0);
        }
        let mut read = [9; 17];
        counts.read(&mut read);
        assert_eq!(read[15..], [0, 11]);
        assert_eq!(counts.of_worker(2).count(), 0);
    }

    #[test]
    fn cells_fill_their_blocks() {
        let bytes = size_of::<CachePadded<[AtomicU64; CELLS]>>();
        assert!(bytes >= CELLS * QpCounts::BYTES_PER_QP);
        if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
            assert_eq!(bytes, CELLS * QpCounts::BYTES_PER_QP);
        }
    }

    #[test]
    fn a_few_qps_of_all_workers_are_watched() {
        let samples = Samples::new(Digits::Two);
        for (qps, expected) in [(0, 0), (1, 1), (16, 16), (64, 16), (1000, 16)] {
            let watched = Watched::new(qps);
            let mut of_workers = [0; 4];
            for qp in 0..qps {
                let before = watched.recorders().len();
                watched.offer(qp, &samples);
                watched.offer(qp, &samples);
                of_workers[qp % 4] += watched.recorders().len() - before;
            }
            assert_eq!(watched.recorders().len(), expected, "{qps} QPs");
            if qps >= 16 {
                assert!(of_workers.iter().all(|&count| count > 0), "{of_workers:?}");
            }
        }
    }
}
