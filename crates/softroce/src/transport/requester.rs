//! The half of a QP that sends requests: where it stands in its send queue and in the sequence of packets.
//! Sending is in [`super::transmit`], what comes back in [`super::answers`].
//!
//! Requests are numbered from the QP's beginning. `queue.head` is the oldest not completed, `next` the one being
//! sent, `assigned` the first that has no PSNs yet. Going back N (InfiniBand specification 9.7.5.1.1) is setting
//! `next` back to `head`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::peer::Peer;
use super::qp::{Path, Scene};
use super::send_queue::{SendQueue, Wqe};
use super::transmit::ACK_EVERY_PACKETS;
use super::{
    Capacities, Completion, CompletionKind, Deliveries, Operation, PostError, Qp, QpEvent,
    SendRequest, State, Status,
};
use crate::wire::Psn;

/// Trains of a QP on their way at most.
const MAX_TRAINS: usize = 64;

/// A train on its way: the PSN after it, and what it was charged with.
#[derive(Clone, Copy)]
pub(super) struct TrainOnItsWay {
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
    pub(super) trains: VecDeque<TrainOnItsWay>,
    pub(super) retries_left: u8,
    pub(super) rnr_retries_left: u8,
    /// The peer asked for a pause.
    pub(super) pauses: bool,
    /// `unacked` when it last went back for lost packets: not twice for the same ones but by a timeout.
    pub(super) went_back_to: Option<Psn>,
    /// A request that cannot be sent, and why.
    failed: Option<(u64, Status)>,
    /// The last packet sent asked for no acknowledgement: the next goes out whatever the window says.
    pub(super) in_burst: bool,
    /// In SQD: the end of what is still sent, and whether to tell when it is done.
    drains: Option<(u64, bool)>,
    broke: bool,
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
            trains: VecDeque::new(),
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
            self.trains
                .reserve_exact(MAX_TRAINS + ACK_EVERY_PACKETS as usize);
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

    pub(super) fn trains_full(&self) -> bool {
        self.trains.len() >= MAX_TRAINS
    }

    /// Starts to send again at the oldest that was not answered.
    pub(super) fn go_back(&mut self) {
        if let Some(path) = &self.path {
            let charges: i64 = self.trains.iter().map(|train| train.charge_bytes).sum();
            path.peer.forget(charges);
        }
        self.trains.clear();
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

    /// The oldest request is done: its completion, if one is wanted.
    pub(super) fn complete_head(&mut self, qp: &Qp) {
        let Some(wqe) = self.queue.get(self.queue.head) else {
            return;
        };
        let whole = !wqe.signaled || qp.complete_send(success(qp, wqe));
        self.queue.head += 1;
        if !whole {
            self.flush(qp);
            self.broke = true;
        }
    }

    /// Request `index` cannot be sent. Those before it complete first.
    pub(super) fn refuse(&mut self, qp: &Qp, index: u64, status: Status) {
        self.failed = Some((index, status));
        self.break_if_failed(qp);
    }

    /// Breaks the QP if the oldest request is one that cannot be sent.
    pub(super) fn break_if_failed(&mut self, qp: &Qp) {
        if let Some((index, status)) = self.failed
            && index == self.queue.head
        {
            self.break_at_head(qp, status);
        }
    }

    /// The oldest request failed: it completes with `status`, and the QP is in error. A QP that promises no
    /// delivery only stops sending (SQE).
    pub(super) fn break_at_head(&mut self, qp: &Qp, status: Status) {
        if let Some(wqe) = self.queue.get(self.queue.head) {
            qp.complete_send(qp.failure(wqe.wr_id, status, kind(wqe)));
            self.queue.head += 1;
        }
        let reliable = qp.kind == super::Kind::Rc;
        qp.set_state(if reliable { State::Err } else { State::Sqe });
        self.flush(qp);
        self.broke = reliable;
    }

    /// Completes all that is posted as flushed.
    pub(super) fn flush(&mut self, qp: &Qp) {
        self.let_go(qp);
        while let Some(wqe) = self.queue.get(self.queue.head) {
            qp.complete_send(qp.failure(wqe.wr_id, Status::FlushError, kind(wqe)));
            self.queue.head += 1;
        }
        self.begin_anew();
    }

    /// Forgets all that is posted.
    pub(super) fn forget_all(&mut self, qp: &Qp) {
        self.let_go(qp);
        self.queue.head = self.queue.tail;
        self.begin_anew();
        self.drains = None;
        self.path = None;
    }

    /// Nothing that is posted was begun.
    fn begin_anew(&mut self) {
        self.next = self.queue.head;
        self.assigned = self.queue.head;
        self.sent_packets = 0;
        self.failed = None;
    }

    /// Nothing is on its way any more, and no timer runs.
    fn let_go(&mut self, qp: &Qp) {
        self.go_back();
        self.pauses = false;
        qp.timer_ns.store(u64::MAX, Ordering::Relaxed);
    }

    /// What was begun is sent to its end, nothing more.
    pub(super) fn drain(&mut self, qp: &Qp, notify: bool) {
        self.drains = Some((self.assigned, notify));
        self.tell_if_drained(qp);
    }

    /// Out of SQD.
    pub(super) fn undrain(&mut self) {
        self.drains = None;
    }

    pub(super) fn is_drained(&self) -> bool {
        self.queue.head >= self.limit()
    }

    pub(super) fn tell_if_drained(&mut self, qp: &Qp) {
        if let Some((end, true)) = self.drains
            && self.queue.head >= end
        {
            self.drains = Some((end, false));
            qp.raise(QpEvent::SendQueueDrained);
        }
    }

    /// Starts the timer for an answer anew, or stops it when none is awaited.
    pub(super) fn watch(&mut self, scene: Scene<'_>) {
        let awaited = self.unacked != self.position();
        let due = if awaited && self.deliveries.timeout > 0 {
            scene.now_ns + timeout_ns(self.deliveries.timeout)
        } else {
            u64::MAX
        };
        scene.qp.timer_ns.store(due, Ordering::Relaxed);
        if due != u64::MAX {
            scene.core.attention.timer_at(due);
        }
    }

    /// Pauses for as long as the peer asked.
    pub(super) fn pause(&mut self, scene: Scene<'_>, pause_ns: u64) {
        self.pauses = true;
        let due = scene.now_ns + pause_ns;
        scene.qp.timer_ns.store(due, Ordering::Relaxed);
        scene.core.attention.timer_at(due);
    }
}

/// How long to wait for an answer: 4.096 µs × 2^`code` (InfiniBand specification 9.7.6.1.3).
pub(super) fn timeout_ns(code: u8) -> u64 {
    4096_u64 << (code & 0x1f)
}

fn kind(wqe: &Wqe) -> CompletionKind {
    match wqe.operation {
        Operation::Send => CompletionKind::Send,
        Operation::Write { .. } => CompletionKind::RdmaWrite,
        Operation::Read { .. } => CompletionKind::RdmaRead,
        Operation::FetchAdd { .. } => CompletionKind::FetchAdd,
        Operation::CompareSwap { .. } => CompletionKind::CompareSwap,
    }
}

fn success(qp: &Qp, wqe: &Wqe) -> Completion {
    Completion {
        wr_id: wqe.wr_id,
        status: Status::Success,
        kind: kind(wqe),
        length_bytes: wqe.length_bytes,
        immediate: None,
        qpn: qp.number(),
        source_qpn: 0,
        has_grh: false,
        solicited: false,
    }
}
