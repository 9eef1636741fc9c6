//! One QP with its prebuilt rings, and the state of it that workers share; and an SRQ with its receives.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64};

use settings::{RecvQueue, Settings};
use verbs::{
    AddressHandle, AsyncEvents, MemoryRegion, Operation, PostError, QueuePair, RecvRing,
    RecvTemplate, SendRing, SendTemplate, SharedReceiveQueue, VerbsError,
};

use crate::geometry::WrId;
use crate::layout::{looks_at_values, prebuilt_receives};
use crate::value_checks::{ReceiverCheck, SenderCheck};
use crate::{
    Geometry, Layout, Mismatch, Numbered, RemoteMemory, Sizes, received_bytes, send_opcode,
    sends_inline,
};

/// A QP of a run.
pub struct QpContext {
    pub qp: Arc<QueuePair>,
    /// Its send side, if this end sends.
    pub sender: Option<Sender>,
    /// Its receive side, if this end receives.
    pub receiver: Option<Receiver>,
    /// The numbers of its messages, in a ping-pong that needs them.
    pub numbered: Option<Numbered>,
}

/// The send side of a QP.
pub struct Sender {
    pub(super) ring: SendRing,
    /// When each slot's signalled WR was posted, as a raw clock reading.
    pub(super) posted_at: Box<[AtomicU64]>,
    /// The slots of an open loop; empty in a closed loop.
    pub(super) planned: Box<[PlannedSlot]>,
    /// Completions that each slot still waits for, if it has several.
    pub(super) awaited: Box<[AtomicU32]>,
    pub(super) sizes: Sizes,
    /// Bytes that each completion of each slot stands for; empty where all messages have one size.
    pub(super) completion_bytes: Box<[u64]>,
    /// Slots that may still be opened, in a run with a message count.
    pub(super) slots_left: AtomicI64,
    /// Messages after the last whole slot of such a run.
    pub(super) tail_messages: AtomicU32,
    /// Whether those are still to be posted.
    pub(super) tail_pending: AtomicBool,
    pub(super) tail_start: AtomicU32,
    pub(super) check: Option<SenderCheck>,
}

/// A slot of an open loop, in raw clock readings.
#[derive(Default)]
#[repr(align(16))]
pub(super) struct PlannedSlot {
    /// When its message was planned; 0 while the slot is free.
    pub(super) planned_raw: AtomicU64,
    /// When it was posted; 0 where that time is not recorded.
    pub(super) posted_raw: AtomicU64,
}

/// The receive side of a QP, for SEND and for immediate data.
pub struct Receiver {
    /// Its own receives; `None` where an SRQ has them.
    pub(super) ring: Option<RecvRing>,
    pub(super) depth: u32,
    pub(super) check: Option<ReceiverCheck>,
}

impl Sender {
    /// Memory of one sender besides the payloads, in bytes.
    pub fn memory_bytes(flow: &Settings) -> usize {
        let geometry = Geometry::from_flow(flow);
        let counted = geometry.completions_per_slot() as usize * size_of::<u64>();
        let position = SendRing::bytes_per_wr(flow.sges)
            + bytes_if(looks_at_values(flow), SenderCheck::BYTES_PER_POSITION)
            + bytes_if(flow.memory_bytes.is_some(), SendRing::WALK_BYTES_PER_WR);
        let slot = size_of::<AtomicU64>()
            + size_of::<AtomicU32>()
            + bytes_if(flow.size_mix.is_some(), counted)
            + bytes_if(!flow.is_closed_loop(), size_of::<PlannedSlot>());
        geometry.ring() as usize * position + geometry.slots as usize * slot
    }

