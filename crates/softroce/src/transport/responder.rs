//! The half of a QP that takes requests: order of packets, messages, memory, and what is owed for them
//! (InfiniBand specification 9.7.4, 9.7.5). Answers are sent by [`super::replies`], unreliable services are in
//! [`super::unreliable`].

use std::collections::VecDeque;
use std::net::IpAddr;

use super::copy::{self, Atomic};
use super::core::Statistics;
use super::memory::Access;
use super::qp::{Path, QpEvent, Scene};
use super::recv_queue::Receive;
use super::replies::Reply;
use super::{Completion, CompletionKind, Qp, State, Status};
use crate::wire::{NakCode, Opcode, Packet, Psn, Reth, Syndrome};

/// A message of several packets that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// It goes to the receive that was taken for it.
    Send,
    /// It goes to memory: where the next packet's bytes belong, and how many are to come.
    Write {
        address: u64,
        rkey: u32,
        rest_bytes: u32,
        length_bytes: u32,
    },
}

/// A READ or atomic that was answered, to be answered again should the answer be lost.
#[derive(Clone, Copy)]
struct Answered {
    psn: Psn,
    packets: u32,
    what: AnsweredWhat,
}

#[derive(Clone, Copy)]
enum AnsweredWhat {
    Read(Reth),
    Atomic { original: u64 },
}

/// The receiving half.
#[derive(Default)]
pub(super) struct Responder {
    pub(super) path: Option<Path>,
    pub(super) expected: Option<Psn>,
    /// Messages completed, 24 bits (MSN).
    pub(super) completed: u32,
    /// The gap or missing receive at `expected` was reported; until it is filled all else is dropped.
    pub(super) reported: bool,
    pub(super) message: Option<Message>,
    pub(super) receive: Receive,
    /// `receive` is in use.
    pub(super) has_receive: bool,
    pub(super) replies: VecDeque<Reply>,
    answered: VecDeque<Answered>,
    max_dest_rd_atomic: usize,
    communicates: bool,
}

/// A request that is refused: what the peer is told and how a receive that it took ends.
pub(super) struct Refusal {
    code: NakCode,
    receive_status: Status,
}

impl Refusal {
    fn invalid() -> Refusal {
        Refusal {
            code: NakCode::InvalidRequest,
            receive_status: Status::RemoteInvalidRequestError,
        }
    }

    fn access() -> Refusal {
        Refusal {
            code: NakCode::RemoteAccessError,
            receive_status: Status::LocalAccessError,
        }
    }
}

/// How a request went.
enum Taken {
    Done,
    NotReady,
}

impl Responder {
    pub(super) fn connect(&mut self, path: Option<Path>, psn: Psn, max_dest_rd_atomic: u8) {
        *self = Responder {
            path,
            expected: Some(psn),
            max_dest_rd_atomic: usize::from(max_dest_rd_atomic),
            ..Responder::default()
        };
    }

    pub(super) fn expected(&self) -> Psn {
        self.expected.unwrap_or(Psn::ZERO)
    }

    pub(super) fn owes(&self) -> bool {
        !self.replies.is_empty()
    }

    /// The QP is in error: receives are flushed, and nothing is owed any more but a refusal and what comes before
    /// it, which it acknowledges.
    pub(super) fn flush(&mut self, qp: &Qp) {
        let kind = CompletionKind::Receive;
        if std::mem::take(&mut self.has_receive) {
            qp.complete_receive(qp.failure(self.receive.wr_id, Status::FlushError, kind));
        }
        self.message = None;
        let refusal = self
            .replies
            .iter()
            .rposition(|reply| matches!(reply, Reply::Refuse { .. }));
        self.replies.truncate(refusal.map_or(0, |at| at + 1));
        if qp.shares_receives() {
            return;
        }
        while qp.receives.take(&mut self.receive) {
            qp.complete_receive(qp.failure(self.receive.wr_id, Status::FlushError, kind));
        }
    }

