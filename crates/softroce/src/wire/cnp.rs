//! The congestion notification packet, CNP (annex A17.9.3): a base transport header with the bit BECN, and 16 bytes of
//! zero. A receiver sends it to the sender of a packet that came through congestion.

use super::{Bth, CONGESTION_BYTE, Psn};

/// Bytes after the base transport header.
const RESERVED_BYTES: usize = 16;
/// Backward explicit congestion notification, in the byte of the congestion bits.
const BECN: u8 = 0x40;
/// The byte of the flags in the base transport header, and the migration bit in it, which a CNP does not have.
const FLAGS_BYTE: usize = 1;
const MIGRATION: u8 = 0x40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cnp {
    /// The QP whose packets met the congestion, 24 bits.
    pub destination_qpn: u32,
    pub pkey: u16,
}

impl Cnp {
    /// The byte of the base transport header's opcode.
    pub const OPCODE_BYTE: u8 = 0x81;
    /// Bytes on the wire, without the CRC.
    pub const BYTES: usize = Bth::BYTES + RESERVED_BYTES;

    /// Its bytes on the wire, without the CRC.
    pub fn to_bytes(self) -> [u8; Cnp::BYTES] {
        let bth = Bth {
            opcode_byte: Cnp::OPCODE_BYTE,
            solicited: false,
            pad_bytes: 0,
            pkey: self.pkey,
            destination_qpn: self.destination_qpn,
            ack_request: false,
            psn: Psn::ZERO,
        };
        let mut bytes = [0; Cnp::BYTES];
        bytes[..Bth::BYTES].copy_from_slice(&bth.to_bytes());
        bytes[FLAGS_BYTE] &= !MIGRATION;
        bytes[CONGESTION_BYTE] = BECN;
        bytes
    }

    /// Parses a packet without its CRC; `None` for another packet, and for one of another length. What is reserved is
    /// not looked at.
    pub fn parse(body: &[u8]) -> Option<Cnp> {
        let bth = Bth::from_bytes(*body.first_chunk()?)?;
        let is_cnp = bth.opcode_byte == Cnp::OPCODE_BYTE && body.len() == Cnp::BYTES;
        is_cnp.then_some(Cnp { destination_qpn: bth.destination_qpn, pkey: bth.pkey })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_packets_are_none() {
        let cnp = Cnp { destination_qpn: 0xd2, pkey: 0xffff };
        let bytes = cnp.to_bytes();
        assert_eq!(Cnp::parse(&bytes), Some(cnp));
        for length in 0..28 {
            assert_eq!(Cnp::parse(&bytes[..length]), None);
        }
        // Another operation, and another version.
        for (at, byte) in [(0, 0x80), (1, 1)] {
            let mut other = bytes;
            other[at] = byte;
            assert_eq!(Cnp::parse(&other), None);
        }
        assert_eq!(Cnp::parse(&[&bytes[..], &[0; 4]].concat()), None);
    }
}
