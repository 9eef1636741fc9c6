//! The device's state: QPs with their queues, CQs with their entries, memory regions (the addresses that a key gives access to, and
//! copying with a key), test hooks, time, the random numbers.
//!
//! Its time is the system's, or one that its user passes in; its tables are by numbers that it gives itself, and so
//! without a hash that resists chosen keys.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use provider::{CqNotifier, ObjectEvents, Operation, Sge};
use rdma_sys::{
    ibv_access_flags, ibv_cq, ibv_event_type, ibv_qp_attr, ibv_qp_cap, ibv_qp_state, ibv_srq,
    ibv_wc_status,
};

use super::service::{Numbered, Service};

/// The opcode in error completions: invalid, so that no program relies on it.
const OPCODE_OF_ERRORS: u32 = 0x7fff_ffff;

#[derive(Default)]
pub(super) struct Hooks {
    pub(super) corrupt: Option<(Option<u32>, usize)>,
    pub(super) fail: Option<ibv_wc_status::Type>,
}

pub(super) enum Payload {
    Inline(Vec<u8>),
    Segments(Vec<Sge>),
}

pub(super) struct SendWr {
    pub(super) sequence: u64,
    pub(super) wr_id: u64,
    pub(super) operation: Operation,
    pub(super) immediate: Option<u32>,
    pub(super) signalled: bool,
    pub(super) payload: Payload,
    pub(super) posted_ns: u64,
    pub(super) due_ns: u64,
    /// It found the queue of its server full, and is sent again when it is due.
    pub(super) is_dropped: bool,
    pub(super) sent_again: u8,
    /// It was due before its peer was ready.
    pub(super) has_waited: bool,
    /// Since when the peer has not answered, or has had no receive.
    pub(super) unanswered_since_ns: Option<u64>,
    pub(super) not_ready_since_ns: Option<u64>,
    /// When it fails if its peer is not there until then.
    pub(super) fails_ns: Option<u64>,
}

/// A WR that has been executed, with its times on the device's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// The QP on which it was posted.
    pub qp_num: u32,
    pub wr_id: u64,
    pub posted_ns: u64,
    /// When its service ended; where its peer was not ready then, when it was.
    pub done_ns: u64,
    /// Whether it has a completion.
    pub is_signalled: bool,
}

pub(super) struct RecvWr {
    pub(super) wr_id: u64,
    pub(super) segments: Vec<Sge>,
}

/// The queue slots that polling a completion frees.
#[derive(Clone, Copy)]
pub(super) enum Frees {
    /// All sends up to and including this sequence number.
    SendsUpTo(u64),
    OneReceive,
}

#[derive(Clone, Copy)]
pub(super) struct Cqe {
    pub(super) wr_id: u64,
    pub(super) status: ibv_wc_status::Type,
    pub(super) opcode: u32,
    pub(super) byte_len: u32,
    pub(super) imm: Option<u32>,
    pub(super) qp_num: u32,
    pub(super) frees: Frees,
}

impl Cqe {
    /// One that tells nothing but this, as of an error.
    pub(super) fn bare(wr_id: u64, status: ibv_wc_status::Type, qp_num: u32, frees: Frees) -> Cqe {
        Cqe { wr_id, status, opcode: OPCODE_OF_ERRORS, byte_len: 0, imm: None, qp_num, frees }
    }
}

pub(super) struct Cq {
    pub(super) capacity: usize,
    pub(super) entries: VecDeque<Cqe>,
    pub(super) overflowed: bool,
    /// Whether the next completion raises an event.
    pub(super) armed: bool,
    pub(super) events: ObjectEvents,
    /// `None` without a channel.
    pub(super) notifier: Option<CqNotifier>,
}

