//! Receiving: takes many datagrams per system call, splits each into the packets of its GSO batch, and checks their
//! CRCs. A packet to a QP that does not exist costs no CRC.
//!
//! # The IPv4 identification
//!
//! Finds the IPv4 identification of a received packet. The invariant CRC covers it, but a UDP socket does not show
//! it.
//!
//! Our own packets are numbered by their position in the GSO batch, so that number is tried first. If the CRC does
//! not match, the identification can be computed: the CRC is linear, so the difference between the packet's CRC and
//! the CRC for another identification is the flipped bits of the identification, moved to the CRC's end by a power of
//! x modulo the polynomial. Multiplying the difference by the inverse of that power gives the flipped bits, if and
//! only if the product is below x^16.
//!
//! This weakens the CRC: damaged bytes make an arbitrary difference of 32 bits, and 2^16 of these are
//! identifications. If any identification were allowed, one of 2^16 damaged packets would be accepted, where a CRC of
//! known headers accepts one of 2^32. So the allowed identifications depend on the sender:
//! - `Unknown`, at first: any. The first packet shows the kind of sender.
//! - `Indexed` numbers packets within a GSO batch, as Linux does for UDP sockets: below 128. Accepts one of 2^25
//!   damaged packets.
//! - `Counter` counts packets (the kernel's Soft-RoCE, most adapters): any. Accepts one of 2^16 damaged packets; UDP's
//!   checksum, if used, and Ethernet's CRC protect as well.
//!
//! An `Indexed` sender becomes a `Counter` when two packets in a row are refused whose identifications are within 256
//! of each other. Damage causes that with one packet of 2^24, and only directly after another one of 2^16. IPv6 has
//! no identification, so its CRC keeps its full strength.
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
use super::gso_batch::{MAX_GSO_BATCH_PACKETS, icrc_addresses};
use super::impairment::{Impairment, Transit};
use super::inbox::Inbox;
use super::sockets::{BATCH, Batch, Datagram, Socket, accept_incoming, is_marked, known_hop_limit};
use crate::wire::{
    BEHIND_IDENTIFICATION, Bth, ICRC_BYTES, IcrcSeed, ONE, UDP_PORT, as_ipv6, inverse_power,
    multiply,
};

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

/// The largest step of a counter between two of our packets.
const NEAR: u16 = 256;
/// Senders remembered; a sender that takes another's entry is `Unknown` again.
const SENDERS: usize = 256;
/// Powers remembered, one per length.
const LENGTHS: usize = 64;

/// How a sender sets the field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum IdPattern {
    #[default]
    Unknown,
    Indexed,
    Counter,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sender {
    address: Option<IpAddr>,
    pattern: IdPattern,
    /// Identification of the last packet, if it was refused because of it.
    refused: Option<u16>,
    /// The identification expected of a counter's next packet.
    expected: u16,
}

pub struct Identification {
    senders: Box<[Sender; SENDERS]>,
    inverses: Box<[(usize, u32); LENGTHS]>,
}

impl Identification {
    pub fn new() -> Identification {
        Identification {
            senders: Box::new([Sender::default(); SENDERS]),
            inverses: Box::new([(0, ONE); LENGTHS]),
        }
    }

    /// The most likely identification of a packet at index `place` of its datagram.
    pub fn guess(&mut self, source: IpAddr, place: usize) -> u16 {
        match self.sender(source) {
            Some(sender) if sender.pattern == IdPattern::Counter => sender.expected,
            _ => place as u16,
        }
    }

    /// Whether to accept a packet whose CRC differs by `difference` from the CRC for identification `guess`. `bytes`
    /// is its length from the base transport header to the CRC, without it.
    pub fn takes(&mut self, source: IpAddr, guess: u16, difference: u32, bytes: usize) -> bool {
        let Some(identification) = self.solve(guess, difference, bytes) else {
            return false;
        };
        self.sender(source).is_some_and(|sender| sender.takes(identification))
    }

    /// The identification of a packet whose CRC differs by `difference` from the CRC for identification `guess`; `None`
    /// if there is none, because the packet is damaged. `bytes` as for [`Identification::takes`].
    pub fn solve(&mut self, guess: u16, difference: u32, bytes: usize) -> Option<u16> {
        let flipped = match difference {
            0 => 0,
            _ => flipped_bits(difference, self.inverse(bytes + BEHIND_IDENTIFICATION))?,
        };
        Some(guess ^ flipped)
    }

