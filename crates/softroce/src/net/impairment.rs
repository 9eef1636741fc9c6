//! A faulty link: decides for each packet what happens to it and when it leaves the link. It knows bytes and time but
//! no socket, so both directions use it, and tests control its time.

use std::collections::{HashMap, VecDeque};

use super::common::FaultCounts;
use super::faults;
use super::faults::{Direction, MOST_NAMED, burst_begins};
use super::limits::{ALIGNED_BYTES, Limits, QpCache, QpRate};
use super::sockets::mark;
use crate::wire::{Bth, CONGESTION_BYTE, Packet, Place};

/// The most packets that may overtake a reordered one.
const MOST_BEHIND: u8 = 4;
/// The longest time that a reordered packet waits for others, in nanoseconds.
const REORDER_PATIENCE_NS: u64 = 1_000_000;
/// The most packets on a link; it drops more.
const MOST_WAITING: usize = 1 << 16;
/// The most QPs whose turns are kept: those whose packets have left are forgotten when there are more.
const MOST_QPS: usize = 1 << 16;

/// A packet on the link, with its context for the receiving end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transit<C> {
    pub context: C,
    /// The UDP port that it comes from.
    pub source_port: u16,
    /// Type of service or traffic class, with the mark that it may get on the link.
    pub traffic_class: u8,
    /// From the base transport header to the CRC.
    pub bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fate {
    lost: bool,
    /// Where a bit is flipped.
    corrupt: Option<u64>,
    duplicate: bool,
    marked: bool,
    /// How many later packets it comes behind.
    behind: Option<u8>,
    /// What jitter adds to the shortest delay.
    jitter_ns: u64,
    /// What the path adds that the packet takes.
    detour_ns: u64,
    /// How long the device is busy with getting the context of the packet's QP.
    context_ns: u64,
}

/// A link of one direction.
pub struct Impairment<C> {
    direction: Direction,
    chance: fastrand::Rng,
    opened_ns: u64,
    /// Whether the last packet was lost in a burst.
    in_burst: bool,
    /// Packets of each kind that [`Direction::lose`] names, so far.
    seen: [u64; MOST_NAMED],
    /// Bytes of IP and UDP headers that count for the rate.
    header_bytes: usize,
    /// Whether packets take no time.
    instant: bool,
    qp_cache: Option<QpCache>,
    /// The number of the last pause that held packets back.
    last_pause: Option<u128>,
    reordered: Vec<Reordered<C>>,
    /// When each leaves, in that order.
    waiting: VecDeque<(u64, Transit<C>)>,
    /// When the last packet has left the device, in picoseconds: on a fast link a packet takes a few nanoseconds.
    last_departure_ps: u128,
    /// Until when the last packet was delayed: those that are on no slow path stay in order, but for their detours.
    last_due_ns: u64,
    /// The slow path, which comes behind the device.
    slow: Lane,
    /// Each QP behind the device, where QPs have a rate.
    qps: HashMap<u32, Lane>,
}

/// What some packets pass behind the device, one after the other; others overtake them meanwhile.
#[derive(Clone, Copy, Default)]
struct Lane {
    departure_ps: u128,
    due_ns: u64,
}

impl Lane {
    /// Has a packet pass that comes at `at_ps` and takes so long; when it has passed.
    fn pass(&mut self, at_ps: u128, takes_ps: u128) -> u128 {
        self.departure_ps = self.departure_ps.max(at_ps).saturating_add(takes_ps);
        self.departure_ps
    }
}

struct Reordered<C> {
    packet: Transit<C>,
    fate: Fate,
    behind: u8,
    deadline_ns: u64,
}

