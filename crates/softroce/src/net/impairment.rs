//! A faulty link: decides for each packet what happens to it and when it leaves the link. It knows bytes and time but
//! no socket, so both directions use it, and tests control its time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::counters::FaultCounts;
use super::faults::Direction;
use crate::wire::CONGESTION_BYTE;

/// The most packets that may overtake a reordered one.
const MOST_BEHIND: u8 = 4;
/// The longest time that a reordered packet waits for others, in nanoseconds.
const REORDER_PATIENCE_NS: u64 = 1_000_000;
/// The most packets on a link; it drops more.
const MOST_WAITING: usize = 1 << 16;

/// A packet on the link, with its context for the receiving end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transit<C> {
    /// Its destination or source.
    pub context: C,
    /// From the base transport header to the CRC.
    pub bytes: Vec<u8>,
}

/// A link of one direction.
pub struct Impairment<C> {
    direction: Direction,
    chance: fastrand::Rng,
    /// Bytes of IP and UDP headers that count for the rate.
    header_bytes: usize,
    reordered: Vec<Reordered<C>>,
    waiting: BinaryHeap<Waiting<C>>,
    /// When the last packet has left, in picoseconds: on a fast link a packet takes a few nanoseconds.
    last_departure_ps: u128,
    sequence: u64,
}

struct Reordered<C> {
    packet: Transit<C>,
    behind: u8,
    deadline_ns: u64,
}

struct Waiting<C> {
    due_ns: u64,
    sequence: u64,
    packet: Transit<C>,
}

impl<C: Clone> Impairment<C> {
    /// An empty link; `None` if it has no faults.
    pub fn new(direction: Direction, seed: u64, header_bytes: usize) -> Option<Impairment<C>> {
        direction.is_faulty().then(|| Impairment {
            direction,
            chance: fastrand::Rng::with_seed(seed),
            header_bytes,
            reordered: Vec::new(),
            waiting: BinaryHeap::new(),
            last_departure_ps: 0,
            sequence: 0,
        })
    }

    /// Puts a packet on the link.
    pub fn enter(&mut self, now_ns: u64, mut packet: Transit<C>, counts: &FaultCounts) {
        // Draws equally many numbers for each packet, so that its faults depend on its number alone.
        let mut befalls = |probability: f64| self.chance.f64() < probability;
        let direction = &self.direction;
        let (drop, corrupt) = (befalls(direction.drop), befalls(direction.corrupt));
        let (duplicate, reorder) = (befalls(direction.duplicate), befalls(direction.reorder));
        let (place, behind) = (self.chance.u64(..), self.chance.u8(1..=MOST_BEHIND));
        if drop {
            counts.dropped.add(1);
            return;
        }
        if corrupt {
            counts.corrupted.add(1);
            flip_bit(&mut packet.bytes, place);
        }
        if duplicate {
            counts.duplicated.add(1);
        }
        if self.waiting.len() + self.reordered.len() >= MOST_WAITING {
            counts.overflowed.add(1);
            return;
        }
        let copy = duplicate.then(|| packet.clone());
        if reorder {
            counts.reordered.add(1);
            let deadline_ns = now_ns + REORDER_PATIENCE_NS;
            for packet in [Some(packet), copy].into_iter().flatten() {
                self.reordered.push(Reordered {
                    packet,
                    behind,
                    deadline_ns,
                });
            }
            return;
        }
        for packet in [Some(packet), copy].into_iter().flatten() {
            self.depart(now_ns, packet);
        }
        for held in &mut self.reordered {
            held.behind = held.behind.saturating_sub(1);
        }
        self.depart_reordered(now_ns, |held| held.behind == 0);
    }

    /// The next packet that has left the link.
    pub fn leave(&mut self, now_ns: u64) -> Option<Transit<C>> {
        self.depart_reordered(now_ns, |held| held.deadline_ns <= now_ns);
        if self.waiting.peek()?.due_ns > now_ns {
            return None;
        }
        self.waiting.pop().map(|it| it.packet)
    }

    /// When the next packet leaves the link.
    pub fn next_due_ns(&self) -> Option<u64> {
        let reordered = self.reordered.iter().map(|held| held.deadline_ns);
        let waiting = self.waiting.peek().map(|it| it.due_ns);
        reordered.chain(waiting).min()
    }

    fn depart_reordered(&mut self, now_ns: u64, is_ready: impl Fn(&Reordered<C>) -> bool) {
        while let Some(at) = self.reordered.iter().position(&is_ready) {
            let held = self.reordered.remove(at);
            self.depart(now_ns, held.packet);
        }
    }

