//! Packets of programs that are not the peer: from another port of its address, or for QPs that do not exist.

use std::time::Duration;

use softroce::transport::Status;

use crate::device::{Device, PSN, Plan};
use crate::peer::{Peer, send_on, wire};

#[test]
fn a_request_from_another_port_of_the_peers_address_is_dropped() {
    let peer = Peer::new();
    let stranger = peer.other_port();
    let device = Device::new(&peer, Plan::default());
    let to = device.nic.address();
    peer.send(to, &device.write(PSN, &[1; 8]));
    peer.one_answer();
    send_on(&stranger, to, &wire(&device.write(PSN + 1, &[2; 8])), true);
    device.counts("wrong_source", 1);
    assert!(peer.answers(1, Duration::from_millis(20)).is_empty());
    assert_eq!(device.memory[..8], [1; 8]);
    peer.send(to, &device.write(PSN + 1, &[3; 8]));
    peer.one_answer();
    assert_eq!(device.memory[..8], [3; 8]);
}

#[test]
fn an_answer_from_another_port_of_the_peers_address_is_dropped() {
    let peer = Peer::new();
    let stranger = peer.other_port();
    let device = Device::new(&peer, Plan::default());
    let to = device.nic.address();
    device.post_send(1, 8);
    peer.one_answer();
    peer.send(to, &device.acknowledgement(PSN));
    let done = &Device::completions(&device.send_cq, 1)[0];
    assert_eq!((done.wr_id, done.status), (1, Status::Success));
    device.post_send(2, 8);
    send_on(&stranger, to, &wire(&device.acknowledgement(PSN + 1)), true);
    device.counts("wrong_source", 1);
    assert_eq!(device.send_cq.poll(1, |_| ()), Ok(0));
    peer.send(to, &device.acknowledgement(PSN + 1));
    let done = &Device::completions(&device.send_cq, 1)[0];
    assert_eq!((done.wr_id, done.status), (2, Status::Success));
}

#[test]
fn a_packet_to_no_qp_costs_no_crc() {
    let peer = Peer::new();
    let device = Device::new(&peer, Plan::default());
    let to = device.nic.address();
    let mut packet = device.write(PSN, &[1; 8]);
    send_on(&peer.sender, to, &wire(&packet), false);
    device.counts("bad_icrc", 1);
    packet.destination_qpn ^= 1 << 20;
    send_on(&peer.sender, to, &wire(&packet), false);
    device.counts("unknown_qp", 1);
    assert_eq!(device.counter("bad_icrc"), 1);
}
