//! Receiving: takes many datagrams per system call, splits each into the packets of its GSO batch, and checks their
//! CRCs. A packet to a QP that does not exist costs no CRC.
//!
//! # Requests
//!
//! Requests of connection managers to an address that several processes share: they name a service, which one of the
//! processes offers. Any process takes a request from the group's socket for them, and hands it on to the one that has the
//! service's abstract name (unix(7)), `softroce/USER/ADDRESS/service/NUMBER`: so a name says who listens and is where requests
//! come, and goes with the process, however it ends.

use std::io;
use std::mem::{self, zeroed};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram};
use std::sync::Arc;

use rustix::net::sockopt;

use super::address::name_of;
use super::capture::{Capture, Route};
use super::common::{Common, Counters, Tap};
use super::fabric::Attachment;
use super::gso_batch::icrc_addresses;
use super::identification::Identification;
use super::impairment::{Impairment, Transit};
use super::inbox::Inbox;
use super::sockets::{BATCH, Batch, Datagram, Socket, accept_incoming, is_marked, known_hop_limit};
use crate::wire::{Bth, ICRC_BYTES, IcrcSeed, UDP_PORT, as_ipv6};

/// Bytes of the shortest packet.
const SHORTEST: usize = Bth::BYTES + ICRC_BYTES;
/// Packets after which a call receives no more.
const ENOUGH: usize = 256;

/// How long packets of strangers may wait in a socket that is not needed for anything else.
const STRANGERS_WAIT_NS: u64 = 20_000;

/// A received packet with the right invariant CRC.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    pub source: SocketAddr,
    /// Type of service or traffic class, and time to live or hop limit; 0 if the system does not tell.
    pub traffic_class: u8,
    pub hop_limit: u8,
    /// From the base transport header to the end of the padding, without the CRC.
    pub bytes: &'a [u8],
}

impl Arrival<'_> {
    /// Whether it came through congestion.
    pub fn is_marked(&self) -> bool {
        is_marked(self.traffic_class)
    }
}

/// The receiving half of an address.
pub struct Receiver {
    common: Common,
    socket: Attachment,
    /// For packets of this process.
    inbox: Option<Arc<Inbox>>,
    from_inbox: Batch,
    batch: Batch,
    /// Datagrams that the next call requests: one after a call without any, because requesting a second delays the
    /// first; many after a call with some, because it may be a stream.
    ask: usize,
    /// Whether the last call left nothing in the socket.
    drained: bool,
    /// When a call last looked at the socket, where most do not.
    looked_ns: u64,
    check: Check,
    /// The kernel's count of datagrams that found no room in the socket; it wraps.
    socket_drops: u32,
    faults: Option<Box<Impairment<Origin>>>,
    capture: Option<Arc<Capture>>,
}

/// The sender of a packet, its index in its GSO batch, and its traffic class and hop limit when it came.
type Origin = (SocketAddr, usize, u8, u8);

impl Receiver {
    pub(super) fn new(
        common: Common,
        socket: Attachment,
        faults: Option<Impairment<Origin>>,
    ) -> Receiver {
        Receiver {
            socket,
            inbox: None,
            from_inbox: Batch::default(),
            batch: Batch::new(),
            ask: 1,
            drained: true,
            looked_ns: 0,
            check: Check { address: common.address, identification: Identification::new() },
            socket_drops: 0,
            faults: faults.map(Box::new),
            common,
            capture: None,
        }
    }

    pub(super) fn capture_to(&mut self, capture: Arc<Capture>) {
        self.capture = Some(capture);
    }

    pub(super) fn take_from(&mut self, inbox: Arc<Inbox>) {
        self.inbox = Some(inbox);
    }

    /// Where packets of this process come, if not by the socket.
    pub fn inbox(&self) -> Option<&Arc<Inbox>> {
        self.inbox.as_ref()
    }

    pub(super) fn socket(&self) -> Option<&Socket> {
        match &self.socket {
            Attachment::Udp(socket) => Some(socket),
            Attachment::Fabric(..) => None,
        }
    }

