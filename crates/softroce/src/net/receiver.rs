//! Receiving: takes many datagrams per system call, splits each into the packets of its GSO batch, and checks their
//! CRCs.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;
use std::sync::Arc;

use super::counters::Counters;
use super::flow::icrc_addresses;
use super::identification::Identification;
use super::impairment::{Impairment, Transit};
use super::sockets::{BATCH, Batch, Socket, now_ns};
use super::tap::Tap;
use crate::wire::{Bth, ICRC_BYTES, IcrcSeed};

/// Bytes of the shortest packet.
const SHORTEST: usize = Bth::BYTES + ICRC_BYTES;
/// Packets after which a call receives no more.
const ENOUGH: usize = 256;

/// A received packet with the right invariant CRC.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Its sender.
    pub source: IpAddr,
    /// From the base transport header to the end of the padding, without the CRC.
    pub bytes: &'a [u8],
}

/// The receiving half of an address.
pub struct Receiver {
    socket: Socket,
    batch: Batch,
    /// Datagrams that the next call requests: one after a call without any, because requesting a second delays the
    /// first; many after a call with some, because it may be a stream.
    ask: usize,
    check: Check,
    faults: Option<Box<Impairment<Origin>>>,
    /// The only address whose packets come by the faulty link; `None` for all.
    faulty_peer: Option<IpAddr>,
    counters: Arc<Counters>,
    tap: Arc<Tap>,
}

/// The sender of a packet, and its index in its GSO batch.
type Origin = (SocketAddr, usize);

impl Receiver {
    pub(super) fn new(
        socket: Socket,
        address: IpAddr,
        faults: Option<Impairment<Origin>>,
        faulty_peer: Option<IpAddr>,
        counters: Arc<Counters>,
        tap: Arc<Tap>,
    ) -> Receiver {
        Receiver {
            socket,
            batch: Batch::new(),
            ask: 1,
            check: Check {
                address,
                identification: Identification::new(),
            },
            faults: faults.map(Box::new),
            faulty_peer,
            counters,
            tap,
        }
    }

    /// The socket, which is readable when packets wait.
    pub fn fd(&self) -> RawFd {
        self.socket.fd()
    }

    /// Passes the packets that have arrived, up to a few hundred, to `each` without waiting; returns their number.
    pub fn receive(&mut self, mut each: impl FnMut(Arrival<'_>)) -> usize {
        let mut handed_over = 0;
        let mut left = ENOUGH;
        while left > 0 {
            let asked = self.ask;
            // An error of the socket does not concern our packets; the next call may succeed.
            let datagrams = self.socket.receive(&mut self.batch, asked).unwrap_or(0);
            self.ask = if datagrams == 0 { 1 } else { BATCH };
            if datagrams == 0 {
                break;
            }
            let (packets, good) = self.hand_over(datagrams, &mut each);
            handed_over += good;
            left = left.saturating_sub(packets);
            if datagrams < BATCH {
                break;
            }
        }
        handed_over + self.hand_over_due(&mut each)
    }

    /// Returns how many packets came, and how many passed the checks.
    fn hand_over(
        &mut self,
        datagrams: usize,
        each: &mut impl FnMut(Arrival<'_>),
    ) -> (usize, usize) {
        let mut tally = Tally::default();
        for datagram in self.batch.datagrams(datagrams) {
            tally.bytes += datagram.bytes.len() as u64;
            let segment_bytes = match datagram.segment_bytes {
                0 => datagram.bytes.len().max(1),
                bytes => bytes,
            };
            let source = datagram.source.ip();
            let is_faulty = self.faulty_peer.is_none_or(|peer| peer == source);
            if let Some(link) = self.faults.as_mut().filter(|_| is_faulty) {
                let now_ns = now_ns();
                for (place, segment) in datagram.bytes.chunks(segment_bytes).enumerate() {
                    tally.packets += 1;
                    let packet = Transit {
                        context: (datagram.source, place),
                        bytes: segment.to_vec(),
                    };
                    link.enter(now_ns, packet, &self.counters.receive_faults);
                }
                continue;
            }
            let mut seed = Seed::none();
            if let Some(tap) = self.tap.recording() {
                for (place, segment) in datagram.bytes.chunks_mut(segment_bytes).enumerate() {
                    tally.packets += 1;
                    let verdict = self.check.check(datagram.source, &mut seed, place, segment);
                    tap.received(datagram.source.ip(), segment, verdict == Verdict::Good);
                    tally.hand_over(verdict, datagram.source, segment, each);
                }
                continue;
            }
            for (place, segment) in datagram.bytes.chunks_mut(segment_bytes).enumerate() {
                tally.packets += 1;
                let verdict = self.check.check(datagram.source, &mut seed, place, segment);
                tally.hand_over(verdict, datagram.source, segment, each);
            }
        }
        tally.report(&self.counters, datagrams);
        (tally.packets as usize, tally.good)
    }

    /// Passes on the delayed packets that are due.
    fn hand_over_due(&mut self, each: &mut impl FnMut(Arrival<'_>)) -> usize {
        let Some(link) = &mut self.faults else {
            return 0;
        };
        let mut tally = Tally::default();
        while let Some(mut packet) = link.leave(now_ns()) {
            let (source, place) = packet.context;
            let verdict = self
                .check
                .check(source, &mut Seed::none(), place, &mut packet.bytes);
            if let Some(tap) = self.tap.recording() {
                tap.received(source.ip(), &packet.bytes, verdict == Verdict::Good);
            }
            tally.hand_over(verdict, source, &packet.bytes, each);
        }
        tally.report(&self.counters, 0);
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
        source: SocketAddr,
        packet: &[u8],
        each: &mut impl FnMut(Arrival<'_>),
    ) {
        match verdict {
            Verdict::Short => self.short += 1,
            Verdict::BadIcrc => self.bad_icrc += 1,
            Verdict::Good => {
                self.good += 1;
                let end = packet.len().saturating_sub(ICRC_BYTES);
                each(Arrival {
                    source: source.ip(),
                    bytes: packet.get(..end).unwrap_or_default(),
                });
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

/// The CRC seed of a datagram's packets of one length.
struct Seed {
    packet_bytes: usize,
    seed: Option<IcrcSeed>,
}

impl Seed {
    fn none() -> Seed {
        Seed {
            packet_bytes: 0,
            seed: None,
        }
    }
}

/// The CRC check of a packet.
struct Check {
    address: IpAddr,
    identification: Identification,
}

impl Check {
    fn check(
        &mut self,
        source: SocketAddr,
        seed: &mut Seed,
        place: usize,
        packet: &mut [u8],
    ) -> Verdict {
        if packet.len() < SHORTEST {
            return Verdict::Short;
        }
        if seed.packet_bytes != packet.len() {
            seed.packet_bytes = packet.len();
            let addresses = icrc_addresses(source.ip(), self.address);
            seed.seed = Some(IcrcSeed::new(addresses, source.port(), packet.len()));
        }
        let Some((body, tail)) = packet.split_last_chunk_mut::<ICRC_BYTES>() else {
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
                self.identification
                    .takes(source.ip(), guess, difference, body.len())
            }
        };
        match good {
            true => Verdict::Good,
            false => Verdict::BadIcrc,
        }
    }
}