    /// Prebuilds the requests of QP `index`, of the flow's `sizes`, with payloads in `memory`; WRITE and READ need
    /// `remote`.
    ///
    /// # Errors
    /// The ring cannot be built.
    pub fn new(
        flow: &Settings,
        sizes: &Sizes,
        index: u32,
        qp: &Arc<QueuePair>,
        memory: &Arc<MemoryRegion>,
        remote: RemoteMemory,
    ) -> Result<Self, VerbsError> {
        let geometry = Geometry::from_flow(flow);
        let layout = Layout::requests(flow, &geometry);
        let profile = flow.op.profile();
        let templates: Vec<SendTemplate> = (0..geometry.ring())
            .map(|position| {
                let at = RemoteMemory {
                    address: remote.address + layout.within_target(flow, position) as u64,
                    rkey: remote.rkey,
                };
                let length_bytes = sizes.at(index, position);
                SendTemplate {
                    wr_id: WrId::send(index, position / geometry.unit).raw(),
                    opcode: send_opcode(profile, at),
                    offset: layout.offset(index, position),
                    length_bytes,
                    sges: flow.sges,
                    signalled: geometry.signalled(position),
                    inline: sends_inline(flow, length_bytes),
                    ends_chain: geometry.ends_chain(position),
                }
            })
            .collect();
        let check = looks_at_values(flow).then(|| {
            let (memory, sizes) = (Arc::clone(memory), sizes.clone());
            SenderCheck::new(flow, memory, sizes, index)
        });
        Ok(Sender {
            ring: SendRing::new(qp, memory, &templates)?.walking(layout.walk())?,
            posted_at: (0..geometry.slots).map(|_| AtomicU64::new(0)).collect(),
            planned: (0..geometry.slots)
                .filter(|_| !flow.is_closed_loop())
                .map(|_| PlannedSlot::default())
                .collect(),
            awaited: (0..geometry.slots)
                .map(|_| AtomicU32::new(geometry.completions_per_slot()))
                .collect(),
            completion_bytes: (0..geometry.ring())
                .step_by(geometry.signal_every as usize)
                .filter(|_| sizes.is_mixed())
                .map(|first| sizes.sum(index, first, geometry.signal_every))
                .collect(),
            sizes: sizes.clone(),
            slots_left: AtomicI64::new(0),
            tail_messages: AtomicU32::new(0),
            tail_pending: AtomicBool::new(false),
            tail_start: AtomicU32::new(0),
            check,
        })
    }

    /// Has its messages go to the QP that `qpn_of` says for each position of the ring, as [`SendRing::addressed`].
    #[must_use]
    pub fn addressed(
        mut self,
        way: &Arc<AddressHandle>,
        qkey: u32,
        qpn_of: impl Fn(usize) -> u32,
    ) -> Self {
        self.ring = self.ring.addressed(way, qkey, qpn_of);
        self
    }

    /// Allows `messages` more messages, in a run with a message count.
    pub fn set_budget(&self, geometry: &Geometry, messages: u64) {
        let unit = u64::from(geometry.unit);
        self.slots_left.store(i64::try_from(messages / unit).unwrap_or(i64::MAX), Relaxed);
        let tail = (messages % unit) as u32;
        self.tail_messages.store(tail, Relaxed);
        self.tail_pending.store(tail > 0, Relaxed);
    }

    /// How often each ring position was posted, where values are looked at.
    pub fn posts(&self) -> Option<Vec<u32>> {
        self.check.as_ref().map(SenderCheck::posts)
    }
}

impl Receiver {
    /// Memory of one receiver besides the buffers, in bytes.
    pub fn memory_bytes(flow: &Settings) -> usize {
        let seen = Geometry::from_flow(flow).ring() as usize * ReceiverCheck::BYTES_PER_POSITION;
        let has_own = flow.recv_queue == RecvQueue::PerQp;
        bytes_if(flow.verify, seen) + bytes_if(has_own, Receiver::queue_bytes(flow))
    }

    /// Memory of the prebuilt receives of one queue, in bytes.
    pub fn queue_bytes(flow: &Settings) -> usize {
        let walk = bytes_if(flow.memory_bytes.is_some(), RecvRing::WALK_BYTES_PER_WR);
        prebuilt_receives(flow) as usize * (RecvRing::bytes_per_wr(flow.sges) + walk)
    }

