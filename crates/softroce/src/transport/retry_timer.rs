//! A requester's timer: the time-out of an answer, or the pause after an RNR NAK.

use std::sync::atomic::Ordering;

use super::requester::Requester;
use super::work::QpWork;

impl Requester {
    /// Restarts the time-out, or stops it if no answer is expected.
    pub(super) fn watch(&mut self, work: QpWork<'_>) {
        let awaited = self.unacked != self.position();
        let due = if awaited && self.deliveries.timeout > 0 {
            work.now_ns + timeout_ns(self.deliveries.timeout)
        } else {
            u64::MAX
        };
        work.qp.timer_ns.store(due, Ordering::Relaxed);
        if due != u64::MAX {
            work.core.activity.timer_at(due);
        }
    }

    /// Pauses for the time of an RNR NAK.
    pub(super) fn pause(&mut self, work: QpWork<'_>, pause_ns: u64) {
        self.pauses = true;
        let due = work.now_ns + pause_ns;
        work.qp.timer_ns.store(due, Ordering::Relaxed);
        work.core.activity.timer_at(due);
    }
}

/// The time-out: 4.096 µs × 2^`code` (InfiniBand specification 9.7.6.1.3).
fn timeout_ns(code: u8) -> u64 {
    4096_u64 << (code & 0x1f)
}
