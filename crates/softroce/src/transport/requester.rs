//! Sends requests: checks of their memory, segmentation to the path MTU, GSO batches, the window, waiting for READs
//! and atomics (InfiniBand specification 9.4, 9.6), and what removes requests from the send queue. Their answers are
//! in `requester_answers`.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use provider::{Binding, Operation};

use crate::transport::completion_queue::{Completion, CompletionKind, Status};
use crate::transport::memory::{self, Access};
use crate::transport::outbox::{Keep, Outbox, QpWork};
use crate::transport::peer::Path;
use crate::transport::qp_state::{ACK_EVERY_PACKETS, Kind, QpContext, QpEvent, Requester, State};
use crate::transport::work_queues::{
    Bytes, MAX_MESSAGE_BYTES, PKEY, Wqe, atomic_header, opcode, read_part_packets, reth,
};
use crate::wire::{Extended, Opcode, Packet};

/// What headers and CRC of a packet take on the wire, about.
const HEADER_BYTES: usize = 60;

/// A QP's turn at sending.
struct Turn<'a, 'b> {
    outbox: &'a mut Outbox<'b>,
    path: &'a Path,
    /// Bytes that it has sent, and after which it stops; it goes on to the next acknowledgement request.
    sent_bytes: usize,
    most_bytes: usize,
    /// Whether its rate allows no more, so that its last packet asks for an acknowledgement.
    is_at_rate: bool,
    /// Bytes that it has sent and not yet counted in the peer's window.
    uncharged_bytes: usize,
}

impl<'a, 'b> Turn<'a, 'b> {
    fn new(
        outbox: &'a mut Outbox<'b>,
        path: &'a Path,
        most_bytes: usize,
        is_at_rate: bool,
    ) -> Turn<'a, 'b> {
        Turn { outbox, path, sent_bytes: 0, most_bytes, is_at_rate, uncharged_bytes: 0 }
    }

    fn is_over(&self) -> bool {
        self.sent_bytes >= self.most_bytes
    }

    /// Whether a packet with this payload is the last that the rate allows.
    fn ends_with(&self, payload_bytes: usize) -> bool {
        self.is_at_rate && self.sent_bytes + payload_bytes >= self.most_bytes
    }

    /// Whether the peer's window has room for more after these bytes.
    fn stays_open(&self, bytes: usize) -> bool {
        self.path.peer.stays_open(self.uncharged_bytes + bytes)
    }

    /// Counts what it has sent in the peer's window.
    fn charge(&mut self) {
        self.path.peer.charge(self.uncharged_bytes as i64);
        self.uncharged_bytes = 0;
    }
}

impl Requester {
    /// Sends about this many bytes of posted requests; if more is left, the QP waits in its peer's queue.
    pub(crate) fn transmit(&mut self, work: QpWork<'_>, outbox: &mut Outbox<'_>, bytes: usize) {
        // Queue behind QPs that already wait.
        let behind = self.path.as_ref().is_some_and(|path| path.peer.has_waiting());
        let must_wait = behind && !self.in_burst && self.may_send(work);
        if !must_wait || self.has_turn(work) {
            self.transmit_in_turn(work, outbox, bytes);
        }
    }

    fn may_send(&self, work: QpWork<'_>) -> bool {
        let state = work.qp.state();
        matches!(state, State::Rts | State::Sqd) && !self.pauses && self.wants_to_send()
    }

    /// Waits for its next turn, with bytes in flight.
    fn wait_in_line(&self, work: QpWork<'_>) {
        if let Some(path) = &self.path
            && !work.qp.waits.swap(true, Ordering::Relaxed)
        {
            path.peer.wait(work.qp.number);
        }
    }

    /// Waits for a turn, unless the peer's window has opened meanwhile; returns whether it has.
    fn has_turn(&self, work: QpWork<'_>) -> bool {
        let waits = &work.qp.waits;
        let has_turn = self.path.as_ref().is_none_or(|path| {
            !waits.swap(true, Ordering::Relaxed) && !path.peer.wait_unless_open(work.qp.number)
        });
        if has_turn {
            waits.store(false, Ordering::Relaxed);
        }
        has_turn
    }

