//! When a receiver has all that it will get. Over RC that is all that was sent; over services that lose messages it may be
//! less, and a quiet time tells.

use std::time::{Duration, Instant};

use crate::flow_end::RunningEnd;
use protocol::message::Drained;

/// Over a service that loses messages: nothing more is under way when nothing has come for so long after the sender has
/// told that it is done. It is many times what a packet waits in any queue, and short beside a run.
const QUIET: Duration = Duration::from_millis(300);

/// What comes to an end whose peer has sent all.
pub(super) struct Arrivals {
    received: u64,
    changed_at: Instant,
}

impl Arrivals {
    /// From now on.
    pub(super) fn new(end: &RunningEnd) -> Arrivals {
        Arrivals { received: end.shared.counts().received, changed_at: Instant::now() }
    }

    /// Whether nothing more will come. Arrivals of RDMA WRITEs are not seen, so their quiet time is from the beginning.
    pub(super) fn are_over(&mut self, end: &RunningEnd, peer: &Drained) -> bool {
        let received = end.shared.counts().received;
        if received != std::mem::replace(&mut self.received, received) {
            self.changed_at = Instant::now();
        }
        let has_all = !end.receives() || received >= peer.sent_messages;
        let flow = end.shared.flow();
        if flow.service.is_reliable() || peer.sent_messages == 0 {
            return has_all;
        }
        let is_unseen = !end.receives() && flow.verify && end.end.objects.roles().offers_memory;
        (has_all && !is_unseen) || self.changed_at.elapsed() >= QUIET
    }
}
