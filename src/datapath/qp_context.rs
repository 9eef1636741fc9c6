//! One QP with its prebuilt rings, and the state of it that workers share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};

use settings::{Profile, Rate, Settings};
use verbs::{
    MemoryRegion, Operation, QueuePair, RecvRing, RecvTemplate, SendRing, SendTemplate, VerbsError,
};

use super::layout::sends_inline;
use super::operation::{RemoteMemory, send_opcode};
use super::pattern::PatternKey;
use super::trouble::{Mismatch, Place};
use super::wr_id::WrId;
use super::{Geometry, Layout, Sizes};

/// The most receives posted by one call in the steady state.
const RECV_CHAIN: u32 = 16;

/// A QP of a run.
pub struct QpContext {
    /// The QP.
    pub qp: Arc<QueuePair>,
    /// Its send side, if this end sends.
    pub sender: Option<Sender>,
    /// Its receive side, if this end receives.
    pub receiver: Option<Receiver>,
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
    pub(super) verify: Option<SenderCheck>,
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

/// The sender's state for `--verify`.
pub(super) struct SenderCheck {
    memory: Arc<MemoryRegion>,
    layout: Layout,
    profile: &'static Profile,
    qp: u32,
    sizes: Sizes,
    /// How often each ring position was posted.
    posts: Box<[AtomicU32]>,
}

/// The receive side of a QP, for SEND.
pub struct Receiver {
    pub(super) ring: RecvRing,
    pub(super) depth: u32,
    pub(super) check: Option<ReceiverCheck>,
}

/// The receiver's state for `--verify`.
pub(super) struct ReceiverCheck {
    memory: Arc<MemoryRegion>,
    layout: Layout,
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

impl Sender {
    /// Memory of one sender besides the payloads, in bytes.
    pub fn memory_bytes(flow: &Settings) -> usize {
        let geometry = Geometry::of(flow);
        let position = SendRing::BYTES_PER_WR
            + if flow.verify {
                size_of::<AtomicU32>()
            } else {
                0
            };
        let counted = match flow.size_mix {
            Some(_) => geometry.completions_per_slot() as usize * size_of::<u64>(),
            None => 0,
        };
        let planned = match flow.rate {
            Rate::Closed => 0,
            _ => size_of::<PlannedSlot>(),
        };
        let slot = size_of::<AtomicU64>() + size_of::<AtomicU32>() + counted + planned;
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
        let geometry = Geometry::of(flow);
        let layout = Layout::requests(flow, &geometry);
        let profile = flow.op.profile();
        let templates: Vec<SendTemplate> = (0..geometry.ring())
            .map(|position| {
                let at = RemoteMemory {
                    address: remote.address + layout.within_qp(position) as u64,
                    rkey: remote.rkey,
                };
                let length_bytes = sizes.at(index, position);
                SendTemplate {
                    wr_id: WrId::send(index, position / geometry.unit).raw(),
                    opcode: send_opcode(profile, at),
                    offset: layout.offset(index, position),
                    length_bytes,
                    signalled: geometry.signalled(position),
                    inline: sends_inline(flow, length_bytes),
                    ends_chain: geometry.ends_chain(position),
                }
            })
            .collect();
        let atomics = |count: u32, value| (0..count).map(|_| AtomicU32::new(value)).collect();
        let verify = flow.verify.then(|| SenderCheck {
            memory: Arc::clone(memory),
            layout,
            profile,
            qp: index,
            sizes: sizes.clone(),
            posts: atomics(geometry.ring(), 0),
        });
        Ok(Sender {
            ring: SendRing::new(qp, memory, &templates)?,
            posted_at: (0..geometry.slots).map(|_| AtomicU64::new(0)).collect(),
            planned: (0..geometry.slots)
                .filter(|_| !flow.rate.is_closed())
                .map(|_| PlannedSlot::default())
                .collect(),
            awaited: atomics(geometry.slots, geometry.completions_per_slot()),
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
            verify,
        })
    }