    /// A request on a reliable connection. `true` if the QP broke over it.
    pub(super) fn take(&mut self, scene: Scene<'_>, packet: &Packet<'_>, source: IpAddr) -> bool {
        let from_peer = self
            .path
            .as_ref()
            .is_some_and(|path| path.address == source);
        if !from_peer || !scene.qp.state().receives() {
            return false;
        }
        self.establish(scene);
        let statistics = &scene.core.statistics;
        let psn = packet.psn;
        match psn.distance_from(self.expected()) {
            0 => {}
            1.. => {
                Statistics::count(&statistics.out_of_sequence);
                if !std::mem::replace(&mut self.reported, true) {
                    self.refuse(self.expected(), NakCode::PsnSequenceError);
                }
                return false;
            }
            _ => {
                Statistics::count(&statistics.duplicate_requests);
                self.repeat(packet);
                return false;
            }
        }
        self.reported = false;
        match self.execute(scene, packet) {
            Ok(Taken::Done) => false,
            Ok(Taken::NotReady) => {
                self.reported = true;
                self.owe(Reply::Refuse {
                    psn,
                    syndrome: Syndrome::RnrNak {
                        timer: scene.qp.min_rnr_timer(),
                    },
                    completed: self.completed,
                });
                false
            }
            Err(refusal) => {
                self.refuse(psn, refusal.code);
                self.break_off(scene, &refusal);
                true
            }
        }
    }

    /// First packet since RTR.
    pub(super) fn establish(&mut self, scene: Scene<'_>) {
        if !std::mem::replace(&mut self.communicates, true) && scene.qp.state() == State::Rtr {
            scene.qp.raise(QpEvent::CommunicationEstablished);
        }
    }

    fn refuse(&mut self, psn: Psn, code: NakCode) {
        self.owe(Reply::Refuse {
            psn,
            syndrome: Syndrome::Nak(code),
            completed: self.completed,
        });
    }

    /// The QP is in error because of a request.
    fn break_off(&mut self, scene: Scene<'_>, refusal: &Refusal) {
        let qp = scene.qp;
        qp.set_state(State::Err);
        if std::mem::take(&mut self.has_receive) {
            let status = refusal.receive_status;
            qp.complete_receive(qp.failure(self.receive.wr_id, status, CompletionKind::Receive));
        }
        qp.raise(if refusal.code == NakCode::RemoteAccessError {
            QpEvent::AccessError
        } else {
            QpEvent::RequestError
        });
    }

    fn execute(&mut self, scene: Scene<'_>, packet: &Packet<'_>) -> Result<Taken, Refusal> {
        let taken = match packet.opcode {
            Opcode::ReadRequest => self.read(scene, packet)?,
            Opcode::CompareSwap | Opcode::FetchAdd => self.atomic(scene, packet)?,
            _ => {
                let taken = self.message(scene, packet)?;
                if matches!(taken, Taken::Done) {
                    self.expected = Some(packet.psn.plus(1));
                    if packet.ack_request {
                        self.acknowledge(packet.psn);
                    }
                }
                taken
            }
        };
        Ok(taken)
    }

    /// Owes an acknowledgement of all up to `psn`; one answers for all before it.
    fn acknowledge(&mut self, psn: Psn) {
        let completed = self.completed;
        if let Some(Reply::Acknowledge {
            psn: last,
            completed: count,
        }) = self.replies.back_mut()
        {
            *last = psn;
            *count = completed;
        } else {
            self.owe(Reply::Acknowledge { psn, completed });
        }
    }

    pub(super) fn owe(&mut self, reply: Reply) {
        self.replies.push_back(reply);
    }