    /// Prebuilds the receives of QP `index`, if it has its own, for messages of the flow's `sizes`. `memory` has the
    /// buffers.
    ///
    /// # Errors
    /// The ring cannot be built.
    pub fn new(
        flow: &Settings,
        sizes: &Sizes,
        index: u32,
        qp: &Arc<QueuePair>,
        memory: &Arc<MemoryRegion>,
    ) -> Result<Self, VerbsError> {
        let ring = match flow.recv_queue {
            RecvQueue::Shared => None,
            RecvQueue::PerQp => {
                let templates = templates(flow, index, |slot| WrId::receive(index, slot));
                let ring = RecvRing::new(qp, memory, &templates, !flow.verify)?;
                Some(ring.walking(Layout::receives(flow).walk())?)
            }
        };
        Ok(Receiver {
            ring,
            depth: flow.rx_depth,
            check: flow.verify.then(|| {
                let (memory, sizes) = (Arc::clone(memory), sizes.clone());
                ReceiverCheck::new(flow, memory, sizes, index)
            }),
        })
    }

    /// Posts the whole depth, before the peer may send.
    ///
    /// # Errors
    /// The first refused post.
    pub fn post_all(&self, qpn: u32) -> Result<(), VerbsError> {
        let Some(ring) = &self.ring else {
            return Ok(());
        };
        post_all(ring, self.depth, self.check.is_some())
            .map_err(|error| error.into_error(Operation::PostRecv, qpn))
    }

    /// With `--verify`: checks that every message of the peer arrived once, where none may be lost. `posts_of` is how often
    /// each QP of the peer posted each ring position.
    pub fn check_counts<'p>(&self, posts_of: impl Fn(u32) -> &'p [u32]) -> Option<Mismatch> {
        self.check.as_ref()?.counts(posts_of)
    }
}

/// Memory of what is there only in some flows.
fn bytes_if(is_there: bool, bytes: usize) -> usize {
    if is_there { bytes } else { 0 }
}

/// The receives to prebuild for a queue whose buffers are those of QP `qp` in the layout.
pub(super) fn templates(
    flow: &Settings,
    qp: u32,
    wr_id: impl Fn(u32) -> WrId,
) -> Vec<RecvTemplate> {
    let layout = Layout::receives(flow);
    (0..prebuilt_receives(flow))
        .map(|slot| RecvTemplate {
            wr_id: wr_id(slot).raw(),
            offset: layout.offset(qp, slot),
            length_bytes: received_bytes(flow),
            sges: flow.sges,
        })
        .collect()
}

/// Posts `depth` receives of a ring: each of it once where it is not linked (`one_by_one`), else its chain again and
/// again.
///
/// # Errors
/// The first refused post.
pub(super) fn post_all(ring: &RecvRing, depth: u32, one_by_one: bool) -> Result<(), PostError> {
    if one_by_one {
        return (0..ring.len()).try_for_each(|slot| ring.post(slot));
    }
    let chain = ring.len().max(1);
    for _ in 0..depth as usize / chain {
        ring.post(0)?;
    }
    match depth as usize % chain {
        0 => Ok(()),
        rest => ring.post(chain - rest),
    }
}

/// The limit of an SRQ's event is this part of its receives.
const LIMIT_PART: u32 = 4;

/// An SRQ with its prebuilt receives, from which all QPs of a flow at its receiving end take theirs. They belong to no QP:
/// their `wr_id` has the slot, and a completion's QP number tells which QP took it. The table that finds the QP is built
/// before the first message and never changes, so workers read it without a lock.
///
/// There is one SRQ for all workers: which QP takes a receive has nothing to do with which worker polls it. So workers
/// post to the same queue, whose lock is the library's; they post chains, so that it is taken once for several receives.
pub struct SharedReceives {
    srq: Arc<SharedReceiveQueue>,
    pub(super) ring: RecvRing,
    depth: u32,
    qps: QpNumbers,
    limit_events: AtomicU64,
    is_armed: AtomicBool,
}

impl SharedReceives {
    /// Prebuilds the receives of a flow with buffers in `memory`, and posts all of them. `qpns` are the numbers of its
    /// QPs, in their order.
    ///
    /// # Errors
    /// The ring cannot be built, or a refused post.
    pub fn post(
        flow: &Settings,
        srq: &Arc<SharedReceiveQueue>,
        memory: &Arc<MemoryRegion>,
        qpns: impl ExactSizeIterator<Item = u32>,
    ) -> Result<SharedReceives, VerbsError> {
        let templates = templates(flow, 0, WrId::shared_receive);
        let ring = RecvRing::shared(srq, memory, &templates, !flow.verify)?;
        let receives = SharedReceives {
            srq: Arc::clone(srq),
            ring: ring.walking(Layout::receives(flow).walk())?,
            depth: flow.rx_depth,
            qps: QpNumbers::new(qpns),
            limit_events: AtomicU64::new(0),
            is_armed: AtomicBool::new(false),
        };
        post_all(&receives.ring, receives.depth, flow.verify)
            .map_err(|error| error.into_error_for(Operation::PostSrqRecv, "the SRQ"))?;
        receives.rearm()?;
        Ok(receives)
    }

