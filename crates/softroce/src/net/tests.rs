//! Round trips over loopback: one port sends, another receives.
#![allow(unsafe_code)]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener};
use std::sync::Arc;
use std::time::Duration;

use testing::wait::{wait_for, wait_until};

use super::gso_batch::CopiedBatch;
use super::*;
use crate::wire::{Bth, IcrcAddresses, UDP_PORT, icrc};

mod captures;
mod shared_address;

/// More than any wait here takes on an idle machine.
pub const SOON: Duration = Duration::from_secs(10);

#[track_caller]
pub fn collect(port: &mut Port, count: usize) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    collect_until(port, &mut packets, |_, collected| collected.len() >= count);
    assert_eq!(packets.len(), count);
    packets
}

#[track_caller]
fn collect_until(
    port: &mut Port,
    packets: &mut Vec<Vec<u8>>,
    enough: impl Fn(&Counters, &[Vec<u8>]) -> bool,
) {
    let counters = Arc::clone(&port.common.counters);
    wait_until("packets", SOON, || {
        while !enough(&counters, packets) {
            if port.receiver.receive(|_| true, |it: Arrival<'_>| packets.push(it.bytes.to_vec()))
                == 0
            {
                break;
            }
        }
        enough(&counters, packets)
    });
}

pub fn loopback_port() -> Port {
    open(None, &Faults::default(), None).unwrap()
}

/// Waits until no other test on this machine uses ::1, the only address of its kind; none does while the result lives.
pub fn turn_on_ipv6_loopback() -> UnixListener {
    let name = UnixAddress::from_abstract_name("softroce-test/::1").unwrap();
    wait_for("other tests at ::1 to end", SOON, || UnixListener::bind_addr(&name).ok())
}

/// A packet's headers and its payload in pieces.
pub type Parts = (Vec<u8>, Vec<Vec<u8>>);

pub fn parts(header_bytes: usize, pieces: &[usize], salt: usize) -> Parts {
    let fill = |bytes: usize, start: usize| (0..bytes).map(|at| (at * 7 + start) as u8).collect();
    let payload = pieces.iter().zip(salt + 1..).map(|(bytes, start)| fill(*bytes, start));
    (fill(header_bytes, salt), payload.collect())
}

/// The same packet for a QP of this port's process, if others may have the address too.
pub fn addressed(port: &Port, (mut headers, pieces): Parts) -> Parts {
    if let Some(member) = &port.membership {
        headers[Bth::DESTINATION_QPN_AT] = with_slot(0, member.slot).to_be_bytes()[1];
    }
    (headers, pieces)
}

/// The packet as it arrives: padded, without CRC.
pub fn whole((headers, pieces): &Parts) -> Vec<u8> {
    let mut packet = headers.clone();
    let payload = pieces.concat();
    packet.extend(&payload);
    packet.resize(headers.len() + payload.len().next_multiple_of(4), 0);
    packet
}

/// Adds a packet, without a copy.
///
/// # Safety
/// The pieces outlive the GSO batch.
unsafe fn push(gso_batch: &mut GsoBatch, headers: &[u8], pieces: &[Vec<u8>]) {
    let bytes = pieces.iter().map(Vec::len).sum();
    let places = pieces.iter().map(|it| (it.as_ptr(), it.len()));
    // SAFETY: the caller vouches for the pieces.
    unsafe { gso_batch.push(headers, bytes, places, false) };
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
            assert!(gso_batch.takes(headers.len(), bytes));
        }
        let before = gso_batch.packets();
        // SAFETY: the packets outlive the GSO batch.
        unsafe { push(&mut gso_batch, headers, pieces) };
        assert_eq!(gso_batch.packets(), before + 1);
    }
    transmitter.send(&mut gso_batch);
    gso_batches + 1
}

pub fn copied(flow: &Flow, packets: &[Parts]) -> CopiedBatch {
    let mut gso_batch = GsoBatch::new();
    gso_batch.begin(flow);
    for (headers, pieces) in packets {
        // SAFETY: the packets outlive the GSO batch.
        unsafe { push(&mut gso_batch, headers, pieces) };
    }
    gso_batch.finish();
    CopiedBatch::from_outgoing(flow, &*gso_batch)
}

