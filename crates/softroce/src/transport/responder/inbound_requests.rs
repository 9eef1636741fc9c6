//! Requests arriving on a reliable connection: checks their order and refuses invalid ones (InfiniBand specification
//! 9.7.4). [`super::messages`] and [`super::fetches`] execute them.

use std::net::SocketAddr;

use crate::transport::outbox::{Outbox, QpWork};
use crate::transport::qp_state::{QpEvent, Refusal, ReplyWhat, RequestOutcome, Responder, State};
use crate::wire::{NakCode, Opcode, Packet, Psn, Syndrome};

/// The most bytes of READ responses that are sent before a request that changes what they are read from. Of more, the rest is
/// sent in turns, and the request again by its requester.
const FIRST_ANSWERS_BYTES: usize = 512 << 10;

/// When it is a request's turn.
enum Turn {
    Next,
    /// It came before.
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
        self.refuse(psn, refusal.code);
        self.fail(work.qp, refusal.receive_status);
        work.qp.raise(match refusal.code {
            NakCode::RemoteAccessError => QpEvent::AccessError,
            _ => QpEvent::RequestError,
        });
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
}
