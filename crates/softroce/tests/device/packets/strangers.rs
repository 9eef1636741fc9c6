//! Packets of programs that are not the peer: from another port of its address, or for QPs that do not exist.

use super::{PSN, connected};
use crate::support::peer::{send_on, wire};

#[test]
fn a_request_from_another_port_of_the_peers_address_is_dropped() {
    let (peer, device) = connected();
    let to = device.nic.address();
    peer.send(to, &device.write(PSN, &[1; 8]));
    peer.one_answer();
    let strange = wire(&device.write(PSN + 1, &[2; 8]));
    send_on(&peer.other_port(), to, &strange, true);
    device.counts("wrong_source", 1);
    assert_eq!(device.memory[..8], [1; 8]);
    // It is the first with this PSN: a repetition would change nothing.
    peer.send(to, &device.write(PSN + 1, &[3; 8]));
    peer.one_answer();
    assert_eq!(device.memory[..8], [3; 8]);
}

#[test]
fn an_answer_from_another_port_of_the_peers_address_is_dropped() {
    let (peer, device) = connected();
    let to = device.nic.address();
    for number in 0..2 {
        device.post_send(8);
        peer.one_answer();
        let answer = device.acknowledgement(PSN + number);
        // The peer's port is known once it has answered.
        if number > 0 {
            send_on(&peer.other_port(), to, &wire(&answer), true);
            device.counts("wrong_source", 1);
            assert_eq!(device.cq.poll(1, |_| ()), Ok(0));
        }
        peer.send(to, &answer);
        device.succeeds(1);
    }
}

#[test]
fn a_packet_to_no_qp_costs_no_crc() {
    let (peer, device) = connected();
    let to = device.nic.address();
    let mut packet = device.write(PSN, &[1; 8]);
    send_on(&peer.sender, to, &wire(&packet), false);
    device.counts("bad_icrc", 1);
    packet.destination_qpn ^= 1 << 20;
    send_on(&peer.sender, to, &wire(&packet), false);
    device.counts("unknown_qp", 1);
    assert_eq!(device.counter("bad_icrc"), 1);
}
