//! The headers and their bytes (InfiniBand specification 9.2 to 9.3). All numbers are big-endian.

use std::array::from_fn;

use super::Psn;

/// Base transport header, 12 bytes, in every packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bth {
    pub opcode_byte: u8,
    /// Whether the sender asks for an event at the receiver (bit SE).
    pub solicited: bool,
    /// Bytes added to the payload to make it a multiple of 4, 0 to 3.
    pub pad_bytes: u8,
    pub pkey: u16,
    /// The destination QP, 24 bits.
    pub destination_qpn: u32,
    /// Whether the sender asks for an acknowledgement.
    pub ack_request: bool,
    pub psn: Psn,
}

/// RDMA extended transport header, 16 bytes: the target of a WRITE or the source of a READ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reth {
    pub address: u64,
    pub rkey: u32,
    /// Length of the whole message, in bytes.
    pub length_bytes: u32,
}

/// ACK extended transport header, 4 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aeth {
    pub syndrome: Syndrome,
    /// Message sequence number, 24 bits: requests completed at the responder.
    pub msn: u32,
}

/// The meaning of an acknowledgement (specification 9.7.5.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syndrome {
    /// Success; the five-bit credit code, 31 if credits are not counted.
    Ack {
        credits: u8,
    },
    /// The receiver was not ready; the five-bit timer code gives the pause before the retry.
    RnrNak {
        /// Timer code (table 45).
        timer: u8,
    },
    Nak(NakCode),
    /// A code reserved by the specification.
    Reserved(u8),
}

/// Why a request was refused (table 58).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)] // each is the specification's name
pub enum NakCode {
    PsnSequenceError = 0,
    InvalidRequest = 1,
    RemoteAccessError = 2,
    RemoteOperationalError = 3,
    InvalidRdRequest = 4,
}

/// Atomic extended transport header, 28 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicEth {
    pub address: u64,
    pub rkey: u32,
    /// The value to swap in or add.
    pub swap_or_add: u64,
    /// The value to compare with.
    pub compare: u64,
}

/// Datagram extended transport header, 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deth {
    pub qkey: u32,
    /// The source QP, 24 bits.
    pub source_qpn: u32,
}

const LOW_24: u32 = 0x00ff_ffff;

impl Bth {
    pub const BYTES: usize = 12;
    /// Where the 24 bits of the destination QP begin.
    pub const DESTINATION_QPN_AT: usize = 5;

    /// Its bytes on the wire. Transport version 0; MigReq is set, as for connections that never migrate.
    pub fn to_bytes(self) -> [u8; Bth::BYTES] {
        let flags = u32::from(self.solicited) << 7 | 0x40 | u32::from(self.pad_bytes & 3) << 4;
        let first = u32::from(self.opcode_byte) << 24 | flags << 16 | u32::from(self.pkey);
        let second = self.destination_qpn & LOW_24;
        let third = u32::from(self.ack_request) << 31 | self.psn.value();
        let words = u128::from(first) << 64 | u128::from(second) << 32 | u128::from(third);
        let [_, _, _, _, bytes @ ..] = words.to_be_bytes();
        bytes
    }

    /// The destination QP of a header that is not parsed yet.
    pub fn destination_qpn_of(bytes: &[u8; Bth::BYTES]) -> u32 {
        let [_, _, _, _, _, q2, q1, q0, ..] = *bytes;
        u32::from_be_bytes([0, q2, q1, q0])
    }

    /// Parses the bytes; `None` for another transport version.
    pub fn from_bytes(bytes: [u8; Bth::BYTES]) -> Option<Bth> {
        let [opcode_byte, flags, k1, k0, _, q2, q1, q0, ack, p2, p1, p0] = bytes;
        (flags & 0x0f == 0).then(|| Bth {
            opcode_byte,
            solicited: flags & 0x80 != 0,
            pad_bytes: flags >> 4 & 3,
            pkey: u16::from_be_bytes([k1, k0]),
            destination_qpn: u32::from_be_bytes([0, q2, q1, q0]),
            ack_request: ack & 0x80 != 0,
            psn: Psn::new(u32::from_be_bytes([0, p2, p1, p0])),
        })
    }
}