pub(super) struct Qp {
    pub(super) events: ObjectEvents,
    pub(super) pd: u32,
    pub(super) send_cq: *mut ibv_cq,
    pub(super) recv_cq: *mut ibv_cq,
    /// Where its receives come from; null if it has its own.
    pub(super) srq: *mut ibv_srq,
    pub(super) attr: ibv_qp_attr,
    pub(super) cap: ibv_qp_cap,
    pub(super) sq_sig_all: bool,
    /// It is of the UC service: what finds no receive is lost.
    pub(super) is_unreliable: bool,
    pub(super) posts_writes_alone: bool,
    pub(super) sends: VecDeque<SendWr>,
    pub(super) sends_posted: u64,
    pub(super) sends_freed: u64,
    pub(super) receives: VecDeque<RecvWr>,
    pub(super) receives_outstanding: u32,
}

impl Qp {
    pub(super) fn state(&self) -> ibv_qp_state::Type {
        self.attr.qp_state
    }
}

/// A shared receive queue. A receive is outstanding from its post until its completion is polled.
pub(super) struct Srq {
    pub(super) events: ObjectEvents,
    pub(super) max_wr: u32,
    pub(super) max_sge: u32,
    pub(super) limit: u32,
    pub(super) receives: VecDeque<RecvWr>,
    pub(super) outstanding: u32,
}

#[derive(Default)]
pub(super) struct Fabric {
    pub(super) qps: Numbered<u32, Qp>,
    pub(super) cqs: Numbered<*mut ibv_cq, Cq>,
    pub(super) srqs: Numbered<*mut ibv_srq, Srq>,
    pub(super) memory: Memory,
    pub(super) hooks: Hooks,
    pub(super) time: Time,
    pub(super) service: Service,
    /// All WRs that were executed, where somebody wants them.
    pub(super) log: Option<Vec<Served>>,
    /// No WR is due before.
    pub(super) look_again_ns: u64,
    /// QPs with sends to execute, each once.
    pub(super) active: Vec<u32>,
    pub(super) next_qpn: u32,
    random: u64,
}

// SAFETY: the verbs pointers are only used as keys.
unsafe impl Send for Fabric {}

thread_local! {
    static OWN: Cell<Option<&'static Mutex<Fabric>>> = const { Cell::new(None) };
}

/// Locks the device: this thread's own, if it has one.
pub(super) fn fabric() -> MutexGuard<'static, Fabric> {
    static FABRIC: LazyLock<Mutex<Fabric>> = LazyLock::new(|| Mutex::new(Fabric::new()));
    let fabric = OWN.get().unwrap_or(&FABRIC);
    fabric.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives this thread a device of its own. It has one for the rest of its life, for objects may outlive their user.
pub(super) fn own_device() {
    if OWN.get().is_none() {
        OWN.set(Some(Box::leak(Box::new(Mutex::new(Fabric::new())))));
    }
}

impl Fabric {
    fn new() -> Fabric {
        Fabric { next_qpn: 0x1000, ..Fabric::default() }
    }

    pub(super) fn seed(&mut self, seed: u64) {
        self.random = seed;
    }

    /// SplitMix64 (Steele, Lea, Flood 2014).
    pub(super) fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Adds a completion to a CQ; if it is full, drops the completion and raises `IBV_EVENT_CQ_ERR`, once.
    pub(super) fn complete(&mut self, cq: *mut ibv_cq, cqe: Cqe) {
        let Some(state) = self.cqs.get_mut(&cq) else {
            return;
        };
        if state.entries.len() < state.capacity {
            state.entries.push_back(cqe);
            if std::mem::take(&mut state.armed)
                && let Some(notifier) = &state.notifier
            {
                notifier.raise();
            }
        } else if !state.overflowed {
            state.overflowed = true;
            state.events.raise(ibv_event_type::IBV_EVENT_CQ_ERR);
        }
    }

    pub(super) fn fail_send(&mut self, qpn: u32, wr: &SendWr, status: ibv_wc_status::Type) {
        let Some(qp) = self.qps.get(&qpn) else { return };
        let frees = Frees::SendsUpTo(wr.sequence);
        self.complete(qp.send_cq, Cqe::bare(wr.wr_id, status, qpn, frees));
    }

