//! The QPs of the run as one worker sees them: what it counts of each, since the start and at the edges of its window.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release};

use metrics::histogram::Samples;

use super::super::qp_context::{QpContext, Sender};
use super::super::report::QpReport;
use super::super::shared::{Counters, Shared};

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
                    samples: (qp_context.sender.is_some() && records(qp))
                        .then(|| shared.new_samples(qp, worker)),
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
                    latency: worker_qp.samples.map(Samples::into_recorder),
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

// A worker's counts since the start, over all of its QPs.

#[derive(Default)]
pub(super) struct WorkerCounts {
    pub(super) posted: u64,
    pub(super) completed: u64,
    pub(super) received: u64,
    pub(super) polls: u64,
    pub(super) empty_polls: u64,
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
}
