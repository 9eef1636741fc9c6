//! Values are looked at: what WRITEs, SENDs and atomic operations brought and READs fetched, with `--verify`, and which
//! COMPARE-SWAPs were made.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use settings::{Access, AtomicTarget, Profile, Settings};
use verbs::MemoryRegion;

use crate::operation::{AWAITED, Exchange, PatternKey, word};
use crate::{Geometry, Layout, Mismatch, Peers, Place, Regions, Sizes};

/// The sender's state where the values of each WR are looked at.
pub(super) struct SenderCheck {
    memory: Arc<MemoryRegion>,
    layout: Layout,
    profile: &'static Profile,
    target: AtomicTarget,
    /// QPs of the flow, and which of them it is.
    qps: u32,
    qp: u32,
    sizes: Sizes,
    /// How often each ring position was posted.
    posts: Box<[AtomicU32]>,
}

/// The receiver's state for `--verify`.
pub(super) struct ReceiverCheck {
    memory: Arc<MemoryRegion>,
    layout: Layout,
    /// Payload lands in the receives; elsewhere the next message may already have replaced it.
    in_receives: bool,
    /// Bytes before the payload in a receive.
    header_bytes: usize,
    /// Every message must come; elsewhere none may come more often than it was sent.
    is_reliable: bool,
    peers: Peers,
    /// The QP whose place the buffers have: none of the others with an SRQ.
    buffers_of: u32,
    qp: u32,
    sizes: Sizes,
    seen: Box<[ArrivalSums]>,
}

/// Arrivals of one ring position: their count, and the sum of their sequences, which reveals a lost message replaced
/// by a duplicate.
#[derive(Default)]
struct ArrivalSums {
    count: AtomicU32,
    sum: AtomicU64,
}

/// What a WR is to have before it is posted.
pub(super) struct Prepared {
    /// Immediate data that identifies the message, where the peer verifies what it receives.
    pub(super) immediate: Option<u32>,
    /// The values of a COMPARE-SWAP.
    pub(super) exchange: Option<Exchange>,
}

/// What was seen where completed WRs fetched to.
#[derive(Default)]
pub(super) struct Fetched {
    pub(super) swaps_made: u32,
    pub(super) mismatch: Option<Mismatch>,
}

impl SenderCheck {
    /// Memory for each position of the ring, in bytes.
    pub(super) const BYTES_PER_POSITION: usize = size_of::<AtomicU32>();

