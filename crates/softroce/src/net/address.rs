//! Opens an address: the receiver's socket on the RoCEv2 port, and the pool of sending sockets whose ports spread
//! flows.
//!
//! # Addresses that several processes share
//!
//! Each process has one socket of the address, its **slot**, which it may read; and holds all others, so that none leaves
//! while anybody is there. The socket of requests of connection managers is everybody's.
//!
//! A process gets the sockets from one that has them (SCM_RIGHTS), over a Unix socket with an abstract name (unix(7)):
//! `softroce/USER/ADDRESS/SLOT`. To listen there is to have the slot. The name goes with the process, however it ends,
//! and is looked for in the same network namespace as the address. Processes join one at a time: `.../join` is taken
//! by who does.
//!
//! The sockets are a group (SO_REUSEPORT) of which the kernel picks the one for a packet by the first bits of its
//! destination QPN; and for messages of connection managers, which all go to QPN 1, by the first bits of the number that
//! the receiver has given to the connection. Requests, which have no such number yet,
//! have a socket of their own, from which any process takes them.
//!
//! The kernel knows a socket of a group by its place, and puts the last one into the place of one that leaves
//! (`reuseport_detach_sock` in Linux' `net/core/sock_reuseport.c`). So all that there will ever be are made at once, and
//! whoever uses one holds them all.

use std::fmt::Display;
use std::io::{IoSlice, IoSliceMut};
use std::iter::repeat_with;
use std::mem::{MaybeUninit, size_of};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};
use std::{io, thread};

use libc::{c_int, sock_filter};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown,
};

use super::fabric::Attachment;
use super::sockets::{
    ECT_0, SENDING_SOCKETS, Socket, accept_incoming, block_signals, instruction, pick_by,
    refuse_incoming, skip_if_equal,
};
use crate::wire::cm::{GSI_QPN, SIDR_REP, SIDR_REQ};
use crate::wire::{Bth, Deth, UDP_PORT};

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

/// An address with the sockets that are bound to it.
pub struct BoundAddress {
    pub socket: Attachment,
    pub address: IpAddr,
    /// The part of it that is this process', if others may have it too.
    pub membership: Option<Membership>,
    /// The socket for requests of connection managers, if others may have it too.
    pub requests: Option<Attachment>,
    /// The size of the kernel's receive buffer, in its own accounting.
    pub receive_buffer_bytes: usize,
}

