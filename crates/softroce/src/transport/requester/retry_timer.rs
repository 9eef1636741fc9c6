//! A requester's timer: the time-out of an answer, or the pause after an RNR NAK.
//!
//! `timer_ns` of the QP says when it is due. The QP's entry in `timing/timers` may be earlier, because a time-out that
//! is restarted with every answer is not worth moving it: when the entry comes, it is put back to where it belongs.

use std::sync::atomic::Ordering;

use crate::transport::outbox::{Outbox, QpWork};
use crate::transport::qp_state::Requester;
use crate::wire::time_of_code_ns;

/// After this time without an answer a QP that waits for ever holds no share of the peer's window: other QPs go on.
const PATIENCE_NS: u64 = 500_000_000;

/// A time-out that follows another doubles, up to four times what the program asked for, as far as InfiniBand allows
/// (specification 9.7.6.1.3). A peer that waits for a core, or has the packets of a thousand QPs before this one's, answers
/// late, and later still when all of them are sent again.
const MOST_DOUBLINGS: u8 = 2;
/// The least time before a probe: longer than a thread of a busy machine mostly waits for its core.
const PROBE_NS: u64 = 8_000_000;
/// Time before a probe for each QP of the device, so that many QPs' timers stay cheap.
const PROBE_EACH_NS: u64 = 20_000;

impl Requester {
    /// Restarts the time-out, or stops it if no answer is expected.
    pub(crate) fn watch(&mut self, work: QpWork<'_>) {
        let awaited = self.unacked != self.position();
        if !awaited {
            self.set_timer(work, u64::MAX);
            return;
        }
        let timeout_ns = match self.deliveries.timeout {
            0 => return self.set_timer(work, work.now_ns + PATIENCE_NS),
            code => time_of_code_ns(code) << self.repeated_timeouts().min(MOST_DOUBLINGS),
        };
        self.deadline_ns = work.now_ns + timeout_ns;
        self.probes = 0;
        self.wait_for_probe(work);
    }

    /// Sets the timer for the next probe, or for the time-out if that is sooner.
    pub(crate) fn wait_for_probe(&mut self, work: QpWork<'_>) {
        let probe_ns = work.now_ns.saturating_add(self.probe_wait_ns(work));
        self.set_timer(work, self.deadline_ns.min(probe_ns));
    }

    /// The time before a probe: that of an answer, twice as long each time. Without an answer so far it is not known, and
    /// there is no probe.
    fn probe_wait_ns(&self, work: QpWork<'_>) -> u64 {
        let for_all_ns = PROBE_EACH_NS * work.tables.qp_count() as u64;
        match self.peer().map_or(0, |peer| peer.answer_time_ns()) {
            0 => u64::MAX,
            answer_ns => answer_ns.max(PROBE_NS).max(for_all_ns) << self.probes.min(20),
        }
    }

    /// Whether this QP's packets may only be in the queue of a slow link: what has been answered since does not reach
    /// beyond them, and the peer has not been silent for the time before a probe, or twice as long if packets of other
    /// QPs are before them. The timer is then set to the end of that time.
    pub(crate) fn may_be_queued(&mut self, work: QpWork<'_>) -> bool {
        let Some(peer) = self.peer() else {
            return false;
        };
        let behind_others = !peer.has_answered(self.sent_mark - self.in_flight_bytes);
        let silence_ns = self.probe_wait_ns(work) << u32::from(behind_others);
        let until_ns = peer.answered_ns().saturating_add(silence_ns);
        let may_be = !peer.has_answered(self.sent_mark) && work.now_ns < until_ns;
        if may_be {
            self.set_timer(work, self.deadline_ns.min(until_ns));
        }
        may_be
    }

    /// Time-outs since the last progress.
    fn repeated_timeouts(&self) -> u8 {
        self.deliveries.retry_count.saturating_sub(self.retries_left)
    }

    /// Pauses for the time of an RNR NAK.
    pub(crate) fn pause(&mut self, work: QpWork<'_>, pause_ns: u64) {
        self.pauses = true;
        self.set_timer(work, work.now_ns + pause_ns);
    }

    fn set_timer(&mut self, work: QpWork<'_>, due_ns: u64) {
        self.was_answered = false;
        work.qp.timer_ns.store(due_ns, Ordering::Relaxed);
        let timers = &work.core.timers;
        if self.timer_entry.hasten(timers, work.qp.number, due_ns) {
            work.core.activity.timer_at(due_ns);
        }
    }

    /// Handles the QP's entry of this time, which has been taken, as far as timers are believed: until `until_ns`.
    pub(crate) fn timer_came(
        &mut self,
        work: QpWork<'_>,
        outbox: &mut Outbox<'_>,
        entry_ns: u64,
        until_ns: u64,
    ) {
        work.core.statistics.timer_checks.add(1);
        self.timer_entry.was_taken(entry_ns);
        self.wake(work, outbox, until_ns);
        let due_ns = work.qp.timer_ns.load(Ordering::Relaxed);
        // One that is still due belongs to a QP that does not send.
        if due_ns > until_ns {
            self.set_timer(work, due_ns);
        }
    }

    /// Removes the QP's entry, for good.
    pub(crate) fn forget_timer(&mut self, work: QpWork<'_>) {
        self.timer_entry.remove(&work.core.timers, work.qp.number);
    }
}