    /// As [`Requester::transmit`], for a QP taken from the queue.
    pub(crate) fn transmit_in_turn(
        &mut self,
        work: QpWork<'_>,
        outbox: &mut Outbox<'_>,
        bytes: usize,
    ) {
        if work.qp.state() == State::Rts {
            self.drains = None;
        }
        if !self.may_send(work) {
            return;
        }
        if work.qp.kind == Kind::Ud {
            self.transmit_datagrams(work, outbox);
            return;
        }
        let Some(path) = self.path.as_ref().map(Arc::clone) else {
            return;
        };
        let Some(most_bytes) = self.allowed_bytes(work, bytes) else {
            return;
        };
        let idle = self.unacked == self.position();
        let mut turn = Turn::new(outbox, &path, most_bytes, self.rate.is_some());
        self.fill(work, &mut turn);
        turn.charge();
        self.spend(work, turn.sent_bytes, turn.is_over());
        self.note_position(work.now_ns);
        if work.qp.kind == Kind::Uc {
            // A request is done when its bytes have been read.
            outbox.flush();
            self.complete_sent(work);
        } else if idle && self.unacked != self.position() {
            self.watch(work);
        }
    }

    /// Adds packets to the outbox until it must stop.
    fn fill(&mut self, work: QpWork<'_>, turn: &mut Turn<'_, '_>) {
        while self.wants_to_send() {
            if !self.in_burst {
                if work.core.waits_for_room(work.qp) || turn.is_at_rate && turn.is_over() {
                    return;
                }
                if self.is_window_full(work, turn.path.mtu_bytes, 0) {
                    return;
                }
                if work.qp.kind == Kind::Rc && turn.is_over() {
                    turn.charge();
                    self.wait_in_line(work);
                    return;
                }
                if work.qp.kind == Kind::Rc && !turn.stays_open(0) {
                    turn.charge();
                    if !self.has_turn(work) {
                        return;
                    }
                }
            }
            let index = self.next;
            if !self.begin(work, index, turn.path.mtu_bytes) {
                return;
            }
            let Some(wqe) = self.queue.get(index).copied() else {
                return;
            };
            if wqe.is_fetch() {
                self.add_fetch(turn, index, &wqe);
            } else if !wqe.is_local() && !self.add_packet(work, turn, index, &wqe, false) {
                return;
            }
            if self.sent_packets == wqe.packets {
                self.next += 1;
                self.sent_packets = 0;
            }
            if wqe.is_local() && self.queue.head == index {
                self.complete_head(work.qp);
            }
        }
    }

    /// Whether the QP's own window, if it has one, is full after so many packets more: then it waits for an acknowledgement.
    fn is_window_full(&self, work: QpWork<'_>, mtu_bytes: u32, more: u32) -> bool {
        let is_reliable = work.qp.kind == Kind::Rc;
        work.core.qp_window_bytes.filter(|_| is_reliable).is_some_and(|most_bytes| {
            let most_packets = (most_bytes / mtu_bytes.max(1)).max(1);
            let in_flight = self.position().distance_from(self.unacked).max(0).cast_unsigned();
            in_flight + more >= most_packets
        })
    }

    /// Whether request `index` may be sent or continued now. Checks it the first time, and assigns its PSNs; one without
    /// packets is done then.
    fn begin(&mut self, work: QpWork<'_>, index: u64, mtu_bytes: u32) -> bool {
        let Some(wqe) = self.queue.get(index) else {
            return false;
        };
        let fetch = wqe.is_fetch();
        let is_full = fetch && self.fetches >= u32::from(self.deliveries.max_rd_atomic);
        if is_full || wqe.fence() && self.sent_packets == 0 && self.fetches > 0 {
            return false;
        }
        if index < self.assigned {
            return true;
        }
        let packets = match wqe.operation {
            Operation::FetchAdd { .. } | Operation::CompareSwap { .. } => 1,
            Operation::Bind { .. } | Operation::Invalidate { .. } => 0,
            _ => wqe.length_bytes.div_ceil(mtu_bytes).max(1),
        };
        // The memory of a single packet is looked up when it is added.
        let is_checked_later = packets == 1 && !fetch && work.qp.kind == Kind::Rc;
        if !is_checked_later && let Some(status) = self.check(work, index, wqe) {
            self.refuse(work.qp, index, status);
            return false;
        }
        self.assign(index, packets);
        true
    }

