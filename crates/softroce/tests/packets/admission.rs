//! Packets that are not for a QP: of another service or partition, or of an operation that does not exist.

use softroce::transport::{Kind, QpEvent, State, Status};
use softroce::wire::{Aeth, NakCode, Opcode, Packet, Service, Syndrome};

use crate::device::{Device, PSN, Plan};
use crate::peer::{Peer, send_on, wire};

#[test]
fn a_packet_of_another_service_or_partition_is_dropped() {
    let peer = Peer::new();
    let device = Device::new(&peer, Plan::default());
    let to = device.nic.address();
    let foreign = device.write(PSN, &[1; 8]);
    peer.send(
        to,
        &Packet {
            service: Service::Uc,
            ..foreign
        },
    );
    device.counts("wrong_service", 1);
    peer.send(
        to,
        &Packet {
            pkey: 0x8001,
            ..foreign
        },
    );
    device.counts("pkey_violations", 1);
    assert_eq!(device.memory[..8], [0; 8]);
    // A limited member of the partition may talk to a full one.
    peer.send(
        to,
        &Packet {
            pkey: 0x7fff,
            ..foreign
        },
    );
    let (psn, syndrome) = acknowledged(&peer.one_answer());
    assert_eq!((psn, syndrome), (PSN, Syndrome::Ack { credits: 31 }));
    assert_eq!(device.memory[..8], [1; 8]);
}

/// The PSN and syndrome of an acknowledgement.
pub fn acknowledged(answer: &[u8]) -> (u32, Syndrome) {
    let packet = Packet::parse_body(answer).unwrap();
    let Aeth { syndrome, .. } = packet.extended.aeth.unwrap();
    assert_eq!(packet.opcode, Opcode::Acknowledge);
    (packet.psn.value(), syndrome)
}

#[test]
fn an_operation_that_does_not_exist_is_an_invalid_request() {
    let peer = Peer::new();
    let device = Device::new(&peer, Plan::default());
    device.qp.post_recv(5, &[device.sge(8)]).unwrap();
    let unknown = |psn| {
        let mut bytes = wire(&device.packet(Opcode::Acknowledge, psn));
        // SEND ONLY with invalidate.
        bytes[0] = 0x17;
        bytes
    };
    let to = device.nic.address();
    // Not its turn.
    send_on(&peer.sender, to, &unknown(PSN - 1), true);
    device.counts("duplicate_requests", 1);
    assert_eq!(device.qp.state(), State::Rts);
    send_on(&peer.sender, to, &unknown(PSN), true);
    let refused = (PSN, Syndrome::Nak(NakCode::InvalidRequest));
    assert_eq!(acknowledged(&peer.one_answer()), refused);
    let flushed = &Device::completions(&device.recv_cq, 1)[0];
    assert_eq!((flushed.wr_id, flushed.status), (5, Status::FlushError));
    assert_eq!(device.qp.state(), State::Err);
    let events = device.events.lock().unwrap().clone();
    assert_eq!(events, [QpEvent::RequestError]);
}

#[test]
fn an_unreliable_qp_drops_operations_that_do_not_exist() {
    let peer = Peer::new();
    let plan = Plan {
        kind: Kind::Uc,
        ..Plan::default()
    };
    let device = Device::new(&peer, plan);
    let mut bytes = wire(&device.packet(Opcode::Acknowledge, PSN));
    bytes[0] = 0x37;
    send_on(&peer.sender, device.nic.address(), &bytes, true);
    device.counts("unparsed", 1);
    assert_eq!(device.qp.state(), State::Rts);
}
