//! Opens an address: the receiver's socket on the RoCEv2 port, and the pool of sending sockets whose ports spread
//! flows.

use std::io;
use std::iter::repeat_with;
use std::net::{IpAddr, Ipv4Addr};

use libc::c_int;

use super::fabric::Attachment;
use super::shared_address;
use super::shared_address::Membership;
use super::sockets::{ECT_0, SENDING_SOCKETS, Socket, refuse_incoming};
use crate::wire::UDP_PORT;

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
    pub operation: &'static str,
    pub address: IpAddr,
    pub source: io::Error,
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
                "end the program that has it (an embedded device of another user, 32 of this one, a program alone on \
                 a loopback address, or the kernel's rdma_rxe), or use another address"
            }
            io::ErrorKind::AddrNotAvailable => "give an address that this host has (`ip address`)",
            _ => "see what the system allows this process (limits, container policy)",
        };
        OpenError { operation, address, source, remedy }
    }
}

/// An address that was taken.
pub struct Taken {
    pub socket: Attachment,
    pub address: IpAddr,
    /// The part of it that is this process', if others may have it too.
    pub membership: Option<Membership>,
    /// The socket for requests of connection managers, if others may have it too.
    pub requests: Option<Attachment>,
    /// The size of the kernel's receive buffer, in its own accounting.
    pub receive_buffer_bytes: usize,
}

/// Takes `address` along with other processes, or a free one of 127.0.0.0/8 alone, with a receive buffer of the size
/// asked for.
pub fn take(address: Option<IpAddr>, buffer_bytes: Option<u32>) -> Result<Taken, OpenError> {
    let (socket, address, shared) = match address {
        Some(address) => {
            let (socket, requests, membership) =
                shared_address::join(address).map_err(refused("take UDP port 4791", address))?;
            (socket, address, Some((requests, membership)))
        }
        None => {
            let (socket, address) = take_free_loopback()?;
            (socket, address, None)
        }
    };
    let (requests, membership) = shared.unzip();
    if let Some(requests) = &requests {
        accept_without_checksum(requests, address)?;
    }
    Ok(Taken {
        receive_buffer_bytes: prepare(&socket, address, buffer_bytes)?,
        socket: Attachment::Udp(socket),
        address,
        membership,
        requests: requests.map(Attachment::Udp),
    })
}

/// RoCEv2 senders may omit UDP's checksum (annex A17.3.1), as the kernel's Soft-RoCE does over IPv6.
fn accept_without_checksum(socket: &Socket, address: IpAddr) -> Result<(), OpenError> {
    match address {
        IpAddr::V4(_) => Ok(()),
        IpAddr::V6(_) => socket
            .set(libc::SOL_UDP, libc::UDP_NO_CHECK6_RX, 1)
            .map_err(refused("take packets without UDP checksums", address)),
    }
}

/// Sets the options of a receiver's socket; returns the size of its buffer, in the kernel's accounting.
fn prepare(
    socket: &Socket,
    address: IpAddr,
    buffer_bytes: Option<u32>,
) -> Result<usize, OpenError> {
    let failed = refused("set the receive buffer", address);
    let asked_bytes = buffer_bytes.map(|bytes| c_int::try_from(bytes).unwrap_or(c_int::MAX));
    let set = |option, bytes| socket.set(libc::SOL_SOCKET, option, bytes);
    if asked_bytes.is_some() || set(libc::SO_RCVBUFFORCE, FORCED_BUFFER_BYTES).is_err() {
        let bytes = asked_bytes.unwrap_or(BUFFER_BYTES);
        set(libc::SO_RCVBUF, bytes).map_err(&failed)?;
    }
    let held = socket.get(libc::SOL_SOCKET, libc::SO_RCVBUF).map_err(&failed)?;
    accept_without_checksum(socket, address)?;
    // Without it, drops are not counted.
    let _ = socket.set(libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1);
    // Without it, congestion is not seen.
    let _ = match address {
        IpAddr::V4(_) => socket.set(libc::IPPROTO_IP, libc::IP_RECVTOS, 1),
        IpAddr::V6(_) => socket.set(libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1),
    };
    // Without it, GSO batches arrive as single packets, which is only slower.
    let _ = socket.set(libc::SOL_UDP, libc::UDP_GRO, 1);
    Ok(usize::try_from(held).unwrap_or(0))
}

fn bind_receiver(address: IpAddr) -> Result<Socket, OpenError> {
    let socket = Socket::udp(address).map_err(refused("open a UDP socket", address))?;
    socket.bind((address, UDP_PORT).into()).map_err(refused("take UDP port 4791", address))?;
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
    let mut ports = source_ports();
    repeat_with(|| {
        let socket = sending_socket(address).map_err(refused("open a sending socket", address))?;
        for port in ports.by_ref() {
            match socket.bind((address, port).into()) {
                Ok(()) => return Ok((socket, port)),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) => return Err(refused("take a source port", address)(error)),
            }
        }
        let in_use = io::ErrorKind::AddrInUse.into();
        Err(refused("find free source ports", address)(in_use))
    })
    .take(SENDING_SOCKETS)
    .collect()
}

/// The ports that packets may come from.
pub fn source_ports() -> impl Iterator<Item = u16> {
    FIRST_SOURCE_PORT..=u16::MAX
}

fn sending_socket(address: IpAddr) -> io::Result<Socket> {
    let socket = Socket::udp(address)?;
    refuse_incoming(&socket)?;
    // The invariant CRC covers "don't fragment". It also makes the identification of a single packet 0, as long as the socket
    // is not connected.
    match address {
        IpAddr::V4(_) => {
            let dont_fragment = libc::IP_PMTUDISC_DO;
            socket.set(libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, dont_fragment)?;
            socket.set(libc::IPPROTO_IP, libc::IP_TOS, ECT_0.into())?;
        }
        IpAddr::V6(_) => {
            let dont_fragment = libc::IPV6_PMTUDISC_DO;
            socket.set(libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, dont_fragment)?;
            socket.set(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, ECT_0.into())?;
        }
    }
    if socket.set(libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, BUFFER_BYTES).is_err() {
        socket.set(libc::SOL_SOCKET, libc::SO_SNDBUF, BUFFER_BYTES)?;
    }
    Ok(socket)
}
