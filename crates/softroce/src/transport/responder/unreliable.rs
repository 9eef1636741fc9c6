//! Unreliable services. UC: messages without acknowledgement; an incomplete message is dropped (InfiniBand
//! specification 9.8.2). UD: single packets to any QP with the right queue key (9.8.3). A receive whose memory is not what
//! it says fails either QP, as it does a reliable one (9.9.3, class A).
#![allow(unsafe_code)]

use std::net::{IpAddr, SocketAddr};

use crate::transport::completion_queue::Status;
use crate::transport::memory::{self, Access};
use crate::transport::outbox::{Keep, Outbox, QpWork};
use crate::transport::qp_state::{Message, RequestOutcome, Requester, Responder, State};
use crate::transport::responder::messages::Shape;
use crate::transport::work_queues::{Bytes, PKEY, opcode};
use crate::wire::{Deth, Extended, Packet, Service, as_ipv6};

/// Bytes of the global header before a datagram's payload in its receive.
const GRH_BYTES: u32 = 40;
/// Largest datagram: the port's MTU.
const LARGEST_DATAGRAM_BYTES: u32 = 4096;
/// A queue key with the high bit set means the QP's own key (specification 10.2.5).
const OWN_QKEY: u32 = 0x8000_0000;

impl Requester {
    /// Sends all posted datagrams and completes them.
    pub(crate) fn transmit_datagrams(&mut self, work: QpWork<'_>, outbox: &mut Outbox<'_>) {
        while self.wants_to_send() && !work.core.waits_for_room(work.qp) {
            let index = self.next;
            let Some(wqe) = self.queue.get(index).copied() else {
                return;
            };
            let too_long = wqe.length_bytes > LARGEST_DATAGRAM_BYTES;
            let wrong = too_long.then_some(Status::LocalLengthError);
            if let Some(status) = wrong.or_else(|| self.check(work, index, &wqe)) {
                self.refuse(work.qp, index, status);
                return;
            }
            let psn = self.next_psn;
            self.assign(index, 1);
            let Some(datagram) = self.queue.destination(index).copied() else {
                return;
            };
            let source_qpn = work.qp.number;
            let qpns = [source_qpn, datagram.qpn];
            let flow = work.core.flow(
                datagram.address,
                datagram.flow_label,
                qpns,
                datagram.traffic_class,
                datagram.hop_limit,
            );
            let own = datagram.qkey & OWN_QKEY != 0;
            let packet = Packet {
                service: Service::Ud,
                opcode: opcode(&wqe, true, true),
                solicited: wqe.solicited(),
                pkey: PKEY,
                destination_qpn: datagram.qpn,
                ack_request: false,
                psn,
                extended: Extended {
                    deth: Some(Deth {
                        qkey: if own { work.qp.qkey() } else { datagram.qkey },
                        source_qpn,
                    }),
                    immediate: wqe.immediate().map(u32::from_be),
                    ..Extended::default()
                },
                payload: &[],
            };
            let length = wqe.length_bytes as usize;
            match self.queue.bytes(index) {
                Bytes::Inline(bytes) => {
                    outbox.push_copy(&flow, &packet, bytes);
                }
                Bytes::Registered(sges) => {
                    let memories = &work.tables.memories;
                    let pieces =
                        memory::pieces(memories, work.qp.pd, sges, 0, length, Access::NONE)
                            .flatten()
                            .map(|(pointer, bytes)| (pointer.cast_const(), bytes));
                    // SAFETY: resolved from the tables; copied, since the request is complete before it is sent.
                    unsafe { outbox.push(&flow, &packet, length, pieces, Keep::Copied) };
                }
            }
            self.next += 1;
            self.complete_head(work.qp);
        }
        self.unacked = self.position();
        self.tell_if_drained(work.qp);
    }
}

