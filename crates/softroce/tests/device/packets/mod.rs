//! Packets that no device of ours sends: broken, hostile, of other makes, or at instants of the test's choice.

mod admission;
mod congestion;
mod failures;
mod read_order;
mod times;

use softroce::transport::{Kind, Operation};
use softroce::wire::{Aeth, Extended, Opcode, Packet, Psn, Reth, Syndrome};

use crate::support::end::{End, Plan};
use crate::support::peer::{Peer, QPN};

const PSN: u32 = 0x00ff_fffe;
const MTU: u32 = 1024;
const ACK: Syndrome = Syndrome::Ack { credits: 31 };

/// Of a QP of this service on a network of its own, which waits for ever for answers.
fn plan(kind: Kind) -> Plan {
    let mut plan = Plan {
        kind,
        memory_bytes: 64 << 10,
        send_wrs: 16,
        recv_wrs: 16,
        mtu_bytes: MTU,
        first_psn: PSN,
        receive_completions: Some(64),
        ..Plan::on(1, "")
    };
    (plan.deliveries.timeout, plan.deliveries.max_rd_atomic) = (0, 2);
    plan
}

/// A peer, and a device whose QPs are connected to it.
fn connected_by(plan: &Plan) -> (Peer, End) {
    let peer = Peer::new(plan.world.as_ref().unwrap());
    let device = End::new(plan);
    for qp in &device.qps {
        device.connect_to(qp, peer.address, QPN, 0);
    }
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
            service: self.plan.kind,
            opcode,
            solicited: false,
            pkey: 0xffff,
            destination_qpn: self.qps[0].number(),
            ack_request: true,
            psn: Psn::new(psn & 0x00ff_ffff),
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
        self.answer_with(ACK, psn)
    }

    fn answer_with(&self, syndrome: Syndrome, psn: u32) -> Packet<'static> {
        Packet {
            ack_request: false,
            extended: Extended { aeth: Some(Aeth { syndrome, msn: 1 }), ..Extended::default() },
            ..self.packet(Opcode::Acknowledge, psn)
        }
    }

    fn reth(&self, length_bytes: u32) -> Extended {
        Extended {
            reth: Some(Reth { address: self.address(0), rkey: self.key, length_bytes }),
            ..Extended::default()
        }
    }
}