#[test]
fn classes_of_packets_are_seen_and_their_hop_limits_where_they_are_wanted() {
    let _turn = turn_on_ipv6_loopback();
    for address in [None, Some(IpAddr::V6(Ipv6Addr::LOCALHOST))] {
        let mut port = open(address, &Faults::default(), None).unwrap();
        for hops in [0, 9] {
            if hops > 0 {
                port.receiver.see_hop_limits();
            }
            let flow = port.transmitter.flow(port.common.address, 7, 0xfc, 9);
            send(&port.transmitter, &flow, &[addressed(&port, parts(12, &[64], 0))]);
            let seen = wait_for("a packet", SOON, || {
                let mut seen = None;
                port.receiver.receive(
                    |_| true,
                    |it: Arrival<'_>| seen = Some((it.traffic_class, it.hop_limit)),
                );
                seen
            });
            assert_eq!(seen, (0xfc, hops), "{address:?}");
        }
    }
}

#[test]
fn an_open_tap_sees_each_packet_of_a_train_both_ways() {
    let mut port = loopback_port();
    let flow = port.transmitter.flow(port.common.address, 7, 0, 0);
    let packets: Vec<Parts> = (0..3).map(|salt| parts(12, &[1024], salt)).collect();
    send(&port.transmitter, &flow, &packets);
    collect(&mut port, 3);
    assert!(port.common.tap.close().is_empty(), "nobody looked");
    port.common.tap.open();
    send(&port.transmitter, &flow, &packets);
    let stranger = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let to = (port.common.address, UDP_PORT);
    stranger.send_to(&[0; 20], to).unwrap();
    let mut arrived = Vec::new();
    collect_until(&mut port, &mut arrived, |counters: &Counters, _: &[_]| {
        counters.bad_icrc.get() == 1
    });
    assert_eq!(arrived.len(), 3);
    let passed = port.common.tap.close();
    let of = |outwards, icrc_ok| -> Vec<&[u8]> {
        passed
            .iter()
            .filter(|it| it.outwards == outwards && it.icrc_ok == icrc_ok)
            .map(|it| it.bytes.as_slice())
            .collect()
    };
    let (sent, received) = (of(true, true), of(false, true));
    assert_eq!(sent, received);
    let bodies: Vec<Vec<u8>> = sent.iter().map(|it| it[..it.len() - 4].to_vec()).collect();
    assert_eq!(bodies, packets.iter().map(whole).collect::<Vec<_>>());
    assert_eq!(of(false, false), [[0; 20]]);
}

#[test]
fn gso_batches_of_all_shapes_arrive_whole() {
    let _turn = turn_on_ipv6_loopback();
    for address in [None, Some(IpAddr::V6(Ipv6Addr::LOCALHOST))] {
        let mut port = open(address, &Faults::default(), None).unwrap();
        let flow = port.transmitter.flow(port.common.address, 7, 0, 0);
        let of_one: [&[usize]; 6] = [&[1], &[64], &[256], &[513], &[4096], &[4095]];
        let of_few: [&[usize]; 4] = [&[], &[3, 2], &[300, 300], &[1000, 0, 24]];
        let of_many: [&[usize]; 3] = [&[100; 12], &[100; 13], &[1; 40]];
        for shape in of_one.into_iter().chain(of_few).chain(of_many) {
            let bytes: usize = shape.iter().sum();
            for (header_bytes, count) in [(12, 1), (28, 2), (12, 15), (40, 128)] {
                let packets: Vec<Parts> = (0..count)
                    .map(|at| parts(header_bytes, shape, at))
                    .chain([parts(header_bytes, &[bytes / 2], 99)])
                    .map(|it| addressed(&port, it))
                    .collect();
                let gso_batches = send(&port.transmitter, &flow, &packets);
                let fit = MAX_GSO_BATCH_BYTES / (header_bytes + bytes.next_multiple_of(4) + 4);
                let fit = fit.min(flow.max_packets);
                assert!(gso_batches <= packets.len().div_ceil(fit) + 1);
                let expected: Vec<Vec<u8>> = packets.iter().map(whole).collect();
                let arrived = collect(&mut port, packets.len());
                assert!(arrived == expected, "{shape:?} × {count}");
            }
        }
        let counters = &port.common.counters;
        let wrong = [&counters.bad_icrc, &counters.send_errors];
        assert_eq!(wrong.map(Count::get), [0; 2]);
        let most = port.transmitter.max_gso_batch_packets(&flow);
        assert_eq!(most, flow.max_packets);
    }
}

