//! READs, atomics and repeated requests at the responder, and its answers, sent in the order of the requests:
//! acknowledgements, NAKs, READ responses, results of atomics (InfiniBand specification 9.7.5).
//!
//! The responder remembers READs and atomics, to answer a repeated one without executing it again (InfiniBand
//! specification 9.7.5.1.2). The answers to READs are read when they are sent, but requests take effect in their
//! order: one that changes their memory waits until the answers have been read.
#![allow(unsafe_code)]

use crate::transport::memory::{self, Access, Atomic};
use crate::transport::outbox::{Keep, Outbox, QpWork};
use crate::transport::peer::Path;
use crate::transport::qp_state::{
    Answered, AnsweredWhat, Message, Refusal, Reply, ReplyWhat, RequestOutcome, Responder,
};
use crate::transport::work_queues::PKEY;
use crate::wire::{Aeth, Bth, Extended, NakCode, Opcode, Packet, Psn, Reth, Service, Syndrome};

impl Responder {
    pub(crate) fn read(
        &mut self,
        work: QpWork<'_>,
        packet: &Packet<'_>,
    ) -> Result<RequestOutcome, Refusal> {
        let Some(reth) = packet.extended.reth.filter(|_| self.message.is_none()) else {
            return Err(Refusal::invalid());
        };
        // More of them than were agreed on are invalid (specification 9.9.3).
        let allowed = work.qp.access().allows(Access::REMOTE_READ);
        if !allowed || self.fetches_full() || !packet.payload.is_empty() {
            return Err(Refusal::invalid());
        }
        let source = self.source(work, reth).ok_or_else(Refusal::access)?;
        let mtu = self.path.as_ref().map_or(1, |path| path.mtu_bytes);
        let packets = reth.length_bytes.div_ceil(mtu).max(1);
        self.done(packet.psn, packets, AnsweredWhat::Read(reth));
        self.repeat_budget.earn(reth.length_bytes);
        self.owe_read(packet.psn, reth, source, packets, false);
        Ok(RequestOutcome::Done)
    }

    pub(crate) fn atomic(
        &mut self,
        work: QpWork<'_>,
        packet: &Packet<'_>,
    ) -> Result<RequestOutcome, Refusal> {
        let Some(header) = packet.extended.atomic.filter(|_| self.message.is_none()) else {
            return Err(Refusal::invalid());
        };
        let need = Access::REMOTE_ATOMIC;
        let valid = header.address % 8 == 0 && packet.payload.is_empty();
        if !valid || self.fetches_full() || !work.qp.access().allows(need) {
            return Err(Refusal::invalid());
        }
        let at = work
            .resolve_remote(header.rkey, header.address, 8, need)
            .ok_or_else(Refusal::access)?;
        if at.addr() % 8 != 0 {
            return Err(Refusal::invalid());
        }
        if self.is_still_read(at, 8) {
            return Ok(RequestOutcome::OvertakesRead);
        }
        let operation = if packet.opcode == Opcode::FetchAdd {
            Atomic::Add(header.swap_or_add)
        } else {
            Atomic::Swap { compare: header.compare, swap: header.swap_or_add }
        };
        // SAFETY: aligned, just resolved for 8 bytes and atomics, and the tables are held.
        let original = unsafe { memory::atomic(at, operation) };
        self.done(packet.psn, 1, AnsweredWhat::Atomic { original });
        let again = false;
        self.owe(packet.psn, ReplyWhat::Atomic { original, again });
        Ok(RequestOutcome::Done)
    }

    fn owe_read(&mut self, psn: Psn, reth: Reth, source: usize, packets: u32, again: bool) {
        let read = ReplyWhat::Read { reth, source, packets, sent_packets: 0, again };
        self.owe(psn, read);
    }

    /// Counts a READ or atomic that was executed, and remembers it.
    fn done(&mut self, psn: Psn, packets: u32, what: AnsweredWhat) {
        self.completed = self.completed.wrapping_add(1);
        self.expected = Some(psn.plus(packets));
        if self.answered.len() >= self.max_dest_rd_atomic {
            self.answered.pop_front();
        }
        self.answered.push_back(Answered { psn, packets, what });
    }

