//! The progress of a worker's measurement window, and what the worker counts of each QP, since the start and at the edges of
//! its window.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release};

use metrics::Clock;
use metrics::latency::{SampleCounters, Samples};
use settings::Stop;

use crate::shared::Counters;
use crate::{QpContext, QpReport, Sender, Shared, WindowEdges};

/// Later than any reading of a clock.
pub(super) const NEVER: u64 = u64::MAX;

/// A look at the CQs is late if more than this part of the window has passed since the last one.
const LATE_PARTS: u64 = 400;

/// A worker is away for a longer time between two looks at its CQs. A pass takes an adapter's program some 10 µs, and the
/// shortest turn that Linux gives another thread is 750 µs (`sched_min_granularity_ns`, since 6.6 `base_slice_ns`).
const AWAY_NS: u64 = 500_000;

/// That time in clock units; never late if the window has no fixed length.
pub(super) fn late_raw(clock: &Clock, stop: Stop) -> u64 {
    match stop {
        Stop::DurationNs(length_ns) => clock.raw_after(0, length_ns) / LATE_PARTS,
        Stop::MessagesPerQp(_) => NEVER,
    }
}

/// The time between two looks above which a worker is away, in clock units. What is late over an edge is away too.
pub(super) fn away_after_raw(clock: &Clock, stop: Stop) -> u64 {
    late_raw(clock, stop).min(clock.raw_after(0, AWAY_NS))
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WindowState {
    /// No window is set yet.
    None,
    /// The start is set and has not passed.
    Ahead,
    /// The start has passed; completions from before may still wait in the CQs.
    CatchingUp,
    Open,
    Closed,
}

/// A time in which a worker did not look at its CQs.
#[derive(Clone, Copy, Default)]
pub(super) struct Absence {
    pub(super) length_raw: u64,
    pub(super) end_raw: u64,
}

impl Absence {
    /// Until when the backlog of this absence may arrive.
    pub(super) fn reach_raw(self) -> u64 {
        self.end_raw + self.length_raw
    }
}

pub(super) struct Window {
    pub(super) state: WindowState,
    pub(super) edges: WindowEdges,
    /// The next instant at which the state changes.
    pub(super) edge_raw: u64,
    /// When the flow turns on or off next; never where it is on all the time.
    pub(super) turn_raw: u64,
    /// The earlier of `edge_raw` and `turn_raw`.
    pub(super) due_raw: u64,
    /// When it last found its CQs empty, or had taken a batch from them.
    pub(super) attended_raw: u64,
    /// When it last polled completions. The window of a run with a message count ends then.
    pub(super) seen_raw: u64,
    /// Records the latency of messages posted before this; 0 for none.
    pub(super) record_until_raw: u64,
    /// Clock units after which a look over an edge is late, and the reading at which it stops catching up.
    pub(super) late_raw: u64,
    pub(super) give_up_raw: u64,
    /// Clock units without a look after which the worker was away; never once the window is closed.
    pub(super) away_after_raw: u64,
    /// For how long it was away while the window was open.
    pub(super) away_raw: u64,
    /// The longest time of the window without a completion, from the last one to the last look before the next, and its length; at
    /// first the least length that is told.
    pub(super) stall_raw: Option<(u64, u64)>,
    pub(super) longest_stall_raw: u64,
    /// When the current pass over the CQs began, and whether one of its batches was full.
    pub(super) pass_began_raw: u64,
    pub(super) pass_was_full: bool,
    /// Completions seen when it began to catch up, and the most that can have piled up by then.
    pub(super) seen_before: u64,
    pub(super) most_piled_up: u64,
    pub(super) start_raw: Option<u64>,
    pub(super) end_raw: Option<u64>,
    /// How long it did not look at the CQs across the start and across the end of the window.
    pub(super) unattended_raw: [u64; 2],
    pub(super) absence: Absence,
    pub(super) cpu_seconds: f64,
    pub(super) polls: u64,
    pub(super) empty_polls: u64,
    pub(super) blocked: u64,
}

impl Window {
    pub(super) fn new(clock: &Clock, stop: Stop, most_piled_up: u64) -> Self {
        Window {
            state: WindowState::None,
            edges: WindowEdges::OF_PHASE,
            edge_raw: NEVER,
            turn_raw: NEVER,
            due_raw: NEVER,
            attended_raw: 0,
            seen_raw: 0,
            record_until_raw: 0,
            late_raw: late_raw(clock, stop),
            away_after_raw: away_after_raw(clock, stop),
            away_raw: 0,
            stall_raw: None,
            longest_stall_raw: clock.raw_after(0, AWAY_NS),
            give_up_raw: NEVER,
            pass_began_raw: 0,
            pass_was_full: false,
            seen_before: 0,
            most_piled_up,
            start_raw: None,
            end_raw: None,
            unattended_raw: [0; 2],
            absence: Absence::default(),
            cpu_seconds: 0.0,
            polls: 0,
            empty_polls: 0,
            blocked: 0,
        }
    }

    pub(super) fn set_edge(&mut self, edge_raw: u64) {
        self.edge_raw = edge_raw;
        self.due_raw = edge_raw.min(self.turn_raw);
    }

    pub(super) fn set_turn(&mut self, turn_raw: u64) {
        self.turn_raw = turn_raw;
        self.due_raw = self.edge_raw.min(turn_raw);
    }

    /// Whether each look at the CQs must be timed.
    #[inline]
    pub(super) fn is_watched(&self) -> bool {
        matches!(self.state, WindowState::Ahead | WindowState::CatchingUp | WindowState::Open)
    }

    #[inline]
    pub(super) fn is_catching_up(&self) -> bool {
        self.state == WindowState::CatchingUp
    }
}

/// One worker's counts of one QP.
#[derive(Clone, Copy, Default)]
pub(super) struct Tally {
    pub(super) posted: u64,
    pub(super) completed: u64,
    pub(super) received: u64,
    /// Bytes of messages, where they differ in size.
    pub(super) completed_bytes: u64,
    pub(super) received_bytes: u64,
    /// COMPARE-SWAPs of `completed` that were made.
    pub(super) swaps_made: u64,
    /// Receives of its own that are used up and not yet posted again.
    pub(super) pending_receives: usize,
    /// Whether the head of the QP's last slot is posted and its rest is not.
    pub(super) open: bool,
}

impl Tally {
    #[inline]
    pub(super) fn count_received(&mut self, is_mixed: bool, payload_bytes: u32) {
        self.received += 1;
        if is_mixed {
            self.received_bytes += u64::from(payload_bytes);
        }
    }
}

pub(super) struct WorkerQp<'s> {
    pub(super) qp_context: &'s QpContext,
    pub(super) sender: Option<&'s Sender>,
    pub(super) tally: Tally,
    /// Has `tally.completed` for the thread that samples.
    completed: &'s AtomicU64,
    pub(super) samples: Option<Samples>,
}