impl<C: Clone> Impairment<C> {
    /// An empty link, opened now; `None` if it has no faults.
    pub fn new(
        direction: Direction,
        seed: u64,
        header_bytes: usize,
        now_ns: u64,
    ) -> Option<Impairment<C>> {
        direction.is_faulty().then(|| Impairment {
            direction,
            chance: fastrand::Rng::with_seed(seed),
            opened_ns: now_ns,
            in_burst: false,
            seen: [0; MOST_NAMED],
            header_bytes,
            instant: direction.delay_ns == 0
                && direction.rate_bits_per_s.is_none()
                && direction.limits == Limits::default(),
            qp_cache: direction.limits.qp_contexts.map(QpCache::new),
            last_pause: None,
            reordered: Vec::new(),
            waiting: VecDeque::new(),
            last_departure_ps: 0,
            last_due_ns: 0,
            slow: Lane::default(),
            qps: HashMap::new(),
        })
    }

    /// Draws the fate of the next packet, whose first byte this is. Draws equally many numbers for each, so that its fate
    /// depends on its number alone, and not on the GSO batch that it comes in; only a black hole depends on the time.
    pub fn draw(&mut self, now_ns: u64, opcode_byte: u8) -> Fate {
        let lost = self.chance.f64();
        let direction = &self.direction;
        let mut befalls = |probability: f64| self.chance.f64() < probability;
        let (corrupt, duplicate) = (befalls(direction.corrupt), befalls(direction.duplicate));
        let reorder = befalls(direction.reorder);
        let marked = direction.mark > 0.0 && befalls(direction.mark);
        let (place, behind) = (self.chance.u64(..), self.chance.u8(1..=MOST_BEHIND));
        let jitter_ns = match direction.jitter_ns {
            0 => 0,
            jitter_ns => self.chance.u64(..=jitter_ns.saturating_mul(2)),
        };
        let paths = direction.limits.paths;
        let detour_ns = paths.map_or(0, |it| it.delay_ns(self.chance.u32(..it.count.max(1))));
        let is_named = self.is_named(opcode_byte);
        let since_ns = now_ns.saturating_sub(self.opened_ns);
        let vanishes = self.direction.blackhole.is_some_and(|it| it.has(since_ns));
        Fate {
            lost: self.is_lost(lost) || is_named || vanishes,
            corrupt: corrupt.then_some(place),
            duplicate,
            marked,
            behind: reorder.then_some(behind),
            jitter_ns,
            detour_ns,
            context_ns: 0,
        }
    }

    /// Whether a number from 0 to 1 means a loss. In bursts, it says whether one begins or goes on.
    fn is_lost(&mut self, drawn: f64) -> bool {
        let Direction { drop, drop_burst, .. } = self.direction;
        let probability = match (drop_burst, self.in_burst) {
            (0, _) => drop,
            (burst, false) => burst_begins(drop, burst),
            (burst, true) => 1.0 - 1.0 / f64::from(burst),
        };
        let lost = drawn < probability;
        self.in_burst = lost && drop_burst > 0;
        lost
    }

    /// Counts the packet. Whether it is one that is to be lost.
    fn is_named(&mut self, opcode_byte: u8) -> bool {
        self.direction
            .lose
            .iter()
            .flatten()
            .zip(&mut self.seen)
            .filter(|(nth, _)| faults::is_of_kind(nth.kind, opcode_byte))
            .fold(false, |lost, (nth, seen)| {
                *seen += 1;
                lost || *seen == nth.number
            })
    }

    /// Whether packets with these fates come through at once and unchanged: they need not enter the link.
    pub fn passes(&self, fates: &[Fate]) -> bool {
        let empty = self.waiting.is_empty() && self.reordered.is_empty();
        self.instant && empty && fates.iter().all(|fate| *fate == Fate::default())
    }

