//! A worker's counts since the start, over all of its QPs.

use std::sync::atomic::Ordering::Release;

use super::super::shared::Counters;

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