    /// For QP `qp` of a flow, with payloads in `memory`.
    pub(super) fn new(flow: &Settings, memory: Arc<MemoryRegion>, sizes: Sizes, qp: u32) -> Self {
        let geometry = Geometry::from_flow(flow);
        SenderCheck {
            memory,
            layout: Layout::requests(flow, &geometry),
            profile: flow.op.profile(),
            target: flow.atomic_target,
            qps: flow.qps,
            qp,
            sizes,
            posts: (0..geometry.ring()).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// How often each ring position was posted.
    pub(super) fn posts(&self) -> Vec<u32> {
        self.posts.iter().map(|count| count.load(Relaxed)).collect()
    }

    /// Prepares the cell of a position before it is posted: fills the payload of a SEND or WRITE, or writes bytes
    /// that a READ or an atomic operation must replace.
    pub(super) fn prepare(&self, position: u32) -> Prepared {
        let count =
            self.posts.get(position as usize).map_or(0, |count| count.fetch_add(1, Relaxed));
        let offset = self.layout.offset_after(self.qp, position, count.into());
        if self.profile.is_atomic() {
            self.memory.write_at(offset, &AWAITED.to_ne_bytes());
            return Prepared {
                immediate: None,
                exchange: (self.profile.access == Access::Swap)
                    .then(|| self.exchange(position, count)),
            };
        }
        let key = PatternKey {
            qp: self.qp,
            position: position as u16,
            sequence: if self.profile.fetches { self.lap_of(count) } else { count as u16 },
        };
        key.fill(
            &self.memory,
            offset,
            self.sizes.at(self.qp, position) as usize,
            self.profile.fetches,
        );
        Prepared { immediate: self.profile.receives.then(|| key.immediate()), exchange: None }
    }

    /// The lap in which a position is posted for the time `count`, from 0, which tells what a READ fetches.
    fn lap_of(&self, count: u32) -> u16 {
        (u64::from(count) % self.layout.walk().laps()) as u16
    }

    /// The exchange that a position posts for the time `count`, from 0.
    fn exchange(&self, position: u32, count: u32) -> Exchange {
        let ring = self.posts.len() as u32;
        let number = Exchange::number(self.target, ring, position, count);
        Exchange::from_number(self.qp, number)
    }

    /// Looks at what READs or atomic operations wrote to `count` positions from `first`.
    pub(super) fn fetched(&self, first: u32, count: u32) -> Fetched {
        let positions = first..first + count;
        match (self.profile.fetches, self.profile.is_atomic()) {
            (false, _) => Fetched::default(),
            (true, false) => Fetched { mismatch: self.wrong_read(positions), swaps_made: 0 },
            (true, true) => positions.fold(Fetched::default(), |mut fetched, position| {
                let found = word(&self.memory, self.layout.offset(self.qp, position));
                let posts = self.posts.get(position as usize);
                let posted = posts.map_or(0, |times| times.load(Relaxed));
                let may_be = match self.profile.access {
                    Access::Swap => {
                        let exchange = self.exchange(position, posted.wrapping_sub(1));
                        fetched.swaps_made += u32::from(found == exchange.expected);
                        Exchange::may_leave(found, self.qps)
                    }
                    _ => found != AWAITED,
                };
                if !may_be {
                    fetched.mismatch.get_or_insert(Mismatch::Word {
                        place: Place::LocalMemory,
                        qp: self.qp,
                        position,
                        found,
                        expected: None,
                    });
                }
                fetched
            }),
        }
    }

    fn wrong_read(&self, mut positions: std::ops::Range<u32>) -> Option<Mismatch> {
        positions.find_map(|position| {
            let posts = self.posts.get(position as usize)?;
            let last = posts.load(Relaxed).wrapping_sub(1);
            check_cell(
                &self.memory,
                self.layout.offset_after(self.qp, position, last.into()),
                PatternKey { qp: self.qp, position: position as u16, sequence: self.lap_of(last) },
                &self.sizes,
                Place::LocalMemory,
            )
        })
    }
}

/// Fills memory that the peer will READ: the sequence of each payload is its lap.
pub fn fill_for_reads(memory: &Regions, flow: &Settings, sizes: &Sizes) {
    let geometry = Geometry::from_flow(flow);
    let layout = Layout::requests(flow, &geometry);
    for qp in 0..flow.qps {
        for position in 0..geometry.ring() {
            for lap in 0..layout.walk().laps() {
                let key = PatternKey { qp, position: position as u16, sequence: lap as u16 };
                let offset = layout.offset_after(qp, position, lap);
                let length = sizes.at(qp, position) as usize;
                key.fill(memory.of_qp(qp), offset, length, false);
            }
        }
    }
}

/// Checks the words that the peer has changed by atomic operations, after the last of them completed. `posts` is how often
/// the peer posted each position, for each of its QPs.
pub fn check_sums<'p>(
    memory: &Regions,
    flow: &Settings,
    posts: impl Iterator<Item = &'p [u32]>,
) -> Option<Mismatch> {
    let layout = Layout::requests(flow, &Geometry::from_flow(flow));
    let mut sums: BTreeMap<(u32, usize), (u64, u32, u32)> = BTreeMap::new();
    for (qp, posts_of_qp) in (0..).zip(posts) {
        for (position, &count) in (0..).zip(posts_of_qp) {
            let target = Layout::target_of(flow, qp);
            let at = (target, layout.start_of(target) + layout.within_target(flow, position));
            sums.entry(at).or_insert((0, qp, position)).0 += u64::from(count);
        }
    }
    sums.into_iter().find_map(|((target, at), (sum, qp, position))| {
        let found = word(memory.of_qp(target), at);
        let (is_right, expected) = match flow.op.profile().access {
            Access::Swap => (Exchange::may_leave(found, flow.qps), None),
            _ => (found == sum, Some(sum)),
        };
        (!is_right).then_some(Mismatch::Word {
            place: Place::TargetMemory,
            qp,
            position,
            found,
            expected,
        })
    })
}

/// Checks memory that the peer has written, after its last WRITE completed: each position must hold the last payload
/// posted for it. Over a service that loses messages each packet's bytes, of `packet_bytes`, must be those of any payload
/// posted for the position, or untouched. `posts` is how often the peer posted each position of QP `qp`.
pub fn check_written(
    memory: &Regions,
    flow: &Settings,
    sizes: &Sizes,
    qp: u32,
    packet_bytes: u32,
    posts: &[u32],
) -> Option<Mismatch> {
    let layout = Layout::requests(flow, &Geometry::from_flow(flow));
    let laps = layout.walk().laps();
    posts.iter().zip(0u32..).find_map(|(&count, position)| {
        let used = u64::from(count).min(laps) as u32;
        (0..used).find_map(|first| {
            // The last message that came to the same cell.
            let uses = u64::from(count - 1 - first) / laps * laps + u64::from(first);
            let last = PatternKey { qp, position: position as u16, sequence: uses as u16 };
            let offset = layout.offset_after(qp, position, uses);
            let wrong = check_cell(memory.of_qp(qp), offset, last, sizes, Place::TargetMemory)?;
            let cell = (offset, sizes.at(qp, position) as usize);
            let may_be = !flow.service.is_reliable()
                && are_of_any(memory.of_qp(qp), cell, last, count, packet_bytes as usize);
            (!may_be).then_some(wrong)
        })
    })
}

/// Whether each packet's bytes of the cell at an offset, of a length, are those of one of the `count` payloads of which
/// `last` was the last, or of none.
fn are_of_any(
    memory: &MemoryRegion,
    (offset, length): (usize, usize),
    last: PatternKey,
    count: u32,
    packet_bytes: usize,
) -> bool {
    let sequences = u16::try_from(count).unwrap_or(u16::MAX);
    (0..length).step_by(packet_bytes.max(1)).all(|start| {
        let part = start..length.min(start + packet_bytes);
        let is_of = |back: u16| {
            let key = PatternKey { sequence: last.sequence.wrapping_sub(back), ..last };
            key.check_part(memory, offset, part.clone()).is_none()
        };
        is_of(0) || is_untouched(memory, offset + start, part.len()) || (1..sequences).any(is_of)
    })
}

/// Whether all bytes are those of new memory.
fn is_untouched(memory: &MemoryRegion, offset: usize, length: usize) -> bool {
    let mut bytes = vec![0; length];
    memory.read_at(offset, &mut bytes) == length && bytes.iter().all(|byte| *byte == 0)
}

fn check_cell(
    memory: &MemoryRegion,
    offset: usize,
    key: PatternKey,
    sizes: &Sizes,
    place: Place,
) -> Option<Mismatch> {
    let position = u32::from(key.position);
    let size_bytes = sizes.at(key.qp, position);
    let wrong = key.check(memory, offset, size_bytes as usize)?;
    Some(Mismatch::Byte { place, qp: key.qp, position, sequence: key.sequence, size_bytes, wrong })
}

impl ReceiverCheck {
    /// Memory for each position of the sender's ring, in bytes.
    pub(super) const BYTES_PER_POSITION: usize = size_of::<ArrivalSums>();