impl Reth {
    pub const BYTES: usize = 16;

    /// Its bytes on the wire.
    pub fn to_bytes(self) -> [u8; Reth::BYTES] {
        let key_and_length = u64::from(self.rkey) << 32 | u64::from(self.length_bytes);
        (u128::from(self.address) << 64 | u128::from(key_and_length)).to_be_bytes()
    }

    pub fn from_bytes(bytes: [u8; Reth::BYTES]) -> Reth {
        let words = u128::from_be_bytes(bytes);
        Reth {
            address: (words >> 64) as u64,
            rkey: (words >> 32) as u32,
            length_bytes: words as u32,
        }
    }
}

impl Syndrome {
    /// Its byte on the wire.
    pub fn byte(self) -> u8 {
        match self {
            Syndrome::Ack { credits } => credits & 0x1f,
            Syndrome::RnrNak { timer } => 0x20 | timer & 0x1f,
            Syndrome::Nak(code) => 0x60 | code as u8,
            Syndrome::Reserved(byte) => byte,
        }
    }

    pub fn parse(byte: u8) -> Syndrome {
        let low = byte & 0x1f;
        match (byte >> 5, low) {
            (0, credits) => Syndrome::Ack { credits },
            (1, timer) => Syndrome::RnrNak { timer },
            (3, 0) => Syndrome::Nak(NakCode::PsnSequenceError),
            (3, 1) => Syndrome::Nak(NakCode::InvalidRequest),
            (3, 2) => Syndrome::Nak(NakCode::RemoteAccessError),
            (3, 3) => Syndrome::Nak(NakCode::RemoteOperationalError),
            (3, 4) => Syndrome::Nak(NakCode::InvalidRdRequest),
            _ => Syndrome::Reserved(byte),
        }
    }
}

impl Aeth {
    pub const BYTES: usize = 4;

    /// Its bytes on the wire.
    pub fn to_bytes(self) -> [u8; Aeth::BYTES] {
        (u32::from(self.syndrome.byte()) << 24 | self.msn & LOW_24).to_be_bytes()
    }

    pub fn from_bytes(bytes: [u8; Aeth::BYTES]) -> Aeth {
        Aeth { syndrome: Syndrome::parse(bytes[0]), msn: u32::from_be_bytes(bytes) & LOW_24 }
    }
}

impl AtomicEth {
    pub const BYTES: usize = 28;

    /// Its bytes on the wire.
    pub fn to_bytes(self) -> [u8; AtomicEth::BYTES] {
        let mut bytes = [0; AtomicEth::BYTES];
        bytes[..8].copy_from_slice(&self.address.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.rkey.to_be_bytes());
        bytes[12..20].copy_from_slice(&self.swap_or_add.to_be_bytes());
        bytes[20..].copy_from_slice(&self.compare.to_be_bytes());
        bytes
    }

    pub fn from_bytes(bytes: [u8; AtomicEth::BYTES]) -> AtomicEth {
        AtomicEth {
            address: u64::from_be_bytes(from_fn(|at| bytes[at])),
            rkey: u32::from_be_bytes(from_fn(|at| bytes[8 + at])),
            swap_or_add: u64::from_be_bytes(from_fn(|at| bytes[12 + at])),
            compare: u64::from_be_bytes(from_fn(|at| bytes[20 + at])),
        }
    }
}

impl Deth {
    pub const BYTES: usize = 8;

    /// Its bytes on the wire.
    pub fn to_bytes(self) -> [u8; Deth::BYTES] {
        (u64::from(self.qkey) << 32 | u64::from(self.source_qpn & LOW_24)).to_be_bytes()
    }

    pub fn from_bytes(bytes: [u8; Deth::BYTES]) -> Deth {
        let words = u64::from_be_bytes(bytes);
        Deth { qkey: (words >> 32) as u32, source_qpn: words as u32 & LOW_24 }
    }
}