    /// From now on each [`Arrival`] has its hop limit.
    pub fn see_hop_limits(&self) {
        self.socket().into_iter().for_each(Socket::see_hop_limits);
    }

    /// The socket, which is readable when packets wait.
    pub fn fd(&self) -> RawFd {
        self.socket.fd()
    }

    /// Passes the packets that have arrived, up to a few hundred, to `each` without waiting; returns their number. Asks
    /// `knows` first, unless the tap records, whether there is a QP of this number.
    pub fn receive(
        &mut self,
        knows: impl Fn(u32) -> bool,
        mut each: impl FnMut(Arrival<'_>),
    ) -> usize {
        let (mut handed_over, still_some) = self.receive_from_inbox(&knows, &mut each);
        if !self.should_look_at_socket() {
            self.drained = !still_some;
            return handed_over + self.hand_over_due(&knows, &mut each);
        }
        let mut left = ENOUGH;
        while left > 0 {
            let requested = self.ask;
            // An error of the socket does not concern our packets; the next call may succeed.
            let datagrams = self.socket.receive(&mut self.batch, requested).unwrap_or(0);
            self.ask = if datagrams == 0 { 1 } else { BATCH };
            self.drained = datagrams < requested && !still_some;
            if datagrams == 0 {
                break;
            }
            let mut batch = mem::take(&mut self.batch);
            let (packets, good) = self.hand_over(batch.datagrams(datagrams), &knows, &mut each);
            self.batch = batch;
            handed_over += good;
            left = left.saturating_sub(packets);
            if datagrams < BATCH {
                break;
            }
        }
        handed_over + self.hand_over_due(&knows, &mut each)
    }

    /// Whether packets may be in the socket. While the device sends to this process alone only strangers use it.
    fn should_look_at_socket(&mut self) -> bool {
        if self.inbox.as_ref().is_none_or(|inbox| inbox.has_company()) {
            return true;
        }
        let now_ns = self.common.clock.now_ns();
        let looks = now_ns.saturating_sub(self.looked_ns) >= STRANGERS_WAIT_NS;
        if looks {
            self.looked_ns = now_ns;
        }
        looks
    }

    /// Passes on packets from the inbox. Returns their number, and whether more wait there.
    fn receive_from_inbox(
        &mut self,
        knows: &impl Fn(u32) -> bool,
        each: &mut impl FnMut(Arrival<'_>),
    ) -> (usize, bool) {
        let (mut handed_over, mut left) = (0, ENOUGH);
        while left > 0 {
            let Some(inbox) = &self.inbox else {
                break;
            };
            let datagrams = inbox.receive(&mut self.from_inbox);
            if datagrams == 0 {
                return (handed_over, false);
            }
            let mut batch = mem::take(&mut self.from_inbox);
            let (packets, good) = self.hand_over(batch.datagrams(datagrams), knows, each);
            self.from_inbox = batch;
            handed_over += good;
            left = left.saturating_sub(packets);
        }
        (handed_over, self.inbox.as_ref().is_some_and(|inbox| inbox.has_some()))
    }

    /// Whether the last call left nothing in the socket.
    pub fn is_drained(&self) -> bool {
        self.drained
    }

    /// Returns how many packets came, and how many passed the checks.
    fn hand_over<'b>(
        &mut self,
        datagrams: impl Iterator<Item = Datagram<'b>>,
        knows: &impl Fn(u32) -> bool,
        each: &mut impl FnMut(Arrival<'_>),
    ) -> (usize, usize) {
        let mut tally = Tally::default();
        let is_down = self.common.is_down();
        let mut count = 0;
        for datagram in datagrams {
            count += 1;
            if let Some(drops) = datagram.drops {
                let more = drops.wrapping_sub(self.socket_drops);
                self.socket_drops = drops;
                self.common.counters.socket_drops.add(more.into());
            }
            tally.bytes += datagram.bytes.len() as u64;
            let segment_bytes = match datagram.segment_bytes {
                0 => datagram.bytes.len().max(1),
                bytes => bytes,
            };
            if is_down {
                let packets = datagram.bytes.len().div_ceil(segment_bytes) as u64;
                tally.packets += packets;
                self.common.counters.receive_faults.dropped.add(packets);
                continue;
            }
            if let Some(capture) = &self.capture {
                self.check.capture(capture, &datagram, segment_bytes);
            }
            let source = datagram.source.ip();
            let is_faulty = self.common.faulty_peer.is_none_or(|peer| peer == source);
            let mut link = self.faults.as_mut().filter(|_| is_faulty);
            let now_ns = link.as_ref().map_or(0, |_| self.common.clock.now_ns());
            let tap = self.common.tap.recording();
            let mut seed = Seed::default();
            let Datagram { source: sender, traffic_class, hop_limit, .. } = datagram;
            for (place, segment) in datagram.bytes.chunks(segment_bytes).enumerate() {
                tally.packets += 1;
                if let Some(link) = &mut link {
                    let opcode = segment.first().copied().unwrap_or_default();
                    let fate = link.draw(now_ns, opcode);
                    if !link.passes(&[fate]) {
                        let packet = Transit {
                            context: (sender, place, traffic_class, hop_limit),
                            source_port: sender.port(),
                            traffic_class,
                            bytes: segment.to_vec(),
                        };
                        link.enter(now_ns, fate, packet, &self.common.counters.receive_faults);
                        continue;
                    }
                }
                let packet = Arrival { source: sender, traffic_class, hop_limit, bytes: segment };
                let verdict = self.check.check(tap, &mut seed, place, packet, knows);
                tally.hand_over(verdict, packet, each);
            }
        }
        tally.report(&self.common.counters, count);
        (tally.packets as usize, tally.good)
    }

    /// Passes on the delayed packets that are due.
    fn hand_over_due(
        &mut self,
        knows: &impl Fn(u32) -> bool,
        each: &mut impl FnMut(Arrival<'_>),
    ) -> usize {
        let Some(link) = &mut self.faults else {
            return 0;
        };
        let mut tally = Tally::default();
        let counts = &self.common.counters.receive_faults;
        while let Some(packet) = link.leave(self.common.clock.now_ns(), counts) {
            let (source, place, traffic_class, hop_limit) = packet.context;
            if packet.traffic_class != traffic_class {
                counts.marked.add(1);
            }
            let tap = self.common.tap.recording();
            let packet = Arrival {
                source,
                traffic_class: packet.traffic_class,
                hop_limit,
                bytes: &packet.bytes,
            };
            let verdict = (self.check).check(tap, &mut Seed::default(), place, packet, knows);
            tally.hand_over(verdict, packet, each);
        }
        tally.report(&self.common.counters, 0);
        tally.good
    }

    /// When the next delayed packet is due.
    pub fn next_due_ns(&self) -> Option<u64> {
        self.faults.as_ref()?.next_due_ns()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if let Some(inbox) = &self.inbox {
            inbox.close();
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    Good,
    Short,
    /// `knows` knew no such QP.
    UnknownQp,
    BadIcrc,
}

/// The counts of one call; they are added to the shared counters once.
#[derive(Default)]
struct Tally {
    packets: u64,
    bytes: u64,
    short: u64,
    bad_icrc: u64,
    good: usize,
}

impl Tally {
    fn hand_over(
        &mut self,
        verdict: Verdict,
        packet: Arrival<'_>,
        each: &mut impl FnMut(Arrival<'_>),
    ) {
        match verdict {
            Verdict::Short => self.short += 1,
            Verdict::UnknownQp => {}
            Verdict::BadIcrc => self.bad_icrc += 1,
            Verdict::Good => {
                self.good += 1;
                let end = packet.bytes.len().saturating_sub(ICRC_BYTES);
                let bytes = packet.bytes.get(..end).unwrap_or_default();
                each(Arrival { bytes, ..packet });
            }
        }
    }

    fn report(&self, counters: &Counters, datagrams: usize) {
        counters.received.datagrams.add(datagrams as u64);
        counters.received.packets.add(self.packets);
        counters.received.bytes.add(self.bytes);
        if self.short + self.bad_icrc > 0 {
            counters.short.add(self.short);
            counters.bad_icrc.add(self.bad_icrc);
        }
    }
}

/// The CRC seed of a datagram's packets of one length; at first of none.
#[derive(Default)]
struct Seed {
    packet_bytes: usize,
    seed: Option<IcrcSeed>,
}

struct Check {
    address: IpAddr,
    identification: Identification,
}

impl Check {
    /// Adds the packets of a datagram to a capture.
    #[cold]
    fn capture(&mut self, capture: &Capture, datagram: &Datagram<'_>, segment_bytes: usize) {
        let source = datagram.source;
        let route = Route {
            source,
            destination: (self.address, UDP_PORT).into(),
            traffic_class: datagram.traffic_class,
            hop_limit: known_hop_limit(datagram.hop_limit),
        };
        let packets = datagram.bytes.chunks(segment_bytes);
        let identifications: Vec<u16> = (packets.clone().enumerate())
            .map(|(place, packet)| self.identification_of(source, place, packet))
            .collect();
        capture.add(&route, identifications.into_iter().zip(packets));
    }

    /// The identification that the CRC tells; that of `place` if it tells none.
    fn identification_of(&mut self, source: SocketAddr, place: usize, packet: &[u8]) -> u16 {
        let index = place as u16;
        let addresses = icrc_addresses(source.ip(), self.address);
        let seed = IcrcSeed::new(addresses, source.port(), packet.len());
        let Some((body, tail)) = packet.split_last_chunk::<ICRC_BYTES>() else {
            return index;
        };
        let difference = seed.flip_identification(index).over(body) ^ u32::from_le_bytes(*tail);
        self.identification.solve(index, difference, body.len()).unwrap_or(index)
    }

    /// Checks a packet with its CRC, and records it with the tap, if one does.
    fn check(
        &mut self,
        tap: Option<&Tap>,
        seed: &mut Seed,
        place: usize,
        packet: Arrival<'_>,
        knows: &impl Fn(u32) -> bool,
    ) -> Verdict {
        let Some(tap) = tap else {
            return self.verdict(seed, place, packet, knows);
        };
        // Of a packet to no QP, too, the tap records whether the CRC is right.
        let verdict = self.verdict(seed, place, packet, &|_| true);
        tap.received(packet.source.ip(), packet.bytes, verdict == Verdict::Good);
        verdict
    }

    fn verdict(
        &mut self,
        seed: &mut Seed,
        place: usize,
        packet: Arrival<'_>,
        knows: &impl Fn(u32) -> bool,
    ) -> Verdict {
        let (source, packet) = (packet.source, packet.bytes);
        let header = packet.first_chunk::<{ Bth::BYTES }>();
        let Some(header) = header.filter(|_| packet.len() >= SHORTEST) else {
            return Verdict::Short;
        };
        if !knows(Bth::destination_qpn_of(header)) {
            return Verdict::UnknownQp;
        }
        if seed.packet_bytes != packet.len() {
            seed.packet_bytes = packet.len();
            let addresses = icrc_addresses(source.ip(), self.address);
            seed.seed = Some(IcrcSeed::new(addresses, source.port(), packet.len()));
        }
        let Some((body, tail)) = packet.split_last_chunk::<ICRC_BYTES>() else {
            return Verdict::Short;
        };
        let Some(seed) = seed.seed else {
            return Verdict::BadIcrc;
        };
        let written = u32::from_le_bytes(*tail);
        let good = match source {
            SocketAddr::V6(_) => seed.over(body) == written,
            SocketAddr::V4(_) => {
                let guess = self.identification.guess(source.ip(), place);
                let difference = seed.flip_identification(guess).over(body) ^ written;
                self.identification.takes(source.ip(), guess, difference, body.len())
            }
        };
        if good { Verdict::Good } else { Verdict::BadIcrc }
    }
}

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

fn name_of_service(address: IpAddr, service: u64) -> io::Result<UnixAddress> {
    name_of(address, format_args!("service/{service:x}"))
}

/// A datagram's length, and the user that sent it (SO_PASSCRED). Not by rustix, which takes no sender of another PID
/// namespace, whose process is 0 here.
#[allow(unsafe_code)]
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
