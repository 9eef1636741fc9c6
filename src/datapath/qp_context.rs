//! One QP with its prebuilt rings, and the state of it that workers share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::plan::Case;
use settings::Profile;
use verbs::{
    MemoryRegion, Operation, QueuePair, RecvRing, RecvTemplate, SendRing, SendTemplate, VerbsError,
};

use super::layout::sends_inline;
use super::operation::{RemoteMemory, send_opcode};
use super::pattern::PatternKey;
use super::trouble::{Mismatch, Place};
use super::wr_id::WrId;
use super::{Geometry, Layout};

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
    /// Completions that each slot still waits for, if it has several.
    pub(super) awaited: Box<[AtomicU32]>,
    /// Slots that may still be opened, in a run with a message count.
    pub(super) slots_left: AtomicI64,
    /// Messages after the last whole slot of such a run.
    pub(super) tail_messages: AtomicU32,
    /// Whether those are still to be posted.
    pub(super) tail_pending: AtomicBool,
    pub(super) tail_start: AtomicU32,
    pub(super) verify: Option<SenderCheck>,
}

/// The sender's state for `--verify`.
pub(super) struct SenderCheck {
    memory: Arc<MemoryRegion>,
    layout: Layout,
    profile: &'static Profile,
    qp: u32,
    size_bytes: u32,
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
    size_bytes: u32,
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
    pub fn memory_bytes(case: &Case) -> usize {
        let geometry = Geometry::of(case);
        let position = SendRing::BYTES_PER_WR
            + if case.verify {
                size_of::<AtomicU32>()
            } else {
                0
            };
        let slot = size_of::<AtomicU64>() + size_of::<AtomicU32>();
        geometry.ring() as usize * position + geometry.slots as usize * slot
    }

    /// Prebuilds the requests of QP `index`, with payloads in `memory`; WRITE and READ need `remote`.
    ///
    /// # Errors
    /// The ring cannot be built.
    pub fn new(
        case: &Case,
        index: u32,
        qp: &Arc<QueuePair>,
        memory: &Arc<MemoryRegion>,
        remote: RemoteMemory,
    ) -> Result<Self, VerbsError> {
        let geometry = Geometry::of(case);
        let layout = Layout::requests(case, &geometry);
        let profile = case.op.profile();
        let templates: Vec<SendTemplate> = (0..geometry.ring())
            .map(|position| {
                let at = RemoteMemory {
                    address: remote.address + layout.within_qp(position) as u64,
                    rkey: remote.rkey,
                };
                SendTemplate {
                    wr_id: WrId::send(index, position / geometry.unit).raw(),
                    opcode: send_opcode(profile, at),
                    offset: layout.offset(index, position),
                    length_bytes: case.size_bytes,
                    signalled: geometry.signalled(position),
                    inline: sends_inline(case),
                    ends_chain: geometry.ends_chain(position),
                }
            })
            .collect();
        let atomics = |count: u32, value| (0..count).map(|_| AtomicU32::new(value)).collect();
        let verify = case.verify.then(|| SenderCheck {
            memory: Arc::clone(memory),
            layout,
            profile,
            qp: index,
            size_bytes: case.size_bytes,
            posts: atomics(geometry.ring(), 0),
        });
        Ok(Sender {
            ring: SendRing::new(qp, memory, &templates)?,
            posted_at: (0..geometry.slots).map(|_| AtomicU64::new(0)).collect(),
            awaited: atomics(geometry.slots, geometry.completions_per_slot()),
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
            self.size_bytes as usize,
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
                self.size_bytes,
                Place::LocalMemory,
            )
        })
    }
}

/// Fills memory that the peer will READ.
pub fn fill_for_reads(memory: &MemoryRegion, case: &Case) {
    let geometry = Geometry::of(case);
    let layout = Layout::requests(case, &geometry);
    for qp in 0..case.qps {
        for position in 0..geometry.ring() {
            let key = PatternKey {
                qp,
                position: position as u16,
                sequence: 0,
            };
            let offset = layout.offset(qp, position);
            key.fill(memory, offset, case.size_bytes as usize, false);
        }
    }
}

/// Checks memory that the peer has written, after its last WRITE completed: each position must hold the last payload
/// posted for it. `posts` is how often the peer posted each position of QP `qp`.
pub fn check_written(
    memory: &MemoryRegion,
    case: &Case,
    qp: u32,
    posts: &[u32],
) -> Option<Mismatch> {
    let layout = Layout::requests(case, &Geometry::of(case));
    posts.iter().zip(0u32..).find_map(|(&count, position)| {
        let sequence = count.checked_sub(1)? as u16;
        let key = PatternKey {
            qp,
            position: position as u16,
            sequence,
        };
        check_cell(memory, &layout, key, case.size_bytes, Place::TargetMemory)
    })
}

fn check_cell(
    memory: &MemoryRegion,
    layout: &Layout,
    key: PatternKey,
    size_bytes: u32,
    place: Place,
) -> Option<Mismatch> {
    let position = u32::from(key.position);
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
    pub fn memory_bytes(case: &Case) -> usize {
        let seen = if case.verify {
            Geometry::of(case).ring() as usize * size_of::<ArrivalSums>()
        } else {
            0
        };
        Receiver::prebuilt(case) as usize * RecvRing::BYTES_PER_WR + seen
    }

    /// Number of prebuilt receives, of which the receive depth is posted.
    fn prebuilt(case: &Case) -> u32 {
        if case.verify {
            return case.rx_depth;
        }
        // A chain is posted once this many receives are used up. The rest of the depth must last until then, even if
        // each of several workers holds back almost a chain.
        (case.rx_depth / (4 * case.workers.max(1))).clamp(1, RECV_CHAIN)
    }

    /// Prebuilds the receives of QP `index`, with buffers in `memory`.
    ///
    /// # Errors
    /// The ring cannot be built.
    pub fn new(
        case: &Case,
        index: u32,
        qp: &Arc<QueuePair>,
        memory: &Arc<MemoryRegion>,
    ) -> Result<Self, VerbsError> {
        let layout = Layout::receives(case);
        let templates: Vec<RecvTemplate> = (0..Receiver::prebuilt(case))
            .map(|slot| RecvTemplate {
                wr_id: WrId::receive(index, slot).raw(),
                offset: layout.offset(index, slot),
                length_bytes: case.size_bytes,
            })
            .collect();
        let geometry = Geometry::of(case);
        Ok(Receiver {
            ring: RecvRing::new(qp, memory, &templates, !case.verify)?,
            depth: case.rx_depth,
            check: case.verify.then(|| ReceiverCheck {
                memory: Arc::clone(memory),
                layout,
                qp: index,
                size_bytes: case.size_bytes,
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
        if byte_len != self.size_bytes {
            return Some(Mismatch::Length {
                qp: self.qp,
                found_bytes: byte_len,
                expected_bytes: self.size_bytes,
            });
        }
        let key = PatternKey::from_immediate(self.qp, immediate.unwrap_or(u32::MAX));
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
            size_bytes: self.size_bytes,
            wrong,
        })
    }
}
