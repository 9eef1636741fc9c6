//! A socket that others on the network connect to.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};

use protocol::control_socket;

/// Listens on all addresses of both families, or on the one that was asked for.
pub(in crate::cli) fn listen(bind: Option<IpAddr>, port: u16) -> io::Result<TcpListener> {
    let any = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    match control_socket::listen((bind.unwrap_or(any), port).into()) {
        // A kernel without IPv6 has IPv4's address for all.
        Err(error) if bind.is_none() && error.raw_os_error() == Some(libc::EAFNOSUPPORT) => {
            control_socket::listen((Ipv4Addr::UNSPECIFIED, port).into())
        }
        other => other,
    }
}
