//! Handles requests: checks their order and refuses invalid ones (InfiniBand specification 9.7.4), and writes the
//! packets of SEND and WRITE to memory or into receives (9.4). READs, atomics and answers are in `responder_reads`.
//!
//! Unreliable services. UC: messages without acknowledgement; an incomplete message is dropped (InfiniBand
//! specification 9.8.2). UD: single packets to any QP with the right queue key (9.8.3). A receive whose memory is
//! not what it says fails either QP, as it does a reliable one (9.9.3, class A).
#![allow(unsafe_code)]

use std::net::{IpAddr, SocketAddr};

use crate::net::{Arrival, known_hop_limit};
use crate::transport::completion_queue::{Attached, Completion, CompletionKind, Status};
use crate::transport::memory::{self, Access};
use crate::transport::outbox::{Keep, Outbox, QpWork};
use crate::transport::qp_state::{
    Message, QpContext, QpEvent, Refusal, ReplyWhat, RequestOutcome, Requester, Responder, State,
};
use crate::transport::work_queues::{Bytes, PKEY, opcode};
use crate::wire::{
    Deth, Extended, NakCode, Opcode, Packet, PacketKind, Place, Psn, Service, Syndrome, as_ipv6,
};

/// The most bytes of READ responses that are sent before a request that changes what they are read from. Of more, the rest is
/// sent in turns, and the request again by its requester.
const FIRST_ANSWERS_BYTES: usize = 512 << 10;

/// When it is a request's turn.
enum Turn {
    Next,
    /// It was executed before: its acknowledgement is lost or late.
    Repeated,
    /// It is not from the peer, or another one is missing before it.
    Never,
}

impl Responder {
    /// Handles a request on a reliable connection. `true` if the QP failed because of it.
    pub(crate) fn take(
        &mut self,
        work: QpWork<'_>,
        outbox: &mut Outbox<'_>,
        packet: &Packet<'_>,
        source: SocketAddr,
    ) -> bool {
        let psn = packet.psn;
        match self.turn(work, psn, source) {
            Turn::Next => {}
            Turn::Repeated => {
                self.repeat(work, packet);
                return false;
            }
            Turn::Never => return false,
        }
        let mut executed = self.execute(work, packet);
        if matches!(executed, Ok(RequestOutcome::OvertakesRead)) && !work.core.transmitter.is_full()
        {
            self.send_answers(work, outbox, FIRST_ANSWERS_BYTES);
            executed = self.execute(work, packet);
        }
        match executed {
            // Its completion found no room.
            Ok(RequestOutcome::Done) => work.qp.state() == State::Err,
            Ok(RequestOutcome::NotReady) => {
                self.reported = true;
                let timer = work.qp.min_rnr_timer();
                self.owe(psn, ReplyWhat::Refuse(Syndrome::RnrNak { timer }));
                false
            }
            Ok(RequestOutcome::OvertakesRead) => {
                // As if it were lost: the NAK follows the answers.
                self.reported = true;
                self.refuse(psn, NakCode::PsnSequenceError);
                false
            }
            Err(refusal) => {
                if refusal.code.is_none() {
                    // No NAK follows those that are due.
                    self.send_answers(work, outbox, FIRST_ANSWERS_BYTES);
                }
                self.reject(work, psn, &refusal);
                true
            }
        }
    }

    /// As [`Responder::take`], for a request whose operation does not exist: it is invalid (specification 9.9.3).
    pub(crate) fn take_unknown(&mut self, work: QpWork<'_>, psn: Psn, source: SocketAddr) -> bool {
        let next = matches!(self.turn(work, psn, source), Turn::Next);
        if next {
            self.reject(work, psn, &Refusal::invalid());
        }
        next
    }