impl Responder {
    /// Handles a packet on an unreliable connection. `true` if the QP failed because of it: its receive is wrong, or its CQ
    /// overran.
    pub(crate) fn take_unreliable(
        &mut self,
        work: QpWork<'_>,
        packet: &Packet<'_>,
        source: SocketAddr,
    ) -> bool {
        if !self.is_from_peer(work, source) || !work.qp.state().receives() {
            return false;
        }
        self.establish(work);
        if packet.psn == self.expected() {
            self.source_port.learn(source.port());
        } else {
            work.core.statistics.out_of_sequence.add(1);
            self.message = None;
        }
        self.expected = Some(packet.psn.plus(1));
        if Shape::of(packet.opcode).first {
            self.lose_message();
        }
        match self.message(work, packet) {
            Ok(RequestOutcome::Done) => {}
            lost => {
                self.lose_message();
                work.core.statistics.dropped_datagrams.add(1);
                let status = Status::LocalProtectionError;
                if lost.is_err_and(|refusal| refusal.receive_status == status) {
                    self.fail(work.qp, status);
                }
            }
        }
        work.qp.state() == State::Err
    }

    /// Drops what has come of a message. Its receive is used for the next.
    fn lose_message(&mut self) {
        self.message = None;
        self.receive.filled_bytes = 0;
    }

    /// Writes a datagram with its global header into the next receive. `true` if the QP failed because of it: the receive
    /// is wrong, or its CQ overran.
    pub(crate) fn take_datagram(
        &mut self,
        work: QpWork<'_>,
        packet: &Packet<'_>,
        source: IpAddr,
    ) -> bool {
        let qp = work.qp;
        let deth = packet.extended.deth;
        let keyed = deth.is_some_and(|deth| deth.qkey == qp.qkey());
        let whole = u64::from(GRH_BYTES) + packet.payload.len() as u64;
        let fits = keyed
            && qp.state().receives()
            && (self.has_receive || self.take_receive(work))
            && whole <= self.receive.room_bytes();
        if !fits {
            work.core.statistics.dropped_datagrams.add(1);
            return false;
        }
        let header = global_header(source, work.core.address, packet.payload.len());
        let memories = &work.tables.memories;
        let put = memory::scatter(memories, qp.pd, &self.receive.sges, 0, &header);
        self.receive.filled_bytes = GRH_BYTES;
        if put.is_err() || self.fill(work, packet).is_err() {
            self.fail(qp, Status::LocalProtectionError);
        } else {
            self.complete_receive(work, packet, &Message::Send);
        }
        qp.state() == State::Err
    }
}

/// The header before a datagram: the IPv6 header, or 20 unused bytes and the IPv4 header (annex A17.4.5.1). Fields
/// that user space cannot see have the values of a new packet.
fn global_header(source: IpAddr, destination: IpAddr, payload_bytes: usize) -> [u8; 40] {
    const UDP: u8 = 17;
    const HOPS: u8 = 64;
    // UDP, BTH, DETH and CRC.
    let length = (payload_bytes + 8 + 12 + 8 + 4) as u16;
    let mut header = [0; 40];
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            put_at(&mut header, 20, &[0x45, 0]);
            put_at(&mut header, 22, &(length + 20).to_be_bytes());
            put_at(&mut header, 26, &[0x40, 0, HOPS, UDP]);
            put_at(&mut header, 32, &source.octets());
            put_at(&mut header, 36, &destination.octets());
        }
        (source, destination) => {
            put_at(&mut header, 0, &[0x60]);
            put_at(&mut header, 4, &length.to_be_bytes());
            put_at(&mut header, 6, &[UDP, HOPS]);
            put_at(&mut header, 8, &as_ipv6(source).octets());
            put_at(&mut header, 24, &as_ipv6(destination).octets());
        }
    }
    header
}

fn put_at(header: &mut [u8; 40], at: usize, bytes: &[u8]) {
    for (to, from) in header.iter_mut().skip(at).zip(bytes) {
        *to = *from;
    }
}
