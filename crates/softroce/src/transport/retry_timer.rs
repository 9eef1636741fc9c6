//! A requester's timer: for an answer that is awaited, or for the pause that the peer asked for.

use std::sync::atomic::Ordering;

use super::requester::Requester;
use super::work::QpWork;

impl Requester {
    /// Starts the timer for an answer anew, or stops it when none is awaited.
    pub(super) fn watch(&mut self, work: QpWork<'_>) {
        let awaited = self.unacked != self.position();
        let due = if awaited && self.deliveries.timeout > 0 {
            work.now_ns + timeout_ns(self.deliveries.timeout)
        } else {
            u64::MAX
        };
        work.qp.timer_ns.store(due, Ordering::Relaxed);
        if due != u64::MAX {
            work.core.attention.timer_at(due);
        }
    }

    /// Pauses for as long as the peer asked.
    pub(super) fn pause(&mut self, work: QpWork<'_>, pause_ns: u64) {
        self.pauses = true;
        let due = work.now_ns + pause_ns;
        work.qp.timer_ns.store(due, Ordering::Relaxed);
        work.core.attention.timer_at(due);
    }
}

/// How long to wait for an answer: 4.096 µs × 2^`code` (InfiniBand specification 9.7.6.1.3).
fn timeout_ns(code: u8) -> u64 {
    4096_u64 << (code & 0x1f)
}
