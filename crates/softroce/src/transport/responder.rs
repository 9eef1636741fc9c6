//! The half of a QP that takes requests: order of packets, messages, memory, and what is owed for them
//! (InfiniBand specification 9.7.4, 9.7.5). What a request does is in [`super::messages`] and
//! [`super::fetches`]; answers are sent by [`super::replies`]; unreliable services are in [`super::unreliable`].

use std::collections::VecDeque;
use std::net::IpAddr;

use super::core::Statistics;
use super::fetches::Answered;
use super::messages::Message;
use super::qp::{Path, Scene};
use super::recv_queue::Receive;
use super::replies::Reply;
use super::{CompletionKind, Qp, QpEvent, State, Status};
use crate::wire::{NakCode, Opcode, Packet, Psn, Syndrome};

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
    pub(super) answered: VecDeque<Answered>,
    pub(super) max_dest_rd_atomic: usize,
    communicates: bool,
}

/// A request that is refused: what the peer is told and how a receive that it took ends.
pub(super) struct Refusal {
    pub(super) code: NakCode,
    pub(super) receive_status: Status,
}

impl Refusal {
    pub(super) fn invalid() -> Refusal {
        Refusal {
            code: NakCode::InvalidRequest,
            receive_status: Status::RemoteInvalidRequestError,
        }
    }

    pub(super) fn access() -> Refusal {
        Refusal {
            code: NakCode::RemoteAccessError,
            receive_status: Status::LocalAccessError,
        }
    }
}

/// How a request went.
pub(super) enum Taken {
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
    pub(super) fn acknowledge(&mut self, psn: Psn) {
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
}
