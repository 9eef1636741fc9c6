//! READs that are to be answered from memory that a later request changes. The answers are read when they are sent, but
//! requests take effect in their order: such a request waits until the answers have been read. It must not know how they
//! are sent.

use crate::transport::memory::{self, Access};
use crate::transport::outbox::QpWork;
use crate::transport::qp_state::{Message, ReplyWhat, Responder};
use crate::wire::{Packet, Reth};

impl Responder {
    /// Where the bytes of a READ are, if it may read them. One of no bytes may, whatever its key.
    pub(crate) fn source(&self, work: QpWork<'_>, reth: Reth) -> Option<usize> {
        let length = u64::from(reth.length_bytes);
        if length == 0 {
            return Some(0);
        }
        let from = work.resolve(reth.rkey, reth.address, length, Access::REMOTE_READ);
        from.map(<*mut u8>::addr)
    }

    /// Whether a packet of a SEND or WRITE writes to memory that READs before it are still to be answered from.
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
                .resolve(rkey, address, count as u64, need)
                .is_some_and(|to| self.is_still_read(to, count)),
            Message::Send => {
                let start = u64::from(self.receive.filled_bytes);
                let (memories, pd) = (&work.tables.memories, work.qp.pd);
                memory::pieces(memories, pd, &self.receive.sges, start, count, need)
                    .flatten()
                    .any(|(to, bytes)| self.is_still_read(to, bytes))
            }
        }
    }

    /// Whether READs are still to be answered from any of these bytes.
    pub(crate) fn is_still_read(&self, at: *mut u8, bytes: usize) -> bool {
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