    /// Index of the QP with this number.
    #[inline]
    pub(super) fn index_of(&self, qpn: u32) -> Option<usize> {
        self.qps.index_of(qpn)
    }

    /// Whether an event's SRQ is this one.
    pub fn is(&self, identity: usize) -> bool {
        AsyncEvents::is_srq(&self.srq, identity)
    }

    /// Counts an event of the SRQ's limit, if it is of this one; returns whether it is.
    pub fn count_limit(&self, identity: usize) -> bool {
        let is_own = self.is(identity);
        if is_own {
            self.limit_events.fetch_add(1, Relaxed);
            self.is_armed.store(false, Relaxed);
        }
        is_own
    }

    /// Requests the next event of the limit, unless it is requested.
    ///
    /// # Errors
    /// The failed call.
    pub fn rearm(&self) -> Result<(), VerbsError> {
        if self.is_armed.swap(true, Relaxed) {
            Ok(())
        } else {
            self.srq.arm(self.depth / LIMIT_PART)
        }
    }

    /// Events of the limit that were counted.
    pub fn limit_events(&self) -> u64 {
        self.limit_events.load(Relaxed)
    }
}

/// Finds QPs by their numbers: a hash table with open addressing, at most half full.
struct QpNumbers {
    /// Numbers and indexes; [`NO_QP`] as index where there is none.
    places: Box<[(u32, u32)]>,
    shift: u32,
}

const NO_QP: u32 = u32::MAX;

impl QpNumbers {
    fn new(qpns: impl ExactSizeIterator<Item = u32>) -> QpNumbers {
        let places = (2 * qpns.len()).next_power_of_two().max(2);
        let mut numbers = QpNumbers {
            places: vec![(0, NO_QP); places].into(),
            shift: u32::BITS - places.trailing_zeros(),
        };
        for (qpn, index) in qpns.zip(0..) {
            let mut place = numbers.place_of(qpn);
            while numbers.places[place].1 != NO_QP {
                place = (place + 1) % places;
            }
            numbers.places[place] = (qpn, index);
        }
        numbers
    }

    /// Numbers follow each other on most devices, so neighbours get places far from each other (Knuth, The Art of
    /// Computer Programming 3, 6.4: multiplicative hashing).
    #[inline]
    fn place_of(&self, qpn: u32) -> usize {
        (qpn.wrapping_mul(0x9e37_79b1) >> self.shift) as usize
    }

    #[inline]
    fn index_of(&self, qpn: u32) -> Option<usize> {
        let mask = self.places.len() - 1;
        let mut place = self.place_of(qpn);
        loop {
            match *self.places.get(place)? {
                (_, NO_QP) => return None,
                (number, index) if number == qpn => return Some(index as usize),
                _ => place = (place + 1) & mask,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_number_finds_its_qp_and_others_none(
            qpns in proptest::collection::hash_set(0..1u32 << 24, 1..300), other in 0..1u32 << 24,
        ) {
            let listed: Vec<u32> = qpns.iter().copied().collect();
            let numbers = QpNumbers::new(listed.iter().copied());
            for (index, qpn) in listed.iter().enumerate() {
                prop_assert_eq!(numbers.index_of(*qpn), Some(index));
            }
            prop_assert_eq!(numbers.index_of(other).is_some(), qpns.contains(&other));
        }
    }

    #[test]
    fn numbers_that_follow_each_other_are_found() {
        for count in [1, 2, 16, 4096] {
            let numbers = QpNumbers::new(0x11..0x11 + count);
            assert!((0..count).all(|qp| numbers.index_of(0x11 + qp) == Some(qp as usize)));
            assert_eq!(numbers.index_of(0x10), None);
        }
    }
}
