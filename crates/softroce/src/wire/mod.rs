//! The wire format of RoCEv2 after the UDP header (InfiniBand specification volume 1, chapter 9, and its annex A17).
//! It must not know sockets, QPs or memory. On hostile input it fails only with a [`ParseError`].

#[doc(hidden)]
pub mod check;
mod headers;
mod icrc;
mod opcode;
mod packet;
mod psn;

pub use headers::{Aeth, AtomicEth, Bth, Deth, NakCode, Reth, Syndrome};
pub(crate) use icrc::POLYNOMIAL;
pub use icrc::{CONGESTION_BYTE, ICRC_BYTES, Icrc, IcrcAddresses, IcrcSeed, icrc};
pub use opcode::{Opcode, Service};
pub use packet::{Extended, Packet, ParseError};
pub use psn::Psn;

/// The UDP port of RoCEv2.
pub const UDP_PORT: u16 = 4791;
