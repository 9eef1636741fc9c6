//! The invariant CRC at the end of every packet: a CRC-32 over all that no router changes (annex A17.3.3).
//! Fields that one may change count as all ones, and eight bytes of ones stand for the header that
//! InfiniBand has below.

use std::net::{Ipv4Addr, Ipv6Addr};

/// What of the network and transport headers below goes into the CRC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcrcAddresses {
    /// IPv4 without options.
    V4 {
        /// Source address.
        source: Ipv4Addr,
        /// Destination address.
        destination: Ipv4Addr,
        /// Identification field.
        identification: u16,
        /// Flags and fragment offset; 0x4000 is "don't fragment".
        flags: u16,
    },
    /// IPv6 without extension headers.
    V6 {
        /// Source address.
        source: Ipv6Addr,
        /// Destination address.
        destination: Ipv6Addr,
    },
}

/// Bytes of the longest network header and a UDP header.
const LONGEST: usize = 40 + 8;
const UDP_BYTES: usize = 8;
const UDP_PROTOCOL: u8 = 17;

/// The CRC of a packet, as its last four bytes on the wire. `transport` are its headers from the base
/// transport header on, `payload` what follows, padding included; the CRC itself is in neither.
pub fn icrc(
    addresses: IcrcAddresses,
    source_port: u16,
    transport: &[u8],
    payload: &[u8],
) -> [u8; 4] {
    let udp_bytes = UDP_BYTES + transport.len() + payload.len() + 4;
    let mut crc = crc32fast::Hasher::new();
    crc.update(&[0xff; 8]);
    let mut below = [0; LONGEST];
    let length = headers_below(addresses, source_port, udp_bytes, &mut below);
    crc.update(below.get(..length).unwrap_or_default());
    // Byte 4 of the base transport header holds the congestion bits.
    let (before, rest) = transport.split_at(transport.len().min(4));
    crc.update(before);
    if let Some(after) = rest.get(1..) {
        crc.update(&[0xff]);
        crc.update(after);
    }
    crc.update(payload);
    crc.finalize().to_le_bytes()
}

/// Network and UDP headers with their variant fields as ones; returns their length.
fn headers_below(
    addresses: IcrcAddresses,
    source_port: u16,
    udp_bytes: usize,
    into: &mut [u8; LONGEST],
) -> usize {
    let length = udp_bytes as u16;
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        for (to, from) in into.iter_mut().skip(at).zip(bytes) {
            *to = *from;
        }
        at += bytes.len();
    };
    match addresses {
        IcrcAddresses::V4 {
            source,
            destination,
            identification,
            flags,
        } => {
            // Version and length; type of service is variant.
            put(&[0x45, 0xff]);
            put(&(length + 20).to_be_bytes());
            put(&identification.to_be_bytes());
            put(&flags.to_be_bytes());
            // Time to live and checksum are variant.
            put(&[0xff, UDP_PROTOCOL, 0xff, 0xff]);
            put(&source.octets());
            put(&destination.octets());
        }
        IcrcAddresses::V6 {
            source,
            destination,
        } => {
            // Version 6; traffic class and flow label are variant.
            put(&[0x6f, 0xff, 0xff, 0xff]);
            put(&length.to_be_bytes());
            // Hop limit is variant.
            put(&[UDP_PROTOCOL, 0xff]);
            put(&source.octets());
            put(&destination.octets());
        }
    }
    put(&source_port.to_be_bytes());
    put(&super::UDP_PORT.to_be_bytes());
    put(&length.to_be_bytes());
    // The checksum is variant.
    put(&[0xff, 0xff]);
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOSTS: IcrcAddresses = IcrcAddresses::V4 {
        source: Ipv4Addr::new(192, 0, 2, 1),
        destination: Ipv4Addr::new(192, 0, 2, 2),
        identification: 7,
        flags: 0x4000,
    };

    /// The CRC bit by bit, over one buffer: the definition, without the shortcuts.
    fn by_definition(bytes: &[u8]) -> [u8; 4] {
        let mut crc = u32::MAX;
        for &byte in bytes {
            crc ^= u32::from(byte);
            for _ in 0..8 {
                crc = if crc & 1 == 1 {
                    crc >> 1 ^ 0xedb8_8320
                } else {
                    crc >> 1
                };
            }
        }
        (!crc).to_le_bytes()
    }

    #[test]
    fn variant_fields_are_ones() {
        let transport = [0x04, 0x40, 0xff, 0xff, 0x12, 0, 0, 0x11, 0x80, 0, 0, 1];
        let payload = [1, 2, 3, 4];
        let mut all = vec![0xff; 8];
        all.extend([0x45, 0xff, 0, 48, 0, 7, 0x40, 0, 0xff, 17, 0xff, 0xff]);
        all.extend([192, 0, 2, 1, 192, 0, 2, 2]);
        all.extend([0xc0, 0x01, 0x12, 0xb7, 0, 28, 0xff, 0xff]);
        all.extend([0x04, 0x40, 0xff, 0xff, 0xff, 0, 0, 0x11, 0x80, 0, 0, 1]);
        all.extend(payload);
        assert_eq!(
            icrc(HOSTS, 0xc001, &transport, &payload),
            by_definition(&all)
        );
    }

    proptest! {
        #[test]
        fn a_flipped_bit_shows(payload in proptest::collection::vec(any::<u8>(), 1..600), at: usize, bit in 0..8u32) {
            let transport = [0; 12];
            let whole = icrc(HOSTS, 5, &transport, &payload);
            let mut flipped = payload.clone();
            let at = at % payload.len();
            flipped[at] ^= 1 << bit;
            prop_assert_ne!(whole, icrc(HOSTS, 5, &transport, &flipped));
        }

        #[test]
        fn what_routers_change_does_not(ecn: u8) {
            let mut transport = [9; 12];
            let before = icrc(HOSTS, 5, &transport, &[]);
            transport[4] = ecn;
            prop_assert_eq!(before, icrc(HOSTS, 5, &transport, &[]));
        }
    }
}