    /// Sends the last packet again, which asks for an acknowledgement.
    pub(crate) fn send_last_again(&mut self, work: QpWork<'_>, outbox: &mut Outbox<'_>) {
        let (next, sent_packets, fetches) = (self.next, self.sent_packets, self.fetches);
        let in_burst = self.in_burst;
        let mut index = next.wrapping_sub(u64::from(sent_packets == 0));
        while self.queue.get(index).is_some_and(Wqe::is_local) {
            index = index.wrapping_sub(1);
        }
        let (Some(path), Some(wqe)) = (self.path.clone(), self.queue.get(index).copied()) else {
            return;
        };
        let sent = match sent_packets {
            0 => wqe.packets,
            sent => sent,
        };
        let mut turn = Turn::new(outbox, &path, 0, false);
        if wqe.is_fetch() {
            let part = read_part_packets(path.mtu_bytes);
            self.sent_packets = (sent - 1) / part * part;
            self.add_fetch(&mut turn, index, &wqe);
        } else {
            self.sent_packets = sent - 1;
            self.add_packet(work, &mut turn, index, &wqe, true);
        }
        turn.charge();
        if work.qp.state() != State::Err {
            (self.next, self.sent_packets, self.fetches) = (next, sent_packets, fetches);
            self.in_burst = in_burst;
        }
    }

    /// Adds one packet of a SEND or WRITE, which `asks` for an acknowledgement or does so as usual. `false` if its memory
    /// is no longer registered.
    fn add_packet(
        &mut self,
        work: QpWork<'_>,
        turn: &mut Turn<'_, '_>,
        index: u64,
        wqe: &Wqe,
        asks: bool,
    ) -> bool {
        let mtu = turn.path.mtu_bytes;
        let first = self.sent_packets == 0;
        let last = self.sent_packets + 1 == wqe.packets;
        let offset = self.sent_packets * mtu;
        let length = mtu.min(wqe.length_bytes - offset) as usize;
        let psn = wqe.first_psn.plus(self.sent_packets);
        let reliable = work.qp.kind == Kind::Rc;
        let end_of_queue = last && self.is_last_to_send(index);
        let ack_request = reliable
            && (asks
                || (last && wqe.signaled())
                || end_of_queue
                || psn.value() % ACK_EVERY_PACKETS == ACK_EVERY_PACKETS - 1
                || !turn.stays_open(length)
                || self.is_window_full(work, mtu, 1)
                || turn.ends_with(length));
        let opcode = opcode(wqe, first, last);
        let packet = Packet {
            service: work.qp.kind,
            opcode,
            solicited: last && wqe.solicited(),
            pkey: PKEY,
            destination_qpn: turn.path.qpn,
            ack_request,
            psn,
            extended: Extended {
                reth: reth(wqe, 0, wqe.length_bytes).filter(|_| opcode.has_reth()),
                immediate: wqe.immediate().map(u32::from_be),
                invalidated: wqe.invalidated(),
                ..Extended::default()
            },
            payload: &[],
        };
        let flow = &turn.path.flow;
        let added = match self.queue.bytes(index) {
            Bytes::Inline(bytes) => {
                let end = offset as usize + length;
                let payload = bytes.get(offset as usize..end).unwrap_or_default();
                Some(turn.outbox.push_copy(flow, &packet, payload))
            }
            Bytes::Registered([sge]) => {
                let at = sge.address.wrapping_add(offset.into());
                let from = work.resolve(sge.lkey, at, length as u64, Access::NONE);
                let is_there = length == 0 || from.is_some();
                is_there.then(|| {
                    let piece = from.map(|pointer| (pointer.cast_const(), length)).into_iter();
                    // SAFETY: resolved from the tables that the outbox has.
                    unsafe { turn.outbox.push(flow, &packet, length, piece, Keep::InPlace) }
                })
            }
            Bytes::Registered(sges) => {
                let memories = &work.tables.memories;
                let (pd, offset) = (work.qp.pd, offset.into());
                let pieces = memory::pieces(memories, pd, sges, offset, length, Access::NONE);
                pieces.clone().all(|piece| piece.is_ok()).then(|| {
                    let pieces =
                        pieces.flatten().map(|(pointer, bytes)| (pointer.cast_const(), bytes));
                    // SAFETY: resolved from the tables that the outbox has.
                    unsafe { turn.outbox.push(flow, &packet, length, pieces, Keep::InPlace) }
                })
            }
        };
        let Some(bytes) = added else {
            // The program has deregistered memory that the request still needs.
            self.refuse(work.qp, index, Status::LocalProtectionError);
            return false;
        };
        self.note_sent(turn, index, bytes, length, reliable);
        self.sent_packets += 1;
        self.in_burst = reliable && !ack_request;
        true
    }

