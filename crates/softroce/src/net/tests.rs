//! Round trips over loopback: one port sends, another receives.
#![allow(unsafe_code)]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::time::{Duration, Instant};

use super::*;
use crate::wire::{IcrcAddresses, UDP_PORT, icrc};

/// Receives packets until there are `count` or none came for a while.
pub fn collect(port: &mut Port, count: usize) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut since = Instant::now();
    while all.len() < count && since.elapsed() < Duration::from_secs(2) {
        if port.receiver.receive(|it| all.push(it.bytes.to_vec())) > 0 {
            since = Instant::now();
        }
    }
    all
}

pub fn loopback_port() -> Port {
    open(None, &Faults::default()).unwrap()
}

/// A packet's headers and its payload in pieces.
pub type Parts = (Vec<u8>, Vec<Vec<u8>>);

/// Bytes that differ from position to position.
pub fn parts(header_bytes: usize, pieces: &[usize], salt: usize) -> Parts {
    let fill = |bytes: usize, salt: usize| (0..bytes).map(|at| (at * 7 + salt) as u8).collect();
    let pieces = pieces
        .iter()
        .zip(1..)
        .map(|(bytes, at)| fill(*bytes, salt + at));
    (fill(header_bytes, salt), pieces.collect())
}

/// The packet as it arrives: padded, without CRC.
pub fn whole((headers, pieces): &Parts) -> Vec<u8> {
    let mut all = headers.clone();
    let payload = pieces.concat();
    all.extend(&payload);
    all.resize(headers.len() + payload.len().next_multiple_of(4), 0);
    all
}

/// Sends them in as few GSO batches as possible.
pub fn send(transmitter: &Transmitter, flow: &Flow, packets: &[Parts]) -> usize {
    let mut gso_batch = GsoBatch::new();
    gso_batch.begin(flow);
    let mut gso_batches = 0;
    for (headers, pieces) in packets {
        let bytes = pieces.iter().map(Vec::len).sum();
        if !gso_batch.takes(headers.len(), bytes) {
            assert!(gso_batch.packets() > 0);
            transmitter.send(&mut gso_batch);
            gso_batches += 1;
        }
        assert!(gso_batch.takes(headers.len(), bytes));
        let before = gso_batch.packets();
        // SAFETY: the packets outlive the GSO batch.
        unsafe { gso_batch.push(headers, pieces.iter().map(|it| (it.as_ptr(), it.len()))) };
        assert_eq!(gso_batch.packets(), before + 1);
    }
    transmitter.send(&mut gso_batch);
    gso_batches + 1
}

#[test]
fn an_open_tap_sees_each_packet_of_a_train_both_ways() {
    let mut port = loopback_port();
    let flow = port.transmitter.flow(port.address, 7, 0, 0);
    let packets: Vec<Parts> = (0..3).map(|salt| parts(12, &[1024], salt)).collect();
    send(&port.transmitter, &flow, &packets);
    assert_eq!(collect(&mut port, 3).len(), 3);
    assert!(port.tap.close().is_empty(), "nobody looked");
    port.tap.open();
    send(&port.transmitter, &flow, &packets);
    let stranger = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    stranger
        .send_to(&[0; 20], (port.address, UDP_PORT))
        .unwrap();
    assert_eq!(collect(&mut port, 4).len(), 3, "one is damaged");
    let passed = port.tap.close();
    let of = |outwards, icrc_ok| -> Vec<&[u8]> {
        let wanted = |it: &&RecordedPacket| it.outwards == outwards && it.icrc_ok == icrc_ok;
        let bytes = passed.iter().filter(wanted).map(|it| it.bytes.as_slice());
        bytes.collect()
    };
    let (sent, received) = (of(true, true), of(false, true));
    assert_eq!(sent, received);
    let bodies: Vec<Vec<u8>> = sent.iter().map(|it| it[..it.len() - 4].to_vec()).collect();
    assert_eq!(bodies, packets.iter().map(whole).collect::<Vec<_>>());
    assert_eq!(of(false, false), [[0; 20]]);
}