    /// Whether a request is the next one. Reports a gap before it, once.
    fn turn(&mut self, work: QpWork<'_>, psn: Psn, source: SocketAddr) -> Turn {
        if !self.is_from_peer(work, source) || !work.qp.state().receives() {
            return Turn::Never;
        }
        self.establish(work);
        let statistics = &work.core.statistics;
        match psn.distance_from(self.expected()) {
            0 => {
                self.source_port.learn(source.port());
                self.reported = false;
                Turn::Next
            }
            1.. => {
                statistics.out_of_sequence.add(1);
                if !std::mem::replace(&mut self.reported, true) {
                    self.refuse(self.expected(), NakCode::PsnSequenceError);
                }
                Turn::Never
            }
            _ => {
                statistics.duplicate_requests.add(1);
                Turn::Repeated
            }
        }
    }

    /// Whether a packet is from the peer's address and port.
    pub(crate) fn is_from_peer(&self, work: QpWork<'_>, source: SocketAddr) -> bool {
        let from_peer = self.path_from(source).is_some();
        if !from_peer {
            work.core.statistics.wrong_source.add(1);
        }
        from_peer
    }

    /// Handles the first packet since RTR.
    pub(crate) fn establish(&mut self, work: QpWork<'_>) {
        if !std::mem::replace(&mut self.communicates, true) && work.qp.state() == State::Rtr {
            work.qp.raise(QpEvent::CommunicationEstablished);
        }
    }

    fn refuse(&mut self, psn: Psn, code: NakCode) {
        self.owe(psn, ReplyWhat::Refuse(Syndrome::Nak(code)));
    }

    /// Refuses a request, and moves the QP to ERR because of it.
    fn reject(&mut self, work: QpWork<'_>, psn: Psn, refusal: &Refusal) {
        if let Some(code) = refusal.code {
            self.refuse(psn, code);
        }
        self.fail(work.qp, refusal.receive_status);
        let event = match refusal.code {
            Some(NakCode::RemoteAccessError) => QpEvent::AccessError,
            Some(_) => QpEvent::RequestError,
            // The receive says so.
            None => return,
        };
        work.qp.raise(event);
    }

    fn execute(
        &mut self,
        work: QpWork<'_>,
        packet: &Packet<'_>,
    ) -> Result<RequestOutcome, Refusal> {
        match packet.opcode {
            Opcode::ReadRequest => self.read(work, packet),
            Opcode::CompareSwap | Opcode::FetchAdd => self.atomic(work, packet),
            _ => {
                let taken = self.message(work, packet)?;
                if matches!(taken, RequestOutcome::Done) {
                    self.expected = Some(packet.psn.plus(1));
                    if packet.ack_request {
                        self.acknowledge(packet.psn);
                    }
                }
                Ok(taken)
            }
        }
    }

    /// Handles a packet of a SEND or WRITE.
    pub(crate) fn message(
        &mut self,
        work: QpWork<'_>,
        packet: &Packet<'_>,
    ) -> Result<RequestOutcome, Refusal> {
        let mtu = self.path.as_ref().map_or(0, |path| path.mtu_bytes) as usize;
        let shape = Shape::from_opcode(packet.opcode);
        let begun = self.message.is_some();
        if shape.first == begun || !shape.fits(packet.payload.len(), mtu) {
            return Err(Refusal::invalid());
        }
        // Before its memory is looked at: a WRITE that is refused ends the receive as one that it used (11.6.2).
        let needs_receive = shape.first && !shape.write || packet.extended.immediate.is_some();
        if needs_receive && !self.has_receive && !self.take_receive(work) {
            return Ok(RequestOutcome::NotReady);
        }
        let message = if shape.first {
            self.begin(work, packet, shape)?
        } else {
            self.message.filter(|message| shape.continues(message)).ok_or_else(Refusal::invalid)?
        };
        if self.overtakes_read(work, packet, &message) {
            return Ok(RequestOutcome::OvertakesRead);
        }
        let message = match message {
            Message::Write { .. } => self.write(work, packet, shape, message)?,
            Message::Send => {
                self.fill(work, packet)?;
                if let Some(rkey) = packet.extended.invalidated {
                    let invalidated = work.tables.memories.invalidate(work.user(), rkey);
                    invalidated.map_err(|_| Refusal::invalidation())?;
                }
                message
            }
        };
        self.message = (!shape.last).then_some(message);
        if shape.last {
            self.completed = self.completed.wrapping_add(1);
            if message == Message::Send || packet.extended.immediate.is_some() {
                self.complete_receive(work, packet, &message);
            }
        }
        Ok(RequestOutcome::Done)
    }

