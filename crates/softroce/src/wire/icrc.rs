//! The invariant CRC at the end of every packet: a CRC-32 over all fields that no router changes (annex A17.3.3).
//! Variable fields count as all ones, and eight bytes of ones stand for InfiniBand's lower header.
//!
//! [`multiply`] and [`inverse_power`] are arithmetic with the CRC's polynomials: what a change of some bytes does to the CRC of all that follows. The CRC
//! is linear, so flipped bits move to its end by a multiplication with a power of x.

use std::net::{Ipv4Addr, Ipv6Addr};

/// The fields of the network and transport headers that the CRC covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcrcAddresses {
    /// IPv4: a header of 20 bytes, without options.
    V4 {
        source: Ipv4Addr,
        destination: Ipv4Addr,
        identification: u16,
        /// Flags and fragment offset; 0x4000 is "don't fragment".
        flags: u16,
    },
    /// IPv6: a header of 40 bytes, without extension headers.
    V6 { source: Ipv6Addr, destination: Ipv6Addr },
}

/// Bytes of ones before everything else.
const ONES: usize = 8;
/// Bytes of the longest network header and a UDP header.
const LONGEST: usize = 40 + 8;
const UDP_BYTES: usize = 8;
const UDP_PROTOCOL: u8 = 17;

/// Offset of the congestion bits in the base transport header; they are variable.
pub const CONGESTION_BYTE: usize = 4;
pub const ICRC_BYTES: usize = 4;
/// Bytes from the start of the IPv4 identification to the base transport header.
pub const BEHIND_IDENTIFICATION: usize = 16 + UDP_BYTES;

/// The CRC over everything below the base transport header; the packet's own bytes continue it. Packets of one flow
/// and length share it, except for the identification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcrcSeed(u32);

impl IcrcSeed {
    /// The seed of packets of `udp_payload_bytes`, counted from the base transport header to the end of the CRC.
    pub fn new(addresses: IcrcAddresses, source_port: u16, udp_payload_bytes: usize) -> IcrcSeed {
        let mut below = [0xff; ONES + LONGEST];
        let udp_bytes = UDP_BYTES + udp_payload_bytes;
        let length = headers_below(addresses, source_port, udp_bytes, &mut below);
        IcrcSeed(crc32fast::hash(&below[..length]))
    }

    /// The seed with these bits of the IPv4 identification flipped. The CRC is linear, so a flipped bit always flips
    /// the same bits of it.
    #[must_use]
    pub fn flip_identification(self, bits: u16) -> IcrcSeed {
        let [high, low] = bits.to_be_bytes().map(usize::from);
        IcrcSeed(self.0 ^ IDENTIFICATION_HIGH[high] ^ IDENTIFICATION_LOW[low])
    }

    /// Starts the CRC of a packet with its first bytes, which hold at least the base transport header.
    pub fn start(self, headers: &[u8]) -> Icrc {
        let congestion = headers.get(CONGESTION_BYTE).copied().unwrap_or(0xff);
        let seed = self.0 ^ CONGESTION[usize::from(congestion)];
        let mut crc = Icrc(crc32fast::Hasher::new_with_initial(seed));
        crc.update(headers);
        crc
    }

    /// The CRC of a packet whose bytes are contiguous, from the base transport header to the end of the padding.
    pub fn over(self, packet: &[u8]) -> u32 {
        self.start(packet).finish()
    }
}

pub struct Icrc(crc32fast::Hasher);

impl Icrc {
    /// Adds the rest, including padding.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The CRC; little-endian on the wire.
    pub fn finish(self) -> u32 {
        self.0.finalize()
    }
}

/// What another IPv4 identification changes in the CRC of packets of one length.
#[derive(Clone, Copy, Debug)]
pub struct IdentificationShift(u32);

impl IdentificationShift {
    /// For packets of which the CRC covers `bytes` from the base transport header on; below 2^16.
    pub fn over(bytes: usize) -> IdentificationShift {
        IdentificationShift(power(bytes + BEHIND_IDENTIFICATION))
    }

    /// The bits of the CRC that flip with these bits of the identification.
    pub fn change(self, bits: u16) -> u32 {
        // The identification's first byte is the lowest.
        multiply(bits.swap_bytes().into(), self.0)
    }
}