    /// Adds a READ request packet or an atomic.
    fn add_fetch(&mut self, turn: &mut Turn<'_, '_>, index: u64, wqe: &Wqe) {
        let mtu = turn.path.mtu_bytes;
        let psn = wqe.first_psn.plus(self.sent_packets);
        let (packets, opcode, extended, answer_bytes) = match wqe.operation {
            Operation::Read { .. } => {
                // Split at the same positions each time, so that the peer recognises a repeated request.
                let part = read_part_packets(mtu);
                let end = ((self.sent_packets / part + 1) * part).min(wqe.packets);
                let start_bytes = self.sent_packets * mtu;
                let bytes = (end * mtu).min(wqe.length_bytes) - start_bytes;
                let extended =
                    Extended { reth: reth(wqe, start_bytes, bytes), ..Extended::default() };
                let packets = end - self.sent_packets;
                (packets, Opcode::ReadRequest, extended, bytes as usize)
            }
            _ => {
                let (opcode, atomic) = atomic_header(wqe);
                let extended = Extended { atomic, ..Extended::default() };
                (1, opcode, extended, 8)
            }
        };
        let packet = Packet {
            service: Kind::Rc,
            opcode,
            solicited: false,
            pkey: PKEY,
            destination_qpn: turn.path.qpn,
            ack_request: true,
            psn,
            extended,
            payload: &[],
        };
        let bytes = turn.outbox.push_bare(&turn.path.flow, &packet);
        self.note_sent(turn, index, bytes + answer_bytes, answer_bytes, true);
        self.fetches += 1;
        self.sent_packets += packets;
        self.in_burst = false;
    }

    /// Counts a packet: its bytes in the peer's or its own receive buffer, and its payload or its answer's.
    fn note_sent(
        &mut self,
        turn: &mut Turn<'_, '_>,
        index: u64,
        bytes: usize,
        payload_bytes: usize,
        reliable: bool,
    ) {
        if reliable {
            self.charge(index, bytes);
            turn.uncharged_bytes += bytes;
        }
        turn.sent_bytes += payload_bytes + HEADER_BYTES;
    }

    /// Completes requests of an unreliable QP, which are done when they are sent.
    fn complete_sent(&mut self, work: QpWork<'_>) {
        while self.queue.head < self.next {
            self.complete_head(work.qp);
        }
        self.unacked = self.position();
        self.break_if_failed(work.qp);
        self.tell_if_drained(work.qp);
    }

    /// Whether no request behind this one has a packet.
    fn is_last_to_send(&self, index: u64) -> bool {
        (index + 1..self.limit()).all(|later| self.queue.get(later).is_some_and(Wqe::is_local))
    }

    /// The error of a request at this end, if any: of its length, its memory or its window (InfiniBand specification 9.9.2).
    pub(crate) fn check(&self, work: QpWork<'_>, index: u64, wqe: &Wqe) -> Option<Status> {
        let (memories, user) = (&work.tables.memories, work.user());
        let window = match wqe.operation {
            Operation::Bind { rkey, new_rkey, lkey, access, address, length_bytes } => {
                let binding = Binding { rkey, new_rkey, lkey, access, address, length_bytes };
                memories.bind(user, &binding)
            }
            Operation::Invalidate { rkey } => memories.invalidate(user, rkey),
            _ => Ok(()),
        };
        if window.is_err() {
            return Some(Status::MwBindError);
        }
        let atomic = wqe.is_fetch() && !matches!(wqe.operation, Operation::Read { .. });
        let least_bytes = if atomic { 8 } else { 0 };
        if !(least_bytes..=MAX_MESSAGE_BYTES).contains(&wqe.length_bytes) {
            return Some(Status::LocalLengthError);
        }
        let need = if wqe.is_fetch() { Access::LOCAL_WRITE } else { Access::NONE };
        match self.queue.bytes(index) {
            Bytes::Inline(_) => None,
            Bytes::Registered(sges) => {
                let allowed = memory::allowed(memories, work.qp.pd, sges, need);
                (!allowed).then_some(Status::LocalProtectionError)
            }
        }
    }