    /// Handles the first packet of a message.
    fn begin(
        &mut self,
        work: QpWork<'_>,
        packet: &Packet<'_>,
        shape: Shape,
    ) -> Result<Message, Refusal> {
        let Some(reth) = packet.extended.reth else {
            return Ok(Message::Send);
        };
        let mtu = self.path.as_ref().map_or(0, |path| path.mtu_bytes);
        let allowed = work.qp.access().allows(Access::REMOTE_WRITE);
        if !allowed || shape.last != (reth.length_bytes <= mtu) {
            return Err(Refusal::invalid());
        }
        let length = u64::from(reth.length_bytes);
        // What a packet writes is looked up then.
        let is_all = packet.payload.len() as u64 == length && packet.extended.immediate.is_none();
        if length > 0 && !is_all {
            let found = work.resolve_remote(reth.rkey, reth.address, length, Access::REMOTE_WRITE);
            found.ok_or_else(Refusal::access)?;
        }
        Ok(Message::Write {
            address: reth.address,
            rkey: reth.rkey,
            rest_bytes: reth.length_bytes,
            length_bytes: reth.length_bytes,
        })
    }

    fn take_receive(&mut self, work: QpWork<'_>) -> bool {
        self.has_receive = work.qp.receives.take(&mut self.receive);
        self.has_receive
    }

    /// Writes a packet's payload to memory.
    fn write(
        &mut self,
        work: QpWork<'_>,
        packet: &Packet<'_>,
        shape: Shape,
        message: Message,
    ) -> Result<Message, Refusal> {
        let Message::Write { address, rkey, rest_bytes: expected_bytes, length_bytes } = message
        else {
            return Err(Refusal::invalid());
        };
        let count = packet.payload.len() as u32;
        let rest_bytes = expected_bytes.checked_sub(count).ok_or_else(Refusal::invalid)?;
        if shape.last != (rest_bytes == 0) {
            return Err(Refusal::invalid());
        }
        if count > 0 {
            let need = Access(Access::REMOTE_WRITE.0 | Access::LOCAL_WRITE.0);
            // Resolve the key for every packet, since the program may deregister it between two packets.
            let to = work
                .resolve_remote(rkey, address, count.into(), need)
                .ok_or_else(Refusal::access)?;
            // SAFETY: just resolved for so many bytes and writing, and the tables are held.
            unsafe { memory::put(packet.payload, to) };
        }
        Ok(Message::Write {
            address: address.wrapping_add(count.into()),
            rkey,
            rest_bytes,
            length_bytes,
        })
    }

    /// Writes a packet's payload into the receive.
    pub(crate) fn fill(&mut self, work: QpWork<'_>, packet: &Packet<'_>) -> Result<(), Refusal> {
        let start = u64::from(self.receive.filled_bytes);
        if start + packet.payload.len() as u64 > self.receive.room_bytes() {
            return Err(Refusal {
                code: Some(NakCode::InvalidRequest),
                receive_status: Status::LocalLengthError,
            });
        }
        let (memories, sges) = (&work.tables.memories, &self.receive.sges);
        let put = memory::scatter(memories, work.qp.receives.pd, sges, start, packet.payload);
        put.map_err(|_| Refusal {
            code: Some(NakCode::RemoteOperationalError),
            receive_status: Status::LocalProtectionError,
        })?;
        self.receive.filled_bytes += packet.payload.len() as u32;
        Ok(())
    }

