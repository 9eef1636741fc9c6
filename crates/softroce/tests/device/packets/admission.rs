//! Requests on the wire, and packets that are not taken: of another service, partition or operation, from another port of
//! the peer's address, for QPs that do not exist, and more READs than agreed on.

use softroce::transport::{Kind, QpEvent, State, Status};
use softroce::wire::{NakCode, Opcode, Packet, Service, Syndrome};

use super::{ACK, MTU, PSN, connected, connected_by, plan};
use crate::support::end::{End, Plan};
use crate::support::peer::{PORT, Peer, wire};

#[test]
fn a_packet_of_another_service_or_partition_is_dropped() {
    let (peer, device) = connected();
    let foreign = device.write(PSN, &[1; 8]);
    let service = Service::Uc;
    peer.send(&device, &Packet { service, ..foreign });
    device.counts("wrong_service", 1);
    let of_partition = |pkey| Packet { pkey, ..foreign };
    peer.send(&device, &of_partition(0x8001));
    device.counts("pkey_violations", 1);
    assert_eq!(device.memory[..8], [0; 8]);
    // A limited member of the partition may talk to a full one.
    peer.send(&device, &of_partition(0x7fff));
    assert_eq!(peer.acknowledged(), (PSN, ACK));
    assert_eq!(device.memory[..8], [1; 8]);
}

/// Sends a packet with an operation that there is not.
fn send_unknown(peer: &Peer, device: &End, psn: u32, opcode: u8) {
    let mut bytes = wire(&device.packet(Opcode::Acknowledge, psn));
    bytes[0] = opcode;
    peer.send_bytes(device, PORT, 0, &bytes);
}

#[test]
fn an_operation_that_does_not_exist_is_an_invalid_request() {
    const SEND_ONLY_WITH_INVALIDATE: u8 = 0x17;
    let (peer, device) = connected();
    device.qps[0].post_recv(5, &[device.sge(0, 8)]).unwrap();
    // Not its turn.
    send_unknown(&peer, &device, PSN - 1, SEND_ONLY_WITH_INVALIDATE);
    device.counts("duplicate_requests", 1);
    assert_eq!(device.qps[0].state(), State::Rts);
    send_unknown(&peer, &device, PSN, SEND_ONLY_WITH_INVALIDATE);
    let refused = (PSN, Syndrome::Nak(NakCode::InvalidRequest));
    assert_eq!(peer.acknowledged(), refused);
    let flushed = device.completions(&device.recv_cq, 1)[0];
    assert_eq!((flushed.wr_id, flushed.status), (5, Status::FlushError));
    assert_eq!(device.qps[0].state(), State::Err);
    assert_eq!(device.heard(1), [QpEvent::RequestError]);
}

#[test]
fn an_unreliable_qp_drops_operations_that_do_not_exist() {
    let (peer, device) = connected_by(&plan(Kind::Uc));
    send_unknown(&peer, &device, PSN, 0x37);
    device.counts("unparsed", 1);
    assert_eq!(device.qps[0].state(), State::Rts);
}

#[test]
fn more_reads_at_once_than_agreed_are_an_invalid_request() {
    const BYTES: u32 = 16 << 20;
    let (peer, device) = connected_by(&Plan { memory_bytes: BYTES as usize, ..plan(Kind::Rc) });
    for number in 0..64 {
        let psn = PSN.wrapping_add(number * (BYTES / MTU));
        let read =
            Packet { extended: device.reth(BYTES), ..device.packet(Opcode::ReadRequest, psn) };
        peer.send(&device, &read);
    }
    // The event comes after the state.
    assert_eq!(device.heard(1), [QpEvent::RequestError]);
    assert_eq!(device.qps[0].state(), State::Err);
}

#[test]
fn a_long_send_has_a_first_and_a_last_packet_and_asks_for_acknowledgements() {
    const PACKETS: u32 = 40;
    let (peer, mut device) = connected();
    let length = PACKETS * MTU - 5;
    device.fill();
    device.post_send(length);
    let sent = peer.answers(PACKETS as usize);
    let pieces = device.memory[..length as usize].chunks(MTU as usize);
    for ((number, bytes), piece) in (0..).zip(&sent).zip(pieces) {
        let packet = Packet::parse_body(bytes).unwrap();
        let opcode = match number {
            0 => Opcode::SendFirst,
            39 => Opcode::SendLast,
            _ => Opcode::SendMiddle,
        };
        let psn = (PSN + number) & 0x00ff_ffff;
        assert_eq!((packet.opcode, packet.psn.value()), (opcode, psn));
        // PSN 0x00ff_ffff is the second packet's; then each sixteenth, so that the peer's window moves; and the last.
        let asks = matches!(number, 1 | 17 | 33 | 39);
        assert_eq!(packet.ack_request, asks, "packet {number}");
        assert_eq!(packet.payload, piece, "packet {number}");
    }
}

#[test]
fn a_request_from_another_port_of_the_peers_address_is_dropped() {
    let (peer, device) = connected();
    peer.send(&device, &device.write(PSN, &[1; 8]));
    peer.answer();
    let strange = wire(&device.write(PSN + 1, &[2; 8]));
    peer.send_bytes(&device, PORT + 1, 0, &strange);
    device.counts("wrong_source", 1);
    assert_eq!(device.memory[..8], [1; 8]);
    // It is the first with this PSN: a repetition would change nothing.
    peer.send(&device, &device.write(PSN + 1, &[3; 8]));
    peer.answer();
    assert_eq!(device.memory[..8], [3; 8]);
}

#[test]
fn an_answer_from_another_port_of_the_peers_address_is_dropped() {
    let (peer, device) = connected();
    for number in 0..2 {
        device.post_send(8);
        peer.answer();
        let answer = device.acknowledgement(PSN + number);
        // The peer's port is known once it has answered.
        if number > 0 {
            peer.send_bytes(&device, PORT + 1, 0, &wire(&answer));
            device.counts("wrong_source", 1);
            assert_eq!(device.cq.poll(1, |_| ()), Ok(0));
        }
        peer.send(&device, &answer);
        device.succeeds(1);
    }
}

#[test]
fn a_packet_to_no_qp_costs_no_crc() {
    let (peer, device) = connected();
    let mut packet = device.write(PSN, &[1; 8]);
    peer.send_damaged(&device, &wire(&packet));
    device.counts("bad_icrc", 1);
    packet.destination_qpn ^= 1 << 20;
    peer.send_damaged(&device, &wire(&packet));
    device.counts("unknown_qp", 1);
    assert_eq!(device.counter("bad_icrc"), 1);
}
