//! A responder's answers, sent in the order of the requests: acknowledgements, NAKs, READ responses, results of
//! atomics (InfiniBand specification 9.7.5).
#![allow(unsafe_code)]

use crate::transport::memory::Access;
use crate::transport::outbox::{Keep, Outbox, QpWork};
use crate::transport::peer::Path;
use crate::transport::qp_state::{Reply, ReplyWhat, Responder};
use crate::transport::work_queues::PKEY;
use crate::wire::{Aeth, Bth, Extended, NakCode, Opcode, Packet, Psn, Reth, Service, Syndrome};

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
        let Some(from) = self.work.resolve(rkey, address, length.into(), need) else {
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