impl WorkerQp<'_> {
    /// Counts messages of its send queue that have completed.
    #[inline]
    pub(super) fn count_completed(&mut self, messages: u64) {
        self.tally.completed += messages;
        self.completed.store(self.tally.completed, Relaxed);
    }
}

/// All QPs of the run, by index.
pub(super) struct WorkerQps<'s> {
    qps: Vec<WorkerQp<'s>>,
    at_start: Vec<Tally>,
    at_end: Vec<Tally>,
    /// Receives of the SRQ that are used up and not yet posted again.
    pub(super) pending_shared: usize,
}

impl<'s> WorkerQps<'s> {
    /// Memory per QP of the run besides latencies, in bytes.
    pub(super) const BYTES_PER_QP: usize =
        size_of::<WorkerQp<'static>>() + 2 * size_of::<Tally>() + size_of::<QpReport>();

    /// For a worker that records the latencies of the QPs for which `records` is true.
    pub(super) fn new(shared: &'s Shared, worker: usize, records: impl Fn(usize) -> bool) -> Self {
        let tallies = vec![Tally::default(); shared.qp_contexts.len()];
        let is_recorded =
            |(qp, qp_context): (usize, &QpContext)| qp_context.sender.is_some() && records(qp);
        let recorders = shared.qp_contexts.iter().enumerate().filter(|it| is_recorded(*it));
        let counters = SampleCounters::new(shared.digits, recorders.count());
        WorkerQps {
            qps: shared
                .qp_contexts
                .iter()
                .zip(shared.qp_counts.of_worker(worker))
                .enumerate()
                .map(|(qp, (qp_context, completed))| WorkerQp {
                    qp_context,
                    sender: qp_context.sender.as_ref(),
                    tally: Tally::default(),
                    completed,
                    samples: is_recorded((qp, qp_context))
                        .then(|| shared.new_samples(&counters, qp, worker)),
                })
                .collect(),
            at_start: tallies.clone(),
            at_end: tallies,
            pending_shared: 0,
        }
    }