    fn sender(&mut self, source: IpAddr) -> Option<&mut Sender> {
        let mixed = match source {
            IpAddr::V4(v4) => v4.to_bits().wrapping_mul(0x9e37_79b9) >> 16,
            IpAddr::V6(_) => 0,
        };
        let sender = self.senders.get_mut(mixed as usize % SENDERS)?;
        if sender.address != Some(source) {
            *sender = Sender { address: Some(source), ..Sender::default() };
        }
        Some(sender)
    }

    fn inverse(&mut self, bytes: usize) -> u32 {
        let Some(entry) = self.inverses.get_mut(bytes / 4 % LENGTHS) else {
            return inverse_power(bytes);
        };
        if entry.0 != bytes {
            *entry = (bytes, inverse_power(bytes));
        }
        entry.1
    }
}

impl Sender {
    fn takes(&mut self, identification: u16) -> bool {
        let indexed = usize::from(identification) < MAX_GSO_BATCH_PACKETS;
        match self.pattern {
            IdPattern::Unknown if indexed => self.pattern = IdPattern::Indexed,
            IdPattern::Unknown => self.pattern = IdPattern::Counter,
            IdPattern::Indexed if !indexed => {
                let before = self.refused.replace(identification);
                let follows = before.is_some_and(|it| identification.wrapping_sub(it) <= NEAR);
                if !follows {
                    return false;
                }
                self.pattern = IdPattern::Counter;
            }
            IdPattern::Indexed | IdPattern::Counter => {}
        }
        self.refused = None;
        self.expected = identification.wrapping_add(1);
        true
    }
}

/// The identification bits that cause this difference; `None` if none do.
fn flipped_bits(difference: u32, inverse: u32) -> Option<u16> {
    // The identification's first byte is the lowest.
    let bits = u16::try_from(multiply(difference, inverse)).ok()?;
    Some(bits.swap_bytes())
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::{IcrcAddresses, IcrcSeed};

    fn seed(identification: u16, bytes: usize) -> IcrcSeed {
        let addresses = IcrcAddresses::V4 {
            source: [192, 0, 2, 1].into(),
            destination: [192, 0, 2, 2].into(),
            identification,
            flags: 0x4000,
        };
        IcrcSeed::new(addresses, 0xc000, bytes)
    }

    const SOURCE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    /// Which of a sender's packets with these identifications are accepted.
    fn taken(identifications: &[u16]) -> Vec<bool> {
        let mut identification_of = Identification::new();
        identifications
            .iter()
            .map(|identification| {
                let body = [3; 40];
                let guess = identification_of.guess(SOURCE, 0);
                let written = seed(*identification, 44).over(&body);
                let difference = seed(guess, 44).over(&body) ^ written;
                identification_of.takes(SOURCE, guess, difference, body.len())
            })
            .collect()
    }

    #[test]
    fn what_is_taken_depends_on_the_sender() {
        let (yes, no) = (true, false);
        assert_eq!(taken(&[4711, 9, 60_000]), [yes; 3]);
        assert_eq!(taken(&[0, 127, 128, 127, 129]), [yes, yes, no, yes, no]);
        assert_eq!(taken(&[0, 900, 901, 902, 5]), [yes, no, yes, yes, yes]);
        assert_eq!(taken(&[0, 900, 1157, 1413]), [yes, no, no, yes]);
        assert_eq!(taken(&[0, 900, 899]), [yes, no, no]);
        assert_eq!(taken(&[0, 65_500, 200]), [yes, no, yes]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn the_solution_is_the_one_that_trying_all_finds(
            body in proptest::collection::vec(any::<u8>(), 12..600),
            identification: u16, guess: u16, damage: u32,
        ) {
            let bytes = body.len() + 4;
            let written = seed(identification, bytes).over(&body);
            let guessed = seed(guess, bytes).over(&body);
            let inverse = inverse_power(body.len() + BEHIND_IDENTIFICATION);
            prop_assert_eq!(flipped_bits(guessed ^ written, inverse), Some(guess ^ identification));
            let damaged = written ^ damage;
            let zero = seed(0, bytes);
            // All differences are linear, so one CRC each over zeroes after the identification is enough.
            let first = zero.over(&body);
            let mut basis = [0; 16];
            for (bit, flip) in basis.iter_mut().enumerate() {
                *flip = zero.flip_identification(1 << bit).over(&body) ^ first;
            }
            let tried = (0..=u16::MAX).find(|id| {
                let flips = basis.iter().enumerate().filter(|(bit, _)| id >> bit & 1 == 1);
                flips.fold(first, |crc, (_, flip)| crc ^ flip) == damaged
            });
            prop_assert_eq!(flipped_bits(first ^ damaged, inverse), tried);
        }
    }
}
