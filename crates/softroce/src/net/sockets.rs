//! The system calls, in safe functions or with a documented contract: UDP sockets that send and receive many packets at
//! once, explicit congestion notification (RFC 3168, section 5), programs that the kernel runs for each packet (classic
//! BPF), threads of the library's own, and how they sleep.
#![allow(unsafe_code)]

use std::mem::{MaybeUninit, size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::{io, ptr, slice};

use libc::{c_int, sock_filter, socklen_t};
use rustix::event::epoll;

/// Sending sockets of an address. The kernel and routers spread packets by source port.
pub const SENDING_SOCKETS: usize = 16;
/// The most datagrams that one call receives.
pub const BATCH: usize = 8;
/// Bytes of the longest datagram.
pub const DATAGRAM_BYTES: usize = 1 << 16;
/// Room for four control messages of an int, aligned as they must be.
type Control = [u64; 12];

/// The options of one send.
#[derive(Clone, Copy, Debug)]
pub struct SendOptions {
    pub destination: SocketAddr,
    /// Type of service or traffic class. [`ECT_0`], the sending sockets' own, costs nothing.
    pub traffic_class: u8,
    /// Time to live or hop limit; 0 uses the system's.
    pub hop_limit: u8,
    /// Length of a segment, if the kernel is to split the bytes (UDP GSO).
    pub segment_bytes: Option<u16>,
}

impl SendOptions {
    /// Whether only the destination differs from the socket's own options.
    fn is_plain(&self) -> bool {
        self.traffic_class == ECT_0 && self.hop_limit == 0 && self.segment_bytes.is_none()
    }
}

/// The hop limit of a packet; for 0, which was not set or is not told, the one that systems usually have.
pub fn known_hop_limit(hop_limit: u8) -> u8 {
    if hop_limit == 0 { 64 } else { hop_limit }
}

pub struct Socket(OwnedFd);

impl From<OwnedFd> for Socket {
    /// A UDP socket that [`Socket::udp`] made, by another descriptor.
    fn from(descriptor: OwnedFd) -> Socket {
        Socket(descriptor)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Socket {
    /// A socket of this address' family; an IPv6 one accepts no IPv4.
    pub fn udp(family_of: IpAddr) -> io::Result<Socket> {
        let family = match family_of {
            IpAddr::V4(_) => libc::AF_INET,
            IpAddr::V6(_) => libc::AF_INET6,
        };
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: takes no pointers; a descriptor that is returned is ours alone.
        let socket = unsafe {
            let fd = checked(libc::socket(family, kind, 0))?;
            Socket(OwnedFd::from_raw_fd(fd))
        };
        if family_of.is_ipv6() {
            socket.set(libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
        }
        Ok(socket)
    }

    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// The same socket by another descriptor.
    pub fn duplicate(&self) -> io::Result<Socket> {
        self.0.try_clone().map(Socket)
    }

    /// Binds to an address and port.
    pub fn bind(&self, address: SocketAddr) -> io::Result<()> {
        let (name, length) = name_of(address);
        // SAFETY: `name` holds an address of `length` bytes.
        checked(unsafe { libc::bind(self.fd(), (&raw const name).cast(), length) }).map(drop)
    }

    pub fn set(&self, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
        let length = size_of::<c_int>() as socklen_t;
        // SAFETY: the pointer is to an int, as `length` says.
        checked(unsafe {
            libc::setsockopt(self.fd(), level, option, (&raw const value).cast(), length)
        })
        .map(drop)
    }

    pub fn get(&self, level: c_int, option: c_int) -> io::Result<c_int> {
        let mut value: c_int = 0;
        let mut length = size_of::<c_int>() as socklen_t;
        // SAFETY: the pointers are to an int and to its length.
        checked(unsafe {
            libc::getsockopt(self.fd(), level, option, (&raw mut value).cast(), &raw mut length)
        })?;
        Ok(value)
    }

    /// The time to live or hop limit of packets that set none.
    pub fn hop_limit(&self) -> io::Result<u8> {
        let v6 = self.get(libc::SOL_SOCKET, libc::SO_DOMAIN)? == libc::AF_INET6;
        let limit = if v6 {
            self.get(libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS)
        } else {
            self.get(libc::IPPROTO_IP, libc::IP_TTL)
        };
        Ok(limit? as u8)
    }

    /// Makes the system tell the hop limits of what comes, which costs a little each time. Without it they are unknown.
    pub fn see_hop_limits(&self) {
        let _ = self.set(libc::IPPROTO_IP, libc::IP_RECVTTL, 1);
        let _ = self.set(libc::IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT, 1);
    }

    /// Sends the pieces as one datagram, or as one split into segments; never blocks.
    ///
    /// # Safety
    /// The pieces are readable.
    pub unsafe fn send(&self, pieces: &[libc::iovec], options: &SendOptions) -> io::Result<()> {
        let (mut name, name_length) = name_of(options.destination);
        if let ([piece], true) = (pieces, options.is_plain()) {
            // `send` is the faster call.
            // SAFETY: the piece is readable, as the caller vouches; `name` holds an address of that length.
            let sent = unsafe {
                libc::sendto(
                    self.fd(),
                    piece.iov_base,
                    piece.iov_len,
                    libc::MSG_NOSIGNAL,
                    (&raw const name).cast(),
                    name_length,
                )
            };
            return checked(sent).map(drop);
        }
        let mut control: Control = [0; 12];
        // SAFETY: a message header of zeroes is an empty one.
        let mut message: libc::msghdr = unsafe { zeroed() };
        message.msg_name = (&raw mut name).cast();
        message.msg_namelen = name_length;
        message.msg_iov = pieces.as_ptr().cast_mut();
        message.msg_iovlen = pieces.len() as _;
        let used = put_control(&mut control, options);
        if used > 0 {
            message.msg_control = (&raw mut control).cast();
            message.msg_controllen = used as _;
        }
        // SAFETY: name, control and pieces outlive the call, which writes to none of them.
        let sent = unsafe { libc::sendmsg(self.fd(), &raw const message, libc::MSG_NOSIGNAL) };
        checked(sent).map(drop)
    }

    /// Receives up to `most` datagrams, at most [`BATCH`]; returns their number, 0 if none wait.
    pub fn receive(&self, batch: &mut Batch, most: usize) -> io::Result<usize> {
        let room = most.min(BATCH);
        // SAFETY: headers of zeroes are empty ones.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { zeroed() };
        // SAFETY: as above, for pieces of no bytes.
        let mut pieces: [libc::iovec; BATCH] = unsafe { zeroed() };
        for ((slot, piece), message) in
            batch.0.iter_mut().zip(&mut pieces).zip(&mut messages).take(room)
        {
            piece.iov_base = slot.bytes.as_mut_ptr().cast();
            piece.iov_len = slot.bytes.len();
            let header = &mut message.msg_hdr;
            header.msg_name = slot.name.as_mut_ptr().cast();
            header.msg_namelen = size_of::<libc::sockaddr_in6>() as socklen_t;
            header.msg_iov = piece;
            header.msg_iovlen = 1;
            header.msg_control = slot.control.as_mut_ptr().cast();
            header.msg_controllen = size_of::<Control>() as _;
        }
        // SAFETY: every header points to a name, a piece and control bytes of the sizes it says, which are lent to
        // us for writing and outlive the call.
        let result = unsafe {
            libc::recvmmsg(
                self.fd(),
                messages.as_mut_ptr(),
                room as u32,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        };
        if result < 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR) => Ok(0),
                _ => Err(error),
            };
        }
        let received = result as usize;
        for (slot, message) in batch.0.iter_mut().zip(&messages).take(received) {
            slot.length = (message.msg_len as usize).min(slot.bytes.len());
            // SAFETY: the kernel filled in this header's name and control bytes.
            unsafe {
                slot.source = source_of(&slot.name);
                slot.metadata = Metadata::by(&message.msg_hdr);
            }
        }
        Ok(received)
    }
}

/// These bytes as a piece, readable while they are borrowed.
pub fn piece_of(bytes: &[u8]) -> libc::iovec {
    libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
}

/// A copy of all pieces.
///
/// # Safety
/// They are readable.
pub unsafe fn copied(pieces: &[libc::iovec]) -> Vec<u8> {
    let mut copy = Vec::with_capacity(pieces.iter().map(|piece| piece.iov_len).sum());
    for piece in pieces {
        // SAFETY: the caller's promise.
        copy.extend_from_slice(unsafe {
            slice::from_raw_parts(piece.iov_base.cast(), piece.iov_len)
        });
    }
    copy
}

/// Received datagrams, or memory for them.
#[derive(Default)]
pub struct Batch(pub Vec<Slot>);

pub struct Slot {
    bytes: Box<[u8]>,
    name: MaybeUninit<libc::sockaddr_in6>,
    control: Control,
    length: usize,
    source: Option<SocketAddr>,
    metadata: Metadata,
}

impl Slot {
    /// Memory for a datagram of so many bytes.
    pub fn with_room(bytes: usize) -> Slot {
        Slot {
            bytes: vec![0; bytes].into_boxed_slice(),
            name: MaybeUninit::zeroed(),
            control: [0; 12],
            length: 0,
            source: None,
            metadata: Metadata::default(),
        }
    }

    /// The most bytes of a datagram.
    pub fn room_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of its datagram.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Makes it the datagram of these pieces, as sent with these options. What does not fit is left out.
    ///
    /// # Safety
    /// The pieces are readable.
    pub unsafe fn fill_from(
        &mut self,
        source: SocketAddr,
        pieces: &[libc::iovec],
        options: &SendOptions,
    ) {
        let metadata = Metadata {
            segment_bytes: options.segment_bytes.map_or(0, usize::from),
            drops: None,
            traffic_class: options.traffic_class,
            hop_limit: known_hop_limit(options.hop_limit),
        };
        // SAFETY: as the caller's.
        unsafe { self.put(source, pieces, metadata) };
    }

    /// # Safety
    /// The pieces are readable.
    unsafe fn put(&mut self, source: SocketAddr, pieces: &[libc::iovec], metadata: Metadata) {
        let mut room = &mut *self.bytes;
        for piece in pieces {
            let bytes = piece.iov_len.min(room.len());
            let (place, rest) = room.split_at_mut(bytes);
            // SAFETY: as many bytes are readable, as the caller vouches, and writable; a slot's are nobody else's.
            unsafe {
                ptr::copy_nonoverlapping(piece.iov_base.cast(), place.as_mut_ptr(), bytes);
            }
            room = rest;
        }
        let left = room.len();
        self.length = self.bytes.len() - left;
        self.source = Some(source);
        self.metadata = metadata;
    }

    /// Makes it a datagram that came by other means than a socket.
    pub fn fill(
        &mut self,
        source: SocketAddr,
        (traffic_class, hop_limit): (u8, u8),
        segment_bytes: usize,
        drops: u32,
        bytes: &[u8],
    ) {
        let metadata = Metadata { segment_bytes, drops: Some(drops), traffic_class, hop_limit };
        // SAFETY: the bytes are borrowed until the call is over.
        unsafe { self.put(source, &[piece_of(bytes)], metadata) };
    }
}

/// A received datagram: the packets of a GSO batch in sequence.
pub struct Datagram<'a> {
    pub source: SocketAddr,
    /// Length of a segment; the last may be shorter. 0 if there is only one.
    pub segment_bytes: usize,
    /// The kernel's count, which wraps, of datagrams for which the socket had no room before it. `None` is none.
    pub drops: Option<u32>,
    /// Type of service or traffic class, the same for all of a GSO batch; 0 if the system does not tell.
    pub traffic_class: u8,
    /// Time to live or hop limit, as far as [`Socket::see_hop_limits`] makes the system tell; otherwise 0.
    pub hop_limit: u8,
    pub bytes: &'a mut [u8],
}

impl Batch {
    /// Memory for [`BATCH`] of the longest datagrams.
    pub fn new() -> Batch {
        Batch(std::iter::repeat_with(|| Slot::with_room(DATAGRAM_BYTES)).take(BATCH).collect())
    }

    /// The first `count` datagrams, as many as [`Socket::receive`] returned.
    pub fn datagrams(&mut self, count: usize) -> impl Iterator<Item = Datagram<'_>> {
        self.0.iter_mut().take(count).filter_map(|slot| {
            Some(Datagram {
                source: slot.source?,
                segment_bytes: slot.metadata.segment_bytes,
                drops: slot.metadata.drops,
                traffic_class: slot.metadata.traffic_class,
                hop_limit: slot.metadata.hop_limit,
                bytes: slot.bytes.get_mut(..slot.length)?,
            })
        })
    }
}