    pub(crate) fn complete_receive(
        &mut self,
        work: QpWork<'_>,
        packet: &Packet<'_>,
        message: &Message,
    ) {
        self.has_receive = false;
        let (kind, length_bytes) = match *message {
            Message::Write { length_bytes, .. } => {
                (CompletionKind::ReceiveRdmaWithImmediate, length_bytes)
            }
            _ => (CompletionKind::Receive, self.receive.filled_bytes),
        };
        let deth = packet.extended.deth;
        let (qp, wr_id) = (work.qp, self.receive.wr_id);
        qp.complete_receive(Completion {
            length_bytes,
            attached: match (packet.extended.immediate, packet.extended.invalidated) {
                (Some(data), _) => Attached::Immediate(data.to_be()),
                (None, Some(rkey)) => Attached::Invalidated(rkey),
                (None, None) => Attached::Nothing,
            },
            source_qpn: deth.map_or(0, |deth| deth.source_qpn),
            has_grh: deth.is_some(),
            solicited: packet.solicited,
            ..Completion::new(qp.number, wr_id, Status::Success, kind)
        });
    }
}

/// The position of a packet in its message.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) first: bool,
    last: bool,
    write: bool,
}

impl Shape {
    pub(crate) fn from_opcode(opcode: Opcode) -> Shape {
        let place = opcode.place();
        Shape {
            first: matches!(place, Place::First | Place::Only),
            last: matches!(place, Place::Last | Place::Only),
            write: opcode.kind() == PacketKind::Write,
        }
    }

    /// Whether a packet at this position may have this length: all but the last are full (specification 9.4.1).
    fn fits(self, payload_bytes: usize, mtu_bytes: usize) -> bool {
        match (self.first, self.last) {
            (_, false) => payload_bytes == mtu_bytes,
            (true, true) => payload_bytes <= mtu_bytes,
            (false, true) => payload_bytes <= mtu_bytes && payload_bytes > 0,
        }
    }

    fn continues(self, message: &Message) -> bool {
        self.write == matches!(message, Message::Write { .. })
    }
}

impl Responder {
    /// Moves the QP to ERR because of a request; the receive in use completes with `status`.
    pub(crate) fn fail(&mut self, qp: &QpContext, status: Status) {
        qp.set_state(State::Err);
        if std::mem::take(&mut self.has_receive) {
            self.end_receive(qp, status);
        }
    }

    /// Completes the receive with an error.
    fn end_receive(&self, qp: &QpContext, status: Status) {
        let (wr_id, kind) = (self.receive.wr_id, CompletionKind::Receive);
        qp.complete_receive(Completion::new(qp.number, wr_id, status, kind));
    }

    /// Flushes the receives. Keeps only a NAK that is due and the answers before it, which it acknowledges.
    pub(crate) fn flush(&mut self, qp: &QpContext) {
        if std::mem::take(&mut self.has_receive) {
            self.end_receive(qp, Status::FlushError);
        }
        self.message = None;
        let refusal =
            self.replies.iter().rposition(|reply| matches!(reply.what, ReplyWhat::Refuse(_)));
        self.replies.truncate(refusal.map_or(0, |at| at + 1));
        if qp.shares_receives {
            return;
        }
        while qp.receives.take(&mut self.receive) {
            self.end_receive(qp, Status::FlushError);
        }
    }
}

impl QpContext {
    pub(crate) fn flush_receives(&self) {
        let mut responder = self.responder.lock();
        responder.flush(self);
        if self.shares_receives && !std::mem::replace(&mut responder.told_last_wqe, true) {
            self.raise(QpEvent::LastWqeReached);
        }
    }

    /// Flushes all that is posted, because the QP failed while it handled a packet.
    pub(crate) fn flush_all(&self) {
        self.requester.lock().flush(self);
        self.flush_receives();
    }
}