    /// For QP `qp` of a flow, with buffers in `memory`.
    pub(super) fn new(flow: &Settings, memory: Arc<MemoryRegion>, sizes: Sizes, qp: u32) -> Self {
        let positions = 0..Geometry::from_flow(flow).ring();
        ReceiverCheck {
            memory,
            layout: Layout::receives(flow),
            in_receives: flow.op.profile().fills_receives(),
            header_bytes: flow.service.receive_header_bytes() as usize,
            is_reliable: flow.service.is_reliable(),
            peers: Peers::new(flow),
            buffers_of: Layout::place_of_receives(flow, qp),
            qp,
            sizes,
            seen: positions.map(|_| ArrivalSums::default()).collect(),
        }
    }

    /// Checks that every message of the peer arrived once, or that none arrived more often than it was sent where some
    /// may be lost; `posts_of` is what [`check_written`] calls `posts`, of each QP of the peer.
    pub(super) fn counts<'p>(&self, posts_of: impl Fn(u32) -> &'p [u32]) -> Option<Mismatch> {
        self.seen.iter().zip(0u32..).find_map(|(seen, position)| {
            let posts = posts_of(self.peers.sender(self.qp, position));
            let sent = posts.get(position as usize).copied().unwrap_or(0);
            let count = seen.count.load(Relaxed);
            if !self.is_reliable && count < sent {
                return None;
            }
            let sent_sum: u64 = (0..sent).map(|sequence| u64::from(sequence as u16)).sum();
            (count != sent || seen.sum.load(Relaxed) != sent_sum).then(|| Mismatch::Count {
                qp: self.qp,
                position,
                found: count.into(),
                expected: sent.into(),
            })
        })
    }

    /// Checks a received message of `byte_len` bytes of payload in the buffer that receive `slot` had in this lap.
    pub(super) fn check(
        &self,
        (slot, lap): (u32, u64),
        byte_len: u32,
        immediate: Option<u32>,
    ) -> Option<Mismatch> {
        let carried = PatternKey::from_immediate(self.qp, immediate.unwrap_or(u32::MAX));
        let key = PatternKey { qp: self.peers.sender(self.qp, carried.position.into()), ..carried };
        let expected_bytes = self.sizes.at(key.qp, key.position.into());
        if byte_len != expected_bytes {
            return Some(Mismatch::Length { qp: self.qp, found_bytes: byte_len, expected_bytes });
        }
        if let Some(seen) = self.seen.get(usize::from(key.position)) {
            seen.count.fetch_add(1, Relaxed);
            seen.sum.fetch_add(key.sequence.into(), Relaxed);
        }
        if !self.in_receives {
            return None;
        }
        let wrong = key.check(
            &self.memory,
            self.layout.offset_after(self.buffers_of, slot, lap) + self.header_bytes,
            byte_len as usize,
        )?;
        Some(Mismatch::Byte {
            place: Place::ReceiveBuffer,
            qp: self.qp,
            position: key.position.into(),
            sequence: key.sequence,
            size_bytes: byte_len,
            wrong,
        })
    }
}
