//! Captures read back: what is in them was on the wire.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use super::super::capture::file_of;
use super::super::{Port, open};
use super::{Parts, SOON, addressed, collect, parts, send, send_packet, turn_on_ipv6_loopback};
use crate::wire::{IcrcAddresses, UDP_PORT, icrc};
use testing::embedded_device::packets;
use testing::wait::wait_until;

/// A packet of a capture: the IP header, the UDP header and the rest.
type Captured = (Vec<u8>, Vec<u8>, Vec<u8>);

fn captured(path: &Path) -> Vec<Captured> {
    packets(path)
        .into_iter()
        .map(|packet| {
            let (ip, udp) = packet.split_at(if packet[0] == 0x45 { 20 } else { 40 });
            let (udp, body) = udp.split_at(8);
            let length = u16::from_be_bytes([udp[4], udp[5]]);
            assert_eq!(usize::from(length), 8 + body.len());
            (ip.to_vec(), udp.to_vec(), body.to_vec())
        })
        .collect()
}

/// For each family: the address of a port with these faults, what `use_it` returns, and the packets of its capture.
fn captures<R>(faults: &str, use_it: impl Fn(&mut Port) -> R) -> [(IpAddr, R, Vec<Captured>); 2] {
    static FOLDERS: AtomicU32 = AtomicU32::new(0);
    let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
    let name = format!("softroce-capture-{}-{number}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("a.pcap");
    let outcomes = [None, Some(IpAddr::V6(Ipv6Addr::LOCALHOST))].map(|address| {
        let mut port = open(address, &faults.parse().unwrap(), None).unwrap();
        port.capture(&file).unwrap();
        let result = use_it(&mut port);
        let own = port.common.address;
        let slot = port.membership.as_ref().map(|member| member.slot);
        drop(port);
        (own, result, captured(&file_of(&file, own, slot)))
    });
    std::fs::remove_dir_all(&folder).unwrap();
    outcomes
}

/// Sends packets of this class, whose hop limit is 9, to the port itself.
fn send_to_itself(port: &Port, class: u8, count: usize) {
    let flow = port.transmitter.flow(port.common.address, 7, class, 9);
    let packets = (0..count).map(|salt| addressed(port, parts(12, &[700], salt)));
    send(&port.transmitter, &flow, &packets.collect::<Vec<Parts>>());
}

fn hop_limit((ip, ..): &Captured) -> u8 {
    ip[if ip.len() == 20 { 8 } else { 7 }]
}

/// The CRC over headers as they were captured.
fn crc_of(ip: &[u8], udp: &[u8], body: &[u8]) -> [u8; 4] {
    let ip4 = |at: usize| Ipv4Addr::from(<[u8; 4]>::try_from(&ip[at..at + 4]).unwrap());
    let ip6 = |at: usize| Ipv6Addr::from(<[u8; 16]>::try_from(&ip[at..at + 16]).unwrap());
    let addresses = match ip.len() {
        20 => IcrcAddresses::V4 {
            source: ip4(12),
            destination: ip4(16),
            identification: u16::from_be_bytes([ip[4], ip[5]]),
            flags: u16::from_be_bytes([ip[6], ip[7]]),
        },
        _ => IcrcAddresses::V6 { source: ip6(8), destination: ip6(24) },
    };
    let port = u16::from_be_bytes([udp[0], udp[1]]);
    icrc(addresses, port, &body[..body.len() - 4])
}

#[test]
fn a_capture_has_the_headers_that_were_on_the_wire() {
    let _turn = turn_on_ipv6_loopback();
    let captures = captures("seed=3,tx.drop=20%,tx.corrupt=5%", |port| {
        send_to_itself(port, 0x68, 60);
        let faults = &port.common.counters.transmit_faults;
        let (lost, damaged) = (faults.dropped.get(), faults.corrupted.get());
        assert!(lost > 0 && damaged > 0);
        collect(port, (60 - lost - damaged) as usize);
        if port.common.address.is_ipv4() {
            let from = UdpSocket::bind((Ipv4Addr::new(127, 77, 0, 3), 0)).unwrap();
            send_packet(&from, port.common.address, 4711, &[9; 40], 0);
            collect(port, 1);
        }
        (lost, damaged)
    });
    for (own, (lost, damaged), packets) in captures {
        let (sent, received): (Vec<_>, Vec<_>) = packets.iter().partition(|it| hop_limit(it) == 9);
        assert_eq!(sent.len(), 60 - lost as usize);
        let wrong_ones = [&sent, &received].map(|direction| {
            direction
                .iter()
                .filter(|(ip, udp, body)| crc_of(ip, udp, body) != body[body.len() - 4..])
                .count() as u64
        });
        assert_eq!(wrong_ones, [damaged; 2]);
        let bodies = |direction: &[&Captured]| -> Vec<Vec<u8>> {
            direction.iter().map(|(.., body)| body.clone()).collect()
        };
        assert_eq!(bodies(&sent), bodies(&received[..sent.len()]));
        let mut ports = sent.iter().map(|(_, udp, _)| udp[..4].to_vec());
        assert!(ports.all(|it| it[0] >= 0xc0 && it[2..] == UDP_PORT.to_be_bytes()));
        if let IpAddr::V4(own) = own {
            let own = &own.octets()[..];
            for (place, (ip, ..)) in sent.iter().enumerate() {
                assert_eq!(ip[4..6], (place as u16).to_be_bytes());
                assert_eq!((ip[1], &ip[12..16], &ip[16..]), (0x68, own, own));
            }
            let (ip, ..) = received.last().unwrap();
            assert_eq!(ip[4..6], 4711_u16.to_be_bytes());
        }
    }
}

fn traffic_class((ip, ..): &Captured) -> u8 {
    if ip.len() == 20 { ip[1] } else { ip[0] << 4 | ip[1] >> 4 }
}

#[test]
fn marks_of_the_link_are_in_the_capture_and_seen() {
    let captures = captures("seed=3,mark=20%", |port| {
        let mut marked = 0;
        for (class, count) in [(0x6a, 60), (0x68, 40)] {
            send_to_itself(port, class, count);
            let mut left = count;
            wait_until("marked packets", SOON, || {
                left -= port.receiver.receive(
                    |_| true,
                    |arrival: crate::net::Arrival<'_>| marked += u64::from(arrival.is_marked()),
                );
                left == 0
            });
        }
        let tx = port.common.counters.transmit_faults.marked.get();
        let rx = port.common.counters.receive_faults.marked.get();
        assert!(tx > 0 && rx > 0, "{tx} {rx}");
        assert_eq!(marked, tx + rx);
        tx
    });
    for (_, tx, packets) in captures {
        let classes_with = |limit: u8| -> Vec<u8> {
            packets.iter().filter(|it| hop_limit(it) == limit).map(traffic_class).collect()
        };
        let sent = classes_with(9);
        let counts =
            [0x6b, 0x6a, 0x68].map(|class| sent.iter().filter(|it| **it == class).count() as u64);
        assert_eq!(counts, [tx, 60 - tx, 40]);
        // What marks at arrival is behind the capture.
        assert_eq!(classes_with(64), sent);
    }
}