    #[inline]
    pub(super) fn get(&self, qp: usize) -> Option<&WorkerQp<'s>> {
        self.qps.get(qp)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, qp: usize) -> Option<&mut WorkerQp<'s>> {
        self.qps.get_mut(qp)
    }

    /// Copies the counts: the window opens.
    pub(super) fn window_opens(&mut self) {
        copy_tallies(&mut self.at_start, &self.qps);
    }

    /// Copies the counts: the window closes.
    pub(super) fn window_closes(&mut self) {
        copy_tallies(&mut self.at_end, &self.qps);
    }

    /// The report on each QP. `equal_bytes` is the size of a message where all are equal.
    pub(super) fn into_reports(self, equal_bytes: Option<u64>) -> Vec<QpReport> {
        let tallies = self.at_start.into_iter().zip(self.at_end);
        (self.qps.into_iter().zip(tallies))
            .map(|(worker_qp, (start, end))| {
                let completed = end.completed.saturating_sub(start.completed);
                let received = end.received.saturating_sub(start.received);
                QpReport {
                    completed_before: start.completed,
                    completed,
                    completed_bytes: bytes(
                        equal_bytes,
                        completed,
                        end.completed_bytes.saturating_sub(start.completed_bytes),
                    ),
                    received,
                    received_bytes: bytes(
                        equal_bytes,
                        received,
                        end.received_bytes.saturating_sub(start.received_bytes),
                    ),
                    swaps_made: end.swaps_made.saturating_sub(start.swaps_made),
                    posted_in_all: worker_qp.tally.posted,
                    received_in_all: worker_qp.tally.received,
                    latency: worker_qp.samples,
                }
            })
            .collect()
    }
}

fn copy_tallies(copies: &mut [Tally], worker_qps: &[WorkerQp<'_>]) {
    for (copy, worker_qp) in copies.iter_mut().zip(worker_qps) {
        *copy = worker_qp.tally;
    }
}

fn bytes(equal_bytes: Option<u64>, messages: u64, counted: u64) -> u64 {
    equal_bytes.map_or(counted, |bytes| messages * bytes)
}

/// A worker's counts since the start, over all of its QPs.
#[derive(Default)]
pub(super) struct WorkerCounts {
    pub(super) posted: u64,
    pub(super) completed: u64,
    pub(super) received: u64,
    pub(super) polls: u64,
    pub(super) empty_polls: u64,
    /// Receives posted in place of used ones.
    pub(super) receives_posted: u64,
}

impl WorkerCounts {
    /// Messages whose completions it has seen.
    pub(super) fn seen(&self) -> u64 {
        self.completed + self.received
    }

    /// Writes posted first; see [`Shared::counts`](super::super::shared::Shared::counts).
    #[inline]
    pub(super) fn publish(&self, counters: &Counters) {
        counters.posted.store(self.posted, Release);
        counters.completed.store(self.completed, Release);
        counters.received.store(self.received, Release);
    }

    /// Writes what nobody waits for, once a pass.
    #[inline]
    pub(super) fn publish_activity(&self, counters: &Counters) {
        counters.polls.store(self.polls, Relaxed);
        counters.empty_polls.store(self.empty_polls, Relaxed);
        counters.receives_posted.store(self.receives_posted, Relaxed);
    }
}
