//! The half of a QP that sends requests: where it stands in its send queue and in the sequence of packets. It must
//! not know the QP; sending is in [`super::transmit`], what comes back in [`super::answers`], how requests end in
//! [`super::send_completion`].
//!
//! Requests are numbered from the QP's beginning. `queue.head` is the oldest not completed, `next` the one being
//! sent, `assigned` the first that has no PSNs yet. Going back N (InfiniBand specification 9.7.5.1.1) is setting
//! `next` back to `head`.

use std::collections::VecDeque;
use std::sync::Arc;

use super::completion::Status;
use super::path::Path;
use super::peer::Peer;
use super::qp_attributes::{Capacities, Deliveries};
use super::request::{PostError, SendRequest};
use super::send_queue::SendQueue;
use crate::wire::Psn;

/// A packet in so many asks for an acknowledgement, in a long message too.
pub(super) const ACK_EVERY_PACKETS: u32 = 16;
/// GSO batches of a QP on their way at most.
const MAX_GSO_BATCHES: usize = 64;

/// A GSO batch on its way: the PSN after it, and what it was charged with.
#[derive(Clone, Copy)]
pub(super) struct GsoBatchInFlight {
    pub(super) end: Psn,
    pub(super) charge_bytes: i64,
}

/// The sending half.
pub(super) struct Requester {
    pub(super) queue: SendQueue,
    pub(super) path: Option<Path>,
    pub(super) deliveries: Deliveries,
    /// Request being sent, and how many of its PSNs were.
    pub(super) next: u64,
    pub(super) sent_packets: u32,
    pub(super) assigned: u64,
    /// PSN of the next request that gets any.
    next_psn: Psn,
    /// The PSN after all that were ever sent.
    pub(super) sent_until: Psn,
    /// Oldest PSN that was not answered.
    pub(super) unacked: Psn,
    /// READ requests and atomics on their way.
    pub(super) fetches: u32,
    pub(super) gso_batches: VecDeque<GsoBatchInFlight>,
    pub(super) retries_left: u8,
    pub(super) rnr_retries_left: u8,
    /// The peer asked for a pause.
    pub(super) pauses: bool,
    /// `unacked` when it last went back for lost packets: not twice for the same ones but by a timeout.
    pub(super) went_back_to: Option<Psn>,
    /// A request that cannot be sent, and why.
    pub(super) failed: Option<(u64, Status)>,
    /// The last packet sent asked for no acknowledgement: the next goes out whatever the window says.
    pub(super) in_burst: bool,
    /// In SQD: the end of what is still sent, and whether to tell when it is done.
    pub(super) drains: Option<(u64, bool)>,
    pub(super) broke: bool,
}

impl Requester {
    pub(super) fn new(room: &Capacities) -> Requester {
        Requester {
            queue: SendQueue::new(
                room.send_wrs as usize,
                room.send_sges as usize,
                room.inline_bytes as usize,
            ),
            path: None,
            deliveries: Deliveries {
                timeout: 0,
                retry_count: 0,
                rnr_retry: 0,
                max_rd_atomic: 0,
            },
            next: 0,
            sent_packets: 0,
            assigned: 0,
            next_psn: Psn::ZERO,
            sent_until: Psn::ZERO,
            unacked: Psn::ZERO,
            fetches: 0,
            gso_batches: VecDeque::new(),
            retries_left: 0,
            rnr_retries_left: 0,
            pauses: false,
            went_back_to: None,
            failed: None,
            in_burst: false,
            drains: None,
            broke: false,
        }
    }

    pub(super) fn connect(&mut self, path: Option<Path>) {
        if path.is_some() {
            self.gso_batches
                .reserve_exact(MAX_GSO_BATCHES + ACK_EVERY_PACKETS as usize);
        }
        self.path = path;
    }

    pub(super) fn start(&mut self, psn: Psn, deliveries: Option<Deliveries>) {
        self.next_psn = psn;
        self.unacked = psn;
        self.sent_until = psn;
        if let Some(deliveries) = deliveries {
            self.deliveries = deliveries;
        }
        self.renew_retries();
    }

    pub(super) fn next_psn(&self) -> Psn {
        self.next_psn
    }

    pub(super) fn peer(&self) -> Option<Arc<Peer>> {
        self.path.as_ref().map(|path| Arc::clone(&path.peer))
    }

    /// Whether the QP broke since the last time this was asked: its receives are to be flushed too.
    pub(super) fn take_broke(&mut self) -> bool {
        std::mem::take(&mut self.broke)
    }

    pub(super) fn post(
        &mut self,
        request: &SendRequest<'_>,
        signaled: bool,
    ) -> Result<(), PostError> {
        self.queue.push(request, signaled)
    }

    pub(super) fn renew_retries(&mut self) {
        self.retries_left = self.deliveries.retry_count;
        self.rnr_retries_left = self.deliveries.rnr_retry;
    }

    /// The first PSN that was not sent yet, as far as the last going back tells.
    pub(super) fn position(&self) -> Psn {
        match self.queue.get(self.next) {
            Some(wqe) if self.next < self.assigned => wqe.first_psn.plus(self.sent_packets),
            _ => self.next_psn,
        }
    }

    /// Remembers how far it has sent.
    pub(super) fn note_position(&mut self) {
        let position = self.position();
        if position.distance_from(self.sent_until) > 0 {
            self.sent_until = position;
        }
    }

    /// Gives a request its PSNs.
    pub(super) fn assign(&mut self, index: u64, packets: u32) {
        let first_psn = self.next_psn;
        if let Some(wqe) = self.queue.get_mut(index) {
            wqe.first_psn = first_psn;
            wqe.packets = packets;
        }
        self.next_psn = first_psn.plus(packets);
        self.assigned = index + 1;
    }

    /// The end of what may be sent in this state.
    pub(super) fn limit(&self) -> u64 {
        self.drains.map_or(self.queue.tail, |(end, _)| end)
    }

    /// Whether more is to be sent, leaving aside what holds it up.
    pub(super) fn wants_to_send(&self) -> bool {
        self.next < self.limit() && self.failed.is_none()
    }

    pub(super) fn gso_batches_full(&self) -> bool {
        self.gso_batches.len() >= MAX_GSO_BATCHES
    }

    /// Starts to send again at the oldest that was not answered.
    pub(super) fn go_back(&mut self) {
        if let Some(path) = &self.path {
            let charges: i64 = self
                .gso_batches
                .iter()
                .map(|gso_batch| gso_batch.charge_bytes)
                .sum();
            path.peer.forget(charges);
        }
        self.gso_batches.clear();
        self.fetches = 0;
        self.in_burst = false;
        self.next = self.queue.head;
        self.sent_packets = self.answered_packets();
    }

    /// How many PSNs of the oldest request were answered.
    pub(super) fn answered_packets(&self) -> u32 {
        match self.queue.get(self.queue.head) {
            Some(wqe) if self.queue.head < self.assigned => self
                .unacked
                .distance_from(wqe.first_psn)
                .max(0)
                .cast_unsigned(),
            _ => 0,
        }
    }

    /// Nothing that is posted was begun.
    pub(super) fn begin_anew(&mut self) {
        self.next = self.queue.head;
        self.assigned = self.queue.head;
        self.sent_packets = 0;
        self.failed = None;
    }

    /// Out of SQD.
    pub(super) fn undrain(&mut self) {
        self.drains = None;
    }

    pub(super) fn is_drained(&self) -> bool {
        self.queue.head >= self.limit()
    }
}