/// Makes a descriptor refer to nothing of use, without freeing its number: its owner will close it. Async-signal-safe.
pub fn let_go(fd: RawFd) {
    // SAFETY: takes no pointers; what was opened is closed, and `fd` stays open.
    unsafe {
        let nothing = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
        if nothing >= 0 {
            libc::dup3(nothing, fd, libc::O_CLOEXEC);
            libc::close(nothing);
        }
    }
}

/// The monotonic clock, in nanoseconds.
pub fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn checked<N: Default + PartialOrd>(result: N) -> io::Result<N> {
    if result < N::default() {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// An address in the kernel's form, with its length. Both forms start with the family.
fn name_of(address: SocketAddr) -> (libc::sockaddr_in6, socklen_t) {
    // SAFETY: all zeroes is an address of no family.
    let mut name: libc::sockaddr_in6 = unsafe { zeroed() };
    match address {
        SocketAddr::V4(v4) => {
            // SAFETY: as above.
            let mut short: libc::sockaddr_in = unsafe { zeroed() };
            short.sin_family = libc::AF_INET as _;
            short.sin_port = v4.port().to_be();
            short.sin_addr.s_addr = u32::from_ne_bytes(v4.ip().octets());
            // SAFETY: an IPv4 address is the shorter one and no stricter aligned.
            unsafe { (&raw mut name).cast::<libc::sockaddr_in>().write(short) };
            (name, size_of::<libc::sockaddr_in>() as socklen_t)
        }
        SocketAddr::V6(v6) => {
            name.sin6_family = libc::AF_INET6 as _;
            name.sin6_port = v6.port().to_be();
            name.sin6_addr.s6_addr = v6.ip().octets();
            name.sin6_scope_id = v6.scope_id();
            (name, size_of::<libc::sockaddr_in6>() as socklen_t)
        }
    }
}

/// # Safety
/// The kernel has written an address there.
unsafe fn source_of(name: &MaybeUninit<libc::sockaddr_in6>) -> Option<SocketAddr> {
    // SAFETY: it was zeroed at first, and every byte pattern is an address.
    let long = unsafe { name.assume_init_ref() };
    match c_int::from(long.sin6_family) {
        libc::AF_INET => {
            // SAFETY: the family says that an IPv4 address is there; it is shorter and no stricter aligned.
            let short = unsafe { name.as_ptr().cast::<libc::sockaddr_in>().read() };
            let ip = Ipv4Addr::from(short.sin_addr.s_addr.to_ne_bytes());
            Some((ip, u16::from_be(short.sin_port)).into())
        }
        libc::AF_INET6 => {
            let ip = Ipv6Addr::from(long.sin6_addr.s6_addr);
            let port = u16::from_be(long.sin6_port);
            Some(SocketAddrV6::new(ip, port, 0, long.sin6_scope_id).into())
        }
        _ => None,
    }
}

/// Writes the control messages of the options; returns the bytes used.
fn put_control(control: &mut Control, options: &SendOptions) -> usize {
    let (ip_level, class, hops) = match options.destination {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TOS, libc::IP_TTL),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS, libc::IPV6_HOPLIMIT),
    };
    let mut used = 0;
    let mut put = |level: c_int, kind: c_int, value: &[u8]| {
        // SAFETY: these only compute. A header, an int and its padding are at most 24 bytes each, three of them 72 of
        // the 96 that there are; a header's alignment is at most 8, as is the buffer's and each step.
        unsafe {
            let header = (&raw mut *control).cast::<u8>().add(used).cast::<libc::cmsghdr>();
            (*header).cmsg_level = level;
            (*header).cmsg_type = kind;
            (*header).cmsg_len = libc::CMSG_LEN(value.len() as u32) as _;
            ptr::copy_nonoverlapping(value.as_ptr(), libc::CMSG_DATA(header), value.len());
            used += libc::CMSG_SPACE(value.len() as u32) as usize;
        }
    };
    if let Some(bytes) = options.segment_bytes {
        put(libc::SOL_UDP, libc::UDP_SEGMENT, &bytes.to_ne_bytes());
    }
    if options.traffic_class != ECT_0 {
        let value = c_int::from(options.traffic_class);
        put(ip_level, class, &value.to_ne_bytes());
    }
    if options.hop_limit != 0 {
        let value = c_int::from(options.hop_limit);
        put(ip_level, hops, &value.to_ne_bytes());
    }
    used
}

