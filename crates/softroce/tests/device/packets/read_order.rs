//! A request that changes what a READ before it is still to be answered from. Both come at one instant, so that the device
//! cannot answer in between.

use softroce::transport::{Kind, Status};
use softroce::wire::{Opcode, Packet};

use super::{ACK, MTU, PSN, connected_by, plan};
use crate::support::end::{End, Plan};
use crate::support::peer::Peer;

const SEND_BYTES: usize = 16;

/// A peer and a device, and packets of a READ of this many bytes and of a SEND into the last ones.
fn read_and_send(bytes: u32) -> (Peer, End, [Packet<'static>; 2]) {
    let (peer, device) = connected_by(&Plan { memory_bytes: bytes as usize, ..plan(Kind::Rc) });
    let place = device.sge(bytes as usize - SEND_BYTES, SEND_BYTES);
    device.qps[0].post_recv(5, &[place]).unwrap();
    let read = Packet { extended: device.reth(bytes), ..device.packet(Opcode::ReadRequest, PSN) };
    let send = Packet {
        payload: &[1; SEND_BYTES],
        ..device.packet(Opcode::SendOnly, PSN + bytes.div_ceil(MTU))
    };
    (peer, device, [read, send])
}

#[test]
fn a_read_is_answered_before_the_memory_changes() {
    let (peer, device, packets) = read_and_send(MTU);
    packets.iter().for_each(|it| peer.send(&device, it));
    let answer = peer.answer();
    let answer = Packet::parse_body(&answer).unwrap();
    assert_eq!(answer.opcode, Opcode::ReadResponseOnly);
    assert_eq!(answer.payload, [0; MTU as usize]);
    let psn = packets[1].psn.value();
    assert_eq!(peer.acknowledged(), (psn, ACK));
    assert_eq!(device.memory[MTU as usize - SEND_BYTES..], [1; SEND_BYTES]);
}

#[test]
fn behind_a_long_read_the_request_is_asked_for_again() {
    const READ_BYTES: u32 = 2 << 20;
    let (peer, device, packets) = read_and_send(READ_BYTES);
    packets.iter().for_each(|it| peer.send(&device, it));
    // Behind the answers.
    device.counts("naks_sent", 1);
    let changed = READ_BYTES as usize - SEND_BYTES..;
    assert_eq!(device.memory[changed.clone()], [0; SEND_BYTES]);
    peer.send(&device, &packets[1]);
    let received = device.completions(&device.recv_cq, 1)[0];
    assert_eq!((received.wr_id, received.status), (5, Status::Success));
    assert_eq!(device.memory[changed], [1; SEND_BYTES]);
}