    /// Puts a packet on the link.
    pub fn enter(
        &mut self,
        now_ns: u64,
        fate: Fate,
        mut original: Transit<C>,
        counts: &FaultCounts,
    ) {
        if fate.lost {
            counts.dropped.add(1);
            return;
        }
        if let Some(place) = fate.corrupt {
            counts.corrupted.add(1);
            flip_bit(&mut original.bytes, place);
        }
        if fate.duplicate {
            counts.duplicated.add(1);
        }
        if fate.marked {
            original.traffic_class = mark(original.traffic_class);
        }
        let is_slow = self.is_slow(&original);
        let is_full = self.waits_longer_than(now_ns, is_slow, self.direction.queue_ns);
        if is_full || self.waiting.len() + self.reordered.len() >= MOST_WAITING {
            counts.overflowed.add(1);
            return;
        }
        // Its copy finds the context.
        let copy = fate.duplicate.then(|| (fate, original.clone()));
        let context_ns = self.context_ns(&original.bytes, counts);
        let first = (Fate { context_ns, ..fate }, original);
        let packets = [Some(first), copy].into_iter().flatten();
        if let Some(behind) = fate.behind {
            counts.reordered.add(1);
            self.reordered.extend(packets.map(|(packet_fate, packet)| Reordered {
                packet,
                fate: packet_fate,
                behind,
                deadline_ns: now_ns + REORDER_PATIENCE_NS,
            }));
            return;
        }
        for (packet_fate, packet) in packets {
            self.depart(now_ns, packet_fate, packet, counts);
        }
        for held in &mut self.reordered {
            held.behind = held.behind.saturating_sub(1);
        }
        self.depart_reordered(now_ns, counts, |held| held.behind == 0);
    }

    /// The next packet that has left the link.
    pub fn leave(&mut self, now_ns: u64, counts: &FaultCounts) -> Option<Transit<C>> {
        self.depart_reordered(now_ns, counts, |held| held.deadline_ns <= now_ns);
        if self.waiting.front()?.0 > now_ns {
            return None;
        }
        self.waiting.pop_front().map(|(_, packet)| packet)
    }

    /// When the next packet leaves the link.
    pub fn next_due_ns(&self) -> Option<u64> {
        let reordered = self.reordered.iter().map(|held| held.deadline_ns);
        let waiting = self.waiting.front().map(|(due_ns, _)| *due_ns);
        reordered.chain(waiting).min()
    }

    fn depart_reordered(
        &mut self,
        now_ns: u64,
        counts: &FaultCounts,
        is_ready: impl Fn(&Reordered<C>) -> bool,
    ) {
        while let Some(at) = self.reordered.iter().position(&is_ready) {
            let held = self.reordered.remove(at);
            self.depart(now_ns, held.fate, held.packet, counts);
        }
    }

    fn is_slow(&self, packet: &Transit<C>) -> bool {
        self.direction.limits.slow_path.is_some_and(|path| path.has(packet.source_port))
    }

    /// How long the device needs for the context of a packet's QP. A received packet names it, a sent one its peer, which
    /// stands for it.
    fn context_ns(&mut self, bytes: &[u8], counts: &FaultCounts) -> u64 {
        let Some(cache) = &mut self.qp_cache else {
            return 0;
        };
        if cache.has(qpn_of(bytes)) {
            return 0;
        }
        counts.context_misses.add(1);
        cache.contexts.miss_ns
    }

    /// Whether a packet waits longer than this, if it is limited, for those before it to have their time at the link's rate
    /// and other limits.
    fn waits_longer_than(&self, now_ns: u64, is_slow: bool, longest_ns: Option<u64>) -> bool {
        let slow_ps = if is_slow { self.slow.departure_ps } else { 0 };
        let free_ps = self.last_departure_ps.max(slow_ps);
        let waits_ps = free_ps.saturating_sub(u128::from(now_ns) * 1000);
        longest_ns.is_some_and(|ns| waits_ps > u128::from(ns) * 1000)
    }

    /// When the device can begin to send, which pauses delay.
    fn start_ps(&mut self, now_ns: u64, counts: &FaultCounts) -> u128 {
        let free_ps = self.last_departure_ps.max(u128::from(now_ns) * 1000);
        let since_ps = free_ps.saturating_sub(u128::from(self.opened_ns) * 1000);
        let pause = self.direction.limits.pause.and_then(|pause| pause.at(since_ps));
        let Some((number, left_ps)) = pause else {
            return free_ps;
        };
        if self.last_pause.replace(number) != Some(number) {
            counts.pauses.add(1);
        }
        free_ps.saturating_add(left_ps)
    }

