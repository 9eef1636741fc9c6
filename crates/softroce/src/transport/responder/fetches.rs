//! READs and atomics at the responder, and repeated requests. The responder remembers READs and atomics, to answer a
//! repeated one without executing it again (InfiniBand specification 9.7.5.1.2).
#![allow(unsafe_code)]

use crate::transport::memory::{self, Access, Atomic};
use crate::transport::outbox::QpWork;
use crate::transport::qp_state::{
    Answered, AnsweredWhat, Refusal, ReplyWhat, RequestOutcome, Responder,
};
use crate::wire::{Opcode, Packet, Psn, Reth};

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
        let at = work.resolve(header.rkey, header.address, 8, need).ok_or_else(Refusal::access)?;
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
