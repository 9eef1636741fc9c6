//! Sends requests: segmentation to the path MTU, GSO batches, the window, and waiting for READs and atomics
//! (InfiniBand specification 9.4, 9.6).
#![allow(unsafe_code)]

use std::sync::atomic::Ordering;

use super::completion::Status;
use super::copy;
use super::gso_batches::{push, with_gso_batch};
use super::memory::Access;
use super::path::Path;
use super::peer::DATAGRAM_OVERHEAD_BYTES;
use super::qp_attributes::{Kind, State};
use super::request::Operation;
use super::request_packets::{PKEY, atomic_header, opcode, read_part_packets, reth};
use super::requester::{ACK_EVERY_PACKETS, GsoBatchInFlight, Requester};
use super::send_queue::{Bytes, Wqe};
use super::work::QpWork;
use crate::net::GsoBatch;
use crate::wire::{Extended, Opcode, Packet, Service};

/// A GSO batch being built, and the bytes to charge to the window.
struct Building<'a> {
    gso_batch: &'a mut GsoBatch,
    path: &'a Path,
    gso_batches_left: usize,
    most_packets: usize,
    charge_bytes: i64,
}

impl Requester {
    /// Sends at most this many GSO batches of posted requests; if more is left, the QP waits in its peer's queue.
    pub(super) fn transmit(&mut self, work: QpWork<'_>, gso_batches: usize) {
        // Queue behind QPs that already wait.
        let behind = self
            .path
            .as_ref()
            .is_some_and(|path| path.peer.has_waiting());
        if behind && !self.in_burst && self.may_send(work) {
            self.wait_in_line(work);
        } else {
            self.transmit_in_turn(work, gso_batches);
        }
    }

    fn may_send(&self, work: QpWork<'_>) -> bool {
        let state = work.qp.state();
        matches!(state, State::Rts | State::Sqd) && !self.pauses && self.wants_to_send()
    }

    fn wait_in_line(&self, work: QpWork<'_>) {
        if let Some(path) = &self.path
            && !work.qp.waits.swap(true, Ordering::Relaxed)
        {
            path.peer.wait(work.qp.number);
        }
    }

    /// As [`Requester::transmit`], for a QP taken from the queue.
    pub(super) fn transmit_in_turn(&mut self, work: QpWork<'_>, gso_batches: usize) {
        if work.qp.state() == State::Rts {
            self.undrain();
        }
        if !self.may_send(work) {
            return;
        }
        if work.qp.kind == Kind::Ud {
            with_gso_batch(|gso_batch| self.transmit_datagrams(work, gso_batch));
            return;
        }
        let Some(path) = self.path.clone() else {
            return;
        };
        let idle = self.unacked == self.position();
        with_gso_batch(|gso_batch| {
            gso_batch.begin(&path.flow);
            let mut building = Building {
                gso_batch,
                path: &path,
                gso_batches_left: gso_batches,
                most_packets: work.core.transmitter.max_gso_batch_packets(&path.flow),
                charge_bytes: 0,
            };
            self.fill(work, &mut building);
            if work.qp.state() != State::Err {
                append_acknowledgement(work, &mut building);
                self.send_gso_batch(work, &mut building);
            }
        });
        self.note_position();
        if work.qp.kind == Kind::Uc {
            self.complete_sent(work);
        } else if idle && self.unacked != self.position() {
            self.watch(work);
        }
    }

    /// Adds packets to GSO batches until it must stop.
    fn fill(&mut self, work: QpWork<'_>, building: &mut Building<'_>) {
        while self.wants_to_send() {
            if !self.in_burst && work.qp.kind == Kind::Rc {
                // The QP continues after an answer to it. In the queue it would be tried again and again.
                if self.gso_batches_full() {
                    return;
                }
                if building.gso_batches_left == 0 || !building.path.peer.is_open() {
                    self.wait_in_line(work);
                    return;
                }
            }
            let index = self.next;
            if !self.begin(work, index, building.path.mtu_bytes) {
                return;
            }
            let Some(wqe) = self.queue.get(index).copied() else {
                return;
            };
            let sent = if wqe.is_fetch() {
                self.add_fetch(work, building, &wqe)
            } else {
                self.add_packet(work, building, index, &wqe)
            };
            if !sent {
                return;
            }
            if self.sent_packets == wqe.packets {
                self.next += 1;
                self.sent_packets = 0;
            }
        }
    }

