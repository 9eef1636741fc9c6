//! Kinds of packets by name, for faults: what the first byte of the base transport header says.

use crate::wire::{Opcode, PacketKind};

/// Every kind with its name; `None` are all packets.
pub const KINDS: [(&str, Option<PacketKind>); 8] = [
    ("packet", None),
    ("send", Some(PacketKind::Send)),
    ("write", Some(PacketKind::Write)),
    ("read-request", Some(PacketKind::ReadRequest)),
    ("read-response", Some(PacketKind::ReadResponse)),
    ("atomic", Some(PacketKind::Atomic)),
    ("atomic-ack", Some(PacketKind::AtomicAck)),
    ("ack", Some(PacketKind::Ack)),
];

/// The name of a kind.
pub fn kind_name(kind: Option<PacketKind>) -> &'static str {
    let found = KINDS.iter().find(|(_, known)| *known == kind);
    found.map_or("packet", |(name, _)| name)
}

/// Whether a packet with this first byte is of this kind.
pub fn is_of_kind(kind: Option<PacketKind>, opcode_byte: u8) -> bool {
    kind.is_none_or(|kind| {
        Opcode::parse(opcode_byte).is_some_and(|(_, opcode)| opcode.kind() == kind)
    })
}
