//! The headers of packets and their bytes (InfiniBand specification 9.2 to 9.3), their opcodes, and packet sequence
//! numbers. All numbers are big-endian.
//!
//! An opcode (table 38) has three bits of service and five of operation; an operation is one row of a table here.

use std::array::from_fn;

/// The transport service, the opcode's high three bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    Rc,
    Uc,
    Ud,
}

/// What a packet is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is the specification's name
pub enum PacketKind {
    Send,
    Write,
    ReadRequest,
    ReadResponse,
    Atomic,
    AtomicAck,
    /// Acknowledgements, and negative ones (NAKs) too.
    Ack,
}

/// Its place in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is the specification's name
pub enum Place {
    First,
    Middle,
    Last,
    Only,
}

/// What an operation is: a row of the table.
#[derive(Clone, Copy)]
struct Row {
    name: &'static str,
    kind: PacketKind,
    place: Place,
    /// The services that have it.
    services: &'static [Service],
    /// The extended headers that follow.
    headers: u8,
}

const RC: &[Service] = &[Service::Rc];
const EITHER: &[Service] = &[Service::Rc, Service::Uc];
const ANY: &[Service] = &[Service::Rc, Service::Uc, Service::Ud];

const RETH: u8 = 1;
const AETH: u8 = 2;
const ATOMIC_ETH: u8 = 4;
const ATOMIC_ACK: u8 = 8;
const IMMEDIATE: u8 = 16;
const IETH: u8 = 32;

macro_rules! opcodes {
    ($($opcode:ident = $code:literal, $name:literal, $kind:ident, $place:ident, $services:ident, $headers:expr;)*) => {
        /// The operation of a packet, the opcode's low five bits. Not every service has every operation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[allow(missing_docs)] // each is the specification's name
        pub enum Opcode {
            $($opcode = $code,)*
        }

        impl Opcode {
            /// Every operation, in numerical order.
            pub const ALL: &[Opcode] = &[$(Opcode::$opcode,)*];

            fn from_code(code: u8) -> Option<Opcode> {
                match code {
                    $($code => Some(Opcode::$opcode),)*
                    _ => None,
                }
            }

            const fn row(self) -> Row {
                match self {
                    $(Opcode::$opcode => Row {
                        name: $name,
                        kind: PacketKind::$kind,
                        place: Place::$place,
                        services: $services,
                        headers: $headers,
                    },)*
                }
            }
        }
    };
}

opcodes! {
    SendFirst = 0x00, "SEND First", Send, First, EITHER, 0;
    SendMiddle = 0x01, "SEND Middle", Send, Middle, EITHER, 0;
    SendLast = 0x02, "SEND Last", Send, Last, EITHER, 0;
    SendLastImmediate = 0x03, "SEND Last with Immediate", Send, Last, EITHER, IMMEDIATE;
    SendOnly = 0x04, "SEND Only", Send, Only, ANY, 0;
    SendOnlyImmediate = 0x05, "SEND Only with Immediate", Send, Only, ANY, IMMEDIATE;
    WriteFirst = 0x06, "RDMA WRITE First", Write, First, EITHER, RETH;
    WriteMiddle = 0x07, "RDMA WRITE Middle", Write, Middle, EITHER, 0;
    WriteLast = 0x08, "RDMA WRITE Last", Write, Last, EITHER, 0;
    WriteLastImmediate = 0x09, "RDMA WRITE Last with Immediate", Write, Last, EITHER, IMMEDIATE;
    WriteOnly = 0x0a, "RDMA WRITE Only", Write, Only, EITHER, RETH;
    WriteOnlyImmediate = 0x0b, "RDMA WRITE Only with Immediate", Write, Only, EITHER, RETH | IMMEDIATE;
    ReadRequest = 0x0c, "RDMA READ Request", ReadRequest, Only, RC, RETH;
    ReadResponseFirst = 0x0d, "RDMA READ Response First", ReadResponse, First, RC, AETH;
    ReadResponseMiddle = 0x0e, "RDMA READ Response Middle", ReadResponse, Middle, RC, 0;
    ReadResponseLast = 0x0f, "RDMA READ Response Last", ReadResponse, Last, RC, AETH;
    ReadResponseOnly = 0x10, "RDMA READ Response Only", ReadResponse, Only, RC, AETH;
    Acknowledge = 0x11, "Acknowledge", Ack, Only, RC, AETH;
    AtomicAcknowledge = 0x12, "ATOMIC Acknowledge", AtomicAck, Only, RC, AETH | ATOMIC_ACK;
    CompareSwap = 0x13, "CompareSwap", Atomic, Only, RC, ATOMIC_ETH;
    FetchAdd = 0x14, "FetchAdd", Atomic, Only, RC, ATOMIC_ETH;
    SendLastInvalidate = 0x16, "SEND Last with Invalidate", Send, Last, RC, IETH;
    SendOnlyInvalidate = 0x17, "SEND Only with Invalidate", Send, Only, RC, IETH;
}

