//! The wire format of RoCEv2 after the UDP header (InfiniBand specification volume 1, chapter 9, and its annex A17), and
//! the messages of connection managers in [`cm`]. On hostile input it fails only with a [`ParseError`], and of a message
//! of managers without a reason.

use std::net::{IpAddr, Ipv6Addr};

pub mod cm;
mod headers;
mod icrc;
mod packet;

pub use headers::{
    Aeth, AtomicEth, Bth, Deth, NakCode, Opcode, PacketKind, Place, Psn, Reth, Service, Syndrome,
    time_of_code_ns,
};
pub(crate) use icrc::{BEHIND_IDENTIFICATION, IdentificationShift, ONE, inverse_power, multiply};
pub use icrc::{CONGESTION_BYTE, ICRC_BYTES, Icrc, IcrcAddresses, IcrcSeed, icrc};
pub use packet::{Cnp, Extended, Packet, ParseError};

/// The UDP port of RoCEv2.
pub const UDP_PORT: u16 = 4791;

/// An address as the 16 bytes of a GID or of an IPv6 header: IPv4 is mapped (annex A17.4.5.1; RFC 4291, 2.5.5.2).
pub fn as_ipv6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}