#[test]
fn gso_batches_of_all_shapes_arrive_whole() {
    for address in [None, Some(IpAddr::V6(Ipv6Addr::LOCALHOST))] {
        let mut port = open(address, &Faults::default()).unwrap();
        let flow = port.transmitter.flow(port.address, 7, 0, 0);
        for shape in [
            &[][..],
            &[1],
            &[3, 2],
            &[64],
            &[256],
            &[300, 300],
            &[513],
            &[1000, 0, 24],
            &[4096],
            &[4095],
            &[100; 12],
            &[100; 13],
            &[1; 40],
        ] {
            let bytes: usize = shape.iter().sum();
            for (header_bytes, count) in [(12, 1), (28, 2), (12, 15), (40, 64)] {
                let mut packets: Vec<Parts> = (0..count)
                    .map(|at| parts(header_bytes, shape, at))
                    .collect();
                packets.push(parts(header_bytes, &[bytes / 2], 99));
                let gso_batches = send(&port.transmitter, &flow, &packets);
                let fit =
                    (MAX_GSO_BATCH_BYTES / (header_bytes + bytes.next_multiple_of(4) + 4)).min(64);
                assert!(gso_batches <= packets.len().div_ceil(fit) + 1);
                let expected: Vec<Vec<u8>> = packets.iter().map(whole).collect();
                assert!(
                    collect(&mut port, packets.len()) == expected,
                    "{shape:?} × {count}"
                );
            }
        }
        assert_eq!(port.counters.bad_icrc.get(), 0);
        assert_eq!(port.counters.send_errors.get(), 0);
        assert_eq!(
            port.transmitter.max_gso_batch_packets(&flow),
            MAX_GSO_BATCH_PACKETS
        );
    }
}

#[test]
fn a_train_ends_with_a_shorter_packet() {
    let port = loopback_port();
    let flow = port.transmitter.flow(port.address, 1, 0, 0);
    let mut gso_batch = GsoBatch::new();
    assert!(!gso_batch.takes(12, 0));
    gso_batch.begin(&flow);
    let bytes = [5_u8; 128];
    // SAFETY: the bytes outlive the GSO batch.
    let mut push = |count| unsafe {
        gso_batch.push(&[0; 12], [(bytes.as_ptr(), count)].into_iter());
        (
            gso_batch.takes(12, 64),
            gso_batch.takes(12, 65),
            gso_batch.packets(),
        )
    };
    assert_eq!(push(64), (true, false, 1));
    assert_eq!(push(63), (true, false, 2));
    assert_eq!(push(32), (false, false, 3));
    assert_eq!(push(32), (false, false, 3));
}

#[test]
fn traffic_class_and_hop_limit_leave_the_packets_right() {
    for address in [None, Some(IpAddr::V6(Ipv6Addr::LOCALHOST))] {
        let mut port = open(address, &Faults::default()).unwrap();
        let flow = port.transmitter.flow(port.address, 1, 0x68, 9);
        let packets = [parts(12, &[64], 0), parts(12, &[64], 1)];
        send(&port.transmitter, &flow, &packets);
        assert_eq!(collect(&mut port, 2), packets.each_ref().map(whole));
    }
}

#[test]
fn free_addresses_differ_and_a_taken_one_says_so() {
    let (one, other) = (loopback_port(), loopback_port());
    assert_ne!(one.address, other.address);
    let error = open(Some(one.address), &Faults::default()).err().unwrap();
    assert_eq!(os_error(&error), Some(libc::EADDRINUSE));
    assert!(
        error.to_string().contains(&one.address.to_string()),
        "{error}"
    );
    assert!(one.receive_buffer_bytes > 100_000);
}

#[test]
fn flows_spread_over_the_source_ports() {
    let port = loopback_port();
    let ports: std::collections::HashSet<u16> = (0..64)
        .map(|entropy| {
            port.transmitter
                .flow(port.address, entropy, 0, 0)
                .source_port
        })
        .collect();
    assert!(ports.len() > 8, "{ports:?}");
    assert!(ports.iter().all(|it| *it >= 0xc000));
}

#[test]
fn a_destination_of_another_family_is_a_loss_and_no_more() {
    let port = loopback_port();
    let flow = port.transmitter.flow(Ipv6Addr::LOCALHOST.into(), 1, 0, 0);
    send(&port.transmitter, &flow, &[parts(12, &[8], 0)]);
    send(&port.transmitter, &flow, &[parts(12, &[800], 0)]);
    assert_eq!(port.counters.sent.packets.get(), 0);
    assert_eq!(port.counters.send_errors.get(), 2);
    assert_eq!(
        port.transmitter.max_gso_batch_packets(&flow),
        MAX_GSO_BATCH_PACKETS
    );
}