impl Service {
    /// The service of the base transport header's opcode byte; `None` if this device does not support it.
    pub fn from_byte(byte: u8) -> Option<Service> {
        [Service::Rc, Service::Uc, Service::Ud]
            .into_iter()
            .find(|service| service.bits() == byte & 0xe0)
    }

    /// The high three bits in place.
    pub fn bits(self) -> u8 {
        match self {
            Service::Rc => 0x00,
            Service::Uc => 0x20,
            Service::Ud => 0x60,
        }
    }
}

impl Opcode {
    /// The byte of the base transport header.
    pub fn byte(self, service: Service) -> u8 {
        service.bits() | self as u8
    }

    /// Parses that byte; `None` for a service or operation that this device does not support.
    pub fn parse(byte: u8) -> Option<(Service, Opcode)> {
        let service = Service::from_byte(byte)?;
        let opcode = Opcode::from_code(byte & 0x1f)?;
        let exists = opcode.row().services.contains(&service);
        exists.then_some((service, opcode))
    }

    /// As in the specification, without the service: `SEND Only`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// What a packet is part of.
    pub fn kind(self) -> PacketKind {
        self.row().kind
    }

    /// The place of a packet in its message.
    pub fn place(self) -> Place {
        self.row().place
    }

    /// Whether it answers a request.
    pub fn is_answer(self) -> bool {
        use PacketKind::{Ack, AtomicAck, ReadResponse};
        matches!(self.kind(), ReadResponse | Ack | AtomicAck)
    }

    pub fn has_immediate(self) -> bool {
        self.row().headers & IMMEDIATE != 0
    }

    /// Whether an invalidate extended header follows: the key of a memory window.
    pub fn has_ieth(self) -> bool {
        self.row().headers & IETH != 0
    }

    /// Whether an RDMA extended header follows: address, key and length.
    pub fn has_reth(self) -> bool {
        self.row().headers & RETH != 0
    }

    /// Whether an ACK extended header follows: syndrome and message number.
    pub fn has_aeth(self) -> bool {
        self.row().headers & AETH != 0
    }

    /// Whether an atomic extended header follows.
    pub fn has_atomic_eth(self) -> bool {
        self.row().headers & ATOMIC_ETH != 0
    }

    /// Whether an atomic's result follows.
    pub fn has_atomic_ack(self) -> bool {
        self.row().headers & ATOMIC_ACK != 0
    }
}

/// A packet sequence number: 24 bits that wrap (InfiniBand specification 9.7.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Psn(u32);

impl Psn {
    const MASK: u32 = 0x00ff_ffff;

    pub const ZERO: Psn = Psn(0);

    /// Adding this goes one back.
    pub const STEP_BACK: u32 = Psn::MASK;

    /// The low 24 bits of `value`.
    pub fn new(value: u32) -> Psn {
        Psn(value & Psn::MASK)
    }

    /// As a number below 2^24.
    pub fn value(self) -> u32 {
        self.0
    }

    /// The PSN `count` packets later.
    #[must_use]
    pub fn plus(self, count: u32) -> Psn {
        Psn::new(self.0.wrapping_add(count))
    }

    /// Packets from `earlier` to this one, negative if this one is before it: the shorter way round, from -2^23 to
    /// 2^23 - 1.
    pub fn distance_from(self, earlier: Psn) -> i32 {
        // The shift makes bit 23 the sign.
        ((self.0.wrapping_sub(earlier.0) << 8).cast_signed()) >> 8
    }
}

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
        /// The code of the pause, from 0 to 31 (table 45).
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

/// A time in the five-bit code that ACK timeouts (InfiniBand specification 9.7.6.1.3) and managers' messages (12.7.26) have,
/// in nanoseconds: 4.096 µs × 2^`code`.
pub const fn time_of_code_ns(code: u8) -> u64 {
    4096_u64 << (code & 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_byte_is_an_opcode_or_refused() {
        let mut known = 0;
        for byte in 0..=u8::MAX {
            if let Some((service, opcode)) = Opcode::parse(byte) {
                assert_eq!(opcode.byte(service), byte);
                known += 1;
            }
        }
        assert_eq!(known, 23 + 12 + 2);
    }

    #[test]
    fn the_circle_closes() {
        let last = Psn::new(0x00ff_ffff);
        assert_eq!(last.plus(1), Psn::new(0));
        assert_eq!(Psn::new(0).distance_from(last), 1);
        assert_eq!(Psn::new(0x0080_0000).distance_from(Psn::new(0)), -(1 << 23));
    }

    proptest! {
        #[test]
        fn distances_undo_steps(start: u32, steps in 0..1u32 << 23) {
            let start = Psn::new(start);
            let end = start.plus(steps);
            prop_assert_eq!(end.distance_from(start), steps.cast_signed());
            prop_assert_eq!(start.distance_from(end), -steps.cast_signed());
        }
    }

    #[test]
    fn codes_are_powers_of_two() {
        assert_eq!(time_of_code_ns(0), 4_096);
        assert_eq!(time_of_code_ns(16) / 1_000_000, 268);
        assert_eq!(time_of_code_ns(20) / 1_000_000, 4294);
        assert_eq!(time_of_code_ns(31), 4096 << 31);
    }
}
