//! READs and atomics at the responder, and repeated requests. The responder remembers READs and atomics, to answer a
//! repeated one without executing it again (InfiniBand specification 9.7.5.1.2).
#![allow(unsafe_code)]

use super::copy::{self, Atomic};
use super::memory::Access;
use super::request_outcome::{Refusal, RequestOutcome};
use super::responder::{Answered, AnsweredWhat, Reply, Responder};
use super::work::QpWork;
use crate::wire::{Opcode, Packet, Psn, Reth};

impl Responder {
    pub(super) fn read(
        &mut self,
        work: QpWork<'_>,
        packet: &Packet<'_>,
    ) -> Result<RequestOutcome, Refusal> {
        let Some(reth) = packet.extended.reth.filter(|_| self.message.is_none()) else {
            return Err(Refusal::invalid());
        };
        if self.max_dest_rd_atomic == 0 || !packet.payload.is_empty() {
            return Err(Refusal::invalid());
        }
        if !work.qp.access().allows(Access::REMOTE_READ) {
            return Err(Refusal::invalid());
        }
        let length = u64::from(reth.length_bytes);
        let allowed = length == 0
            || work
                .tables
                .memories
                .resolve(
                    reth.rkey,
                    work.qp.pd,
                    reth.address,
                    length,
                    Access::REMOTE_READ,
                )
                .is_some();
        if !allowed {
            return Err(Refusal::access());
        }
        let mtu = self.path.as_ref().map_or(1, |path| path.mtu_bytes);
        let packets = reth.length_bytes.div_ceil(mtu).max(1);
        self.completed = self.completed.wrapping_add(1);
        self.expected = Some(packet.psn.plus(packets));
        self.remember(Answered {
            psn: packet.psn,
            packets,
            what: AnsweredWhat::Read(reth),
        });
        self.owe(Reply::read(packet.psn, reth, packets, self.completed));
        Ok(RequestOutcome::Done)
    }

    pub(super) fn atomic(
        &mut self,
        work: QpWork<'_>,
        packet: &Packet<'_>,
    ) -> Result<RequestOutcome, Refusal> {
        let Some(header) = packet.extended.atomic.filter(|_| self.message.is_none()) else {
            return Err(Refusal::invalid());
        };
        if self.max_dest_rd_atomic == 0 || header.address % 8 != 0 || !packet.payload.is_empty() {
            return Err(Refusal::invalid());
        }
        if !work.qp.access().allows(Access::REMOTE_ATOMIC) {
            return Err(Refusal::invalid());
        }
        let at = work
            .tables
            .memories
            .resolve(
                header.rkey,
                work.qp.pd,
                header.address,
                8,
                Access::REMOTE_ATOMIC,
            )
            .ok_or_else(Refusal::access)?;
        if at.addr() % 8 != 0 {
            return Err(Refusal::invalid());
        }
        let operation = if packet.opcode == Opcode::FetchAdd {
            Atomic::Add(header.swap_or_add)
        } else {
            Atomic::Swap {
                compare: header.compare,
                swap: header.swap_or_add,
            }
        };
        // SAFETY: aligned, just resolved for 8 bytes and atomics, and the tables are held.
        let original = unsafe { copy::atomic(at, operation) };
        self.completed = self.completed.wrapping_add(1);
        self.expected = Some(packet.psn.plus(1));
        self.remember(Answered {
            psn: packet.psn,
            packets: 1,
            what: AnsweredWhat::Atomic { original },
        });
        self.owe(Reply::Atomic {
            psn: packet.psn,
            original,
            completed: self.completed,
        });
        Ok(RequestOutcome::Done)
    }

    fn remember(&mut self, answered: Answered) {
        if self.answered.len() >= self.max_dest_rd_atomic {
            self.answered.pop_front();
        }
        self.answered.push_back(answered);
    }

    /// Answers a repeated request without executing it again (specification 9.7.5.1.2).
    pub(super) fn repeat(&mut self, packet: &Packet<'_>) {
        let psn = packet.psn;
        match packet.opcode {
            Opcode::ReadRequest => {
                let Some((reth, packets)) = packet
                    .extended
                    .reth
                    .and_then(|reth| self.repeatable(psn, reth))
                else {
                    return;
                };
                // The requester will repeat later requests too, or already has.
                self.replies
                    .retain(|reply| reply.psn().distance_from(psn) < 0);
                self.owe(Reply::read(psn, reth, packets, self.completed));
            }
            Opcode::CompareSwap | Opcode::FetchAdd => {
                let found = self.answered.iter().find(|known| known.psn == psn);
                if let Some(AnsweredWhat::Atomic { original }) = found.map(|known| known.what) {
                    self.owe(Reply::Atomic {
                        psn,
                        original,
                        completed: self.completed,
                    });
                }
            }
            // Acknowledges everything since then, but only on request. Otherwise an acknowledgement is on its way or
            // will be requested. An unrequested one harms Linux's Soft-RoCE: if it is still retransmitting a message,
            // it takes the acknowledgement for the end of that message, and then sends another one under the same
            // PSNs.
            _ if packet.ack_request => self.acknowledge(self.expected().plus(Psn::STEP_BACK)),
            _ => {}
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
