//! Marked packets, and notifications of congestion (CNPs).

use std::time::{Duration, Instant};

use softroce::transport::{Kind, Status};
use softroce::wire::{Cnp, Packet};

use crate::admission::acknowledged;
use crate::device::{Device, MTU, PSN, Plan};
use crate::peer::{PATIENCE, Peer, QPN, send_on, set_ip_option};

/// The types of service of packets that may be marked, and of marked ones.
const ECT_0: i32 = 2;
const CE: i32 = 3;

/// A CNP for the device's QP.
fn cnp(device: &Device) -> [u8; Cnp::BYTES] {
    let cnp = Cnp {
        destination_qpn: device.qp.number(),
        pkey: 0xffff,
    };
    cnp.to_bytes()
}

#[test]
fn a_marked_packet_is_answered_by_a_cnp_and_others_are_not() {
    let peer = Peer::new();
    let device = Device::new(&peer, Plan::default());
    let to = device.nic.address();
    for class in [0, 1, ECT_0] {
        set_ip_option(&peer.sender, libc::IP_TOS, class);
        let psn = (PSN + class as u32) & 0xff_ffff;
        peer.send(to, &device.write(psn, &[1; 8]));
        assert_eq!(acknowledged(&peer.one_answer()).0, psn);
    }
    set_ip_option(&peer.sender, libc::IP_TOS, CE);
    peer.send(to, &device.write((PSN + 3) & 0xff_ffff, &[2; 8]));
    let answers = peer.answers(2, PATIENCE);
    let mut expected = [0; 28];
    expected[..5].copy_from_slice(&[0x81, 0, 0xff, 0xff, 0x40]);
    expected[5..8].copy_from_slice(&QPN.to_be_bytes()[1..]);
    assert!(answers.contains(&expected.to_vec()), "{answers:02x?}");
    device.counts("np_ecn_marked_roce_packets", 1);
    device.counts("np_cnp_sent", 1);
    assert_eq!(device.memory[..8], [2; 8]);
}

#[test]
fn cnps_are_50_us_apart() {
    const PACKETS: u32 = 200;
    let peer = Peer::new();
    set_ip_option(&peer.sender, libc::IP_TOS, CE);
    let device = Device::new(&peer, Plan::default());
    let began = Instant::now();
    for at in 0..PACKETS {
        let psn = (PSN + at) & 0xff_ffff;
        peer.send(device.nic.address(), &device.write(psn, &[1; 8]));
    }
    device.counts("np_ecn_marked_roce_packets", PACKETS.into());
    let intervals = began.elapsed().as_micros() as u64 / 50;
    let sent = device.counter("np_cnp_sent");
    assert!((1..=intervals + 1).contains(&sent), "{sent} {intervals}");
}

#[test]
fn a_cnp_is_answered_by_nothing() {
    let peer = Peer::new();
    set_ip_option(&peer.sender, libc::IP_TOS, CE);
    let device = Device::new(&peer, Plan::default());
    send_on(&peer.sender, device.nic.address(), &cnp(&device), true);
    device.counts("rp_cnp_handled", 1);
    assert!(peer.answers(1, Duration::from_millis(20)).is_empty());
    assert_eq!(device.counter("np_cnp_sent"), 0);
}

#[test]
fn cnps_of_others_and_for_others_change_nothing() {
    let peer = Peer::new();
    let device = Device::new(&peer, Plan::default());
    let to = device.nic.address();
    // The peer's port is known from here on.
    peer.send(to, &device.write(PSN, &[1; 8]));
    peer.one_answer();
    device.post_send(1, 8);
    peer.one_answer();
    peer.send(to, &device.acknowledgement(PSN));
    Device::completions(&device.send_cq, 1);

    let right = cnp(&device);
    send_on(&peer.other_port(), to, &right, true);
    device.counts("wrong_source", 1);
    let mut unknown = right;
    unknown[5] ^= 1;
    send_on(&peer.sender, to, &unknown, true);
    device.counts("unknown_qp", 1);
    let mut foreign = right;
    foreign[2] = 0x12;
    send_on(&peer.sender, to, &foreign, true);
    device.counts("pkey_violations", 1);
    send_on(&peer.sender, to, &right[..24], true);
    device.counts("unparsed", 1);
    send_on(&peer.sender, to, &right, false);
    device.counts("bad_icrc", 1);
    assert_eq!(device.counter("rp_cnp_handled"), 0);
    device.qp.fail();
    send_on(&peer.sender, to, &right, true);
    device.counts("rp_cnp_ignored", 1);
    assert_eq!(device.counter("rp_cnp_handled"), 0);

    let unreliable = Plan {
        kind: Kind::Uc,
        ..Plan::default()
    };
    let peer = Peer::new();
    let device = Device::new(&peer, unreliable);
    send_on(&peer.sender, device.nic.address(), &cnp(&device), true);
    device.counts("wrong_service", 1);
}

#[test]
fn a_qp_with_cnps_waits_for_its_rate_and_sends_all_in_order() {
    const PACKETS: u32 = 32;
    let peer = Peer::new();
    let device = Device::new(&peer, Plan::default());
    let to = device.nic.address();
    let deadline = Instant::now() + PATIENCE;
    let mut psn = PSN;
    let mut handled = 0;
    // A machine that runs this late gives the rate time to grow.
    while device.counter("rate_waits") == 0 {
        assert!(Instant::now() < deadline, "{:?}", device.nic.counters());
        for _ in 0..30 {
            send_on(&peer.sender, to, &cnp(&device), true);
        }
        handled += 30;
        device.counts("rp_cnp_handled", handled);
        device.post_send(1, PACKETS * MTU);
        let packets = peer.answers(PACKETS as usize, PATIENCE);
        for packet in &packets {
            assert_eq!(Packet::parse_body(packet).unwrap().psn.value(), psn);
            psn = (psn + 1) & 0xff_ffff;
        }
        let last = psn.wrapping_sub(1) & 0xff_ffff;
        peer.send(to, &device.acknowledgement(last));
        let done = &Device::completions(&device.send_cq, 1)[0];
        assert_eq!(done.status, Status::Success);
    }
}

#[test]
fn packets_of_a_reliable_connection_may_be_marked() {
    let peer = Peer::new();
    let device = Device::new(&peer, Plan::default());
    set_ip_option(peer.inbox(), libc::IP_RECVTOS, 1);
    device.post_send(1, 8);
    assert_eq!(crate::datagrams::header(peer.inbox()).traffic_class, 2);
}