    /// Sets when a packet leaves: after its time at the link's rate, plus the delay.
    fn depart(&mut self, now_ns: u64, packet: Transit<C>) {
        let mut departure_ps = u128::from(now_ns) * 1000;
        if let Some(bits_per_s) = self.direction.rate_bits_per_s {
            let bits = (packet.bytes.len() + self.header_bytes) * 8;
            let takes_ps = (bits as f64 / bits_per_s * 1e12) as u128;
            departure_ps = departure_ps.max(self.last_departure_ps) + takes_ps;
            self.last_departure_ps = departure_ps;
        }
        let departure_ns = u64::try_from(departure_ps.div_ceil(1000)).unwrap_or(u64::MAX);
        self.sequence += 1;
        self.waiting.push(Waiting {
            due_ns: departure_ns.saturating_add(self.direction.delay_ns),
            sequence: self.sequence,
            packet,
        });
    }
}

/// Flips a bit that the CRC covers.
fn flip_bit(bytes: &mut [u8], place: u64) {
    let bits = (bytes.len() as u64 * 8).max(1);
    let mut place = place % bits;
    if (place / 8) as usize == CONGESTION_BYTE {
        place -= 8;
    }
    if let Some(byte) = bytes.get_mut((place / 8) as usize) {
        *byte ^= 1 << (place % 8);
    }
}

impl<C> Ord for Waiting<C> {
    /// The greatest is due first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due_ns, other.sequence).cmp(&(self.due_ns, self.sequence))
    }
}

impl<C> PartialOrd for Waiting<C> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<C> PartialEq for Waiting<C> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<C> Eq for Waiting<C> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(text: &str) -> Impairment<()> {
        let faults: super::super::Faults = text.parse().unwrap();
        Impairment::new(faults.transmit, faults.seed, 28).unwrap()
    }

    fn packet(number: u32) -> Transit<()> {
        let mut bytes = number.to_be_bytes().to_vec();
        bytes.resize(100, 0);
        Transit { context: (), bytes }
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
            link.enter(now_ns, packet(at), &counts);
            out.extend(std::iter::from_fn(|| link.leave(now_ns)));
        }
        let end_ns = u64::from(packets) * 1000 + REORDER_PATIENCE_NS;
        out.extend(std::iter::from_fn(|| link.leave(end_ns)));
        assert_eq!(link.next_due_ns(), None);
        (out, counts)
    }

    fn close(count: &super::super::Count, expected: f64) {
        let count = count.get() as f64;
        // Five standard deviations of a binomial distribution; the seed is fixed.
        assert!(
            (count - expected).abs() < 5.0 * expected.sqrt(),
            "{count} {expected}"
        );
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
        let most = numbers
            .iter()
            .zip(0..)
            .map(|(it, at)| it.abs_diff(at))
            .max();
        assert!(early.count() as u64 > counts.reordered.get());
        assert!((1..=12).contains(&most.unwrap()), "{most:?}");
    }

    #[test]
    fn a_lone_reordered_packet_comes_after_its_patience() {
        let mut link = link("reorder=100%");
        link.enter(500, packet(1), &FaultCounts::default());
        assert_eq!(link.next_due_ns(), Some(500 + REORDER_PATIENCE_NS));
        assert_eq!(link.leave(499 + REORDER_PATIENCE_NS), None);
        assert_eq!(link.leave(500 + REORDER_PATIENCE_NS), Some(packet(1)));
    }

    #[test]
    fn one_bit_is_flipped_where_the_crc_covers_it() {
        let (out, _) = pass("seed=1,corrupt=100%", 2000);
        for (got, at) in out.iter().zip(0..) {
            let sent = packet(at);
            let differ = sent
                .bytes
                .iter()
                .zip(&got.bytes)
                .map(|(a, b)| (a ^ b).count_ones());
            assert_eq!(differ.sum::<u32>(), 1);
            assert_eq!(sent.bytes[CONGESTION_BYTE], got.bytes[CONGESTION_BYTE]);
        }
    }

    #[test]
    fn delay_and_rate_are_exact() {
        let mut link = link("delay=10us,rate=1G");
        let counts = FaultCounts::default();
        link.enter(1000, packet(1), &counts);
        link.enter(1000, packet(2), &counts);
        link.enter(50_000, packet(3), &counts);
        // 128 bytes including headers are 1,024 bits.
        for (due_ns, number) in [(12_024, 1), (13_048, 2), (61_024, 3)] {
            assert_eq!(link.next_due_ns(), Some(due_ns));
            assert_eq!(link.leave(due_ns - 1), None);
            assert_eq!(link.leave(due_ns), Some(packet(number)));
        }
    }

    #[test]
    fn a_link_holds_only_so_much() {
        let mut link = link("rate=1");
        let counts = FaultCounts::default();
        for at in 0..MOST_WAITING as u32 + 3 {
            link.enter(0, packet(at), &counts);
        }
        assert_eq!(counts.overflowed.get(), 3);
    }
}