    /// Allows `messages` more messages, in a run with a message count.
    pub fn set_budget(&self, geometry: &Geometry, messages: u64) {
        let unit = u64::from(geometry.unit);
        self.slots_left
            .store(i64::try_from(messages / unit).unwrap_or(i64::MAX), Relaxed);
        let tail = (messages % unit) as u32;
        self.tail_messages.store(tail, Relaxed);
        self.tail_pending.store(tail > 0, Relaxed);
    }

    /// How often each ring position was posted, with `--verify`.
    pub fn posts(&self) -> Option<Vec<u32>> {
        let check = self.verify.as_ref()?;
        Some(
            check
                .posts
                .iter()
                .map(|count| count.load(Relaxed))
                .collect(),
        )
    }
}

impl SenderCheck {
    /// Whether immediate data must identify messages, because the peer verifies payloads that it receives.
    pub(super) fn names_messages(&self) -> bool {
        self.profile.receives
    }

    /// Prepares the cell of a position before it is posted: fills the payload of a SEND or WRITE, or writes bytes
    /// that a READ must replace.
    pub(super) fn prepare(&self, position: u32) -> PatternKey {
        let count = self
            .posts
            .get(position as usize)
            .map_or(0, |count| count.fetch_add(1, Relaxed));
        let key = PatternKey {
            qp: self.qp,
            position: position as u16,
            sequence: match self.profile.fetches {
                true => 0,
                false => count as u16,
            },
        };
        let offset = self.layout.offset(self.qp, position);
        key.fill(
            &self.memory,
            offset,
            self.sizes.at(self.qp, position) as usize,
            self.profile.fetches,
        );
        key
    }

    /// Checks what READs wrote to `count` positions from `first`.
    pub(super) fn check_reads(&self, first: u32, count: u32) -> Option<Mismatch> {
        if !self.profile.fetches {
            return None;
        }
        (first..first + count).find_map(|position| {
            check_cell(
                &self.memory,
                &self.layout,
                PatternKey {
                    qp: self.qp,
                    position: position as u16,
                    sequence: 0,
                },
                &self.sizes,
                Place::LocalMemory,
            )
        })
    }
}

/// Fills memory that the peer will READ.
pub fn fill_for_reads(memory: &MemoryRegion, flow: &Settings, sizes: &Sizes) {
    let geometry = Geometry::of(flow);
    let layout = Layout::requests(flow, &geometry);
    for qp in 0..flow.qps {
        for position in 0..geometry.ring() {
            let key = PatternKey {
                qp,
                position: position as u16,
                sequence: 0,
            };
            let offset = layout.offset(qp, position);
            key.fill(memory, offset, sizes.at(qp, position) as usize, false);
        }
    }
}

/// Checks memory that the peer has written, after its last WRITE completed: each position must hold the last payload
/// posted for it. `posts` is how often the peer posted each position of QP `qp`.
pub fn check_written(
    memory: &MemoryRegion,
    flow: &Settings,
    sizes: &Sizes,
    qp: u32,
    posts: &[u32],
) -> Option<Mismatch> {
    let layout = Layout::requests(flow, &Geometry::of(flow));
    posts.iter().zip(0u32..).find_map(|(&count, position)| {
        let sequence = count.checked_sub(1)? as u16;
        let key = PatternKey {
            qp,
            position: position as u16,
            sequence,
        };
        check_cell(memory, &layout, key, sizes, Place::TargetMemory)
    })
}

fn check_cell(
    memory: &MemoryRegion,
    layout: &Layout,
    key: PatternKey,
    sizes: &Sizes,
    place: Place,
) -> Option<Mismatch> {
    let position = u32::from(key.position);
    let size_bytes = sizes.at(key.qp, position);
    let wrong = key.check(memory, layout.offset(key.qp, position), size_bytes as usize)?;
    Some(Mismatch::Byte {
        place,
        qp: key.qp,
        position,
        sequence: key.sequence,
        size_bytes,
        wrong,
    })
}

impl Receiver {
    /// Memory of one receiver besides the buffers, in bytes.
    pub fn memory_bytes(flow: &Settings) -> usize {
        let seen = if flow.verify {
            Geometry::of(flow).ring() as usize * size_of::<ArrivalSums>()
        } else {
            0
        };
        Receiver::prebuilt(flow) as usize * RecvRing::BYTES_PER_WR + seen
    }

