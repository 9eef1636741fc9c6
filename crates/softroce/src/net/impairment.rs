//! A faulty link: decides for each packet what happens to it and when it leaves the link. It knows bytes and time but
//! no socket, so both directions use it, and tests control its time.

use std::collections::VecDeque;

use super::counters::FaultCounts;
use super::fault_values::burst_begins;
use super::faults::{Direction, MOST_NAMED};
use super::packet_kind;
use super::sockets::mark;
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
    pub context: C,
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
    reordered: Vec<Reordered<C>>,
    /// When each leaves, in that order.
    waiting: VecDeque<(u64, Transit<C>)>,
    /// When the last packet has left, in picoseconds: on a fast link a packet takes a few nanoseconds.
    last_departure_ps: u128,
}

struct Reordered<C> {
    packet: Transit<C>,
    jitter_ns: u64,
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
            reordered: Vec::new(),
            waiting: VecDeque::new(),
            last_departure_ps: 0,
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
            .filter(|(nth, _)| packet_kind::is_of_kind(nth.kind, opcode_byte))
            .fold(false, |lost, (nth, seen)| {
                *seen += 1;
                lost || *seen == nth.number
            })
    }

    /// Whether packets with these fates come through at once and unchanged: they need not enter the link.
    pub fn passes(&self, fates: &[Fate]) -> bool {
        let instant = self.direction.delay_ns == 0 && self.direction.rate_bits_per_s.is_none();
        let empty = self.waiting.is_empty() && self.reordered.is_empty();
        instant && empty && fates.iter().all(|fate| *fate == Fate::default())
    }

    /// Puts a packet on the link.
    pub fn enter(&mut self, now_ns: u64, fate: Fate, mut packet: Transit<C>, counts: &FaultCounts) {
        if fate.lost {
            counts.dropped.add(1);
            return;
        }
        if let Some(place) = fate.corrupt {
            counts.corrupted.add(1);
            flip_bit(&mut packet.bytes, place);
        }
        if fate.duplicate {
            counts.duplicated.add(1);
        }
        if fate.marked {
            packet.traffic_class = mark(packet.traffic_class);
        }
        let is_full = self.waits_longer_than(now_ns, self.direction.queue_ns);
        if is_full || self.waiting.len() + self.reordered.len() >= MOST_WAITING {
            counts.overflowed.add(1);
            return;
        }
        let copy = fate.duplicate.then(|| packet.clone());
        let packets = [Some(packet), copy].into_iter().flatten();
        let jitter_ns = fate.jitter_ns;
        if let Some(behind) = fate.behind {
            counts.reordered.add(1);
            self.reordered.extend(packets.map(|packet| Reordered {
                packet,
                jitter_ns,
                behind,
                deadline_ns: now_ns + REORDER_PATIENCE_NS,
            }));
            return;
        }
        packets.for_each(|packet| self.depart(now_ns, jitter_ns, packet));
        for held in &mut self.reordered {
            held.behind = held.behind.saturating_sub(1);
        }
        self.depart_reordered(now_ns, |held| held.behind == 0);
    }

    /// The next packet that has left the link.
    pub fn leave(&mut self, now_ns: u64) -> Option<Transit<C>> {
        self.depart_reordered(now_ns, |held| held.deadline_ns <= now_ns);
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

    fn depart_reordered(&mut self, now_ns: u64, is_ready: impl Fn(&Reordered<C>) -> bool) {
        while let Some(at) = self.reordered.iter().position(&is_ready) {
            let held = self.reordered.remove(at);
            self.depart(now_ns, held.jitter_ns, held.packet);
        }
    }

    /// Whether a packet waits longer than this, if it is limited, for those before it to have their time at the link's rate.
    fn waits_longer_than(&self, now_ns: u64, longest_ns: Option<u64>) -> bool {
        let waits_ps = (self.last_departure_ps).saturating_sub(u128::from(now_ns) * 1000);
        longest_ns.is_some_and(|ns| waits_ps > u128::from(ns) * 1000)
    }

    /// Sets when a packet leaves: after its time at the link's rate, plus the delay, and after those before it. Marks one
    /// that waits for long behind those before it.
    fn depart(&mut self, now_ns: u64, jitter_ns: u64, mut packet: Transit<C>) {
        let mut departure_ps = u128::from(now_ns) * 1000;
        if let Some(bits_per_s) = self.direction.rate_bits_per_s {
            let bits = (packet.bytes.len() + self.header_bytes) * 8;
            let takes_ps = (bits as f64 / bits_per_s * 1e12) as u128;
            if self.waits_longer_than(now_ns, self.direction.mark_after_ns) {
                packet.traffic_class = mark(packet.traffic_class);
            }
            departure_ps = departure_ps.max(self.last_departure_ps) + takes_ps;
            self.last_departure_ps = departure_ps;
        }
        let departure_ns = u64::try_from(departure_ps.div_ceil(1000)).unwrap_or(u64::MAX);
        // The shortest delay is the delay without the jitter.
        let shortest_ns = self.direction.delay_ns - self.direction.jitter_ns;
        let due_ns = departure_ns.saturating_add(shortest_ns.saturating_add(jitter_ns));
        let before_ns = self.waiting.back().map_or(0, |(due_ns, _)| *due_ns);
        self.waiting.push_back((due_ns.max(before_ns), packet));
    }
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
mod tests;
