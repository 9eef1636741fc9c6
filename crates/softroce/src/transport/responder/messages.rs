//! SEND and WRITE at the responder: writes their packets to memory or into receives (InfiniBand specification 9.4,
//! 9.7.4).
#![allow(unsafe_code)]

use crate::transport::completion_queue::{Completion, CompletionKind, Status};
use crate::transport::memory::{self, Access};
use crate::transport::outbox::QpWork;
use crate::transport::qp_state::{Message, Refusal, RequestOutcome, Responder};
use crate::wire::{NakCode, Opcode, Packet, PacketKind, Place};

impl Responder {
    /// Handles a packet of a SEND or WRITE.
    pub(crate) fn message(
        &mut self,
        work: QpWork<'_>,
        packet: &Packet<'_>,
    ) -> Result<RequestOutcome, Refusal> {
        let mtu = self.path.as_ref().map_or(0, |path| path.mtu_bytes) as usize;
        let shape = Shape::of(packet.opcode);
        let begun = self.message.is_some();
        if shape.first == begun || !shape.fits(packet.payload.len(), mtu) {
            return Err(Refusal::invalid());
        }
        let message = if shape.first {
            let Some(message) = self.begin(work, packet, shape)? else {
                return Ok(RequestOutcome::NotReady);
            };
            message
        } else {
            self.message.filter(|message| shape.continues(message)).ok_or_else(Refusal::invalid)?
        };
        if self.overtakes_read(work, packet, &message) {
            return Ok(RequestOutcome::OvertakesRead);
        }
        let message = match message {
            Message::Write { .. } => {
                let takes_receive = packet.extended.immediate.is_some();
                if takes_receive && !self.has_receive && !self.take_receive(work) {
                    return Ok(RequestOutcome::NotReady);
                }
                self.write(work, packet, shape, message)?
            }
            Message::Send => {
                self.fill(work, packet)?;
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

    /// Handles the first packet of a message; `None` if there is no receive for it.
    fn begin(
        &mut self,
        work: QpWork<'_>,
        packet: &Packet<'_>,
        shape: Shape,
    ) -> Result<Option<Message>, Refusal> {
        let Some(reth) = packet.extended.reth else {
            let ready = self.has_receive || self.take_receive(work);
            return Ok(ready.then_some(Message::Send));
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
            let found = work.resolve(reth.rkey, reth.address, length, Access::REMOTE_WRITE);
            found.ok_or_else(Refusal::access)?;
        }
        Ok(Some(Message::Write {
            address: reth.address,
            rkey: reth.rkey,
            rest_bytes: reth.length_bytes,
            length_bytes: reth.length_bytes,
        }))
    }

    pub(crate) fn take_receive(&mut self, work: QpWork<'_>) -> bool {
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
            let to = work.resolve(rkey, address, count.into(), need).ok_or_else(Refusal::access)?;
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
                code: NakCode::InvalidRequest,
                receive_status: Status::LocalLengthError,
            });
        }
        let (memories, sges) = (&work.tables.memories, &self.receive.sges);
        let put = memory::scatter(memories, work.qp.pd, sges, start, packet.payload);
        put.map_err(|_| Refusal {
            code: NakCode::RemoteOperationalError,
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
            immediate: packet.extended.immediate.map(u32::to_be),
            source_qpn: deth.map_or(0, |deth| deth.source_qpn),
            has_grh: deth.is_some(),
            solicited: packet.solicited,
            ..Completion::of(qp.number, wr_id, Status::Success, kind)
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
    pub(crate) fn of(opcode: Opcode) -> Shape {
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