    /// Sets when a packet leaves: after its time at the link's rate, plus the delay, and after those before it. Marks one
    /// that waits for long behind those before it.
    fn depart(&mut self, now_ns: u64, fate: Fate, mut packet: Transit<C>, counts: &FaultCounts) {
        let is_slow = self.is_slow(&packet);
        if self.waits_longer_than(now_ns, is_slow, self.direction.mark_after_ns) {
            packet.traffic_class = mark(packet.traffic_class);
        }
        let Direction { rate_bits_per_s, limits, delay_ns, jitter_ns, .. } = self.direction;
        let bits = (packet.bytes.len() + self.header_bytes) * 8;
        let link_ps = rate_bits_per_s.map_or(0, |rate| takes_ps(bits, rate));
        let engine_ps = limits.packets_per_s.map_or(0, |rate| takes_ps(1, rate));
        let context_ps = u128::from(fate.context_ns) * 1000;
        let unaligned_ns = limits.unaligned_ns.filter(|_| ends_unaligned(&packet.bytes));
        let unaligned_ps = u128::from(unaligned_ns.unwrap_or(0)) * 1000;
        let busy_ps = link_ps.max(engine_ps).saturating_add(context_ps + unaligned_ps);
        self.last_departure_ps = self.start_ps(now_ns, counts).saturating_add(busy_ps);
        let (mut departure_ps, mut last_due_ns) = (self.last_departure_ps, &mut self.last_due_ns);
        if let Some(rate) = limits.qp_rate {
            if self.qps.len() >= MOST_QPS {
                self.qps.retain(|_, lane| lane.due_ns > now_ns);
            }
            let lane = self.qps.entry(qpn_of(&packet.bytes)).or_default();
            let of_qp_ps = match rate {
                QpRate::PacketsPerS(per_s) => takes_ps(1, per_s),
                QpRate::BitsPerS(per_s) => takes_ps(bits, per_s),
            };
            departure_ps = lane.pass(departure_ps, of_qp_ps);
            last_due_ns = &mut lane.due_ns;
        }
        if let Some(path) = limits.slow_path.filter(|_| is_slow) {
            departure_ps = self.slow.pass(departure_ps, takes_ps(bits, path.rate_bits_per_s));
            last_due_ns = &mut self.slow.due_ns;
        }
        let departure_ns = u64::try_from(departure_ps.div_ceil(1000)).unwrap_or(u64::MAX);
        // The shortest delay is the delay without the jitter.
        let shortest_ns = delay_ns - jitter_ns;
        let due_ns = departure_ns.saturating_add(shortest_ns.saturating_add(fate.jitter_ns));
        *last_due_ns = due_ns.max(*last_due_ns);
        let arrives_ns = last_due_ns.saturating_add(fate.detour_ns);
        let place = self.waiting.partition_point(|(earlier_ns, _)| *earlier_ns <= arrives_ns);
        self.waiting.insert(place, (arrives_ns, packet));
    }
}

/// The QP that a packet is for, which at the sending device stands for its own one.
fn qpn_of(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, Bth::destination_qpn_of)
}

/// Whether a packet ends a message whose length is no multiple of [`ALIGNED_BYTES`], as each MTU is.
fn ends_unaligned(bytes: &[u8]) -> bool {
    Packet::parse(bytes).is_ok_and(|packet| {
        let ends = matches!(packet.opcode.place(), Place::Last | Place::Only);
        ends && !packet.payload.len().is_multiple_of(ALIGNED_BYTES)
    })
}

/// How long so many bits or packets take, in picoseconds.
fn takes_ps(count: usize, per_s: f64) -> u128 {
    (count as f64 / per_s * 1e12) as u128
}