    /// A packet of a SEND or WRITE.
    fn message(&mut self, scene: Scene<'_>, packet: &Packet<'_>) -> Result<Taken, Refusal> {
        let mtu = self.path.as_ref().map_or(0, |path| path.mtu_bytes) as usize;
        let shape = Shape::of(packet.opcode);
        let begun = self.message.is_some();
        if shape.first == begun || !shape.fits(packet.payload.len(), mtu) {
            return Err(Refusal::invalid());
        }
        let message = if shape.first {
            self.begin(scene, packet, shape)?
        } else {
            self.message.filter(|message| shape.continues(message))
        };
        let Some(message) = message else {
            return if shape.first {
                Ok(Taken::NotReady)
            } else {
                Err(Refusal::invalid())
            };
        };
        let message = match message {
            Message::Write { .. } => {
                let takes_receive = packet.extended.immediate.is_some();
                if takes_receive && !self.has_receive && !self.take_receive(scene) {
                    return Ok(Taken::NotReady);
                }
                self.write(scene, packet, shape, message)?
            }
            Message::Send => {
                self.fill(scene, packet)?;
                message
            }
        };
        self.message = (!shape.last).then_some(message);
        if shape.last {
            self.completed = self.completed.wrapping_add(1);
            if message == Message::Send || packet.extended.immediate.is_some() {
                self.complete_receive(scene, packet, &message);
            }
        }
        Ok(Taken::Done)
    }

    /// The first packet of a message; `None` when there is no receive for it.
    pub(super) fn begin(
        &mut self,
        scene: Scene<'_>,
        packet: &Packet<'_>,
        shape: Shape,
    ) -> Result<Option<Message>, Refusal> {
        let Some(reth) = packet.extended.reth else {
            let ready = self.has_receive || self.take_receive(scene);
            return Ok(ready.then_some(Message::Send));
        };
        let mtu = self.path.as_ref().map_or(0, |path| path.mtu_bytes);
        if shape.last != (reth.length_bytes <= mtu) {
            return Err(Refusal::invalid());
        }
        if !scene.qp.access().allows(Access::REMOTE_WRITE) {
            return Err(Refusal::invalid());
        }
        let length = u64::from(reth.length_bytes);
        if length > 0 {
            let memories = &scene.tables.memories;
            memories
                .resolve(
                    reth.rkey,
                    scene.qp.pd,
                    reth.address,
                    length,
                    Access::REMOTE_WRITE,
                )
                .ok_or_else(Refusal::access)?;
        }
        Ok(Some(Message::Write {
            address: reth.address,
            rkey: reth.rkey,
            rest_bytes: reth.length_bytes,
            length_bytes: reth.length_bytes,
        }))
    }

    pub(super) fn take_receive(&mut self, scene: Scene<'_>) -> bool {
        self.has_receive = scene.qp.receives.take(&mut self.receive);
        self.has_receive
    }

    /// A packet's bytes into memory.
    pub(super) fn write(
        &mut self,
        scene: Scene<'_>,
        packet: &Packet<'_>,
        shape: Shape,
        message: Message,
    ) -> Result<Message, Refusal> {
        let Message::Write {
            address,
            rkey,
            rest_bytes,
            length_bytes,
        } = message
        else {
            return Err(Refusal::invalid());
        };
        let count = packet.payload.len() as u32;
        let rest_bytes = rest_bytes.checked_sub(count).ok_or_else(Refusal::invalid)?;
        if shape.last != (rest_bytes == 0) {
            return Err(Refusal::invalid());
        }
        if count > 0 {
            let memories = &scene.tables.memories;
            let need = Access(Access::REMOTE_WRITE.0 | Access::LOCAL_WRITE.0);
            // Looked up for every packet: the program may have deregistered it between two.
            let to = memories
                .resolve(rkey, scene.qp.pd, address, count.into(), need)
                .ok_or_else(Refusal::access)?;
            // SAFETY: just resolved for so many bytes and writing, and the tables are held.
            unsafe { copy::put(packet.payload, to) };
        }
        Ok(Message::Write {
            address: address.wrapping_add(count.into()),
            rkey,
            rest_bytes,
            length_bytes,
        })
    }

    /// A packet's bytes into the receive.
    pub(super) fn fill(&mut self, scene: Scene<'_>, packet: &Packet<'_>) -> Result<(), Refusal> {
        let start = u64::from(self.receive.filled_bytes);
        if start + packet.payload.len() as u64 > self.receive.room_bytes() {
            return Err(Refusal {
                code: NakCode::InvalidRequest,
                receive_status: Status::LocalLengthError,
            });
        }
        let memories = &scene.tables.memories;
        copy::scatter(
            memories,
            scene.qp.pd,
            &self.receive.sges,
            start,
            packet.payload,
        )
        .map_err(|_| Refusal {
            code: NakCode::RemoteOperationalError,
            receive_status: Status::LocalProtectionError,
        })?;
        self.receive.filled_bytes += packet.payload.len() as u32;
        Ok(())
    }

