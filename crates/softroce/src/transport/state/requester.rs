//! The half of a QP that sends requests: its position in the send queue and in the packet sequence. It must not know
//! the QP. The folder `requester` sends, handles answers and completes requests.
//!
//! Requests are numbered from the QP's creation. `queue.head` is the oldest not completed, `next` the one being sent,
//! `assigned` the first without PSNs. Going back N (InfiniBand specification 9.7.5.1.1) sets `next` back to `head`.

use std::sync::Arc;

use super::completion::Status;
use super::path::{Path, SourcePort};
use super::peer::Peer;
use super::qp_attributes::{Capacities, Deliveries, Kind};
use super::send_queue::{SendQueue, Wqe};
use super::sending_rate::SendingRate;
use crate::transport::timing::timers::Entry;
use crate::wire::Psn;

/// One packet of this many requests an acknowledgement, also within a long message.
pub(crate) const ACK_EVERY_PACKETS: u32 = 16;
#[derive(Default)]
pub(crate) struct Requester {
    pub(crate) queue: SendQueue,
    pub(crate) path: Option<Arc<Path>>,
    pub(crate) source_port: SourcePort,
    pub(crate) deliveries: Deliveries,
    /// The request being sent, and how many of its PSNs were sent.
    pub(crate) next: u64,
    pub(crate) sent_packets: u32,
    pub(crate) assigned: u64,
    /// PSN of the next request without PSNs.
    pub(crate) next_psn: Psn,
    /// The PSN after all packets ever sent.
    pub(crate) sent_until: Psn,
    pub(crate) unacked: Psn,
    /// READ requests and atomics in flight.
    pub(crate) fetches: u32,
    /// Its part of the peer's window: the sum of what its requests have been charged.
    pub(crate) in_flight_bytes: i64,
    /// When the time-out of an answer is over, and how many probes were sent before.
    pub(crate) deadline_ns: u64,
    pub(crate) probes: u32,
    /// [`Peer::sent_mark`] when it last sent something new.
    pub(crate) sent_mark: i64,
    /// A PSN, and when the packets before it were sent: their answer tells the round-trip time.
    timed: Option<(Psn, u64)>,
    pub(crate) retries_left: u8,
    pub(crate) rnr_retries_left: u8,
    /// In the queue of timers.
    pub(crate) timer_entry: Entry,
    /// The rate of its packets, of a QP that has a limit or since a CNP; `None` is the full one.
    pub(crate) rate: Option<SendingRate>,
    /// In the queue of turns at a rate.
    pub(crate) rate_entry: Entry,
    /// Whether it pauses because of an RNR NAK.
    pub(crate) pauses: bool,
    /// An answer has come since the timer was set.
    pub(crate) was_answered: bool,
    /// `unacked` at the last retransmission after a loss. Only a time-out retransmits the same packets again.
    pub(crate) went_back_to: Option<Psn>,
    /// A request that cannot be sent, and its status.
    pub(crate) failed: Option<(u64, Status)>,
    /// The last packet did not request an acknowledgement, so the next one is sent whatever the window.
    pub(crate) in_burst: bool,
    /// In SQD: the end of the requests still sent, and whether to raise an event when they are done.
    pub(crate) drains: Option<(u64, bool)>,
    pub(crate) broke: bool,
}

impl Requester {
    pub(crate) fn new(kind: Kind, room: &Capacities) -> Requester {
        Requester {
            queue: SendQueue::new(kind, room),
            deadline_ns: u64::MAX,
            ..Requester::default()
        }
    }

    pub(crate) fn connect(&mut self, path: Option<Arc<Path>>) {
        self.path = path;
        self.source_port = SourcePort::default();
        self.rate = None;
    }

    pub(crate) fn start(&mut self, psn: Psn, deliveries: Option<Deliveries>) {
        self.next_psn = psn;
        self.unacked = psn;
        self.sent_until = psn;
        if let Some(deliveries) = deliveries {
            self.deliveries = deliveries;
        }
        self.renew_retries();
    }

    pub(crate) fn peer(&self) -> Option<Arc<Peer>> {
        self.path.as_ref().map(|path| Arc::clone(&path.peer))
    }

    /// Whether the QP failed since the last call: then its receives must be flushed too.
    pub(crate) fn take_broke(&mut self) -> bool {
        std::mem::take(&mut self.broke)
    }

    /// Whether packets are on their way to its peer.
    pub(crate) fn peer_is_busy(&self) -> bool {
        self.path.as_ref().is_some_and(|path| path.peer.is_busy())
    }

    pub(crate) fn renew_retries(&mut self) {
        self.retries_left = self.deliveries.retry_count;
        self.rnr_retries_left = self.deliveries.rnr_retry;
    }

    /// The first PSN not sent since the last retransmission.
    pub(crate) fn position(&self) -> Psn {
        match self.queue.get(self.next) {
            Some(wqe) if self.next < self.assigned => wqe.first_psn.plus(self.sent_packets),
            _ => self.next_psn,
        }
    }