    /// Answers a repeated request without executing it again (specification 9.7.5.1.2).
    pub(crate) fn repeat(&mut self, work: QpWork<'_>, packet: &Packet<'_>) {
        let psn = packet.psn;
        match packet.opcode {
            Opcode::ReadRequest => {
                let reth = packet.extended.reth;
                let Some((reth, packets)) = reth.and_then(|it| self.repeatable(psn, it)) else {
                    return;
                };
                if !self.repeat_budget.spend(reth.length_bytes, work.now_ns) {
                    work.core.statistics.unanswered_duplicates.add(1);
                    return;
                }
                // The requester will repeat later requests too, or already has.
                self.replies.retain(|reply| reply.last_psn().distance_from(psn) < 0);
                // It reads anew, and fails when it is sent if it may not read any more.
                let source = self.source(work, reth).unwrap_or(0);
                self.owe_read(psn, reth, source, packets, true);
            }
            Opcode::CompareSwap | Opcode::FetchAdd => {
                self.repeat_atomic(psn);
            }
            // Acknowledges everything since then, but only on request. Otherwise an acknowledgement is on its way or
            // will be requested. An unrequested one harms Linux's Soft-RoCE: if it is still retransmitting a message,
            // it takes the acknowledgement for the end of that message, and then sends another one under the same
            // PSNs.
            _ if packet.ack_request => self.acknowledge(self.expected().plus(Psn::STEP_BACK)),
            _ => {}
        }
    }

    fn repeat_atomic(&mut self, psn: Psn) {
        let found = self.answered.iter().find(|known| known.psn == psn);
        // Its answer is on its way if it is still due.
        let due = self.replies.iter().any(|reply| reply.last_psn() == psn);
        if let Some(AnsweredWhat::Atomic { original }) = found.map(|known| known.what)
            && !due
        {
            let again = true;
            self.owe(psn, ReplyWhat::Atomic { original, again });
        }
    }

    /// The READ that this request repeats, in whole or its end.
    fn repeatable(&self, psn: Psn, reth: Reth) -> Option<(Reth, u32)> {
        let mtu = self.path.as_ref()?.mtu_bytes;
        let known = self.answered.iter().find(|known| {
            let after = psn.distance_from(known.psn);
            after >= 0 && after.cast_unsigned() < known.packets
        })?;
        let AnsweredWhat::Read(first) = known.what else {
            return None;
        };
        let start = u64::from(psn.distance_from(known.psn).cast_unsigned() * mtu);
        let inside = reth.rkey == first.rkey
            && reth.address == first.address.wrapping_add(start)
            && start + u64::from(reth.length_bytes) <= u64::from(first.length_bytes);
        inside.then(|| (reth, reth.length_bytes.div_ceil(mtu).max(1)))
    }

    /// Where the bytes of a READ are, if it may read them. One of no bytes may, whatever its key.
    pub(crate) fn source(&self, work: QpWork<'_>, reth: Reth) -> Option<usize> {
        let length = u64::from(reth.length_bytes);
        if length == 0 {
            return Some(0);
        }
        let from = work.resolve_remote(reth.rkey, reth.address, length, Access::REMOTE_READ);
        from.map(<*mut u8>::addr)
    }

    /// Whether a packet of a SEND or WRITE writes to memory that READs before it are still to be answered from, or
    /// invalidates a key that they use.
    pub(crate) fn overtakes_read(
        &self,
        work: QpWork<'_>,
        packet: &Packet<'_>,
        message: &Message,
    ) -> bool {
        if !self.replies.iter().any(|reply| matches!(reply.what, ReplyWhat::Read { .. })) {
            return false;
        }
        let (need, count) = (Access::LOCAL_WRITE, packet.payload.len());
        match *message {
            Message::Write { address, rkey, .. } => work
                .resolve_remote(rkey, address, count as u64, need)
                .is_some_and(|to| self.is_still_read(to, count)),
            Message::Send => {
                if packet.extended.invalidated.is_some_and(|rkey| self.is_read_by(rkey)) {
                    return true;
                }
                let start = u64::from(self.receive.filled_bytes);
                let (memories, pd) = (&work.tables.memories, work.qp.receives.pd);
                memory::pieces(memories, pd, &self.receive.sges, start, count, need)
                    .flatten()
                    .any(|(to, bytes)| self.is_still_read(to, bytes))
            }
        }
    }

