//! Marked packets, and notifications of congestion (CNPs). How long a QP waits for its rate, and that CNPs are 50 µs
//! apart, is tested in the transport at made-up instants.

use softroce::transport::Kind;
use softroce::wire::{Cnp, Packet};

use super::{MTU, PSN, connected, connected_by, plan};
use crate::support::end::End;
use crate::support::peer::{QPN, send_on, set_ip_option};

/// The types of service of packets that may be marked, and of marked ones.
const ECT_0: i32 = 2;
const CE: i32 = 3;

fn cnp(device: &End) -> [u8; Cnp::BYTES] {
    let cnp = Cnp {
        destination_qpn: device.qps[0].number(),
        pkey: 0xffff,
    };
    cnp.to_bytes()
}

#[test]
fn a_marked_packet_is_answered_by_a_cnp_and_others_are_not() {
    let (peer, device) = connected();
    for class in [0, 1, ECT_0] {
        set_ip_option(&peer.sender, libc::IP_TOS, class);
        let psn = (PSN + class as u32) & 0xff_ffff;
        peer.send(&device, &device.write(psn, &[1; 8]));
        assert_eq!(peer.acknowledged().0, psn);
    }
    set_ip_option(&peer.sender, libc::IP_TOS, CE);
    peer.send(&device, &device.write((PSN + 3) & 0xff_ffff, &[2; 8]));
    let answers = peer.answers(2);
    let mut expected = [0; 28];
    expected[..5].copy_from_slice(&[0x81, 0, 0xff, 0xff, 0x40]);
    expected[5..8].copy_from_slice(&QPN.to_be_bytes()[1..]);
    assert!(answers.contains(&expected.to_vec()), "{answers:02x?}");
    device.counts("np_ecn_marked_roce_packets", 1);
    device.counts("np_cnp_sent", 1);
    assert_eq!(device.memory[..8], [2; 8]);
}

#[test]
fn a_cnp_is_answered_by_nothing() {
    let (peer, device) = connected();
    set_ip_option(&peer.sender, libc::IP_TOS, CE);
    peer.send_bytes(&device, &cnp(&device));
    device.counts("rp_cnp_handled", 1);
    set_ip_option(&peer.sender, libc::IP_TOS, 0);
    peer.send(&device, &device.write(PSN, &[1; 8]));
    assert_eq!(peer.acknowledged().0, PSN, "the first answer");
    assert_eq!(device.counter("np_cnp_sent"), 0);
}

#[test]
fn cnps_of_others_and_for_others_change_nothing() {
    let (peer, device) = connected();
    // The peer's port is known from here on.
    peer.send(&device, &device.write(PSN, &[1; 8]));
    peer.one_answer();
    device.post_send(8);
    peer.one_answer();
    peer.send(&device, &device.acknowledgement(PSN));
    device.succeeds(1);

    let right = cnp(&device);
    let changed = |at: usize, byte: u8| {
        let mut bytes = right;
        bytes[at] ^= byte;
        bytes
    };
    send_on(&peer.other_port(), &device, &right, true);
    device.counts("wrong_source", 1);
    for (bytes, crc_is_right, counter) in [
        (&changed(5, 1)[..], true, "unknown_qp"),
        (&changed(2, 0xed), true, "pkey_violations"),
        (&right[..24], true, "unparsed"),
        (&right, false, "bad_icrc"),
    ] {
        send_on(&peer.sender, &device, bytes, crc_is_right);
        device.counts(counter, 1);
    }
    device.qps[0].fail();
    peer.send_bytes(&device, &right);
    device.counts("rp_cnp_ignored", 1);
    assert_eq!(device.counter("rp_cnp_handled"), 0);
}

#[test]
fn a_cnp_for_an_unreliable_qp_is_dropped() {
    let (peer, device) = connected_by(&plan(Kind::Uc));
    peer.send_bytes(&device, &cnp(&device));
    device.counts("wrong_service", 1);
}

#[test]
fn a_qp_with_a_rate_waits_for_it_and_sends_all_in_order() {
    const PACKETS: u32 = 32;
    let (peer, device) = connected();
    peer.send_bytes(&device, &cnp(&device));
    device.counts("rp_cnp_handled", 1);
    // 1 MB/s: what it saves, at most that of 10 ms, is less than what it is to send.
    device.qps[0].limit_rate(Some(0.001));
    device.post_send(PACKETS * MTU);
    for (packet, psn) in peer.answers(PACKETS as usize).iter().zip(PSN..) {
        let psn = psn & 0xff_ffff;
        assert_eq!(Packet::parse_body(packet).unwrap().psn.value(), psn);
    }
    assert!(device.counter("rate_waits") > 0);
    peer.send(
        &device,
        &device.acknowledgement((PSN + PACKETS - 1) & 0xff_ffff),
    );
    device.succeeds(1);
}

#[test]
fn packets_of_a_reliable_connection_may_be_marked() {
    let (peer, device) = connected();
    set_ip_option(&peer.inbox, libc::IP_RECVTOS, 1);
    device.post_send(8);
    let header = super::datagrams::header(&peer.inbox);
    assert_eq!(header.traffic_class, ECT_0 as u8);
}