fn flip_bit(bytes: &mut [u8], random: u64) {
    let bits = (bytes.len() as u64 * 8).max(1);
    let mut place = random % bits;
    if (place / 8) as usize == CONGESTION_BYTE {
        place -= 8;
    }
    if let Some(byte) = bytes.get_mut((place / 8) as usize) {
        *byte ^= 1 << (place % 8);
    }
}

#[cfg(test)]
mod tests {
    use super::super::sockets::{ECT_0, ecn_capable, is_marked};
    use super::*;

    fn link(text: &str) -> Impairment<()> {
        let faults: super::super::Faults = text.parse().unwrap();
        Impairment::new(faults.transmit, faults.seed, 28, 0).unwrap()
    }

    fn packet(number: u32) -> Transit<()> {
        let mut bytes = number.to_be_bytes().to_vec();
        bytes.resize(100, 0);
        of_class(ECT_0, bytes)
    }

    fn of_class(traffic_class: u8, bytes: Vec<u8>) -> Transit<()> {
        Transit { context: (), source_port: 0, traffic_class, bytes }
    }

    fn enter(link: &mut Impairment<()>, now_ns: u64, packet: Transit<()>, counts: &FaultCounts) {
        let fate = link.draw(now_ns, packet.bytes[0]);
        link.enter(now_ns, fate, packet, counts);
    }

    fn number(packet: &Transit<()>) -> u32 {
        u32::from_be_bytes(*packet.bytes.first_chunk().unwrap())
    }

    /// The packets that come out when this many enter a microsecond apart, and the counters.
    fn pass(text: &str, packets: u32) -> (Vec<Transit<()>>, FaultCounts) {
        let mut link = link(text);
        let counts = FaultCounts::default();
        let mut out = Vec::new();
        for at in 0..packets {
            let now_ns = u64::from(at) * 1000;
            enter(&mut link, now_ns, packet(at), &counts);
            out.extend(std::iter::from_fn(|| link.leave(now_ns, &counts)));
        }
        let end_ns = u64::from(packets) * 1000 + 2 * REORDER_PATIENCE_NS;
        out.extend(std::iter::from_fn(|| link.leave(end_ns, &counts)));
        assert_eq!(link.next_due_ns(), None);
        (out, counts)
    }

    fn close(count: &super::super::Count, expected: f64) {
        let count = count.get() as f64;
        // Five standard deviations of a binomial distribution; the seed is fixed.
        let most = 5.0 * expected.sqrt();
        assert!((count - expected).abs() < most, "{count} {expected}");
    }

    #[test]
    fn fates_are_as_frequent_as_asked_and_the_same_for_a_seed() {
        let text = "seed=7,drop=5%,duplicate=1%,reorder=2%,corrupt=0.5%";
        let (out, counts) = pass(text, 100_000);
        assert_eq!(out, pass(text, 100_000).0);
        assert!(out != pass(&text.replace('7', "8"), 100_000).0);
        close(&counts.dropped, 5000.0);
        close(&counts.duplicated, 950.0);
        close(&counts.reordered, 1900.0);
        close(&counts.corrupted, 475.0);
        let arrived = 100_000 - counts.dropped.get() + counts.duplicated.get();
        assert_eq!(out.len() as u64, arrived);
    }