    /// Records how far it has sent, now.
    pub(crate) fn note_position(&mut self, now_ns: u64) {
        let position = self.position();
        if position.distance_from(self.sent_until) > 0 {
            self.sent_until = position;
            self.sent_mark = self.path.as_ref().map_or(0, |path| path.peer.sent_mark());
            self.timed = self.timed.or(Some((position, now_ns)));
        }
    }

    /// Tells the peer of an answer, and the round-trip time when the packets have been answered whose time is known.
    pub(crate) fn note_answer(&mut self, now_ns: u64) {
        let Some(path) = &self.path else {
            return;
        };
        path.peer.note_answer(now_ns);
        if let Some((end, sent_ns)) = self.timed
            && self.unacked.distance_from(end) >= 0
        {
            path.peer.note_round_trip(now_ns.saturating_sub(sent_ns));
            self.timed = None;
        }
    }

    pub(crate) fn assign(&mut self, index: u64, packets: u32) {
        let first_psn = self.next_psn;
        if let Some(wqe) = self.queue.get_mut(index) {
            wqe.first_psn = first_psn;
            wqe.packets = packets;
        }
        self.next_psn = first_psn.plus(packets);
        self.assigned = index + 1;
    }

    /// The end of the requests that may be sent in this state.
    pub(crate) fn limit(&self) -> u64 {
        self.drains.map_or(self.queue.tail, |(end, _)| end)
    }

    /// Whether there is more to send, regardless of limits.
    pub(crate) fn wants_to_send(&self) -> bool {
        self.next < self.limit() && self.failed.is_none()
    }

    /// Counts bytes of a packet that is sent: they are in flight until it is answered. The caller counts them in the peer's
    /// window.
    pub(crate) fn charge(&mut self, index: u64, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        if let Some(wqe) = self.queue.get_mut(index) {
            wqe.charge_bytes = wqe.charge_bytes.saturating_add(bytes);
        }
        self.in_flight_bytes += i64::from(bytes);
    }

    /// Counts these bytes as arrived in the peer's window.
    pub(crate) fn credit(&self, bytes: i64) {
        if let Some(path) = &self.path {
            path.peer.credit(bytes);
        }
    }

    /// Takes the bytes of all packets in flight of the oldest request.
    pub(crate) fn settle(&mut self) -> i64 {
        let Some(wqe) = self.queue.get_mut(self.queue.head) else {
            return 0;
        };
        let bytes = i64::from(std::mem::take(&mut wqe.charge_bytes));
        self.in_flight_bytes -= bytes;
        bytes
    }

    /// Takes the bytes of the next `answered` packets of the oldest request.
    pub(crate) fn settle_part(&mut self, answered: u32) -> i64 {
        let before = self.answered_packets();
        let sent = if self.queue.head == self.next { self.sent_packets } else { u32::MAX };
        let Some(wqe) = self.queue.get_mut(self.queue.head) else {
            return 0;
        };
        let waiting = sent.min(wqe.packets).saturating_sub(before);
        let part = if answered < waiting {
            u64::from(wqe.charge_bytes) * u64::from(answered) / u64::from(waiting)
        } else {
            wqe.charge_bytes.into()
        };
        wqe.charge_bytes -= part as u32;
        self.in_flight_bytes -= part.cast_signed();
        part.cast_signed()
    }

    /// Gives the share of the peer's window back that packets in flight take.
    pub(crate) fn give_window_back(&mut self) {
        if let Some(path) = &self.path {
            path.peer.forget(self.in_flight_bytes);
        }
        self.in_flight_bytes = 0;
        for index in self.queue.head..=self.next {
            if let Some(wqe) = self.queue.get_mut(index) {
                wqe.charge_bytes = 0;
            }
        }
    }

    /// Restarts sending at the oldest unacknowledged packet.
    pub(crate) fn go_back(&mut self) {
        self.give_window_back();
        self.fetches = 0;
        self.in_burst = false;
        // An answer may be to the first sending or to the second (P. Karn, C. Partridge, SIGCOMM 1987).
        self.timed = None;
        self.next = self.queue.head;
        self.sent_packets = self.answered_packets();
    }

    pub(crate) fn oldest(&self) -> Option<&Wqe> {
        let head = self.queue.head;
        self.queue.get(head).filter(|_| head < self.assigned)
    }

    /// How many packets of the oldest request are acknowledged.
    pub(crate) fn answered_packets(&self) -> u32 {
        self.oldest()
            .map_or(0, |wqe| self.unacked.distance_from(wqe.first_psn).max(0))
            .cast_unsigned()
    }

    /// Resets the state: no posted request has been started.
    pub(crate) fn begin_anew(&mut self) {
        self.next = self.queue.head;
        self.assigned = self.queue.head;
        self.sent_packets = 0;
        self.failed = None;
    }

    pub(crate) fn is_drained(&self) -> bool {
        self.queue.head >= self.limit()
    }
}