    /// Completes the oldest request, and those behind it that were done when their turn came.
    pub(crate) fn complete_head(&mut self, qp: &QpContext) {
        self.complete_one(qp);
        while self.oldest().is_some_and(Wqe::is_local) {
            self.complete_one(qp);
        }
    }

    /// Adds a completion of the oldest request if it is signalled.
    fn complete_one(&mut self, qp: &QpContext) {
        let Some(wqe) = self.queue.get(self.queue.head) else {
            return;
        };
        let whole = !wqe.signaled()
            || qp.complete_send(Completion {
                length_bytes: wqe.length_bytes,
                ..completion(qp, wqe, Status::Success)
            });
        self.queue.head += 1;
        if !whole {
            self.flush(qp);
            self.broke = true;
        }
    }

    /// Records that request `index` cannot be sent. Earlier requests complete first.
    pub(crate) fn refuse(&mut self, qp: &QpContext, index: u64, status: Status) {
        self.failed = Some((index, status));
        self.break_if_failed(qp);
    }

    /// Fails the QP if its oldest request cannot be sent.
    pub(crate) fn break_if_failed(&mut self, qp: &QpContext) {
        if let Some((index, status)) = self.failed
            && index == self.queue.head
        {
            self.break_at_head(qp, status);
        }
    }

    /// Completes the oldest request with the error `status` and moves the QP to ERR. An unreliable QP only stops
    /// sending (SQE).
    pub(crate) fn break_at_head(&mut self, qp: &QpContext, status: Status) {
        let reliable = qp.kind == Kind::Rc;
        // Who sees the completion finds the QP in this state.
        qp.set_state(if reliable { State::Err } else { State::Sqe });
        if let Some(wqe) = self.queue.get(self.queue.head) {
            qp.complete_send(completion(qp, wqe, status));
            self.queue.head += 1;
        }
        self.flush(qp);
        self.broke = reliable;
    }

    /// Completes all posted requests as flushed.
    pub(crate) fn flush(&mut self, qp: &QpContext) {
        self.let_go(qp);
        while let Some(wqe) = self.queue.get(self.queue.head) {
            qp.complete_send(completion(qp, wqe, Status::FlushError));
            self.queue.head += 1;
        }
        self.begin_anew();
    }

    pub(crate) fn forget_all(&mut self, qp: &QpContext) {
        self.let_go(qp);
        self.queue.head = self.queue.tail;
        self.begin_anew();
        self.drains = None;
        self.path = None;
    }

    /// Drops all packets in flight, and stops the timer.
    fn let_go(&mut self, qp: &QpContext) {
        self.go_back();
        self.pauses = false;
        qp.timer_ns.store(u64::MAX, Ordering::Relaxed);
    }

    /// Sends requests already begun to their end, but no others.
    pub(crate) fn drain(&mut self, qp: &QpContext, notify: bool) {
        self.drains = Some((self.assigned, notify));
        self.tell_if_drained(qp);
    }

    pub(crate) fn tell_if_drained(&mut self, qp: &QpContext) {
        if let Some((end, true)) = self.drains
            && self.queue.head >= end
        {
            self.drains = Some((end, false));
            qp.raise(QpEvent::SendQueueDrained);
        }
    }
}

fn completion(qp: &QpContext, wqe: &Wqe, status: Status) -> Completion {
    let kind = match wqe.operation {
        Operation::Send | Operation::SendInvalidate { .. } => CompletionKind::Send,
        Operation::Write { .. } => CompletionKind::RdmaWrite,
        Operation::Read { .. } => CompletionKind::RdmaRead,
        Operation::FetchAdd { .. } => CompletionKind::FetchAdd,
        Operation::CompareSwap { .. } => CompletionKind::CompareSwap,
        Operation::Bind { .. } => CompletionKind::BindMw,
        Operation::Invalidate { .. } => CompletionKind::LocalInvalidate,
    };
    Completion::new(qp.number, wqe.wr_id, status, kind)
}