/// What the control messages of a message tell.
#[derive(Default)]
struct Metadata {
    /// The segment length, 0 if there is none.
    segment_bytes: usize,
    drops: Option<u32>,
    /// 0 if it is not told, as the next.
    traffic_class: u8,
    hop_limit: u8,
}

impl Metadata {
    /// # Safety
    /// The kernel has filled in the header, and its control bytes are still there.
    unsafe fn by(message: &libc::msghdr) -> Metadata {
        let mut metadata = Metadata::default();
        // SAFETY: the kernel wrote well-formed control messages, each an int or a u32 but for the type of service, which is a
        // byte, and walking them is what these are for.
        unsafe {
            let mut header = libc::CMSG_FIRSTHDR(message);
            while let Some(control) = header.as_ref() {
                let value = libc::CMSG_DATA(header).cast::<u32>();
                match (control.cmsg_level, control.cmsg_type) {
                    (libc::SOL_UDP, libc::UDP_GRO) => {
                        metadata.segment_bytes = value.read_unaligned() as usize;
                    }
                    (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                        metadata.drops = Some(value.read_unaligned());
                    }
                    (libc::IPPROTO_IP, libc::IP_TOS) => {
                        metadata.traffic_class = value.cast::<u8>().read();
                    }
                    (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                        metadata.traffic_class = value.read_unaligned() as u8;
                    }
                    (libc::IPPROTO_IP, libc::IP_TTL)
                    | (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => {
                        metadata.hop_limit = value.read_unaligned() as u8;
                    }
                    _ => {}
                }
                header = libc::CMSG_NXTHDR(message, header);
            }
        }
        metadata
    }
}

const MASK: u8 = 0b11;
/// ECN-capable transport: a congested switch marks the packet, where it would drop another. The class of packets from the
/// sending sockets that ask for no other.
pub const ECT_0: u8 = 0b10;
/// "Congestion experienced" (RFC 3168): what a switch writes there.
const CE: u8 = 0b11;

/// This class for packets that a switch may mark.
pub fn ecn_capable(traffic_class: u8) -> u8 {
    traffic_class & !MASK | ECT_0
}

/// The class that a congested switch gives to a packet of this one.
pub fn mark(traffic_class: u8) -> u8 {
    match traffic_class & MASK {
        0 => traffic_class,
        _ => traffic_class | CE,
    }
}

/// Whether a packet came through congestion.
pub fn is_marked(traffic_class: u8) -> bool {
    traffic_class & MASK == CE
}

/// An instruction of a program.
pub const fn instruction(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

/// Skips so many instructions if the accumulator is `k`.
pub const fn skip_if_equal(k: u32, skipped: u8) -> sock_filter {
    sock_filter { jt: skipped, ..instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, k) }
}

/// Installs a filter that drops all incoming packets, so that they take no memory.
pub fn refuse_incoming(socket: &Socket) -> io::Result<()> {
    let mut accept_no_byte = [instruction(libc::BPF_RET | libc::BPF_K, 0)];
    attach(socket, libc::SO_ATTACH_FILTER, &mut accept_no_byte)
}

/// Removes the filter of [`refuse_incoming`]; without one nothing happens.
pub fn accept_incoming(socket: &Socket) -> io::Result<()> {
    match socket.set(libc::SOL_SOCKET, libc::SO_DETACH_FILTER, 0) {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
        outcome => outcome,
    }
}

/// Gives each packet for the address of this socket to the socket of its group (SO_REUSEPORT) whose place the program
/// returns. A place that no socket has means any socket of the group, and a packet too short for the program the first.
pub fn pick_by(socket: &Socket, program: &mut [sock_filter]) -> io::Result<()> {
    attach(socket, libc::SO_ATTACH_REUSEPORT_CBPF, program)
}

fn attach(socket: &Socket, option: c_int, program: &mut [sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    let length = size_of::<libc::sock_fprog>() as socklen_t;
    // SAFETY: the program has as many instructions as it says; the kernel copies them.
    let outcome = unsafe {
        libc::setsockopt(socket.fd(), libc::SOL_SOCKET, option, (&raw const program).cast(), length)
    };
    if outcome < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

pub struct Wakeup(OwnedFd);

impl Wakeup {
    /// A wakeup that is not set.
    ///
    /// # Errors
    /// No more descriptors.
    pub fn new() -> io::Result<Wakeup> {
        // SAFETY: takes no pointers; a descriptor that is returned is ours alone.
        unsafe {
            let fd = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Wakeup(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// Wakes the sleeping thread, or ends its next sleep if it is awake.
    pub fn wake(&self) {
        let one = 1_u64.to_ne_bytes();
        // SAFETY: eight readable bytes. Failing means that the counter is full: the sleeper wakes anyway.
        unsafe { libc::write(self.0.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Sleeps until woken, until `socket` is readable or one of `full` has room, or for `at_most_ns` (for ever if
    /// `u64::MAX`). Descriptors below 0 count for nothing.
    pub fn wait(
        &self,
        socket: Option<RawFd>,
        full: Option<[RawFd; SENDING_SOCKETS]>,
        at_most_ns: u64,
    ) {
        let mut polls =
            [libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 }; 2 + SENDING_SOCKETS];
        polls[0].fd = self.0.as_raw_fd();
        polls[1].fd = socket.unwrap_or(-1);
        for (poll, fd) in polls[2..].iter_mut().zip(full.iter().flatten()) {
            (poll.fd, poll.events) = (*fd, libc::POLLOUT);
        }
        let count = if full.is_some() { polls.len() } else { 2 };
        self.wait_for_polls(&mut polls[..count], at_most_ns);
    }

    /// `polls` begins with the wakeup's own.
    fn wait_for_polls(&self, polls: &mut [libc::pollfd], at_most_ns: u64) {
        let time = libc::timespec {
            tv_sec: (at_most_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (at_most_ns % 1_000_000_000) as libc::c_long,
        };
        let time = if at_most_ns == u64::MAX { ptr::null() } else { &raw const time };
        let mut wakes = [0_u8; 8];
        // SAFETY: as many entries as there are, a time or null, no signal mask; then eight writable bytes. Whatever comes out, the
        // caller looks for work and may sleep again.
        unsafe {
            libc::ppoll(polls.as_mut_ptr(), polls.len() as _, time, ptr::null());
            if polls[0].revents != 0 {
                libc::read(self.0.as_raw_fd(), wakes.as_mut_ptr().cast(), wakes.len());
            }
        }
    }
}

/// Descriptors of which a thread waits for the first that is readable. poll(2) keeps each file, and so a socket's name, while
/// it sleeps; here what is removed is its owner's alone.
pub struct Watched {
    set: OwnedFd,
    /// A child of it has the same set.
    process: u32,
}

impl Watched {
    /// An empty set.
    ///
    /// # Errors
    /// No more descriptors.
    pub fn new() -> io::Result<Watched> {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Watched { set, process: std::process::id() })
    }

    /// Readable while one of them is.
    pub fn fd(&self) -> RawFd {
        self.set.as_raw_fd()
    }

    /// Adds a descriptor that is open until [`Watched::remove`].
    ///
    /// # Errors
    /// EIO in a child of the process that made the set, and what the system refuses.
    pub fn add(&self, fd: RawFd) -> io::Result<()> {
        if std::process::id() != self.process {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        // SAFETY: open, as the caller vouches.
        let source = unsafe { BorrowedFd::borrow_raw(fd) };
        let none = epoll::EventData::new_u64(0);
        Ok(epoll::add(&self.set, source, none, epoll::EventFlags::IN)?)
    }

    /// When it returns, nobody who waits has the descriptor's file.
    pub fn remove(&self, fd: RawFd) {
        if std::process::id() == self.process {
            // SAFETY: open, as the caller vouches. It fails for one that is not in the set.
            let _ = epoll::delete(&self.set, unsafe { BorrowedFd::borrow_raw(fd) });
        }
    }
}

/// Blocks all signals in the calling thread: they are for the program's threads.
pub fn block_signals() {
    // SAFETY: a set on the stack, filled before it is used.
    unsafe {
        let mut signals = zeroed();
        libc::sigfillset(&raw mut signals);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals, ptr::null_mut());
    }
}

/// Requests short time slices for the calling thread, which works for microseconds at a time. Linux 6.12 and later
/// then runs it at once when it wakes, instead of after the time slice of a thread that spins.
pub fn prefer_short_turns() {
    /// `struct sched_attr` of sched_setattr(2), in its first version.
    #[repr(C)]
    #[derive(Default)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime_ns: u64,
        deadline_ns: u64,
        period_ns: u64,
    }
    /// The shortest turn that Linux gives a thread.
    const TURN_NS: u64 = 100_000;
    let mut attributes = Attributes::default();
    let size = size_of::<Attributes>();
    // SAFETY: a struct of the size that is told, for the calling thread (0).
    let read = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    // A real-time or idle policy was chosen deliberately.
    if read != 0 || attributes.policy != libc::SCHED_OTHER.cast_unsigned() {
        return;
    }
    attributes.runtime_ns = TURN_NS;
    // SAFETY: as above. Failing changes nothing, and all works as well as it can then.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

#[cfg(test)]
mod tests {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram};
    use std::sync::Arc;

    use testing::wait::waiting;

    use super::*;

    #[test]
    fn a_kick_before_the_sleep_ends_it_and_no_other() {
        let wake = Wakeup::new().unwrap();
        wake.wake();
        wake.wait(None, None, u64::MAX);
        assert!(!testing::verbs_user::is_readable(wake.0.as_raw_fd()));
    }

    #[test]
    fn a_name_goes_with_its_owner_although_a_thread_waits() {
        let name = format!("softroce/test/{}", std::process::id());
        let name = UnixAddress::from_abstract_name(name).unwrap();
        let set = Arc::new((Wakeup::new().unwrap(), Watched::new().unwrap()));
        let first = UnixDatagram::bind_addr(&name).unwrap();
        set.1.add(first.as_raw_fd()).unwrap();
        let its = Arc::clone(&set);
        let thread = waiting(move || its.0.wait(Some(its.1.fd()), None, u64::MAX));
        set.1.remove(first.as_raw_fd());
        drop(first);
        let second = UnixDatagram::bind_addr(&name).unwrap();
        // The thread sees what is added while it waits.
        set.1.add(second.as_raw_fd()).unwrap();
        UnixDatagram::unbound().unwrap().send_to_addr(b"there", &name).unwrap();
        thread.join().unwrap();
    }
}
