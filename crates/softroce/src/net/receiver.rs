//! Receiving: takes many datagrams per system call, splits each into the packets of its GSO batch, and checks their
//! CRCs. A packet to a QP that does not exist costs no CRC.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;
use std::sync::Arc;

use super::capture::Capture;
use super::common::{Common, Counters, Tap};
use super::fabric::Attachment;
use super::flow::icrc_addresses;
use super::identification::Identification;
use super::impairment::{Impairment, Transit};
use super::network_headers::Route;
use super::sockets::{BATCH, Batch, Datagram, Socket, is_marked};
use crate::wire::{Bth, ICRC_BYTES, IcrcSeed, UDP_PORT};

/// Bytes of the shortest packet.
const SHORTEST: usize = Bth::BYTES + ICRC_BYTES;
/// Time to live in the captured headers of received packets.
const UNKNOWN_HOP_LIMIT: u8 = 64;
/// Packets after which a call receives no more.
const ENOUGH: usize = 256;

/// A received packet with the right invariant CRC.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    pub source: SocketAddr,
    /// Whether it came through congestion.
    pub is_marked: bool,
    /// From the base transport header to the end of the padding, without the CRC.
    pub bytes: &'a [u8],
}

/// The receiving half of an address.
pub struct Receiver {
    common: Common,
    socket: Attachment,
    batch: Batch,
    /// Datagrams that the next call requests: one after a call without any, because requesting a second delays the
    /// first; many after a call with some, because it may be a stream.
    ask: usize,
    /// Whether the last call left nothing in the socket.
    drained: bool,
    check: Check,
    /// The kernel's count of datagrams that found no room in the socket; it wraps.
    socket_drops: u32,
    faults: Option<Box<Impairment<Origin>>>,
    capture: Option<Arc<Capture>>,
}

/// The sender of a packet, its index in its GSO batch, and its traffic class when it came.
type Origin = (SocketAddr, usize, u8);

impl Receiver {
    pub(super) fn new(
        common: Common,
        socket: Attachment,
        faults: Option<Impairment<Origin>>,
    ) -> Receiver {
        Receiver {
            socket,
            batch: Batch::new(),
            ask: 1,
            drained: true,
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

    pub(super) fn socket(&self) -> Option<&Socket> {
        match &self.socket {
            Attachment::Udp(socket) => Some(socket),
            Attachment::Fabric(..) => None,
        }
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
        let mut handed_over = 0;
        let mut left = ENOUGH;
        while left > 0 {
            let requested = self.ask;
            // An error of the socket does not concern our packets; the next call may succeed.
            let datagrams = self.socket.receive(&mut self.batch, requested).unwrap_or(0);
            self.ask = if datagrams == 0 { 1 } else { BATCH };
            self.drained = datagrams < requested;
            if datagrams == 0 {
                break;
            }
            let (packets, good) = self.hand_over(datagrams, &knows, &mut each);
            handed_over += good;
            left = left.saturating_sub(packets);
            if datagrams < BATCH {
                break;
            }
        }
        handed_over + self.hand_over_due(&knows, &mut each)
    }

    /// Whether the last call left nothing in the socket.
    pub fn is_drained(&self) -> bool {
        self.drained
    }

    /// Returns how many packets came, and how many passed the checks.
    fn hand_over(
        &mut self,
        datagrams: usize,
        knows: &impl Fn(u32) -> bool,
        each: &mut impl FnMut(Arrival<'_>),
    ) -> (usize, usize) {
        let mut tally = Tally::default();
        let is_down = self.common.is_down();
        for datagram in self.batch.datagrams(datagrams) {
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
            let is_marked = is_marked(datagram.traffic_class);
            for (place, segment) in datagram.bytes.chunks(segment_bytes).enumerate() {
                tally.packets += 1;
                if let Some(link) = &mut link {
                    let opcode = segment.first().copied().unwrap_or_default();
                    let fate = link.draw(now_ns, opcode);
                    if !link.passes(&[fate]) {
                        let packet = Transit {
                            context: (datagram.source, place, datagram.traffic_class),
                            traffic_class: datagram.traffic_class,
                            bytes: segment.to_vec(),
                        };
                        link.enter(now_ns, fate, packet, &self.common.counters.receive_faults);
                        continue;
                    }
                }
                let packet = Arrival { source: datagram.source, is_marked, bytes: segment };
                let verdict = self.check.check(tap, &mut seed, place, packet, knows);
                tally.hand_over(verdict, packet, each);
            }
        }
        tally.report(&self.common.counters, datagrams);
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
        while let Some(packet) = link.leave(self.common.clock.now_ns()) {
            let (source, place, traffic_class) = packet.context;
            if packet.traffic_class != traffic_class {
                self.common.counters.receive_faults.marked.add(1);
            }
            let tap = self.common.tap.recording();
            let packet = Arrival {
                source,
                is_marked: is_marked(packet.traffic_class),
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
    /// Adds the packets of a datagram to a capture. The sockets do not tell their time to live.
    #[cold]
    fn capture(&mut self, capture: &Capture, datagram: &Datagram<'_>, segment_bytes: usize) {
        let source = datagram.source;
        let route = Route {
            source,
            destination: (self.address, UDP_PORT).into(),
            traffic_class: datagram.traffic_class,
            hop_limit: UNKNOWN_HOP_LIMIT,
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
