//! The reaction point of congestion (annex A17.9): a QP that got a CNP sends at a rate, in turns, until that rate is the full
//! one again. A QP that has a limit always does. It must not know how marks come about.

use std::net::SocketAddr;

use crate::transport::outbox::{Outbox, QpWork};
use crate::transport::qp_state::{Requester, State};
use crate::transport::sending_rate::SendingRate;

impl Requester {
    pub(crate) fn take_notification(&mut self, work: QpWork<'_>, source: SocketAddr) {
        let statistics = &work.core.statistics;
        if !self.is_from_peer(work, source) {
            return;
        }
        if !matches!(work.qp.state(), State::Rts | State::Sqd) {
            statistics.rp_cnp_ignored.add(1);
            return;
        }
        statistics.rp_cnp_handled.add(1);
        self.slow_down(work.now_ns);
    }

    /// Limits it to so many bytes a nanosecond; `None` ends that.
    pub(crate) fn limit_rate(&mut self, now_ns: u64, limit: Option<f64>) {
        self.rate = limit.map(|limit| SendingRate::limited(now_ns, limit));
    }

    pub(crate) fn slow_down(&mut self, now_ns: u64) {
        self.rate.get_or_insert_with(|| SendingRate::full(now_ns)).cut(now_ns);
    }

    /// How many of these bytes the rate allows now. If none, the QP's turn comes when it allows some.
    pub(crate) fn allowed_bytes(&mut self, work: QpWork<'_>, bytes: usize) -> Option<usize> {
        let Some(rate) = &mut self.rate else {
            return Some(bytes);
        };
        if rate.recover(work.now_ns) {
            self.rate = None;
            return Some(bytes);
        }
        let allowed = rate.allowance_bytes();
        if allowed == 0 {
            self.wait_for_rate(work);
            return None;
        }
        Some(allowed.min(bytes))
    }

    /// Counts bytes that were sent in a turn. If the turn was over, the next one comes when the rate allows it.
    pub(crate) fn spend(&mut self, work: QpWork<'_>, bytes: usize, is_over: bool) {
        if let Some(rate) = &mut self.rate {
            rate.spend(bytes);
            if is_over && self.wants_to_send() {
                self.wait_for_rate(work);
            }
        }
    }

    fn wait_for_rate(&mut self, work: QpWork<'_>) {
        let due_ns = self.rate.as_ref().map_or(u64::MAX, SendingRate::next_ns);
        let turns = &work.core.turns_at_rate;
        if self.rate_entry.hasten(turns, work.qp.number, due_ns) {
            work.core.statistics.rate_waits.add(1);
            work.core.activity.departure_at(due_ns);
        }
    }

    /// Takes the turn whose entry, of this time, has been taken.
    pub(crate) fn turn_came(
        &mut self,
        work: QpWork<'_>,
        outbox: &mut Outbox<'_>,
        entry_ns: u64,
        bytes: usize,
    ) {
        self.rate_entry.was_taken(entry_ns);
        self.transmit(work, outbox, bytes);
        outbox.flush();
    }
}