/// Bytes of the global header before a datagram's payload in its receive.
const GRH_BYTES: u32 = 40;
/// Largest datagram: the port's MTU.
const LARGEST_DATAGRAM_BYTES: u32 = 4096;
/// A queue key with the high bit set means the QP's own key (specification 10.2.5).
const OWN_QKEY: u32 = 0x8000_0000;

impl Requester {
    /// Sends all posted datagrams and completes them.
    pub(crate) fn transmit_datagrams(&mut self, work: QpWork<'_>, outbox: &mut Outbox<'_>) {
        while self.wants_to_send() && !work.core.waits_for_room(work.qp) {
            let index = self.next;
            let Some(wqe) = self.queue.get(index).copied() else {
                return;
            };
            let too_long = wqe.length_bytes > LARGEST_DATAGRAM_BYTES;
            let wrong = too_long.then_some(Status::LocalLengthError);
            if let Some(status) = wrong.or_else(|| self.check(work, index, &wqe)) {
                self.refuse(work.qp, index, status);
                return;
            }
            let psn = self.next_psn;
            self.assign(index, 1);
            let Some(datagram) = self.queue.destination(index).copied() else {
                return;
            };
            let source_qpn = work.qp.number;
            let qpns = [source_qpn, datagram.qpn];
            let flow = work.core.flow(
                datagram.address,
                datagram.flow_label,
                qpns,
                datagram.traffic_class,
                datagram.hop_limit,
            );
            let own = datagram.qkey & OWN_QKEY != 0;
            let packet = Packet {
                service: Service::Ud,
                opcode: opcode(&wqe, true, true),
                solicited: wqe.solicited(),
                pkey: PKEY,
                destination_qpn: datagram.qpn,
                ack_request: false,
                psn,
                extended: Extended {
                    deth: Some(Deth {
                        qkey: if own { work.qp.qkey() } else { datagram.qkey },
                        source_qpn,
                    }),
                    immediate: wqe.immediate().map(u32::from_be),
                    ..Extended::default()
                },
                payload: &[],
            };
            let length = wqe.length_bytes as usize;
            match self.queue.bytes(index) {
                Bytes::Inline(bytes) => {
                    outbox.push_copy(&flow, &packet, bytes);
                }
                Bytes::Registered(sges) => {
                    let memories = &work.tables.memories;
                    let pieces =
                        memory::pieces(memories, work.qp.pd, sges, 0, length, Access::NONE)
                            .flatten()
                            .map(|(pointer, bytes)| (pointer.cast_const(), bytes));
                    // SAFETY: resolved from the tables; copied, since the request is complete before it is sent.
                    unsafe { outbox.push(&flow, &packet, length, pieces, Keep::Copied) };
                }
            }
            self.next += 1;
            self.complete_head(work.qp);
        }
        self.unacked = self.position();
        self.tell_if_drained(work.qp);
    }
}

impl Responder {
    /// Handles a packet on an unreliable connection. `true` if the QP failed because of it: its receive is wrong, or its CQ
    /// overran.
    pub(crate) fn take_unreliable(
        &mut self,
        work: QpWork<'_>,
        packet: &Packet<'_>,
        source: SocketAddr,
    ) -> bool {
        if !self.is_from_peer(work, source) || !work.qp.state().receives() {
            return false;
        }
        self.establish(work);
        if packet.psn == self.expected() {
            self.source_port.learn(source.port());
        } else {
            work.core.statistics.out_of_sequence.add(1);
            self.message = None;
        }
        self.expected = Some(packet.psn.plus(1));
        if Shape::from_opcode(packet.opcode).first {
            self.lose_message();
        }
        match self.message(work, packet) {
            Ok(RequestOutcome::Done) => {}
            lost => {
                self.lose_message();
                work.core.statistics.dropped_datagrams.add(1);
                let status = Status::LocalProtectionError;
                if lost.is_err_and(|refusal| refusal.receive_status == status) {
                    self.fail(work.qp, status);
                }
            }
        }
        work.qp.state() == State::Err
    }

