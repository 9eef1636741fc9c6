//! Marked packets, notifications of congestion (CNPs), and the rate that they leave a QP.

use softroce::transport::Kind;
use softroce::wire::{Cnp, Packet};

use super::{MTU, PSN, connected, connected_by, plan};
use crate::support::end::End;
use crate::support::peer::{CE, ECT_0, PORT, QPN, wire};

fn cnp(device: &End) -> [u8; Cnp::BYTES] {
    let cnp = Cnp { destination_qpn: device.qps[0].number(), pkey: 0xffff };
    cnp.to_bytes()
}

#[test]
fn a_marked_packet_is_answered_by_a_cnp_and_others_are_not() {
    let (peer, device) = connected();
    for (number, class) in [0, 1, ECT_0].into_iter().enumerate() {
        let packet = device.write(PSN + number as u32, &[1; 8]);
        peer.send_bytes(&device, PORT, class, &wire(&packet));
        assert_eq!(peer.acknowledged().0, packet.psn.value());
    }
    let marked = device.write(PSN + 3, &[2; 8]);
    peer.send_bytes(&device, PORT, CE, &wire(&marked));
    let answers = peer.answers(2);
    let mut expected = [0; 28];
    expected[..5].copy_from_slice(&[0x81, 0, 0xff, 0xff, 0x40]);
    expected[5..8].copy_from_slice(&QPN.to_be_bytes()[1..]);
    assert!(answers.contains(&expected.to_vec()), "{answers:02x?}");
    peer.is_left_alone();
    device.counts("np_ecn_marked_roce_packets", 1);
    device.counts("np_cnp_sent", 1);
    assert_eq!(device.memory[..8], [2; 8]);
}

#[test]
fn cnps_are_50_us_apart() {
    let (peer, device) = connected();
    let start_ns = peer.world.now_ns();
    let marked = wire(&device.write(PSN, &[1; 8]));
    let sent = [0, 1, 49_999, 50_000, 99_999, 200_000, 249_999].map(|after_ns| {
        peer.world.run_until(start_ns + after_ns);
        peer.send_bytes(&device, PORT, CE, &marked);
        peer.world.run_until(start_ns + after_ns);
        device.counter("np_cnp_sent")
    });
    assert_eq!(sent, [1, 1, 1, 2, 2, 3, 3]);
    device.counts("np_ecn_marked_roce_packets", 7);
}

#[test]
fn a_cnp_is_answered_by_nothing() {
    let (peer, device) = connected();
    peer.send_bytes(&device, PORT, CE, &cnp(&device));
    peer.is_left_alone();
    device.counts("rp_cnp_handled", 1);
    device.counts("np_cnp_sent", 0);
}

#[test]
fn cnps_of_others_and_for_others_change_nothing() {
    let (peer, device) = connected();
    // The peer's port is known from here on.
    peer.send(&device, &device.write(PSN, &[1; 8]));
    peer.answer();
    device.post_send(8);
    peer.answer();
    peer.send(&device, &device.acknowledgement(PSN));
    device.succeeds(1);

    let right = cnp(&device);
    let changed = |at: usize, byte: u8| {
        let mut bytes = right;
        bytes[at] ^= byte;
        bytes
    };
    peer.send_bytes(&device, PORT + 1, 0, &right);
    device.counts("wrong_source", 1);
    for (bytes, crc_is_right, counter) in [
        (&changed(5, 1)[..], true, "unknown_qp"),
        (&changed(2, 0xed), true, "pkey_violations"),
        (&right[..24], true, "unparsed"),
        (&right, false, "bad_icrc"),
    ] {
        if crc_is_right {
            peer.send_bytes(&device, PORT, 0, bytes);
        } else {
            peer.send_damaged(&device, bytes);
        }
        device.counts(counter, 1);
    }
    device.qps[0].fail();
    peer.send_bytes(&device, PORT, 0, &right);
    device.counts("rp_cnp_ignored", 1);
    assert_eq!(device.counter("rp_cnp_handled"), 0);
}

#[test]
fn a_cnp_for_an_unreliable_qp_is_dropped() {
    let (peer, device) = connected_by(&plan(Kind::Uc));
    peer.send_bytes(&device, PORT, 0, &cnp(&device));
    device.counts("wrong_service", 1);
}

#[test]
fn a_qp_that_is_told_of_congestion_sends_in_turns_and_all_in_order() {
    const PACKETS: u32 = 60;
    let (peer, device) = connected();
    for _ in 0..30 {
        peer.send_bytes(&device, PORT, 0, &cnp(&device));
    }
    device.counts("rp_cnp_handled", 30);
    device.post_send(PACKETS * MTU);
    let start_ns = peer.world.now_ns();
    let mut turns_ns = Vec::new();
    for psn in PSN..PSN + PACKETS {
        let packet = Packet::parse_body(&peer.answer()).unwrap().psn.value();
        assert_eq!(packet, psn & 0x00ff_ffff);
        turns_ns.push(peer.world.now_ns() - start_ns);
    }
    // Four packets of 1084 bytes with all headers, at 10 Mb/s; then at rates that grow.
    assert_eq!(turns_ns[..8], [[0; 4], [3_468_800; 4]].concat());
    turns_ns.dedup();
    assert_eq!(turns_ns.len(), 14);
    peer.send(&device, &device.acknowledgement(PSN + PACKETS - 1));
    device.succeeds(1);
}

#[test]
fn packets_of_a_reliable_connection_may_be_marked() {
    let (peer, device) = connected();
    device.post_send(8);
    assert_eq!(peer.arrival().traffic_class, ECT_0);
}
