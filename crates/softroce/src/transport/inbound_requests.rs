//! Requests arriving on a reliable connection: checks their order and refuses invalid ones (InfiniBand specification
//! 9.7.4). [`super::messages`] and [`super::fetches`] execute them.

use std::net::IpAddr;

use super::completion::CompletionKind;
use super::qp_attributes::{QpEvent, State};
use super::request_outcome::{Refusal, RequestOutcome};
use super::responder::{Reply, Responder};
use super::statistics::Statistics;
use super::work::QpWork;
use crate::wire::{NakCode, Opcode, Packet, Psn, Syndrome};

impl Responder {
    /// Handles a request on a reliable connection. `true` if the QP failed because of it.
    pub(super) fn take(&mut self, work: QpWork<'_>, packet: &Packet<'_>, source: IpAddr) -> bool {
        let from_peer = self
            .path
            .as_ref()
            .is_some_and(|path| path.address == source);
        if !from_peer || !work.qp.state().receives() {
            return false;
        }
        self.establish(work);
        let statistics = &work.core.statistics;
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
        match self.execute(work, packet) {
            Ok(RequestOutcome::Done) => false,
            Ok(RequestOutcome::NotReady) => {
                self.reported = true;
                self.owe(Reply::Refuse {
                    psn,
                    syndrome: Syndrome::RnrNak {
                        timer: work.qp.min_rnr_timer(),
                    },
                    completed: self.completed,
                });
                false
            }
            Err(refusal) => {
                self.refuse(psn, refusal.code);
                self.break_off(work, &refusal);
                true
            }
        }
    }

    /// Handles the first packet since RTR.
    pub(super) fn establish(&mut self, work: QpWork<'_>) {
        if !std::mem::replace(&mut self.communicates, true) && work.qp.state() == State::Rtr {
            work.qp.raise(QpEvent::CommunicationEstablished);
        }
    }

    fn refuse(&mut self, psn: Psn, code: NakCode) {
        self.owe(Reply::Refuse {
            psn,
            syndrome: Syndrome::Nak(code),
            completed: self.completed,
        });
    }

    /// Moves the QP to ERR because of a request.
    fn break_off(&mut self, work: QpWork<'_>, refusal: &Refusal) {
        let qp = work.qp;
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

    fn execute(
        &mut self,
        work: QpWork<'_>,
        packet: &Packet<'_>,
    ) -> Result<RequestOutcome, Refusal> {
        let taken = match packet.opcode {
            Opcode::ReadRequest => self.read(work, packet)?,
            Opcode::CompareSwap | Opcode::FetchAdd => self.atomic(work, packet)?,
            _ => {
                let taken = self.message(work, packet)?;
                if matches!(taken, RequestOutcome::Done) {
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
}