/// The seed bits that each value of the identification's high byte flips.
static IDENTIFICATION_HIGH: [u32; 256] = products(0, power(BEHIND_IDENTIFICATION));
/// The seed bits that each value of its low byte flips.
static IDENTIFICATION_LOW: [u32; 256] = products(0, power(BEHIND_IDENTIFICATION - 1));

/// The seed bits that make the CRC of a packet with each value of the congestion byte that of one with ones there.
/// So the CRC needs no copy of the packet, and no change of it.
static CONGESTION: [u32; 256] = products(0xff, inverse_power(CONGESTION_BYTE));

/// What each value of a byte, with `flipped` bits, is times `factor`.
const fn products(flipped: u32, factor: u32) -> [u32; 256] {
    let mut products = [0; 256];
    let mut value = 0;
    while value < 256 {
        products[value] = multiply(value as u32 ^ flipped, factor);
        value += 1;
    }
    products
}

/// The CRC of a packet, from the base transport header to the end of the padding, as its last four bytes on the wire.
pub fn icrc(addresses: IcrcAddresses, source_port: u16, packet: &[u8]) -> [u8; 4] {
    let seed = IcrcSeed::new(addresses, source_port, packet.len() + ICRC_BYTES);
    seed.over(packet).to_le_bytes()
}

/// Eight bytes of ones, then network and UDP headers with ones in variable fields; returns their length.
fn headers_below(
    addresses: IcrcAddresses,
    source_port: u16,
    udp_bytes: usize,
    into: &mut [u8; ONES + LONGEST],
) -> usize {
    let length = udp_bytes as u16;
    let mut at = ONES;
    match addresses {
        IcrcAddresses::V4 { source, destination, identification, flags } => {
            // Version and length; type of service is variable.
            append(into, &mut at, &[0x45, 0xff]);
            append(into, &mut at, &(length + 20).to_be_bytes());
            append(into, &mut at, &identification.to_be_bytes());
            append(into, &mut at, &flags.to_be_bytes());
            // Time to live and checksum are variable.
            append(into, &mut at, &[0xff, UDP_PROTOCOL, 0xff, 0xff]);
            append(into, &mut at, &source.octets());
            append(into, &mut at, &destination.octets());
        }
        IcrcAddresses::V6 { source, destination } => {
            // Version 6; traffic class and flow label are variable.
            append(into, &mut at, &[0x6f, 0xff, 0xff, 0xff]);
            append(into, &mut at, &length.to_be_bytes());
            // Hop limit is variable.
            append(into, &mut at, &[UDP_PROTOCOL, 0xff]);
            append(into, &mut at, &source.octets());
            append(into, &mut at, &destination.octets());
        }
    }
    append(into, &mut at, &source_port.to_be_bytes());
    append(into, &mut at, &super::UDP_PORT.to_be_bytes());
    append(into, &mut at, &length.to_be_bytes());
    // The checksum is variable.
    append(into, &mut at, &[0xff, 0xff]);
    at
}

fn append(into: &mut [u8; ONES + LONGEST], at: &mut usize, bytes: &[u8]) {
    into[*at..][..bytes.len()].copy_from_slice(bytes);
    *at += bytes.len();
}

/// The generator, with x^31 in the lowest bit.
const POLYNOMIAL: u32 = 0xedb8_8320;
/// The polynomial 1: the highest bit stands for x^0.
pub const ONE: u32 = 1 << 31;

/// x^8, x^16, x^32 …: one for each bit of a byte count.
const POWERS: [u32; 17] = squares(ONE >> 8);
/// x^-8, x^-16, x^-32 …: the inverses of `POWERS`.
const INVERSES: [u32; 17] = {
    let mut first = ONE;
    let mut step = 0;
    while step < 8 {
        first = divide_by_x(first);
        step += 1;
    }
    squares(first)
};

/// x^8n modulo the generator; `bytes` below 2^17.
pub const fn power(bytes: usize) -> u32 {
    product(&POWERS, bytes)
}

/// x^-8n modulo the generator; `bytes` below 2^17.
pub const fn inverse_power(bytes: usize) -> u32 {
    product(&INVERSES, bytes)
}

