//! Captures read back: what is in them was on the wire.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::path::Path;

use super::super::capture::file_of;
use super::super::open;
use super::{Parts, SOON, addressed, collect, foreign, parts, send, turn_on_ipv6_loopback};
use crate::wire::{IcrcAddresses, UDP_PORT, icrc};
use testing::wait::wait_until;

/// A packet of a capture: the IP header, the UDP header and the rest.
type Captured = (Vec<u8>, Vec<u8>, Vec<u8>);

/// The packets of a capture.
fn captured(path: &Path) -> Vec<Captured> {
    let bytes = std::fs::read(path).unwrap();
    let (header, mut records) = bytes.split_at(24);
    let field = |bytes: &[u8], at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!((field(header, 0), field(header, 20)), (0xa1b2_3c4d, 101));
    let mut packets = Vec::new();
    let mut last_s = 0;
    while !records.is_empty() {
        let (header, rest) = records.split_at(16);
        assert!(field(header, 0) >= last_s && field(header, 4) < 1_000_000_000);
        last_s = field(header, 0);
        let length = field(header, 8) as usize;
        assert_eq!(field(header, 12) as usize, length);
        let (packet, rest) = rest.split_at(length);
        let (ip, udp) = packet.split_at(if packet[0] == 0x45 { 20 } else { 40 });
        let (udp, body) = udp.split_at(8);
        assert_eq!(
            usize::from(u16::from_be_bytes([udp[4], udp[5]])),
            8 + body.len()
        );
        packets.push((ip.to_vec(), udp.to_vec(), body.to_vec()));
        records = rest;
    }
    packets
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
        _ => IcrcAddresses::V6 {
            source: ip6(8),
            destination: ip6(24),
        },
    };
    let port = u16::from_be_bytes([udp[0], udp[1]]);
    icrc(addresses, port, &body[..12], &body[12..body.len() - 4])
}

#[test]
fn a_capture_has_the_headers_that_were_on_the_wire() {
    let _turn = turn_on_ipv6_loopback();
    let folder = std::env::temp_dir().join(format!("softroce-capture-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for address in [None, Some(IpAddr::V6(Ipv6Addr::LOCALHOST))] {
        let faults = "seed=3,tx.drop=20%,tx.corrupt=5%".parse().unwrap();
        let mut port = open(address, &faults, None).unwrap();
        port.capture(&folder.join("a.pcap")).unwrap();
        let flow = port.transmitter.flow(port.address, 7, 0x68, 9);
        let packets: Vec<Parts> = (0..60)
            .map(|salt| addressed(&port, parts(12, &[700], salt)))
            .collect();
        send(&port.transmitter, &flow, &packets);
        let faults = &port.counters.transmit_faults;
        let (lost, damaged) = (faults.dropped.get(), faults.corrupted.get());
        assert!(lost > 0 && damaged > 0);
        let whole_ones = (60 - lost - damaged) as usize;
        collect(&mut port, whole_ones);
        if port.address.is_ipv4() {
            let from = UdpSocket::bind((Ipv4Addr::new(127, 77, 0, 3), 0)).unwrap();
            foreign(&from, &port, 4711, &[9; 40], 0);
            collect(&mut port, 1);
        }
        let own = port.address;
        let slot = port.membership.as_ref().map(|member| member.slot);
        drop(port);
        let all = captured(&file_of(&folder.join("a.pcap"), own, slot));
        let (sent, received): (Vec<_>, Vec<_>) = all.iter().partition(|(ip, ..)| match ip.len() {
            20 => ip[8] == 9,
            _ => ip[7] == 9,
        });
        assert_eq!(sent.len(), 60 - lost as usize);
        let wrong = |(ip, udp, body): &&&Captured| crc_of(ip, udp, body) != body[body.len() - 4..];
        assert_eq!(sent.iter().filter(wrong).count() as u64, damaged);
        assert_eq!(received.iter().filter(wrong).count() as u64, damaged);
        let bodies = |all: &[&Captured]| -> Vec<Vec<u8>> {
            all.iter().map(|(.., body)| body.clone()).collect()
        };
        assert_eq!(bodies(&sent), bodies(&received[..sent.len()]));
        let mut ports = sent.iter().map(|(_, udp, _)| udp[..4].to_vec());
        assert!(ports.all(|it| it[0] >= 0xc0 && it[2..] == UDP_PORT.to_be_bytes()));
        if let IpAddr::V4(own) = own {
            for (place, (ip, ..)) in sent.iter().enumerate() {
                assert_eq!(ip[4..6], (place as u16).to_be_bytes());
                assert_eq!(
                    (ip[1], &ip[12..16], &ip[16..]),
                    (0x68, &own.octets()[..], &own.octets()[..])
                );
            }
            let (ip, ..) = received.last().unwrap();
            assert_eq!(ip[4..6], 4711_u16.to_be_bytes());
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// The type of service or traffic class in an IP header.
fn traffic_class(ip: &[u8]) -> u8 {
    match ip.len() {
        20 => ip[1],
        _ => ip[0] << 4 | ip[1] >> 4,
    }
}

#[test]
fn marks_of_the_link_are_in_the_capture_and_seen() {
    let folder = std::env::temp_dir().join(format!("softroce-marks-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for address in [None, Some(IpAddr::V6(Ipv6Addr::LOCALHOST))] {
        let mut port = open(address, &"seed=3,mark=20%".parse().unwrap(), None).unwrap();
        port.capture(&folder.join("a.pcap")).unwrap();
        let mut marked = 0;
        for (class, packets) in [(0x6a, 60), (0x68, 40)] {
            let flow = port.transmitter.flow(port.address, 7, class, 9);
            let packets: Vec<Parts> = (0..packets)
                .map(|salt| addressed(&port, parts(12, &[700], salt)))
                .collect();
            send(&port.transmitter, &flow, &packets);
            let mut left = packets.len();
            wait_until("marked packets", SOON, || {
                let each = |it: crate::net::Arrival<'_>| marked += u64::from(it.is_marked);
                left -= port.receiver.receive(|_| true, each);
                left == 0
            });
        }
        let tx = port.counters.transmit_faults.marked.get();
        let rx = port.counters.receive_faults.marked.get();
        assert!(tx > 0 && rx > 0, "{tx} {rx}");
        assert_eq!(marked, tx + rx);
        let own = port.address;
        let slot = port.membership.as_ref().map(|member| member.slot);
        drop(port);
        let all = captured(&file_of(&folder.join("a.pcap"), own, slot));
        let classes_with = |hop_limit: u8| -> Vec<u8> {
            let of_limit =
                |(ip, ..): &&Captured| ip[if ip.len() == 20 { 8 } else { 7 }] == hop_limit;
            let headers = all.iter().filter(of_limit);
            headers.map(|(ip, ..)| traffic_class(ip)).collect()
        };
        let sent = classes_with(9);
        let of_class = |class| sent.iter().filter(|it| **it == class).count() as u64;
        let counts = [0x6b, 0x6a, 0x68].map(of_class);
        assert_eq!(counts, [tx, 60 - tx, 40]);
        // What marks at arrival is behind the capture.
        assert_eq!(classes_with(64), sent);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
