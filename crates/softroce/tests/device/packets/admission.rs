//! Packets that are not for a QP: of another service or partition, or of an operation that does not exist.

use softroce::transport::{Kind, QpEvent, State, Status};
use softroce::wire::{NakCode, Opcode, Packet, Service, Syndrome};

use super::{PSN, connected, device, plan};
use crate::support::end::End;
use crate::support::peer::{Peer, send_on, wire};

#[test]
fn a_packet_of_another_service_or_partition_is_dropped() {
    let (peer, device) = connected();
    let to = device.nic.address();
    let foreign = device.write(PSN, &[1; 8]);
    let service = Service::Uc;
    peer.send(to, &Packet { service, ..foreign });
    device.counts("wrong_service", 1);
    let of_partition = |pkey| Packet { pkey, ..foreign };
    peer.send(to, &of_partition(0x8001));
    device.counts("pkey_violations", 1);
    assert_eq!(device.memory[..8], [0; 8]);
    // A limited member of the partition may talk to a full one.
    peer.send(to, &of_partition(0x7fff));
    assert_eq!(peer.acknowledged(), (PSN, Syndrome::Ack { credits: 31 }));
    assert_eq!(device.memory[..8], [1; 8]);
}

/// A packet with an operation that there is not.
fn unknown(device: &End, psn: u32, opcode: u8) -> Vec<u8> {
    let mut bytes = wire(&device.packet(Opcode::Acknowledge, psn));
    bytes[0] = opcode;
    bytes
}

#[test]
fn an_operation_that_does_not_exist_is_an_invalid_request() {
    const SEND_ONLY_WITH_INVALIDATE: u8 = 0x17;
    let (peer, device) = connected();
    device.qps[0].post_recv(5, &[device.sge(0, 8)]).unwrap();
    let to = device.nic.address();
    let send = |psn| {
        let bytes = unknown(&device, psn, SEND_ONLY_WITH_INVALIDATE);
        send_on(&peer.sender, to, &bytes, true);
    };
    // Not its turn.
    send(PSN - 1);
    device.counts("duplicate_requests", 1);
    assert_eq!(device.qps[0].state(), State::Rts);
    send(PSN);
    let refused = (PSN, Syndrome::Nak(NakCode::InvalidRequest));
    assert_eq!(peer.acknowledged(), refused);
    let flushed = device.completions(&device.recv_cq, 1)[0];
    assert_eq!((flushed.wr_id, flushed.status), (5, Status::FlushError));
    assert_eq!(device.qps[0].state(), State::Err);
    assert_eq!(device.heard(1), [QpEvent::RequestError]);
}

#[test]
fn an_unreliable_qp_drops_operations_that_do_not_exist() {
    let peer = Peer::new();
    let device = device(&peer, &plan(Kind::Uc));
    let bytes = unknown(&device, PSN, 0x37);
    send_on(&peer.sender, device.nic.address(), &bytes, true);
    device.counts("unparsed", 1);
    assert_eq!(device.qps[0].state(), State::Rts);
}