    pub(super) fn fail_receive(&mut self, qpn: u32, wr_id: u64, status: ibv_wc_status::Type) {
        let Some(qp) = self.qps.get(&qpn) else { return };
        let cqe = Cqe::bare(wr_id, status, qpn, Frees::OneReceive);
        self.complete(qp.recv_cq, cqe);
    }

    /// Moves a QP to ERR and flushes its queues.
    pub(super) fn move_to_error(&mut self, qpn: u32) {
        let Some(qp) = self.qps.get_mut(&qpn) else {
            return;
        };
        qp.attr.qp_state = ibv_qp_state::IBV_QPS_ERR;
        let sends = std::mem::take(&mut qp.sends);
        let receives = std::mem::take(&mut qp.receives);
        self.active.retain(|active| *active != qpn);
        for wr in sends {
            if !wr.is_dropped {
                self.service.left(qpn);
            }
            self.fail_send(qpn, &wr, ibv_wc_status::IBV_WC_WR_FLUSH_ERR);
        }
        for wr in receives {
            self.fail_receive(qpn, wr.wr_id, ibv_wc_status::IBV_WC_WR_FLUSH_ERR);
        }
    }

    /// Discards a QP's queues and its completions not yet polled.
    pub(super) fn clear(&mut self, qpn: u32) {
        let Some(qp) = self.qps.get_mut(&qpn) else {
            return;
        };
        for wr in qp.sends.drain(..) {
            if !wr.is_dropped {
                self.service.left(qpn);
            }
        }
        qp.receives.clear();
        qp.sends_freed = qp.sends_posted;
        qp.receives_outstanding = 0;
        self.active.retain(|active| *active != qpn);
        let mut srq = self.srqs.get_mut(&qp.srq);
        for cq in [qp.send_cq, qp.recv_cq] {
            if let Some(cq) = self.cqs.get_mut(&cq) {
                cq.entries.retain(|cqe| {
                    let is_of_qp = cqe.qp_num == qpn;
                    if let (true, Frees::OneReceive, Some(srq)) = (is_of_qp, cqe.frees, &mut srq) {
                        srq.outstanding = srq.outstanding.saturating_sub(1);
                    }
                    !is_of_qp
                });
            }
        }
    }

    pub(super) fn raise_for_qp(&self, qpn: u32, kind: ibv_event_type) {
        if let Some(qp) = self.qps.get(&qpn) {
            qp.events.raise(kind);
        }
    }

    /// Takes the oldest receive of an SRQ, and raises its event if that leaves fewer than the limit.
    pub(super) fn take_shared_receive(&mut self, srq: *mut ibv_srq) -> Option<RecvWr> {
        let state = self.srqs.get_mut(&srq)?;
        let receive = state.receives.pop_front()?;
        if state.receives.len() < state.limit as usize {
            state.limit = 0;
            state.events.raise(ibv_event_type::IBV_EVENT_SRQ_LIMIT_REACHED);
        }
        Some(receive)
    }
}

#[derive(Default)]
pub(super) enum Time {
    #[default]
    System,
    Given(Box<dyn Fn() -> u64 + Send>),
}

impl Time {
    /// Nanoseconds since the first call in this process, or on the clock that was given.
    pub(super) fn now_ns(&self) -> u64 {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        match self {
            Time::System => u64::try_from(START.elapsed().as_nanos()).unwrap_or(u64::MAX),
            Time::Given(now_ns) => now_ns(),
        }
    }

    /// Whether it is the system's.
    pub(super) fn passes_by_itself(&self) -> bool {
        matches!(self, Time::System)
    }
}

pub(super) const LOCAL_WRITE: u32 = ibv_access_flags::IBV_ACCESS_LOCAL_WRITE.0;
pub(super) const REMOTE_WRITE: u32 = ibv_access_flags::IBV_ACCESS_REMOTE_WRITE.0;
pub(super) const REMOTE_READ: u32 = ibv_access_flags::IBV_ACCESS_REMOTE_READ.0;
pub(super) const REMOTE_ATOMIC: u32 = ibv_access_flags::IBV_ACCESS_REMOTE_ATOMIC.0;

