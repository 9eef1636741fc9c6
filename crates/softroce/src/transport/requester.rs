//! The half of a QP that sends requests: its position in the send queue and in the packet sequence. It must not know
//! the QP. [`super::transmit`] sends, [`super::answers`] handles answers, [`super::send_completion`] completes
//! requests.
//!
//! Requests are numbered from the QP's creation. `queue.head` is the oldest not completed, `next` the one being sent,
//! `assigned` the first without PSNs. Going back N (InfiniBand specification 9.7.5.1.1) sets `next` back to `head`.

use std::collections::VecDeque;
use std::sync::Arc;

use super::completion::Status;
use super::path::Path;
use super::peer::Peer;
use super::qp_attributes::{Capacities, Deliveries};
use super::request::{PostError, SendRequest};
use super::send_queue::SendQueue;
use crate::wire::Psn;

/// One packet of this many requests an acknowledgement, also within a long message.
pub(super) const ACK_EVERY_PACKETS: u32 = 16;
/// The most GSO batches of a QP in flight.
const MAX_GSO_BATCHES: usize = 64;

/// A GSO batch in flight: the PSN after it, and the bytes charged to the window.
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
    /// The request being sent, and how many of its PSNs were sent.
    pub(super) next: u64,
    pub(super) sent_packets: u32,
    pub(super) assigned: u64,
    /// PSN of the next request without PSNs.
    next_psn: Psn,
    /// The PSN after all packets ever sent.
    pub(super) sent_until: Psn,
    /// The oldest unacknowledged PSN.
    pub(super) unacked: Psn,
    /// READ requests and atomics in flight.
    pub(super) fetches: u32,
    pub(super) gso_batches: VecDeque<GsoBatchInFlight>,
    pub(super) retries_left: u8,
    pub(super) rnr_retries_left: u8,
    /// Whether it pauses because of an RNR NAK.
    pub(super) pauses: bool,
    /// `unacked` at the last retransmission after a loss. Only a time-out retransmits the same packets again.
    pub(super) went_back_to: Option<Psn>,
    /// A request that cannot be sent, and its status.
    pub(super) failed: Option<(u64, Status)>,
    /// The last packet did not request an acknowledgement, so the next one is sent whatever the window.
    pub(super) in_burst: bool,
    /// In SQD: the end of the requests still sent, and whether to raise an event when they are done.
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

    /// Whether the QP failed since the last call: then its receives must be flushed too.
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

    /// The first PSN not sent since the last retransmission.
    pub(super) fn position(&self) -> Psn {
        match self.queue.get(self.next) {
            Some(wqe) if self.next < self.assigned => wqe.first_psn.plus(self.sent_packets),
            _ => self.next_psn,
        }
    }

    /// Records how far it has sent.
    pub(super) fn note_position(&mut self) {
        let position = self.position();
        if position.distance_from(self.sent_until) > 0 {
            self.sent_until = position;
        }
    }

    /// Assigns PSNs to a request.
    pub(super) fn assign(&mut self, index: u64, packets: u32) {
        let first_psn = self.next_psn;
        if let Some(wqe) = self.queue.get_mut(index) {
            wqe.first_psn = first_psn;
            wqe.packets = packets;
        }
        self.next_psn = first_psn.plus(packets);
        self.assigned = index + 1;
    }

    /// The end of the requests that may be sent in this state.
    pub(super) fn limit(&self) -> u64 {
        self.drains.map_or(self.queue.tail, |(end, _)| end)
    }

    /// Whether there is more to send, regardless of limits.
    pub(super) fn wants_to_send(&self) -> bool {
        self.next < self.limit() && self.failed.is_none()
    }

    pub(super) fn gso_batches_full(&self) -> bool {
        self.gso_batches.len() >= MAX_GSO_BATCHES
    }

    /// Restarts sending at the oldest unacknowledged packet.
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

    /// How many packets of the oldest request are acknowledged.
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

    /// Resets the state: no posted request has been started.
    pub(super) fn begin_anew(&mut self) {
        self.next = self.queue.head;
        self.assigned = self.queue.head;
        self.sent_packets = 0;
        self.failed = None;
    }

    /// Leaves SQD.
    pub(super) fn undrain(&mut self) {
        self.drains = None;
    }

    pub(super) fn is_drained(&self) -> bool {
        self.queue.head >= self.limit()
    }
}
