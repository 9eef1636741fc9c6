//! Asks after packets before the time-out of their answer. If what was sent last has been lost, no later packet tells the
//! responder of a gap, and the time-out is long. It costs no retry.

use crate::transport::outbox::{Outbox, QpWork};
use crate::transport::qp_state::Requester;

/// Bytes sent again at once: up to the next packet that asks for an acknowledgement.
const AGAIN_BYTES: usize = 1;

impl Requester {
    /// Sends the last packet again: its answer is an acknowledgement of all that came, or a NAK (as TCP's tail loss probe,
    /// RFC 8985, section 7). A responder refuses a gap once only, so the next time, or where this gap has been refused, the
    /// first packets go again.
    pub(crate) fn probe(&mut self, work: QpWork<'_>, outbox: &mut Outbox<'_>) {
        work.core.statistics.probes.add(1);
        let (deadline_ns, probes) = (self.deadline_ns, self.probes + 1);
        if probes == 1 && self.went_back_to != Some(self.unacked) {
            self.send_last_again(work, outbox);
        } else {
            self.shrink_and_go_back();
            self.transmit_in_turn(work, outbox, AGAIN_BYTES);
        }
        outbox.flush();
        (self.deadline_ns, self.probes) = (deadline_ns, probes);
        self.wait_for_probe(work);
    }
}