#[test]
fn a_train_ends_with_a_shorter_packet() {
    let port = loopback_port();
    let flow = port.transmitter.flow(port.common.address, 1, 0, 0);
    let mut gso_batch = GsoBatch::new();
    assert!(!gso_batch.takes(12, 0));
    gso_batch.begin(&flow);
    let bytes = [5_u8; 128];
    let mut added = |count| {
        let piece = std::iter::once((bytes.as_ptr(), count));
        // SAFETY: the bytes outlive the GSO batch.
        unsafe { gso_batch.push(&[0; 12], count, piece, false) };
        let takes = [64, 65].map(|more| gso_batch.takes(12, more));
        (takes, gso_batch.packets())
    };
    assert_eq!(added(64), ([true, false], 1));
    assert_eq!(added(63), ([true, false], 2));
    assert_eq!([added(32), added(32)], [([false; 2], 3); 2]);
}

#[test]
fn free_addresses_differ_and_a_taken_one_says_so() {
    let (one, other) = (loopback_port(), loopback_port());
    assert_ne!(one.common.address, other.common.address);
    let error = open(Some(one.common.address), &Faults::default(), None).err().unwrap();
    assert_eq!(os_error(&error), Some(libc::EADDRINUSE));
    let text = error.to_string();
    assert!(text.contains(&one.common.address.to_string()), "{text}");
    assert!(one.receive_buffer_bytes > 100_000);
}

#[test]
fn flows_spread_over_the_source_ports() {
    let port = loopback_port();
    let flow = |entropy| port.transmitter.flow(port.common.address, entropy, 0, 0);
    let ports: std::collections::HashSet<u16> =
        (0..64).map(|entropy| flow(entropy).source_port()).collect();
    assert!(ports.len() > 8, "{ports:?}");
    assert!(ports.iter().all(|it| *it >= 0xc000));
}

#[test]
fn a_destination_of_another_family_is_a_loss_and_no_more() {
    let port = loopback_port();
    let flow = port.transmitter.flow(Ipv6Addr::LOCALHOST.into(), 1, 0, 0);
    for bytes in [8, 800] {
        send(&port.transmitter, &flow, &[parts(12, &[bytes], 0)]);
    }
    let counters = &port.common.counters;
    let counted = [&counters.sent.packets, &counters.send_errors];
    assert_eq!(counted.map(Count::get), [0, 2]);
    let most = port.transmitter.max_gso_batch_packets(&flow);
    assert_eq!(most, flow.max_packets);
}

/// Sends a packet as another implementation does: one datagram, with a CRC for this identification.
fn send_packet(from: &UdpSocket, to: IpAddr, identification: u16, packet: &[u8], damage: u8) {
    let source = from.local_addr().unwrap();
    let (IpAddr::V4(source_ip), IpAddr::V4(destination)) = (source.ip(), to) else {
        panic!("IPv4 only");
    };
    let addresses =
        IcrcAddresses::V4 { source: source_ip, destination, identification, flags: 0x4000 };
    let mut bytes = packet.to_vec();
    bytes.extend(icrc(addresses, source.port(), packet));
    bytes[13] ^= damage;
    from.send_to(&bytes, (destination, UDP_PORT)).unwrap();
}

#[test]
fn foreign_identifications_are_taken_and_damage_is_not() {
    let mut port = loopback_port();
    let to = port.common.address;
    let from = UdpSocket::bind((Ipv4Addr::new(127, 77, 0, 1), 0)).unwrap();
    let packet = |at: u8| vec![at; 40];
    for (at, identification) in [(0, 4711), (1, 4712), (2, 4800), (3, 2), (4, u16::MAX)] {
        send_packet(&from, to, identification, &packet(at), 0);
    }
    assert_eq!(collect(&mut port, 5), [0, 1, 2, 3, 4].map(packet));
    assert_eq!(port.common.counters.bad_icrc.get(), 0);

    send_packet(&from, to, 4713, &packet(5), 0x10);
    from.send_to(&[0; 15], (to, UDP_PORT)).unwrap();
    send_packet(&from, to, 40_001, &packet(6), 0);
    assert_eq!(collect(&mut port, 1), [packet(6)]);
    assert_eq!(port.common.counters.bad_icrc.get(), 1);
    assert_eq!(port.common.counters.short.get(), 1);
}
