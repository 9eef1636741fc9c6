//! Opens an address: the receiver's socket on the RoCEv2 port, and the pool of sending sockets whose ports spread
//! flows.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use libc::c_int;

use super::sockets::Socket;
use crate::wire::UDP_PORT;

/// Sending sockets of an address. The kernel and routers spread packets by source port.
pub const SENDING_SOCKETS: usize = 16;
/// The first source port: the specification allows 0xC000 to 0xFFFF.
const FIRST_SOURCE_PORT: u16 = 0xc000;
/// How many addresses of 127.0.0.0/8 are tried.
const LOOPBACK_CANDIDATES: u32 = 4096;
/// The requested buffer size, within the system's limit.
const BUFFER_BYTES: c_int = 8 << 20;
/// The requested buffer size with the privilege to exceed that limit.
const FORCED_BUFFER_BYTES: c_int = 32 << 20;

/// An address could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} on {address}: {source}; {remedy}")]
pub struct OpenError {
    /// The call that failed.
    pub operation: &'static str,
    /// The address.
    pub address: IpAddr,
    /// The system's error.
    pub source: io::Error,
    /// Advice.
    pub remedy: &'static str,
}

impl From<OpenError> for io::Error {
    fn from(error: OpenError) -> io::Error {
        io::Error::new(error.source.kind(), error)
    }
}

/// The error number of an error of [`super::open`].
pub fn os_error(error: &io::Error) -> Option<i32> {
    error.raw_os_error().or_else(|| {
        let inner = error.get_ref()?.downcast_ref::<OpenError>()?;
        inner.source.raw_os_error()
    })
}

fn refused(operation: &'static str, address: IpAddr) -> impl Fn(io::Error) -> OpenError {
    move |source| {
        let remedy = match source.kind() {
            io::ErrorKind::AddrInUse => {
                "another process has it (an embedded device, or the kernel's rdma_rxe): end that one or take another address"
            }
            io::ErrorKind::AddrNotAvailable => "give an address that this host has (`ip address`)",
            _ => "see what the system allows this process (limits, container policy)",
        };
        OpenError {
            operation,
            address,
            source,
            remedy,
        }
    }
}

/// Opens the receiver's socket; returns also its address and buffer size.
pub fn take(address: Option<IpAddr>) -> Result<(Socket, IpAddr, usize), OpenError> {
    let (socket, address) = match address {
        Some(address) => (bind_receiver(address)?, address),
        None => take_free_loopback()?,
    };
    let failed = refused("set the receive buffer", address);
    if socket
        .set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, FORCED_BUFFER_BYTES)
        .is_err()
    {
        socket
            .set(libc::SOL_SOCKET, libc::SO_RCVBUF, BUFFER_BYTES)
            .map_err(&failed)?;
    }
    let held = socket
        .get(libc::SOL_SOCKET, libc::SO_RCVBUF)
        .map_err(&failed)?;
    if address.is_ipv6() {
        // RoCEv2 senders may omit UDP's checksum (annex A17.3.1), as the kernel's Soft-RoCE does.
        socket
            .set(libc::SOL_UDP, libc::UDP_NO_CHECK6_RX, 1)
            .map_err(refused("take packets without UDP checksums", address))?;
    }
    // Without it, GSO batches arrive as single packets, which is only slower.
    let _ = socket.set(libc::SOL_UDP, libc::UDP_GRO, 1);
    Ok((socket, address, usize::try_from(held).unwrap_or(0)))
}

fn bind_receiver(address: IpAddr) -> Result<Socket, OpenError> {
    let socket = Socket::udp(address).map_err(refused("open a UDP socket", address))?;
    socket
        .bind((address, UDP_PORT).into())
        .map_err(refused("take UDP port 4791", address))?;
    Ok(socket)
}

/// Without address reuse, binding fails if another socket has the address.
fn take_free_loopback() -> Result<(Socket, IpAddr), OpenError> {
    let first = u32::from(Ipv4Addr::LOCALHOST);
    let mut in_use = None;
    for candidate in first..first + LOOPBACK_CANDIDATES {
        if matches!(candidate & 0xff, 0 | 0xff) {
            continue;
        }
        let address = IpAddr::V4(candidate.into());
        match bind_receiver(address) {
            Ok(socket) => return Ok((socket, address)),
            Err(error) if error.source.kind() == io::ErrorKind::AddrInUse => in_use = Some(error),
            Err(error) => return Err(error),
        }
    }
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    Err(in_use.unwrap_or_else(|| {
        refused("find a free address", address)(io::ErrorKind::AddrInUse.into())
    }))
}

/// Opens the sending sockets; returns also their ports.
pub fn sending_sockets(address: IpAddr) -> Result<Vec<(Socket, u16)>, OpenError> {
    let mut sockets = Vec::with_capacity(SENDING_SOCKETS);
    let mut ports = FIRST_SOURCE_PORT..=u16::MAX;
    while sockets.len() < SENDING_SOCKETS {
        let socket = sending_socket(address).map_err(refused("open a sending socket", address))?;
        loop {
            let in_use = || io::ErrorKind::AddrInUse.into();
            let port = ports
                .next()
                .ok_or_else(|| refused("find free source ports", address)(in_use()))?;
            match socket.bind((address, port).into()) {
                Ok(()) => {
                    sockets.push((socket, port));
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) => return Err(refused("take a source port", address)(error)),
            }
        }
    }
    Ok(sockets)
}

fn sending_socket(address: IpAddr) -> io::Result<Socket> {
    let socket = Socket::udp(address)?;
    socket.refuse_incoming()?;
    // The invariant CRC covers "don't fragment". It also makes the identification of a single packet 0.
    match address {
        IpAddr::V4(_) => socket.set(
            libc::IPPROTO_IP,
            libc::IP_MTU_DISCOVER,
            libc::IP_PMTUDISC_DO,
        )?,
        IpAddr::V6(_) => socket.set(
            libc::IPPROTO_IPV6,
            libc::IPV6_MTU_DISCOVER,
            libc::IPV6_PMTUDISC_DO,
        )?,
    }
    if socket
        .set(libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, BUFFER_BYTES)
        .is_err()
    {
        socket.set(libc::SOL_SOCKET, libc::SO_SNDBUF, BUFFER_BYTES)?;
    }
    Ok(socket)
}