    /// Drops what has come of a message. Its receive is used for the next.
    fn lose_message(&mut self) {
        self.message = None;
        self.receive.filled_bytes = 0;
    }

    /// Writes a datagram with its global header into the next receive. `true` if the QP failed because of it: the receive
    /// is wrong, or its CQ overran.
    pub(crate) fn take_datagram(
        &mut self,
        work: QpWork<'_>,
        packet: &Packet<'_>,
        arrival: &Arrival<'_>,
    ) -> bool {
        let qp = work.qp;
        let deth = packet.extended.deth;
        let keyed = deth.is_some_and(|deth| deth.qkey == qp.qkey());
        let whole = u64::from(GRH_BYTES) + packet.payload.len() as u64;
        let fits = keyed
            && qp.state().receives()
            && (self.has_receive || self.take_receive(work))
            && whole <= self.receive.room_bytes();
        if !fits {
            work.core.statistics.dropped_datagrams.add(1);
            return false;
        }
        let header = global_header(arrival, work.core.address, packet.payload.len());
        let memories = &work.tables.memories;
        let put = memory::scatter(memories, qp.receives.pd, &self.receive.sges, 0, &header);
        self.receive.filled_bytes = GRH_BYTES;
        if put.is_err() || self.fill(work, packet).is_err() {
            self.fail(qp, Status::LocalProtectionError);
        } else {
            self.complete_receive(work, packet, &Message::Send);
        }
        qp.state() == State::Err
    }
}

/// The header before a datagram: the IPv6 header, or 20 unused bytes and the IPv4 header (annex A17.4.5.1). Fields
/// that user space cannot see have the values of a new packet.
fn global_header(arrival: &Arrival<'_>, destination: IpAddr, payload_bytes: usize) -> [u8; 40] {
    const UDP: u8 = 17;
    let class = arrival.traffic_class;
    let hops = known_hop_limit(arrival.hop_limit);
    // UDP, BTH, DETH and CRC.
    let length = (payload_bytes + 8 + 12 + 8 + 4) as u16;
    let mut header = [0; 40];
    match (arrival.source.ip(), destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            put_at(&mut header, 20, &[0x45, class]);
            put_at(&mut header, 22, &(length + 20).to_be_bytes());
            put_at(&mut header, 26, &[0x40, 0, hops, UDP]);
            put_at(&mut header, 32, &source.octets());
            put_at(&mut header, 36, &destination.octets());
        }
        (source, destination) => {
            put_at(&mut header, 0, &[0x60 | class >> 4, class << 4]);
            put_at(&mut header, 4, &length.to_be_bytes());
            put_at(&mut header, 6, &[UDP, hops]);
            put_at(&mut header, 8, &as_ipv6(source).octets());
            put_at(&mut header, 24, &as_ipv6(destination).octets());
        }
    }
    header
}

fn put_at(header: &mut [u8; 40], at: usize, bytes: &[u8]) {
    for (to, from) in header.iter_mut().skip(at).zip(bytes) {
        *to = *from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagrams_header_says_how_it_came() {
        let header = |address: &str, hop_limit| {
            let address: IpAddr = address.parse().unwrap();
            let source = SocketAddr::new(address, 50_000);
            let arrival = Arrival { source, traffic_class: 0xfc, hop_limit, bytes: &[] };
            global_header(&arrival, address, 8)
        };
        let ipv4 = header("127.0.0.9", 9);
        assert_eq!((ipv4[20..22].to_vec(), ipv4[28]), (vec![0x45, 0xfc], 9));
        let ipv6 = header("fd00::9", 9);
        assert_eq!((ipv6[..4].to_vec(), ipv6[7]), (vec![0x6f, 0xc0, 0, 0], 9));
        assert_eq!((header("127.0.0.9", 0)[28], header("fd00::9", 0)[7]), (64, 64));
    }
}
