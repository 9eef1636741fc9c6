//! Kinds of packets by name, for faults: what the first byte of the base transport header says (InfiniBand
//! specification, table 38).

use crate::wire::Opcode;

/// A kind of packets, of every service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// All packets.
    Packet,
    /// Of a SEND.
    Send,
    /// Of a WRITE.
    Write,
    /// READ requests.
    ReadRequest,
    /// Of the response to a READ.
    ReadResponse,
    /// Compare-and-swap and fetch-and-add requests.
    Atomic,
    /// Their results.
    AtomicAck,
    /// Acknowledgements, NAKs included.
    Ack,
}

impl PacketKind {
    /// Every kind, with its name.
    pub const ALL: [(&str, PacketKind); 8] = [
        ("packet", PacketKind::Packet),
        ("send", PacketKind::Send),
        ("write", PacketKind::Write),
        ("read-request", PacketKind::ReadRequest),
        ("read-response", PacketKind::ReadResponse),
        ("atomic", PacketKind::Atomic),
        ("atomic-ack", PacketKind::AtomicAck),
        ("ack", PacketKind::Ack),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        let found = PacketKind::ALL.iter().find(|(_, kind)| *kind == self);
        found.map_or("packet", |(name, _)| name)
    }

    /// Whether a packet with this first byte is of this kind.
    pub fn has(self, opcode_byte: u8) -> bool {
        self == PacketKind::Packet || PacketKind::of(opcode_byte) == Some(self)
    }

    /// The narrowest kind; `None` for operations that this device does not have.
    fn of(opcode_byte: u8) -> Option<PacketKind> {
        use Opcode as Op;
        let (_, opcode) = Opcode::parse(opcode_byte)?;
        Some(match opcode {
            Op::ReadRequest => PacketKind::ReadRequest,
            Op::ReadResponseFirst
            | Op::ReadResponseMiddle
            | Op::ReadResponseLast
            | Op::ReadResponseOnly => PacketKind::ReadResponse,
            Op::Acknowledge => PacketKind::Ack,
            Op::AtomicAcknowledge => PacketKind::AtomicAck,
            Op::CompareSwap | Op::FetchAdd => PacketKind::Atomic,
            Op::WriteFirst
            | Op::WriteMiddle
            | Op::WriteLast
            | Op::WriteLastImmediate
            | Op::WriteOnly
            | Op::WriteOnlyImmediate => PacketKind::Write,
            Op::SendFirst
            | Op::SendMiddle
            | Op::SendLast
            | Op::SendLastImmediate
            | Op::SendOnly
            | Op::SendOnlyImmediate => PacketKind::Send,
        })
    }
}