    /// Whether READs with this key are still to be answered.
    fn is_read_by(&self, rkey: u32) -> bool {
        self.replies.iter().any(|reply| match reply.what {
            ReplyWhat::Read { reth, .. } => reth.rkey == rkey,
            _ => false,
        })
    }

    /// Whether READs are still to be answered from any of these bytes.
    fn is_still_read(&self, at: *mut u8, bytes: usize) -> bool {
        let mtu = self.path.as_ref().map_or(0, |path| path.mtu_bytes) as usize;
        self.replies.iter().any(|reply| match reply.what {
            ReplyWhat::Read { reth, source, sent_packets, .. } => {
                let rest = source + sent_packets as usize * mtu;
                let end = source + reth.length_bytes as usize;
                rest.max(at.addr()) < end.min(at.addr() + bytes)
            }
            _ => false,
        })
    }
}

/// No credit limit: the requester may send at will (specification 9.7.7.2).
const UNLIMITED: Syndrome = Syndrome::Ack { credits: 31 };

/// A QP's answers of up to so many bytes may leave with those of others.
const SMALL_ANSWERS_BYTES: usize = 2048;

/// A QP's answers on their way into the outbox.
struct Answering<'a, 'b> {
    outbox: &'a mut Outbox<'b>,
    path: &'a Path,
    work: QpWork<'a>,
    sent_bytes: usize,
}

impl Responder {
    /// Sends the answers due, with at most about so many bytes of READ responses.
    pub(crate) fn send_answers(
        &mut self,
        work: QpWork<'_>,
        outbox: &mut Outbox<'_>,
        most_bytes: usize,
    ) {
        let Some(path) = self.path.clone() else {
            self.replies.clear();
            return;
        };
        let mut answering = Answering { outbox, path: &path, work, sent_bytes: 0 };
        while answering.sent_bytes < most_bytes
            && (answering.sent_bytes == 0 || !work.core.transmitter.is_full())
            && let Some(reply) = self.replies.front_mut()
        {
            if answering.add(reply) {
                self.replies.pop_front();
            }
        }
        // What another thread sends for this QP must not overtake data, nor, where the program sleeps, an acknowledgement:
        // see `Qp::post_send`.
        let is_awaited = answering.sent_bytes > 0 && work.qp.recv_cq.has_events();
        if is_awaited || answering.sent_bytes > SMALL_ANSWERS_BYTES {
            answering.outbox.flush();
        }
    }

    /// Adds an acknowledgement behind the QP's own requests, if no other answer is due and it leaves with them.
    pub(crate) fn append_acknowledgement(&mut self, work: QpWork<'_>, outbox: &mut Outbox<'_>) {
        if self.replies.len() == 1
            && let Some(reply) = self.replies.front_mut()
            && matches!(reply.what, ReplyWhat::Acknowledge)
            && let Some(path) = &self.path
            && outbox.has_company(&path.flow, Bth::BYTES + Aeth::BYTES, 0)
        {
            let mut answering = Answering { outbox, path, work, sent_bytes: 0 };
            answering.add(reply);
            self.replies.clear();
        }
    }
}

fn answer(path: &Path, opcode: Opcode, psn: Psn, extended: Extended) -> Packet<'static> {
    Packet {
        service: Service::Rc,
        opcode,
        solicited: false,
        pkey: PKEY,
        destination_qpn: path.qpn,
        ack_request: false,
        psn,
        extended,
        payload: &[],
    }
}

