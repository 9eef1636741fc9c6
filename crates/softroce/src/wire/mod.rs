//! The wire format of RoCEv2 after the UDP header (InfiniBand specification volume 1, chapter 9, and its annex A17), and
//! the messages of connection managers in [`cm`]. It must not know sockets, QPs or memory. On hostile input it fails only
//! with a [`ParseError`], and of a message of managers without a reason.

mod address;
pub mod cm;
mod cnp;
mod headers;
mod icrc;
mod opcode;
mod packet;
mod polynomial;
mod psn;
mod time_code;

pub use address::as_ipv6;
pub use cnp::Cnp;
pub use headers::{Aeth, AtomicEth, Bth, Deth, NakCode, Reth, Syndrome};
pub(crate) use icrc::{BEHIND_IDENTIFICATION, IdentificationShift};
pub use icrc::{CONGESTION_BYTE, ICRC_BYTES, Icrc, IcrcAddresses, IcrcSeed, icrc};
pub use opcode::{Opcode, PacketKind, Place, Service};
pub use packet::{Extended, Packet, ParseError};
pub(crate) use polynomial::{ONE, inverse_power, multiply};
pub use psn::Psn;
pub use time_code::time_of_code_ns;

/// The UDP port of RoCEv2.
pub const UDP_PORT: u16 = 4791;