/// Takes the `wanted` address along with other processes, or a free one of 127.0.0.0/8 alone, with a receive buffer of this
/// size.
pub fn take(wanted: Option<IpAddr>, buffer_bytes: Option<u32>) -> Result<BoundAddress, OpenError> {
    let (socket, address, shared) = match wanted {
        Some(address) => {
            let (socket, requests, membership) =
                join(address).map_err(refused("take UDP port 4791", address))?;
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
    Ok(BoundAddress {
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

/// How long a process waits for its turn to join.
const TURN_PATIENCE: Duration = Duration::from_secs(5);
/// How long it waits for the sockets from another, which may have been stopped.
const HANDING_PATIENCE: Duration = Duration::from_secs(1);
/// How long an address may be held by sockets that nobody hands over.
const LEAVING_PATIENCE: Duration = Duration::from_millis(300);
const PAUSE: Duration = Duration::from_millis(2);

/// A process' part in an address, until it is dropped.
pub struct Membership {
    /// Which of the group's sockets is this process': the first bits of its QP numbers ([`super::slot_of`]).
    pub slot: u8,
    group: Arc<Group>,
    thread: Option<JoinHandle<()>>,
    /// The process that joined, which a child of it did not.
    process: u32,
}

struct Group {
    sockets: Vec<Socket>,
    listener: UnixListener,
    ends: AtomicBool,
}

/// Joins the processes that have `address`, or is the first. Returns the socket of its slot, which takes packets from
/// now on, and that of requests.
///
/// # Errors
/// The call that failed; EADDRINUSE if all slots are taken, or the address by somebody who does not share it.
pub fn join(address: IpAddr) -> io::Result<(Socket, Socket, Membership)> {
    let names = Names(address);
    let _turn = names.turn()?;
    let sockets = names.sockets()?;
    let (slot, listener) = names.free_slot()?;
    let own = sockets.get(slot).ok_or_else(all_taken)?.duplicate()?;
    let requests = sockets.get(REQUESTS).ok_or_else(all_taken)?.duplicate()?;
    accept_incoming(&own)?;
    let group = Arc::new(Group { sockets, listener, ends: AtomicBool::new(false) });
    let serving = Arc::clone(&group);
    let thread =
        thread::Builder::new().name("softroce-share".into()).spawn(move || serving.serve())?;
    let membership =
        Membership { slot: slot as u8, group, thread: Some(thread), process: std::process::id() };
    Ok((own, requests, membership))
}

/// The abstract name of something at an address.
pub(super) fn name_of(address: IpAddr, what: impl Display) -> io::Result<SocketAddr> {
    let user = rustix::process::geteuid().as_raw();
    SocketAddr::from_abstract_name(format!("softroce/{user}/{address}/{what}"))
}

struct Names(IpAddr);

impl Names {
    fn socket(&self, what: impl Display) -> io::Result<SocketAddr> {
        name_of(self.0, what)
    }

    /// Waits until nobody else joins; nobody does while the result lives.
    fn turn(&self) -> io::Result<UnixListener> {
        let name = self.socket("join")?;
        while_in_use(TURN_PATIENCE, || UnixListener::bind_addr(&name))
    }

    /// The group's sockets, of another process or new.
    fn sockets(&self) -> io::Result<Vec<Socket>> {
        // The last process that had them may be about to end.
        while_in_use(LEAVING_PATIENCE, || {
            let of_another = (0..SLOTS).find_map(|slot| ask(&self.socket(slot).ok()?));
            of_another.map_or_else(|| make_group(self.0), Ok)
        })
    }

    fn free_slot(&self) -> io::Result<(usize, UnixListener)> {
        for slot in 0..SLOTS {
            match UnixListener::bind_addr(&self.socket(slot)?) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                outcome => return outcome.map(|listener| (slot, listener)),
            }
        }
        Err(all_taken())
    }
}

/// Tries again and again, for so long, while somebody has what is asked for.
fn while_in_use<T>(patience: Duration, attempt: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let deadline = Instant::now() + patience;
    loop {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && Instant::now() < deadline => {
                sleep(PAUSE);
            }
            outcome => return outcome,
        }
    }
}

fn all_taken() -> io::Error {
    io::Error::from_raw_os_error(libc::EADDRINUSE)
}

/// Asks the process that listens at `name` for the group's sockets. `None` if nobody does, or does not answer.
fn ask(name: &SocketAddr) -> Option<Vec<Socket>> {
    let stream = UnixStream::connect_addr(name).ok()?;
    // Who has the name may be another user, and its sockets something else.
    if peer_user(&stream).ok()? != rustix::process::geteuid().as_raw() {
        return None;
    }
    stream.set_read_timeout(Some(HANDING_PATIENCE)).ok()?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    rustix::net::recvmsg(&stream, &mut [IoSliceMut::new(&mut byte)], &mut control, flags).ok()?;
    let mut sockets = Vec::with_capacity(SOCKETS);
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            sockets.extend(descriptors.map(Socket::from));
        }
    }
    (sockets.len() == SOCKETS).then_some(sockets)
}

impl Group {
    /// Hands the sockets to processes that join, until the end.
    fn serve(&self) {
        // Signals are for the program's threads.
        block_signals();
        while !self.ends.load(Ordering::SeqCst) {
            match self.listener.accept() {
                // Who does not get them asks another process, or gives up.
                Ok((stream, _)) => drop(self.hand_over(&stream)),
                Err(_) => sleep(PAUSE),
            }
        }
    }

    fn hand_over(&self, stream: &UnixStream) -> io::Result<()> {
        if peer_user(stream)? != rustix::process::geteuid().as_raw() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let sockets: Vec<BorrowedFd<'_>> = self.sockets.iter().map(Socket::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(&sockets)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        rustix::net::sendmsg(stream, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }
}

/// The user of the process at the other end (SO_PEERCRED).
#[allow(unsafe_code)]
fn peer_user(stream: &UnixStream) -> io::Result<u32> {
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the pointers are to such a struct and to its length.
    let outcome = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    if outcome < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(peer.uid)
}

impl Membership {
    /// The descriptors of the group and of the name: a child of the process lets them go.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.group.sockets.iter().map(Socket::fd).chain([self.group.listener.as_raw_fd()])
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        // A child has the same sockets and no such thread: what it did here would be done to its parent.
        if std::process::id() != self.process {
            return;
        }
        if let Some(own) = self.group.sockets.get(usize::from(self.slot)) {
            // Should it fail, the slot's next owner gets packets that it does not know.
            let _ = refuse_incoming(own);
        }
        self.group.ends.store(true, Ordering::SeqCst);
        // Ends the waiting in `accept`.
        let _ = rustix::net::shutdown(&self.group.listener, Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            // The thread has already reported a panic.
            drop(thread.join());
        }
    }
}

/// The bits of a number that say whose it is, its highest.
const SLOT_BITS: u32 = 5;
/// Sockets of a group that are a process's own.
pub const SLOTS: usize = 1 << SLOT_BITS;
/// The place of the socket for requests, behind them.
pub const REQUESTS: usize = SLOTS;
/// All sockets of a group.
pub const SOCKETS: usize = SLOTS + 1;
const QPN_BITS: u32 = 24;
/// Where a management datagram begins in a UD packet, behind its headers.
const MAD_AT: usize = Bth::BYTES + Deth::BYTES;
/// Where they say what message they are.
const ATTRIBUTE_AT: usize = MAD_AT + 16;
/// Where they have the sender's number of the connection (12.6), in an answer about a datagram service the receiver's.
const LOCAL_COMM_ID_AT: usize = MAD_AT + 24;
/// Where they have the receiver's. In a request, which has none yet, these bytes are 0.
const REMOTE_COMM_ID_AT: usize = LOCAL_COMM_ID_AT + 4;

/// The slot in a QP number.
pub const fn slot_of(qpn: u32) -> u8 {
    (qpn >> (QPN_BITS - SLOT_BITS)) as u8 & (SLOTS - 1) as u8
}

/// The QP number with another slot.
pub const fn with_slot(qpn: u32, slot: u8) -> u32 {
    let own_bits = QPN_BITS - SLOT_BITS;
    (slot as u32) << own_bits | qpn & ((1 << own_bits) - 1)
}

/// Makes the group of an address. None of its sockets takes packets yet.
///
/// # Errors
/// The socket call that failed; EADDRINUSE if somebody has the address, be it another group.
pub fn make_group(address: IpAddr) -> io::Result<Vec<Socket>> {
    let name = (address, UDP_PORT).into();
    // Without the option it fails if there is a group already, which this one would enlarge.
    Socket::udp(address)?.bind(name)?;
    let sockets: Vec<Socket> = repeat_with(|| {
        let socket = Socket::udp(address)?;
        socket.set(libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
        refuse_incoming(&socket)?;
        socket.bind(name)?;
        Ok(socket)
    })
    .take(SOCKETS)
    .collect::<io::Result<_>>()?;
    if let Some(any) = sockets.first() {
        pick_by(any, &mut slot_of_packet())?;
    }
    Ok(sockets)
}

fn slot_of_packet() -> [sock_filter; 14] {
    const LOAD: u32 = libc::BPF_LD | libc::BPF_ABS;
    const SHIFT: u32 = libc::BPF_ALU | libc::BPF_RSH | libc::BPF_K;
    const PICK: sock_filter = instruction(libc::BPF_RET | libc::BPF_A, 0);
    let qpn_mask = (1 << QPN_BITS) - 1;
    [
        // Four bytes, of which the first is reserved.
        instruction(LOAD | libc::BPF_W, Bth::DESTINATION_QPN_AT as u32 - 1),
        instruction(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, qpn_mask),
        skip_if_equal(GSI_QPN, 2),
        instruction(SHIFT, QPN_BITS - SLOT_BITS),
        PICK,
        instruction(LOAD | libc::BPF_H, ATTRIBUTE_AT as u32),
        // A request for a datagram service has something else where others have the receiver's number.
        skip_if_equal(SIDR_REQ.into(), 6),
        skip_if_equal(SIDR_REP.into(), 2),
        instruction(LOAD | libc::BPF_W, REMOTE_COMM_ID_AT as u32),
        sock_filter { jf: 1, ..skip_if_equal(0, 3) },
        instruction(LOAD | libc::BPF_W, LOCAL_COMM_ID_AT as u32),
        instruction(SHIFT, u32::BITS - SLOT_BITS),
        PICK,
        instruction(libc::BPF_RET | libc::BPF_K, REQUESTS as u32),
    ]
}