/// Sends a packet as another implementation does: one datagram, with a CRC for this identification.
fn foreign(from: &UdpSocket, to: &Port, identification: u16, packet: &[u8], damage: u8) {
    let IpAddr::V4(destination) = to.address else {
        unreachable!()
    };
    let source = from.local_addr().unwrap();
    let IpAddr::V4(source_ip) = source.ip() else {
        unreachable!()
    };
    let addresses = IcrcAddresses::V4 {
        source: source_ip,
        destination,
        identification,
        flags: 0x4000,
    };
    let mut bytes = packet.to_vec();
    bytes.extend(icrc(addresses, source.port(), &packet[..12], &packet[12..]));
    bytes[13] ^= damage;
    from.send_to(&bytes, (destination, UDP_PORT)).unwrap();
}

#[test]
fn foreign_identifications_are_taken_and_damage_is_not() {
    let mut port = loopback_port();
    let from = UdpSocket::bind((Ipv4Addr::new(127, 77, 0, 1), 0)).unwrap();
    let packet = |at: u8| vec![at; 40];
    for (at, identification) in [(0, 4711), (1, 4712), (2, 4800), (3, 2), (4, u16::MAX)] {
        foreign(&from, &port, identification, &packet(at), 0);
    }
    assert_eq!(
        collect(&mut port, 5),
        (0..5).map(packet).collect::<Vec<_>>()
    );
    assert_eq!(port.counters.bad_icrc.get(), 0);

    let other = UdpSocket::bind((Ipv4Addr::new(127, 77, 0, 2), 0)).unwrap();
    foreign(&other, &port, 0, &packet(0), 0);
    foreign(&other, &port, 0, &packet(1), 0x10);
    // Refused at first because this sender is `Indexed`, then accepted once it is recognised as a `Counter`.
    foreign(&other, &port, 5000, &packet(2), 0);
    foreign(&other, &port, 3, &packet(3), 0);
    foreign(&other, &port, 5001, &packet(4), 0);
    foreign(&other, &port, 5003, &packet(5), 0);
    foreign(&other, &port, 40_000, &packet(6), 0);
    other.send_to(&[0; 15], (port.address, UDP_PORT)).unwrap();
    foreign(&other, &port, 40_001, &packet(7), 0);
    let expected: Vec<_> = [0, 3, 5, 6, 7].map(packet).into();
    assert_eq!(collect(&mut port, 5), expected);
    assert_eq!(port.counters.bad_icrc.get(), 3);
    assert_eq!(port.counters.short.get(), 1);
}

/// A port with the faults of this text.
fn faulty_port(text: &str) -> Port {
    open(None, &text.parse().unwrap()).unwrap()
}

/// Sends this many packets of 100 bytes to itself and receives meanwhile; returns the packets and the time.
fn through_itself(port: &mut Port, packets: usize) -> (Vec<Vec<u8>>, Duration) {
    let flow = port.transmitter.flow(port.address, 3, 0, 0);
    let start = Instant::now();
    let mut all = Vec::new();
    for at in 0..packets {
        let mut packet = parts(12, &[84], 0);
        packet.1[0][..4].copy_from_slice(&(at as u32).to_be_bytes());
        send(&port.transmitter, &flow, &[packet]);
        port.receiver.receive(|it| all.push(it.bytes.to_vec()));
    }
    loop {
        port.transmitter.release_due();
        let received = port.receiver.receive(|it| all.push(it.bytes.to_vec()));
        let nothing_due = port
            .transmitter
            .next_due_ns()
            .or(port.receiver.next_due_ns())
            .is_none();
        if received == 0 && nothing_due {
            return (all, start.elapsed());
        }
    }
}

#[test]
fn faulty_packets_go_one_by_one() {
    let outwards = faulty_port("tx.drop=1%");
    let flow = outwards.transmitter.flow(outwards.address, 3, 0, 0);
    assert_eq!(outwards.transmitter.max_gso_batch_packets(&flow), 1);
    assert_eq!(
        send(
            &outwards.transmitter,
            &flow,
            &[parts(12, &[8], 0), parts(12, &[8], 1)]
        ),
        2
    );
    let inwards = faulty_port("rx.drop=1%");
    let flow = inwards.transmitter.flow(inwards.address, 3, 0, 0);
    assert_eq!(
        inwards.transmitter.max_gso_batch_packets(&flow),
        MAX_GSO_BATCH_PACKETS
    );
}