/// a · b modulo the generator.
pub const fn multiply(a: u32, b: u32) -> u32 {
    let mut product = 0;
    let mut multiple = b;
    let mut bit = 0;
    while bit < 32 {
        product ^= multiple & (a << bit >> 31).wrapping_neg();
        multiple = multiple >> 1 ^ POLYNOMIAL & (multiple & 1).wrapping_neg();
        bit += 1;
    }
    product
}

/// The product of the powers whose bits are set in `bytes`.
const fn product(powers: &[u32; 17], bytes: usize) -> u32 {
    let mut product = ONE;
    let mut bit = 0;
    while bit < powers.len() {
        if bytes >> bit & 1 == 1 {
            product = multiply(product, powers[bit]);
        }
        bit += 1;
    }
    product
}

/// `first` and the square of each before.
const fn squares(first: u32) -> [u32; 17] {
    let mut powers = [first; 17];
    let mut bit = 1;
    while bit < powers.len() {
        powers[bit] = multiply(powers[bit - 1], powers[bit - 1]);
        bit += 1;
    }
    powers
}

/// a / x modulo the generator.
const fn divide_by_x(a: u32) -> u32 {
    // The generator's x^0 term makes any remainder divisible.
    match a & ONE {
        0 => a << 1,
        _ => (a ^ POLYNOMIAL) << 1 | 1,
    }
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

    /// The CRC bit by bit over one buffer, by its definition.
    fn by_definition(bytes: &[u8]) -> [u8; 4] {
        let mut crc = u32::MAX;
        for &byte in bytes {
            crc ^= u32::from(byte);
            for _ in 0..8 {
                crc = (crc >> 1) ^ ((crc & 1) * 0xedb8_8320);
            }
        }
        (!crc).to_le_bytes()
    }

    #[test]
    fn variant_fields_are_ones() {
        let packet = [0x04, 0x40, 0xff, 0xff, 0x12, 0, 0, 0x11, 0x80, 0, 0, 1, 2, 3, 4, 5];
        let mut covered = vec![0xff; 8];
        covered.extend([0x45, 0xff, 0, 48, 0, 7, 0x40, 0, 0xff, 17, 0xff, 0xff]);
        covered.extend([192, 0, 2, 1, 192, 0, 2, 2]);
        covered.extend([0xc0, 0x01, 0x12, 0xb7, 0, 28, 0xff, 0xff]);
        covered.extend([0x04, 0x40, 0xff, 0xff, 0xff]);
        covered.extend(&packet[5..]);
        assert_eq!(icrc(HOSTS, 0xc001, &packet), by_definition(&covered));
    }

    proptest! {
        #[test]
        fn identifications_are_flipped_in(identification: u16, packet in proptest::collection::vec(any::<u8>(), 12..300)) {
            let IcrcAddresses::V4 { source, destination, flags, .. } = HOSTS else { unreachable!() };
            let other = IcrcAddresses::V4 { source, destination, identification, flags };
            let length = packet.len() + ICRC_BYTES;
            let seed = IcrcSeed::new(other, 9, length);
            prop_assert_eq!(seed, IcrcSeed::new(HOSTS, 9, length).flip_identification(identification ^ 7));
            let whole = seed.over(&packet);
            let mut pieces = seed.start(&packet[..12]);
            pieces.update(&packet[12..]);
            prop_assert_eq!(whole, pieces.finish());
            let seventh = IcrcSeed::new(HOSTS, 9, length).over(&packet);
            prop_assert_eq!(whole ^ seventh, IdentificationShift::over(packet.len()).change(identification ^ 7));
        }

        #[test]
        fn a_flipped_bit_shows(payload in proptest::collection::vec(any::<u8>(), 1..600), at: usize, bit in 0..8u32) {
            let mut flipped = [&[0; 12], &payload[..]].concat();
            let whole = icrc(HOSTS, 5, &flipped);
            flipped[12 + at % payload.len()] ^= 1 << bit;
            prop_assert_ne!(whole, icrc(HOSTS, 5, &flipped));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn powers_are_what_steps_make_and_have_inverses(a: u32, bytes in 0..4000_usize) {
            let mut stepped = ONE;
            for _ in 0..bytes * 8 {
                stepped = stepped >> 1 ^ POLYNOMIAL & (stepped & 1).wrapping_neg();
            }
            prop_assert_eq!(power(bytes), stepped);
            prop_assert_eq!(multiply(multiply(a, stepped), inverse_power(bytes)), a);
        }
    }
}
