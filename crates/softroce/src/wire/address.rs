//! Addresses as bytes of packets.

use std::net::{IpAddr, Ipv6Addr};

/// An address as the 16 bytes of a GID or of an IPv6 header: IPv4 is mapped (annex A17.4.5.1; RFC 4291, 2.5.5.2).
pub fn as_ipv6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}