    /// Whether request `index` may be sent or continued now. Checks it the first time, and assigns its PSNs.
    fn begin(&mut self, work: QpWork<'_>, index: u64, mtu_bytes: u32) -> bool {
        let Some(wqe) = self.queue.get(index) else {
            return false;
        };
        let fetch = wqe.is_fetch();
        if fetch && self.fetches >= u32::from(self.deliveries.max_rd_atomic) {
            return false;
        }
        if wqe.fence && self.sent_packets == 0 && self.fetches > 0 {
            return false;
        }
        if index < self.assigned {
            return true;
        }
        let packets = if matches!(
            wqe.operation,
            Operation::FetchAdd { .. } | Operation::CompareSwap { .. }
        ) {
            1
        } else {
            wqe.length_bytes.div_ceil(mtu_bytes).max(1)
        };
        if let Some(status) = self.check(work, index, wqe) {
            self.refuse(work.qp, index, status);
            return false;
        }
        self.assign(index, packets);
        true
    }

    /// Adds one packet of a SEND or WRITE. `false` if its memory is no longer registered.
    fn add_packet(
        &mut self,
        work: QpWork<'_>,
        building: &mut Building<'_>,
        index: u64,
        wqe: &Wqe,
    ) -> bool {
        let mtu = building.path.mtu_bytes;
        let first = self.sent_packets == 0;
        let last = self.sent_packets + 1 == wqe.packets;
        let offset = self.sent_packets * mtu;
        let length = mtu.min(wqe.length_bytes - offset) as usize;
        let psn = wqe.first_psn.plus(self.sent_packets);
        let reliable = work.qp.kind == Kind::Rc;
        let end_of_queue = last && index + 1 == self.limit();
        let ack_request = reliable
            && ((last && wqe.signaled)
                || end_of_queue
                || psn.value() % ACK_EVERY_PACKETS == ACK_EVERY_PACKETS - 1);
        let opcode = opcode(wqe, first, last);
        let packet = Packet {
            service: if reliable { Service::Rc } else { Service::Uc },
            opcode,
            solicited: last && wqe.solicited,
            pkey: PKEY,
            destination_qpn: building.path.qpn,
            ack_request,
            psn,
            extended: Extended {
                reth: reth(wqe, 0, wqe.length_bytes).filter(|_| opcode.has_reth()),
                immediate: wqe.immediate.map(u32::from_be),
                ..Extended::default()
            },
            payload: &[],
        };
        self.make_room(work, building, &packet, length);
        let added = match self.queue.bytes(index) {
            Bytes::Inline(bytes) => {
                let end = offset as usize + length;
                let bytes = bytes.get(offset as usize..end).unwrap_or_default();
                // SAFETY: the queue's own memory, not changed before the GSO batch is sent under this lock.
                unsafe {
                    push(
                        building.gso_batch,
                        &packet,
                        length,
                        std::iter::once((bytes.as_ptr(), length)),
                    );
                };
                true
            }
            Bytes::Registered(sges) => {
                let memories = &work.tables.memories;
                let pieces = || {
                    copy::pieces(
                        memories,
                        work.qp.pd,
                        sges,
                        offset.into(),
                        length,
                        Access::NONE,
                    )
                };
                let there = pieces().all(|piece| piece.is_ok());
                if there {
                    let pieces = pieces()
                        .flatten()
                        .map(|(pointer, bytes)| (pointer.cast_const(), bytes));
                    // SAFETY: resolved from the tables, which stay held until the GSO batch is sent.
                    unsafe { push(building.gso_batch, &packet, length, pieces) };
                }
                there
            }
        };
        if !added {
            // The program has deregistered memory that the request still needs.
            self.refuse(work.qp, index, Status::LocalProtectionError);
            return false;
        }
        self.sent_packets += 1;
        self.in_burst = reliable && !ack_request;
        true
    }