    /// Number of prebuilt receives, of which the receive depth is posted.
    fn prebuilt(flow: &Settings) -> u32 {
        if flow.verify {
            return flow.rx_depth;
        }
        // A chain is posted once this many receives are used up. The rest of the depth must last until then, even if
        // each of several workers holds back almost a chain.
        (flow.rx_depth / (4 * flow.workers.max(1))).clamp(1, RECV_CHAIN)
    }

    /// Prebuilds the receives of QP `index`, for messages of the flow's `sizes`, with buffers in `memory`.
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
        let layout = Layout::receives(flow);
        let templates: Vec<RecvTemplate> = (0..Receiver::prebuilt(flow))
            .map(|slot| RecvTemplate {
                wr_id: WrId::receive(index, slot).raw(),
                offset: layout.offset(index, slot),
                length_bytes: flow.size_bytes,
            })
            .collect();
        let geometry = Geometry::of(flow);
        Ok(Receiver {
            ring: RecvRing::new(qp, memory, &templates, !flow.verify)?,
            depth: flow.rx_depth,
            check: flow.verify.then(|| ReceiverCheck {
                memory: Arc::clone(memory),
                layout,
                qp: index,
                sizes: sizes.clone(),
                seen: (0..geometry.ring())
                    .map(|_| ArrivalSums::default())
                    .collect(),
            }),
        })
    }

    /// Posts the whole depth, before the peer may send.
    ///
    /// # Errors
    /// The first refused post.
    pub fn post_all(&self, qpn: u32) -> Result<(), VerbsError> {
        let refused = |e: verbs::PostError| e.into_error(Operation::PostRecv, qpn);
        if self.check.is_some() {
            return (0..self.ring.len()).try_for_each(|slot| self.ring.post(slot).map_err(refused));
        }
        let chain = self.ring.len().max(1);
        let depth = self.depth as usize;
        for _ in 0..depth / chain {
            self.ring.post(0).map_err(refused)?;
        }
        match depth % chain {
            0 => Ok(()),
            rest => self.ring.post(chain - rest).map_err(refused),
        }
    }

    /// With `--verify`: checks that every message of the peer arrived once. `posts` is how often the peer posted each
    /// ring position.
    pub fn check_counts(&self, posts: &[u32]) -> Option<Mismatch> {
        let check = self.check.as_ref()?;
        posts
            .iter()
            .zip(&check.seen)
            .zip(0u32..)
            .find_map(|((&sent, seen), position)| {
                let count = seen.count.load(Relaxed);
                let sent_sum: u64 = (0..sent).map(|sequence| u64::from(sequence as u16)).sum();
                (count != sent || seen.sum.load(Relaxed) != sent_sum).then(|| Mismatch::Count {
                    qp: check.qp,
                    position,
                    found: count.into(),
                    expected: sent.into(),
                })
            })
    }
}

impl ReceiverCheck {
    /// Checks a received message in receive buffer `slot`.
    pub(super) fn check(
        &self,
        slot: u32,
        byte_len: u32,
        immediate: Option<u32>,
    ) -> Option<Mismatch> {
        let key = PatternKey::from_immediate(self.qp, immediate.unwrap_or(u32::MAX));
        let expected_bytes = self.sizes.at(self.qp, key.position.into());
        if byte_len != expected_bytes {
            return Some(Mismatch::Length {
                qp: self.qp,
                found_bytes: byte_len,
                expected_bytes,
            });
        }
        if let Some(seen) = self.seen.get(usize::from(key.position)) {
            seen.count.fetch_add(1, Relaxed);
            seen.sum.fetch_add(key.sequence.into(), Relaxed);
        }
        let wrong = key.check(
            &self.memory,
            self.layout.offset(self.qp, slot),
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
