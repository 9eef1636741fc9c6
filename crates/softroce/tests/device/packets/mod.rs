//! Packets that no device of ours sends, from a peer that is only a socket: broken, hostile, or of other makes.

mod admission;
mod congestion;
mod datagrams;
mod failures;
mod read_order;

use softroce::transport::{Deliveries, Kind, Operation};
use softroce::wire::{Aeth, Extended, Opcode, Packet, Psn, Reth, Service, Syndrome};

use crate::support::end::{End, Plan};
use crate::support::peer::{Peer, QPN};

const PSN: u32 = 0x00ff_fffe;
const MTU: u32 = 1024;

/// Of a QP of this service, which waits for ever for answers.
fn plan(kind: Kind) -> Plan {
    Plan {
        kind,
        memory_bytes: 64 << 10,
        send_wrs: 16,
        recv_wrs: 16,
        mtu_bytes: MTU,
        first_psn: PSN,
        deliveries: Deliveries {
            timeout: 0,
            max_rd_atomic: 2,
            ..Plan::default().deliveries
        },
        receive_completions: Some(64),
        ..Plan::default()
    }
}

/// A peer, and a device whose QP is connected to it.
fn connected_by(plan: &Plan) -> (Peer, End) {
    let (peer, device) = (Peer::new(), End::new(plan));
    device.connect_to(&device.qps[0], peer.address.into(), QPN, 0);
    (peer, device)
}

fn connected() -> (Peer, End) {
    connected_by(&plan(Kind::Rc))
}

impl End {
    fn post_send(&self, length: u32) {
        self.post(0, Operation::Send, &[self.sge(0, length as usize)]);
    }

    fn packet<'a>(&self, opcode: Opcode, psn: u32) -> Packet<'a> {
        Packet {
            service: Service::Rc,
            opcode,
            solicited: false,
            pkey: 0xffff,
            destination_qpn: self.qps[0].number(),
            ack_request: true,
            psn: Psn::new(psn),
            extended: Extended::default(),
            payload: &[],
        }
    }

    /// A WRITE of this payload to the start of its memory.
    fn write<'a>(&self, psn: u32, payload: &'a [u8]) -> Packet<'a> {
        Packet {
            extended: self.reth(payload.len() as u32),
            payload,
            ..self.packet(Opcode::WriteOnly, psn)
        }
    }

    /// The acknowledgement of its first message, with this PSN.
    fn acknowledgement(&self, psn: u32) -> Packet<'static> {
        let aeth = Aeth {
            syndrome: Syndrome::Ack { credits: 31 },
            msn: 1,
        };
        Packet {
            ack_request: false,
            extended: Extended {
                aeth: Some(aeth),
                ..Extended::default()
            },
            ..self.packet(Opcode::Acknowledge, psn)
        }
    }

    fn reth(&self, length_bytes: u32) -> Extended {
        Extended {
            reth: Some(Reth {
                address: self.address(0),
                rkey: self.key,
                length_bytes,
            }),
            ..Extended::default()
        }
    }
}