    /// Adds a READ request packet or an atomic.
    fn add_fetch(&mut self, work: QpWork<'_>, building: &mut Building<'_>, wqe: &Wqe) -> bool {
        let mtu = building.path.mtu_bytes;
        let psn = wqe.first_psn.plus(self.sent_packets);
        let (packets, opcode, extended, answer_bytes) = match wqe.operation {
            Operation::Read { .. } => {
                // Split at the same positions each time, so that the peer recognises a repeated request.
                let part = read_part_packets(mtu);
                let end = ((self.sent_packets / part + 1) * part).min(wqe.packets);
                let start_bytes = self.sent_packets * mtu;
                let bytes = (end * mtu).min(wqe.length_bytes) - start_bytes;
                let extended = Extended {
                    reth: reth(wqe, start_bytes, bytes),
                    ..Extended::default()
                };
                let packets = end - self.sent_packets;
                (packets, Opcode::ReadRequest, extended, bytes)
            }
            _ => {
                let (opcode, atomic) = atomic_header(wqe);
                let extended = Extended {
                    atomic,
                    ..Extended::default()
                };
                (1, opcode, extended, 8)
            }
        };
        let packet = Packet {
            service: Service::Rc,
            opcode,
            solicited: false,
            pkey: PKEY,
            destination_qpn: building.path.qpn,
            ack_request: true,
            psn,
            extended,
            payload: &[],
        };
        self.make_room(work, building, &packet, 0);
        // SAFETY: there is no payload.
        unsafe { push(building.gso_batch, &packet, 0, std::iter::empty()) };
        building.charge_bytes += i64::from(answer_bytes);
        self.fetches += 1;
        self.sent_packets += packets;
        self.in_burst = false;
        true
    }

    /// Sends the GSO batch if the packet does not fit into it.
    fn make_room(
        &mut self,
        work: QpWork<'_>,
        building: &mut Building<'_>,
        packet: &Packet<'_>,
        payload_bytes: usize,
    ) {
        let fits = building.gso_batch.packets() < building.most_packets
            && building
                .gso_batch
                .takes(packet.header_bytes(), payload_bytes);
        if !fits {
            self.send_gso_batch(work, building);
        }
    }

    fn send_gso_batch(&mut self, work: QpWork<'_>, building: &mut Building<'_>) {
        if building.gso_batch.packets() == 0 {
            return;
        }
        if work.qp.kind == Kind::Rc {
            let charge_bytes = building.charge_bytes
                + DATAGRAM_OVERHEAD_BYTES
                + i64::try_from(building.gso_batch.bytes()).unwrap_or_default();
            let end = self.position();
            self.gso_batches
                .push_back(GsoBatchInFlight { end, charge_bytes });
            building.path.peer.charge(charge_bytes);
        }
        work.core.send(building.gso_batch);
        building.gso_batch.begin(&building.path.flow);
        building.charge_bytes = 0;
        building.gso_batches_left = building.gso_batches_left.saturating_sub(1);
    }

    /// Completes requests of an unreliable QP, which are done when they are sent.
    fn complete_sent(&mut self, work: QpWork<'_>) {
        while self.queue.head < self.next {
            self.complete_head(work.qp);
        }
        self.unacked = self.position();
        self.break_if_failed(work.qp);
        self.tell_if_drained(work.qp);
    }
}

/// Adds a pending acknowledgement of the QP as the last and shortest packet of the GSO batch, so that acknowledging a
/// message that is answered costs no system call of its own.
fn append_acknowledgement(work: QpWork<'_>, building: &mut Building<'_>) {
    let packets = building.gso_batch.packets();
    if packets == 0 || packets >= building.most_packets || !work.qp.owes.load(Ordering::Relaxed) {
        return;
    }
    if let Some(mut responder) = work.qp.try_responder() {
        responder.append_acknowledgement(work, building.gso_batch, building.path);
    }
}