/// Bytes on which an atomic operation acts.
pub(super) const ATOMIC_BYTES: u64 = 8;

/// The low byte of keys, different for local and remote keys, so that mixing them up fails.
const LKEY_TAG: u32 = 0x4c;
const RKEY_TAG: u32 = 0x52;

pub(super) struct Region {
    pub(super) start: u64,
    pub(super) length: u64,
    pub(super) access: u32,
    pub(super) pd: u32,
}

/// All regions of the device, by the upper three bytes of their keys.
#[derive(Default)]
pub(super) struct Memory {
    regions: Numbered<u32, Region>,
    next: u32,
}

impl Memory {
    /// Registers memory and returns its lkey and rkey.
    pub(super) fn register(&mut self, region: Region) -> [u32; 2] {
        self.next += 1;
        self.regions.insert(self.next, region);
        [LKEY_TAG, RKEY_TAG].map(|tag| self.next << 8 | tag)
    }

    pub(super) fn forget(&mut self, lkey: u32) {
        self.regions.remove(&(lkey >> 8));
    }

    fn opens(&self, (key, tag): (u32, u32), pd: u32, address: u64, length: u64, need: u32) -> bool {
        self.regions.get(&(key >> 8)).is_some_and(|region| {
            let end = address.checked_add(length);
            key & 0xff == tag
                && region.pd == pd
                && region.access & need == need
                && address >= region.start
                && end.is_some_and(|end| end <= region.start + region.length)
        })
    }

    /// Whether all `segments` lie in regions of `pd` with the access `need`.
    pub(super) fn local_ok(&self, segments: &[Sge], pd: u32, need: u32) -> bool {
        segments.iter().filter(|segment| segment.length_bytes > 0).all(|segment| {
            let length = u64::from(segment.length_bytes);
            self.opens((segment.lkey, LKEY_TAG), pd, segment.address, length, need)
        })
    }

    /// Whether `rkey` gives a peer access to the range. An empty range needs no key.
    pub(super) fn remote_ok(
        &self,
        rkey: u32,
        pd: u32,
        address: u64,
        length: u64,
        need: u32,
    ) -> bool {
        length == 0 || self.opens((rkey, RKEY_TAG), pd, address, length, need)
    }
}

/// Appends the contents of `segments` to `bytes`.
///
/// # Safety
/// The ranges are readable: checked against a region, or given with `IBV_SEND_INLINE`.
pub(super) unsafe fn gather(segments: &[Sge], bytes: &mut Vec<u8>) {
    for segment in segments.iter().filter(|segment| segment.length_bytes > 0) {
        let length = segment.length_bytes as usize;
        bytes.reserve(length);
        // SAFETY: room was reserved, and the caller vouches for the range. Its owner may write to it meanwhile, as to
        // memory that a device reads; then the bytes are undefined.
        unsafe {
            let from = segment.address as *const u8;
            let to = bytes.as_mut_ptr().add(bytes.len());
            from.copy_to_nonoverlapping(to, length);
            bytes.set_len(bytes.len() + length);
        }
    }
}

/// Copies `bytes` into `segments`, in order, up to the shorter length.
///
/// # Safety
/// The ranges are writable: checked against a region.
pub(super) unsafe fn scatter(mut bytes: &[u8], segments: &[Sge]) {
    for segment in segments {
        let (now, later) = bytes.split_at(bytes.len().min(segment.length_bytes as usize));
        if !now.is_empty() {
            // SAFETY: the caller vouches for the range; `bytes` is the device's own memory.
            unsafe { (segment.address as *mut u8).copy_from(now.as_ptr(), now.len()) };
        }
        bytes = later;
    }
}

/// The sum of the segments' lengths, in bytes.
pub(super) fn total_bytes(segments: &[Sge]) -> u64 {
    segments.iter().map(|segment| u64::from(segment.length_bytes)).sum()
}