impl Answering<'_, '_> {
    /// Adds a reply; of a READ one packet. `true` when it is complete.
    fn add(&mut self, reply: &mut Reply) -> bool {
        let statistics = &self.work.core.statistics;
        let Reply { psn, completed, .. } = *reply;
        match &mut reply.what {
            ReplyWhat::Acknowledge => {
                statistics.acks_sent.add(1);
                self.add_short(psn, UNLIMITED, completed, None)
            }
            ReplyWhat::Refuse(syndrome) => {
                let counter = match syndrome {
                    Syndrome::RnrNak { .. } => &statistics.rnr_naks_sent,
                    _ => &statistics.naks_sent,
                };
                counter.add(1);
                self.add_short(psn, *syndrome, completed, None)
            }
            ReplyWhat::Atomic { original, .. } => {
                self.add_short(psn, UNLIMITED, completed, Some(*original))
            }
            ReplyWhat::Read { reth, packets, sent_packets, .. } => {
                if !self.add_response(psn, *reth, *packets, *sent_packets, completed) {
                    // The program has deregistered the memory.
                    let refused = Syndrome::Nak(NakCode::RemoteAccessError);
                    return self.add_short(psn.plus(*sent_packets), refused, completed, None);
                }
                *sent_packets += 1;
                sent_packets == packets
            }
        }
    }

    /// Adds an answer without payload, which is complete.
    fn add_short(
        &mut self,
        psn: Psn,
        syndrome: Syndrome,
        completed: u32,
        atomic_answer: Option<u64>,
    ) -> bool {
        let opcode = match atomic_answer {
            Some(_) => Opcode::AtomicAcknowledge,
            None => Opcode::Acknowledge,
        };
        let extended = Extended {
            aeth: Some(aeth(syndrome, completed)),
            atomic_answer,
            ..Extended::default()
        };
        self.push_bare(&answer(self.path, opcode, psn, extended));
        true
    }

    /// Adds packet `index` of a READ response. `false` if its memory is no longer registered.
    fn add_response(
        &mut self,
        first: Psn,
        reth: Reth,
        packets: u32,
        index: u32,
        completed: u32,
    ) -> bool {
        let mtu = self.path.mtu_bytes;
        let opcode = match (index == 0, index + 1 == packets) {
            (true, true) => Opcode::ReadResponseOnly,
            (true, false) => Opcode::ReadResponseFirst,
            (false, true) => Opcode::ReadResponseLast,
            (false, false) => Opcode::ReadResponseMiddle,
        };
        let offset = index * mtu;
        let length = mtu.min(reth.length_bytes - offset);
        let extended = Extended {
            aeth: opcode.has_aeth().then(|| aeth(UNLIMITED, completed)),
            ..Extended::default()
        };
        let packet = answer(self.path, opcode, first.plus(index), extended);
        if length == 0 {
            self.push_bare(&packet);
            return true;
        }
        let address = reth.address.wrapping_add(offset.into());
        let (rkey, need) = (reth.rkey, Access::REMOTE_READ);
        let Some(from) = self.work.resolve_remote(rkey, address, length.into(), need) else {
            return false;
        };
        let (flow, length) = (&self.path.flow, length as usize);
        let piece = std::iter::once((from.cast_const(), length));
        // A program may change memory that its peer reads.
        let keep = Keep::Copied;
        // SAFETY: just resolved, from the tables that the caller holds.
        self.sent_bytes += unsafe { self.outbox.push(flow, &packet, length, piece, keep) };
        true
    }

    fn push_bare(&mut self, packet: &Packet<'_>) {
        self.sent_bytes += self.outbox.push_bare(&self.path.flow, packet);
    }
}

fn aeth(syndrome: Syndrome, completed: u32) -> Aeth {
    Aeth { syndrome, msn: completed & 0x00ff_ffff }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_atomic_that_is_repeated_is_due_once() {
        let psn = Psn::new(5);
        let mut responder = Responder { max_dest_rd_atomic: 2, ..Responder::default() };
        responder.done(psn, 1, AnsweredWhat::Atomic { original: 7 });
        for _ in 0..1000 {
            responder.repeat_atomic(psn);
        }
        assert_eq!(responder.replies.len(), 1);
        responder.replies.clear();
        responder.repeat_atomic(psn);
        let answer = responder.replies.front().unwrap().what;
        assert!(matches!(answer, ReplyWhat::Atomic { original: 7, .. }));
    }
}