    pub(super) fn complete_receive(
        &mut self,
        scene: Scene<'_>,
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
        scene.qp.complete_receive(Completion {
            wr_id: self.receive.wr_id,
            status: Status::Success,
            kind,
            length_bytes,
            immediate: packet.extended.immediate.map(u32::to_be),
            qpn: scene.qp.number(),
            source_qpn: deth.map_or(0, |deth| deth.source_qpn),
            has_grh: deth.is_some(),
            solicited: packet.solicited,
        });
    }

    fn read(&mut self, scene: Scene<'_>, packet: &Packet<'_>) -> Result<Taken, Refusal> {
        let Some(reth) = packet.extended.reth.filter(|_| self.message.is_none()) else {
            return Err(Refusal::invalid());
        };
        if self.max_dest_rd_atomic == 0 || !packet.payload.is_empty() {
            return Err(Refusal::invalid());
        }
        if !scene.qp.access().allows(Access::REMOTE_READ) {
            return Err(Refusal::invalid());
        }
        let length = u64::from(reth.length_bytes);
        let allowed = length == 0
            || scene
                .tables
                .memories
                .resolve(
                    reth.rkey,
                    scene.qp.pd,
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
        Ok(Taken::Done)
    }

    fn atomic(&mut self, scene: Scene<'_>, packet: &Packet<'_>) -> Result<Taken, Refusal> {
        let Some(header) = packet.extended.atomic.filter(|_| self.message.is_none()) else {
            return Err(Refusal::invalid());
        };
        if self.max_dest_rd_atomic == 0 || header.address % 8 != 0 || !packet.payload.is_empty() {
            return Err(Refusal::invalid());
        }
        if !scene.qp.access().allows(Access::REMOTE_ATOMIC) {
            return Err(Refusal::invalid());
        }
        let at = scene
            .tables
            .memories
            .resolve(
                header.rkey,
                scene.qp.pd,
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
        Ok(Taken::Done)
    }

    fn remember(&mut self, answered: Answered) {
        if self.answered.len() >= self.max_dest_rd_atomic {
            self.answered.pop_front();
        }
        self.answered.push_back(answered);
    }

    /// A request that was executed before (specification 9.7.5.1.2): answered again, not executed again.
    fn repeat(&mut self, packet: &Packet<'_>) {
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
                // What follows will be asked for again too, or is on its way already.
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
            // All that came since is acknowledged along with it.
            _ => self.acknowledge(self.expected().plus(Psn::STEP_BACK)),
        }
    }

    /// The READ that a repeated request is, or is the end of.
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

/// Where in its message a packet stands.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) first: bool,
    pub(super) last: bool,
    write: bool,
}

impl Shape {
    pub(super) fn of(opcode: Opcode) -> Shape {
        use Opcode::{
            SendFirst, SendMiddle, SendOnly, SendOnlyImmediate, WriteFirst, WriteMiddle, WriteOnly,
            WriteOnlyImmediate,
        };
        Shape {
            first: matches!(
                opcode,
                SendFirst
                    | SendOnly
                    | SendOnlyImmediate
                    | WriteFirst
                    | WriteOnly
                    | WriteOnlyImmediate
            ),
            last: !matches!(opcode, SendFirst | SendMiddle | WriteFirst | WriteMiddle),
            write: opcode as u8 >= WriteFirst as u8,
        }
    }

    /// Whether a packet of this shape may be so long: all but the last are full (specification 9.4.1).
    pub(super) fn fits(self, payload_bytes: usize, mtu_bytes: usize) -> bool {
        match (self.first, self.last) {
            (_, false) => payload_bytes == mtu_bytes,
            (true, true) => payload_bytes <= mtu_bytes,
            (false, true) => payload_bytes <= mtu_bytes && payload_bytes > 0,
        }
    }

    pub(super) fn continues(self, message: &Message) -> bool {
        self.write == matches!(message, Message::Write { .. })
    }
}