    #[test]
    fn reordered_packets_come_behind_a_few_others() {
        let (out, counts) = pass("seed=3,reorder=5%", 10_000);
        let numbers: Vec<u32> = out.iter().map(number).collect();
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..10_000).collect::<Vec<_>>());
        let early = numbers.iter().zip(0..).filter(|(it, at)| **it > *at);
        let most = numbers.iter().zip(0..).map(|(it, at)| it.abs_diff(at)).max();
        assert!(early.count() as u64 > counts.reordered.get());
        assert!((1..=12).contains(&most.unwrap()), "{most:?}");
    }

    #[test]
    fn a_lone_reordered_packet_comes_after_its_patience() {
        let mut link = link("reorder=100%");
        let counts = FaultCounts::default();
        enter(&mut link, 500, packet(1), &counts);
        assert_eq!(link.next_due_ns(), Some(500 + REORDER_PATIENCE_NS));
        assert_eq!(link.leave(499 + REORDER_PATIENCE_NS, &counts), None);
        assert_eq!(link.leave(500 + REORDER_PATIENCE_NS, &counts), Some(packet(1)));
    }

    #[test]
    fn one_bit_is_flipped_where_the_crc_covers_it() {
        let (out, _) = pass("seed=1,corrupt=100%", 2000);
        for (got, at) in out.iter().zip(0..) {
            let sent = packet(at);
            let bytes = sent.bytes.iter().zip(&got.bytes);
            let differ = bytes.map(|(a, b)| (a ^ b).count_ones());
            assert_eq!(differ.sum::<u32>(), 1);
            assert_eq!(sent.bytes[CONGESTION_BYTE], got.bytes[CONGESTION_BYTE]);
        }
    }

    #[test]
    fn delay_and_rate_are_exact() {
        let mut link = link("delay=10us,rate=1G");
        let counts = FaultCounts::default();
        enter(&mut link, 1000, packet(1), &counts);
        enter(&mut link, 1000, packet(2), &counts);
        enter(&mut link, 50_000, packet(3), &counts);
        // 128 bytes including headers are 1,024 bits.
        for (due_ns, number) in [(12_024, 1), (13_048, 2), (61_024, 3)] {
            assert_eq!(link.next_due_ns(), Some(due_ns));
            assert_eq!(link.leave(due_ns - 1, &counts), None);
            assert_eq!(link.leave(due_ns, &counts), Some(packet(number)));
        }
    }

    #[test]
    fn only_what_nothing_befalls_passes_an_empty_link() {
        let mut lossy = link("seed=1,drop=50%");
        let fates: Vec<Fate> = (0..64).map(|_| lossy.draw(0, 0)).collect();
        assert!(!lossy.passes(&fates));
        let lost = fates.iter().position(|fate| fate.lost).unwrap();
        assert!(lossy.passes(&fates[..lost]));
        for text in ["delay=1ns", "rate=100G"] {
            let mut slow = link(text);
            let fate = slow.draw(0, 0);
            assert!(!slow.passes(&[fate]), "{text}");
        }
        let mut held = link("reorder=100%");
        enter(&mut held, 0, packet(1), &FaultCounts::default());
        assert!(!held.passes(&[Fate::default()]), "it would overtake");
    }

    #[test]
    fn bursts_lose_the_same_share_in_fewer_pieces() {
        for (text, share, mean) in [
            ("seed=5,drop=2%/8", 0.02, 8.0),
            ("drop=1%/1", 0.01, 1.0),
            ("drop=1%", 0.01, 1.0 / 0.99),
        ] {
            let (out, counts) = pass(text, 200_000);
            let mut arrived = [false; 200_000];
            for passed in &out {
                arrived[number(passed) as usize] = true;
            }
            let bursts = arrived.chunk_by(|a, b| a == b).filter(|it| !it[0]);
            let (lost, bursts) = (counts.dropped.get() as f64, bursts.count() as f64);
            // The number of bursts varies by its root, and each burst's length by about its mean.
            let near =
                |value: f64, of: f64, times: f64| (value - of).abs() < times * of / bursts.sqrt();
            assert!(near(lost / 200_000.0, share, 6.0), "{text}: {lost}");
            assert!(near(lost / bursts, mean, 5.0), "{text}: {bursts}");
        }
    }

    #[test]
    fn jitter_is_even_and_keeps_the_order() {
        let mut link = link("seed=1,delay=10us~5us");
        let counts = FaultCounts::default();
        let mut delays = Vec::new();
        for at in 0..10_000_u64 {
            let entered_ns = at * 100_000;
            enter(&mut link, entered_ns, packet(at as u32), &counts);
            delays.push(link.next_due_ns().unwrap() - entered_ns);
            assert_eq!(link.leave(u64::MAX, &counts), Some(packet(at as u32)));
        }
        delays.sort_unstable();
        assert!(delays[0] >= 5_000 && delays[9_999] <= 15_000);
        for (rank, ns) in [(1_000, 6_000), (5_000, 10_000), (9_000, 14_000)] {
            assert!(delays[rank].abs_diff(ns) < 300, "{}", delays[rank]);
        }
        // As close as these they would overtake each other.
        let (out, _) = pass("seed=1,delay=100us~100us", 10_000);
        assert!(out.is_sorted_by_key(number) && out.len() == 10_000);
    }

    #[test]
    fn named_packets_are_lost_and_only_these() {
        let mut link = link("lose=ack#3,lose=send#2,lose=packet#9");
        let counts = FaultCounts::default();
        // ACKs, SENDs of RC and one of UD, and a READ with its response.
        let opcodes = [17, 4, 17, 100, 4, 17, 17, 12, 13, 17];
        let arrived = opcodes.map(|opcode| {
            let bytes = [&[opcode][..], &[0; 63]].concat();
            enter(&mut link, 0, of_class(ECT_0, bytes), &counts);
            link.leave(0, &counts).is_some()
        });
        let lost = (0..10).filter(|at| !arrived[*at]);
        assert_eq!(lost.collect::<Vec<_>>(), [3, 5, 8]);
        assert_eq!(counts.dropped.get(), 3);
    }

    #[test]
    fn a_black_hole_lasts_its_time() {
        let faults: super::super::Faults = "blackhole=10us+5us".parse().unwrap();
        let mut link = Impairment::new(faults.transmit, 0, 28, 7_000).unwrap();
        let counts = FaultCounts::default();
        let arrived = [7, 16, 17, 21, 22, 30].map(|at_us| {
            enter(&mut link, at_us * 1000, packet(1), &counts);
            link.leave(at_us * 1000, &counts).is_some()
        });
        assert_eq!(arrived, [true, true, false, false, true, true]);
    }

    #[test]
    fn a_share_of_what_may_be_marked_is_marked() {
        let (out, _) = pass("seed=2,mark=5%", 100_000);
        let marked = super::super::Count::default();
        let count = out.iter().filter(|it| is_marked(it.traffic_class));
        marked.add(count.count() as u64);
        close(&marked, 5000.0);
        let mut link = link("mark=100%");
        for (class, after) in [(0x68, 0x68), (0x69, 0x6b), (0x6a, 0x6b), (0x6b, 0x6b)] {
            let packet = of_class(class, vec![0; 16]);
            let counts = FaultCounts::default();
            enter(&mut link, 0, packet, &counts);
            assert_eq!(link.leave(0, &counts).unwrap().traffic_class, after);
            assert_eq!((is_marked(class), ecn_capable(class)), (class == 0x6b, 0x6a));
        }
    }

    #[test]
    fn what_waits_for_the_rate_too_long_is_marked() {
        // 128 bytes including headers take 1.024 µs.
        let mut link = link("rate=1G,mark=3us,delay=1ms");
        let counts = FaultCounts::default();
        for at in 0..6 {
            enter(&mut link, 1000, packet(at), &counts);
        }
        enter(&mut link, 5000, packet(6), &counts);
        enter(&mut link, 5000, of_class(0, vec![0; 100]), &counts);
        let out = std::iter::from_fn(|| link.leave(u64::MAX, &counts))
            .map(|it| is_marked(it.traffic_class));
        let waited_2_048_ns = 2;
        let marked: Vec<bool> = out.collect();
        assert_eq!(marked[..=waited_2_048_ns], [false; 3]);
        assert_eq!(marked[3..], [true, true, true, false, false]);
    }

    #[test]
    fn a_link_holds_only_so_much() {
        let mut link = link("rate=1");
        let counts = FaultCounts::default();
        for at in 0..MOST_WAITING as u32 + 3 {
            enter(&mut link, 0, packet(at), &counts);
        }
        assert_eq!(counts.overflowed.get(), 3);
    }

    #[test]
    fn a_full_queue_loses_what_would_wait_for_too_long() {
        // 128 bytes with their headers take 1024 ns.
        let mut link = link("rate=1G,queue=3us");
        let counts = FaultCounts::default();
        (0..10).for_each(|number| enter(&mut link, 0, packet(number), &counts));
        // The first three wait for less, the fourth for more.
        let out: Vec<u32> =
            std::iter::from_fn(|| link.leave(1_000_000, &counts)).map(|it| number(&it)).collect();
        assert_eq!((out, counts.overflowed.get()), (vec![0, 1, 2], 7));
        enter(&mut link, 2_000_000, packet(10), &counts);
        assert_eq!(link.next_due_ns(), Some(2_001_024));
    }

    #[test]
    fn flows_of_a_slow_path_have_its_rate_and_others_overtake_them() {
        // 128 bytes with their headers take 1.024 µs, and four times as long on the slow path, which ports 1 and 5 have.
        let mut link = link("rate=1G,slow_path=1/4:250M,queue=6us");
        let counts = FaultCounts::default();
        for (number, source_port) in (0..).zip([1, 5, 2, 1, 4]) {
            enter(&mut link, 0, Transit { source_port, ..packet(number) }, &counts);
        }
        // The first is on the slow path from 1.024 to 5.12 µs, the second until 9.216 µs, for which the fourth does not wait.
        for (due_ns, at) in [(3_072, 2), (4_096, 4), (5_120, 0), (9_216, 1)] {
            assert_eq!(link.next_due_ns(), Some(due_ns));
            assert_eq!(link.leave(due_ns, &counts).map(|it| number(&it)), Some(at));
        }
        assert_eq!((link.next_due_ns(), counts.overflowed.get()), (None, 1));
    }

    fn of_qp(number: u32, qpn: u16) -> Transit<()> {
        let mut to_qp = packet(number);
        to_qp.bytes[6..8].copy_from_slice(&qpn.to_be_bytes());
        to_qp
    }

    #[test]
    fn qps_have_their_rate_each_and_overtake_each_other() {
        // 128 bytes with their headers take 1.024 µs of the device, and 4 µs of the QP: from 1.024 to 5.024 µs, to 9.024 µs, and
        // the other from 3.072 µs.
        let mut link = link("rate=1G,qp_rate=250K,queue=1ms");
        let counts = FaultCounts::default();
        for (number, qpn) in (0..).zip([1, 1, 2]) {
            enter(&mut link, 0, of_qp(number, qpn), &counts);
        }
        for (due_ns, at) in [(5_024, 0), (7_072, 2), (9_024, 1)] {
            assert_eq!(link.next_due_ns(), Some(due_ns));
            assert_eq!(link.leave(due_ns, &counts).map(|it| number(&it)), Some(at));
        }
        // Those that have sent long ago are forgotten.
        for qpn in 0..=u16::MAX {
            enter(&mut link, 20_000 * u64::from(qpn), of_qp(0, qpn), &counts);
            while link.leave(20_000 * u64::from(qpn), &counts).is_some() {}
        }
        link.qps.insert(1 << 20, Lane::default());
        enter(&mut link, u64::MAX / 2, of_qp(0, 7), &counts);
        assert_eq!((link.qps.len(), counts.overflowed.get()), (1, 0));
    }

    #[test]
    fn paths_lie_evenly_apart_and_are_taken_equally_often() {
        let mut link = link("seed=1,paths=4~30us");
        let counts = FaultCounts::default();
        let taken: [super::super::Count; 4] = Default::default();
        for at in 0..4_000 {
            let entered_ns = at * 100_000;
            enter(&mut link, entered_ns, packet(1), &counts);
            let detour_ns = link.next_due_ns().unwrap() - entered_ns;
            assert_eq!(detour_ns % 10_000, 0);
            taken[detour_ns as usize / 10_000].add(1);
            assert_eq!(link.leave(entered_ns + detour_ns, &counts), Some(packet(1)));
        }
        taken.iter().for_each(|count| close(count, 1000.0));
    }
}
