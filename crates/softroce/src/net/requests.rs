//! Requests of connection managers to an address that several processes share: they name a service, which one of the
//! processes offers. Any process takes a request from the group's socket for them, and hands it on to the one that has the
//! service's abstract name (unix(7)), `softroce/USER/ADDRESS/service/NUMBER`: so a name says who listens and is where requests
//! come, and goes with the process, however it ends. It must not know what requests say.
#![allow(unsafe_code)]

use std::io;
use std::mem::zeroed;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::{SocketAddr, UnixDatagram};

use rustix::net::sockopt;

use super::receiver::{Arrival, Receiver};
use super::shared_address::name_of;
use super::sockets::accept_incoming;
use crate::wire::as_ipv6;

/// The socket that all processes at the address may read.
pub struct Requests {
    pub(super) receiver: Receiver,
}

impl Requests {
    pub(super) fn new(receiver: Receiver) -> Requests {
        Requests { receiver }
    }

    /// Takes requests from now on. What waits is thrown away: nobody may have read for long, and who still asks repeats
    /// it.
    ///
    /// # Errors
    /// The call that failed.
    pub fn begin(&mut self) -> io::Result<()> {
        self.receiver.socket().map_or(Ok(()), accept_incoming)?;
        loop {
            self.receiver.receive(|_| false, |_| ());
            if self.receiver.is_drained() {
                return Ok(());
            }
        }
    }

    /// The socket, which is readable when requests wait.
    pub fn fd(&self) -> RawFd {
        self.receiver.fd()
    }

    /// Passes those that wait to `each`, if it knows their QP; returns when the next that faults delay is due.
    pub fn take(
        &mut self,
        knows: impl Fn(u32) -> bool,
        mut each: impl FnMut(Arrival<'_>),
    ) -> Option<u64> {
        self.receiver.receive(&knows, &mut each);
        // After nothing came it asks for one datagram alone.
        if !self.receiver.is_drained() {
            self.receiver.receive(knows, each);
        }
        self.receiver.next_due_ns()
    }
}

/// Bytes of the sender's address before a request that is handed on.
const SENDER_BYTES: usize = size_of::<Ipv6Addr>();

/// This process alone offers a service at an address, until it is dropped.
pub struct Claim(UnixDatagram);

impl Claim {
    /// Claims a service.
    ///
    /// # Errors
    /// EADDRINUSE if another process does; the call that failed.
    pub fn new(address: IpAddr, service: u64) -> io::Result<Claim> {
        let socket = UnixDatagram::bind_addr(&name_of_service(address, service)?)?;
        socket.set_nonblocking(true)?;
        sockopt::set_socket_passcred(&socket, true)?;
        Ok(Claim(socket))
    }

    /// Readable when another process has handed on a request.
    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// The next request that was handed on by a process of this user, and its sender.
    pub fn take<'b>(&self, room: &'b mut [u8]) -> Option<(IpAddr, &'b [u8])> {
        let length = loop {
            let (length, user) = receive(&self.0, room).ok()?;
            // Another user may know the name too.
            if user == Some(rustix::process::geteuid().as_raw()) {
                break length;
            }
        };
        let (sender, request) = room.get(..length)?.split_first_chunk::<SENDER_BYTES>()?;
        Some((IpAddr::from(*sender).to_canonical(), request))
    }
}

fn name_of_service(address: IpAddr, service: u64) -> io::Result<SocketAddr> {
    name_of(address, format_args!("service/{service:x}"))
}

/// A datagram's length, and the user that sent it (SO_PASSCRED). Not by rustix, which takes no sender of another PID
/// namespace, whose process is 0 here.
fn receive(socket: &UnixDatagram, room: &mut [u8]) -> io::Result<(usize, Option<libc::uid_t>)> {
    // Aligned as headers are.
    let mut space = [0_u64; 8];
    let mut piece = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
    // SAFETY: plain data, for which zero is valid.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut piece;
    message.msg_iovlen = 1;
    message.msg_control = space.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&space) as _;
    let flags = libc::MSG_CMSG_CLOEXEC;
    // SAFETY: all that `message` points to lives as long as the call, with the lengths that it says.
    let bytes = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) };
    let bytes = usize::try_from(bytes).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel filled `message`; its headers lie in `space`, and data of this type is of this struct.
    let user = unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message).as_ref();
        let kind = (libc::SOL_SOCKET, libc::SCM_CREDENTIALS);
        header
            .filter(|it| (it.cmsg_level, it.cmsg_type) == kind)
            .map(|it| libc::CMSG_DATA(it).cast::<libc::ucred>().read_unaligned().uid)
    };
    Ok((bytes, user))
}

/// Hands a request on to the process that offers its service; false if none does.
pub fn hand_on(address: IpAddr, service: u64, from: IpAddr, request: &[u8]) -> bool {
    let whole = [&as_ipv6(from).octets(), request].concat();
    let sent = name_of_service(address, service).and_then(|name| {
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        socket.send_to_addr(&whole, &name)
    });
    match sent {
        Ok(_) => true,
        // It has many already; who asks repeats it.
        Err(error) => error.kind() == io::ErrorKind::WouldBlock,
    }
}