#[test]
fn faults_of_one_peer_befall_its_packets_alone() {
    let (mut first, mut second) = (loopback_port(), loopback_port());
    let packets: Vec<Parts> = (0..4).map(|salt| parts(12, &[64], salt)).collect();
    let peer = first.address;
    let lost = |text: &str| faulty_port(&format!("{text},peer={peer}"));
    let sender = lost("tx.drop=100%");
    for (port, arrive, gso_batches) in [(&mut first, 0, 4), (&mut second, 4, 1)] {
        let flow = sender.transmitter.flow(port.address, 3, 0, 0);
        assert_eq!(send(&sender.transmitter, &flow, &packets), gso_batches);
        assert_eq!(collect(port, arrive).len(), arrive);
    }
    assert_eq!(sender.counters.transmit_faults.dropped.get(), 4);
    assert_eq!(sender.counters.sent.packets.get(), 4);
    let mut receiver = lost("rx.drop=100%");
    for port in [&first, &second] {
        let flow = port.transmitter.flow(receiver.address, 3, 0, 0);
        send(&port.transmitter, &flow, &packets);
    }
    assert_eq!(collect(&mut receiver, 4).len(), 4);
    assert_eq!(receiver.counters.received.packets.get(), 8);
    assert_eq!(receiver.counters.receive_faults.dropped.get(), 4);
}

#[test]
fn a_slow_link_to_one_peer_delays_no_other() {
    let mut quick = loopback_port();
    let mut slow = loopback_port();
    let sender = faulty_port(&format!("delay=500ms,rate=1M,peer={}", slow.address));
    let packet = || vec![parts(12, &[64], 0)];
    let flow = sender.transmitter.flow(slow.address, 3, 0, 0);
    send(&sender.transmitter, &flow, &packet());
    let start = Instant::now();
    let flow = sender.transmitter.flow(quick.address, 3, 0, 0);
    send(&sender.transmitter, &flow, &packet());
    assert_eq!(collect(&mut quick, 1).len(), 1);
    assert!(start.elapsed() < Duration::from_millis(400));
    assert_eq!(slow.receiver.receive(|_| ()), 0);
    while sender.transmitter.next_due_ns().is_some() {
        sender.transmitter.release_due();
    }
    assert_eq!(collect(&mut slow, 1).len(), 1);
    assert!(start.elapsed() >= Duration::from_millis(500));
}

#[test]
fn faults_of_both_directions_befall_packets() {
    for (text, twice) in [
        ("seed=5,drop=5%,duplicate=2%,reorder=2%,corrupt=1%", true),
        ("seed=5,tx.drop=5%,tx.corrupt=1%", false),
        ("seed=5,rx.drop=5%,rx.duplicate=1%", false),
    ] {
        let mut port = faulty_port(text);
        let (all, _) = through_itself(&mut port, 5000);
        let counters = &port.counters;
        let (tx, rx) = (&counters.transmit_faults, &counters.receive_faults);
        let sent = 5000 - tx.dropped.get() + tx.duplicated.get();
        assert_eq!(counters.sent.packets.get(), sent);
        assert_eq!(
            counters.received.packets.get(),
            sent,
            "the kernel lost some"
        );
        let checked = sent - rx.dropped.get() + rx.duplicated.get();
        let (good, bad) = (all.len() as u64, counters.bad_icrc.get());
        assert_eq!(good + bad, checked);
        assert!(
            twice == (tx.dropped.get() > 0 && rx.dropped.get() > 0),
            "{counters:?}"
        );
        let damaged = tx.corrupted.get() + rx.corrupted.get();
        assert!(
            bad <= damaged + tx.duplicated.get() + rx.duplicated.get()
                && (bad > 0) == (damaged > 0)
        );
        // How long a reordered packet waits also depends on time, which changes what the other direction sees;
        // without reordering the same packets are lost each time.
        if !twice {
            let (again, _) = through_itself(&mut faulty_port(text), 5000);
            assert!(all == again);
        }
    }
}

#[test]
fn delay_and_rate_hold_packets_back() {
    let mut port = faulty_port("delay=20ms");
    let (all, took) = through_itself(&mut port, 10);
    assert_eq!(all.len(), 10);
    assert!(took >= Duration::from_millis(20), "{took:?}");
    assert!(all.is_sorted_by_key(|it| it[12..16].to_vec()));
    // 128 bytes including headers at 1 Mb/s take 1.024 ms.
    for text in ["tx.rate=1M", "rx.rate=1M,rx.delay=1ms"] {
        let (all, took) = through_itself(&mut faulty_port(text), 20);
        assert_eq!(all.len(), 20);
        assert!(took >= Duration::from_micros(20 * 1024), "{text} {took:?}");
        assert!(all.is_sorted_by_key(|it| it[12..16].to_vec()));
    }
}
