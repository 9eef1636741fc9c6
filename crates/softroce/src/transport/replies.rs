//! A responder's answers, sent in the order of the requests: acknowledgements, NAKs, READ responses, results of
//! atomics (InfiniBand specification 9.7.5).
#![allow(unsafe_code)]

use super::gso_batches::{push, with_gso_batch};
use super::memory::Access;
use super::path::Path;
use super::request_packets::PKEY;
use super::responder::{Reply, Responder};
use super::statistics::Statistics;
use super::work::QpWork;
use crate::net::GsoBatch;
use crate::wire::{Aeth, Bth, Extended, NakCode, Opcode, Packet, Psn, Reth, Service, Syndrome};

/// No credit limit: the requester may send at will (specification 9.7.7.2).
const UNLIMITED: Syndrome = Syndrome::Ack { credits: 31 };

/// Builds GSO batches of answers.
struct AnswerBatches<'a> {
    gso_batch: &'a mut GsoBatch,
    path: &'a Path,
    work: QpWork<'a>,
    most_packets: usize,
    sent_gso_batches: usize,
}

impl Responder {
    /// Sends the answers due, with at most about `gso_batches` GSO batches of READ responses.
    pub(super) fn send_answers(&mut self, work: QpWork<'_>, gso_batches: usize) {
        let Some(path) = self.path.clone() else {
            self.replies.clear();
            return;
        };
        with_gso_batch(|gso_batch| {
            gso_batch.begin(&path.flow);
            let mut batches = AnswerBatches {
                gso_batch,
                path: &path,
                work,
                most_packets: work.core.transmitter.max_gso_batch_packets(&path.flow),
                sent_gso_batches: 0,
            };
            while batches.sent_gso_batches < gso_batches
                && let Some(reply) = self.replies.front_mut()
            {
                if batches.add(reply) {
                    self.replies.pop_front();
                }
            }
            batches.send();
        });
    }

    /// Adds an acknowledgement to a GSO batch of requests, if no other answer is due and it fits.
    pub(super) fn append_acknowledgement(
        &mut self,
        work: QpWork<'_>,
        gso_batch: &mut GsoBatch,
        path: &Path,
    ) {
        if self.replies.len() == 1
            && let Some(&Reply::Acknowledge { psn, completed }) = self.replies.front()
            && gso_batch.takes(Bth::BYTES + Aeth::BYTES, 0)
        {
            let packet = short(
                path,
                Opcode::Acknowledge,
                psn,
                aeth(UNLIMITED, completed),
                None,
            );
            // SAFETY: there is no payload.
            unsafe { push(gso_batch, &packet, 0, std::iter::empty()) };
            self.replies.clear();
            Statistics::count(&work.core.statistics.acks_sent);
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

/// Adds an answer without payload.
fn short(
    path: &Path,
    opcode: Opcode,
    psn: Psn,
    aeth: Aeth,
    atomic_answer: Option<u64>,
) -> Packet<'static> {
    let extended = Extended {
        aeth: Some(aeth),
        atomic_answer,
        ..Extended::default()
    };
    answer(path, opcode, psn, extended)
}

impl AnswerBatches<'_> {
    /// Adds a reply; of a READ one packet. `true` when it is complete.
    fn add(&mut self, reply: &mut Reply) -> bool {
        let statistics = &self.work.core.statistics;
        match *reply {
            Reply::Acknowledge { psn, completed } => {
                Statistics::count(&statistics.acks_sent);
                self.add_short(Opcode::Acknowledge, psn, UNLIMITED, completed, None);
                true
            }
            Reply::Refuse {
                psn,
                syndrome,
                completed,
            } => {
                Statistics::count(if matches!(syndrome, Syndrome::RnrNak { .. }) {
                    &statistics.rnr_naks_sent
                } else {
                    &statistics.naks_sent
                });
                self.add_short(Opcode::Acknowledge, psn, syndrome, completed, None);
                true
            }
            Reply::Atomic {
                psn,
                original,
                completed,
            } => {
                let opcode = Opcode::AtomicAcknowledge;
                self.add_short(opcode, psn, UNLIMITED, completed, Some(original));
                true
            }
            Reply::Read {
                psn,
                reth,
                packets,
                ref mut sent_packets,
                completed,
            } => {
                let this = *sent_packets;
                if !self.add_response(psn, reth, packets, this, completed) {
                    // The program has deregistered the memory.
                    let refused = Syndrome::Nak(NakCode::RemoteAccessError);
                    let opcode = Opcode::Acknowledge;
                    self.add_short(opcode, psn.plus(this), refused, completed, None);
                    return true;
                }
                *sent_packets += 1;
                *sent_packets == packets
            }
        }
    }

    fn add_short(
        &mut self,
        opcode: Opcode,
        psn: Psn,
        syndrome: Syndrome,
        completed: u32,
        atomic_answer: Option<u64>,
    ) {
        let aeth = aeth(syndrome, completed);
        let packet = short(self.path, opcode, psn, aeth, atomic_answer);
        self.make_room(&packet, 0);
        // SAFETY: there is no payload.
        unsafe { push(self.gso_batch, &packet, 0, std::iter::empty()) };
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
        self.make_room(&packet, length as usize);
        if length == 0 {
            // SAFETY: there is no payload.
            unsafe { push(self.gso_batch, &packet, 0, std::iter::empty()) };
            return true;
        }
        let address = reth.address.wrapping_add(offset.into());
        let from = self.work.tables.memories.resolve(
            reth.rkey,
            self.work.qp.pd,
            address,
            length.into(),
            Access::REMOTE_READ,
        );
        let Some(from) = from else {
            return false;
        };
        let piece = std::iter::once((from.cast_const(), length as usize));
        // SAFETY: just resolved, from the tables, which stay held until the GSO batch is sent.
        unsafe { push(self.gso_batch, &packet, length as usize, piece) };
        true
    }

    fn make_room(&mut self, packet: &Packet<'_>, payload_bytes: usize) {
        let fits = self.gso_batch.packets() < self.most_packets
            && self.gso_batch.takes(packet.header_bytes(), payload_bytes);
        if !fits {
            self.send();
        }
    }

    fn send(&mut self) {
        if self.gso_batch.packets() == 0 {
            return;
        }
        self.work.core.send(self.gso_batch);
        self.gso_batch.begin(&self.path.flow);
        self.sent_gso_batches += 1;
    }
}

fn aeth(syndrome: Syndrome, completed: u32) -> Aeth {
    Aeth {
        syndrome,
        msn: completed & 0x00ff_ffff,
    }
}
