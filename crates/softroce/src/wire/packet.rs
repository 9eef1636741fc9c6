//! A whole packet: base header, the extended headers of its opcode, payload, padding and CRC.
//!
//! [`Cnp`]: the congestion notification packet, CNP (annex A17.9.3): a base transport header with the bit BECN, and
//! 16 bytes of zero. A receiver sends it to the sender of a packet that came through congestion.

use crate::wire::headers::{Aeth, AtomicEth, Bth, Deth, Opcode, Psn, Reth, Service};
use crate::wire::icrc::{CONGESTION_BYTE, ICRC_BYTES};

/// The extended headers of a packet's opcode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extended {
    /// The Q_Key and the sending QP of a UD packet.
    pub deth: Option<Deth>,
    /// WRITE and READ requests: address, key and length.
    pub reth: Option<Reth>,
    /// The address, key and operands of an atomic request.
    pub atomic: Option<AtomicEth>,
    /// Of acknowledgements and responses: the outcome, and how many messages were completed.
    pub aeth: Option<Aeth>,
    /// The memory's value before an atomic.
    pub atomic_answer: Option<u64>,
    pub immediate: Option<u32>,
    /// The key that a SEND invalidates at the receiver.
    pub invalidated: Option<u32>,
}

/// A packet with a borrowed payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    pub service: Service,
    pub opcode: Opcode,
    /// Whether it asks for an event at the receiver.
    pub solicited: bool,
    pub pkey: u16,
    pub destination_qpn: u32,
    /// Whether it asks for an acknowledgement.
    pub ack_request: bool,
    pub psn: Psn,
    pub extended: Extended,
    /// The payload, without the padding to a multiple of 4 bytes.
    pub payload: &'a [u8],
}

/// The bytes are no valid packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Shorter than its headers, padding and CRC.
    #[error("{bytes} bytes are too few for the packet's headers")]
    Short { bytes: usize },
    /// A transport version other than 0.
    #[error("the transport header has an unknown version")]
    Version,
    /// Not an operation that this device supports.
    #[error("opcode {0:#04x} is unknown")]
    Opcode(u8),
}

/// Reads headers from the front.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }
}

/// Writes headers one behind the other.
struct Writer<'a>(&'a mut [u8]);

impl Writer<'_> {
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        let room = std::mem::take(&mut self.0);
        if let Some((to, rest)) = room.split_first_chunk_mut() {
            *to = bytes;
            self.0 = rest;
        }
    }

    /// A header that the opcode has or has not; zeroes if the packet lacks it.
    fn put_if<const N: usize, T>(
        &mut self,
        is_there: bool,
        header: Option<T>,
        to_bytes: impl FnOnce(T) -> [u8; N],
    ) {
        if is_there {
            self.put(header.map_or([0; N], to_bytes));
        }
    }
}

impl<'a> Packet<'a> {
    /// Bytes of the longest headers: an atomic's.
    pub const HEADER_ROOM: usize = Bth::BYTES + AtomicEth::BYTES;

    /// Parses a UDP payload. Does not check the CRC, which needs the lower headers (see [`super::icrc`]).
    ///
    /// # Errors
    /// Why the bytes are no packet.
    pub fn parse(bytes: &'a [u8]) -> Result<Packet<'a>, ParseError> {
        let short = ParseError::Short { bytes: bytes.len() };
        let (body, _) = bytes.split_last_chunk::<ICRC_BYTES>().ok_or(short)?;
        Packet::parse_body(body)
    }

    /// As [`Packet::parse`], for bytes without the CRC.
    ///
    /// # Errors
    /// Why the bytes are no packet.
    pub fn parse_body(body: &'a [u8]) -> Result<Packet<'a>, ParseError> {
        let short = ParseError::Short { bytes: body.len() };
        let mut reader = Reader(body);
        let bth = Bth::from_bytes(reader.take().ok_or(short)?).ok_or(ParseError::Version)?;
        let (service, opcode) =
            Opcode::parse(bth.opcode_byte).ok_or(ParseError::Opcode(bth.opcode_byte))?;
        let mut extended = Extended::default();
        if service == Service::Ud {
            extended.deth = Some(Deth::from_bytes(reader.take().ok_or(short)?));
        }
        if opcode.has_reth() {
            extended.reth = Some(Reth::from_bytes(reader.take().ok_or(short)?));
        }
        if opcode.has_atomic_eth() {
            extended.atomic = Some(AtomicEth::from_bytes(reader.take().ok_or(short)?));
        }
        if opcode.has_aeth() {
            extended.aeth = Some(Aeth::from_bytes(reader.take().ok_or(short)?));
        }
        if opcode.has_atomic_ack() {
            extended.atomic_answer = Some(u64::from_be_bytes(reader.take().ok_or(short)?));
        }
        if opcode.has_immediate() {
            extended.immediate = Some(u32::from_be_bytes(reader.take().ok_or(short)?));
        }
        if opcode.has_ieth() {
            extended.invalidated = Some(u32::from_be_bytes(reader.take().ok_or(short)?));
        }
        let payload = reader
            .0
            .len()
            .checked_sub(bth.pad_bytes.into())
            .and_then(|end| reader.0.get(..end))
            .ok_or(short)?;
        Ok(Packet {
            service,
            opcode,
            solicited: bth.solicited,
            pkey: bth.pkey,
            destination_qpn: bth.destination_qpn,
            ack_request: bth.ack_request,
            psn: bth.psn,
            extended,
            payload,
        })
    }

    /// Bytes that pad the payload to a multiple of 4.
    pub fn pad_bytes(&self) -> u8 {
        pad_bytes(self.payload.len())
    }

    /// Writes the headers to the start of `into`; returns their length. An extended header that the opcode has and
    /// the packet lacks is written as zeroes.
    pub fn headers(&self, into: &mut [u8; Packet::HEADER_ROOM]) -> usize {
        self.headers_for(self.payload.len(), into)
    }

    /// As [`Packet::headers`], for a payload of this length that is elsewhere.
    pub fn headers_for(&self, payload_bytes: usize, into: &mut [u8; Packet::HEADER_ROOM]) -> usize {
        let mut writer = Writer(into);
        let bth = Bth {
            opcode_byte: self.opcode.byte(self.service),
            solicited: self.solicited,
            pad_bytes: pad_bytes(payload_bytes),
            pkey: self.pkey,
            destination_qpn: self.destination_qpn,
            ack_request: self.ack_request,
            psn: self.psn,
        };
        writer.put(bth.to_bytes());
        let (opcode, extended) = (self.opcode, &self.extended);
        let is_datagram = self.service == Service::Ud;
        writer.put_if(is_datagram, extended.deth, Deth::to_bytes);
        writer.put_if(opcode.has_reth(), extended.reth, Reth::to_bytes);
        writer.put_if(opcode.has_atomic_eth(), extended.atomic, AtomicEth::to_bytes);
        writer.put_if(opcode.has_aeth(), extended.aeth, Aeth::to_bytes);
        let answer = extended.atomic_answer;
        writer.put_if(opcode.has_atomic_ack(), answer, u64::to_be_bytes);
        writer.put_if(opcode.has_immediate(), extended.immediate, u32::to_be_bytes);
        writer.put_if(opcode.has_ieth(), extended.invalidated, u32::to_be_bytes);
        Packet::HEADER_ROOM - writer.0.len()
    }
}

/// Bytes that pad a payload of this length to a multiple of 4.
fn pad_bytes(payload_bytes: usize) -> u8 {
    (payload_bytes.wrapping_neg() & 3) as u8
}

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
