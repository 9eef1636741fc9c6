//! `null0`: every WR completes at once and no byte moves.
//!
//! It shows the minimum cost, so it does what every provider must do: walks the WR list, puts a CQE into the CQ's
//! ring for each signalled WR, and copies CQEs out. It allocates only in `create_*` and checks nothing. A CQ's ring
//! has a lock only if [`set_locked`] or the environment variable `NULL_VERBS_LOCKED` asked for it when the CQ was
//! created; otherwise only one thread at a time may use the CQ and its QPs.
//!
//! A full CQ drops the CQE and raises `IBV_EVENT_CQ_ERR`, once. Receives are accepted and never complete, not even in
//! ERR, unless [`set_receives_complete`] makes them complete at once.

use std::os::fd::RawFd;
use std::os::raw::c_int;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

use provider::{
    Change, CqEngine, CqRequest, Description, Engine, ObjectEvents, Objects, QpEngine, QpRequest,
    Region, SrqEngine, SrqRequest,
};
use rdma_sys::{
    ibv_ah_attr, ibv_cq, ibv_event_type, ibv_qp, ibv_recv_wr, ibv_send_flags, ibv_send_wr, ibv_sge,
    ibv_srq, ibv_wc, ibv_wc_opcode, ibv_wc_status, verbs_context,
};

use crate::personas::Adapter;

const SIGNALED: u32 = ibv_send_flags::IBV_SEND_SIGNALED.0;

static LOCKED: AtomicBool = AtomicBool::new(false);
static RECEIVES_COMPLETE: AtomicBool = AtomicBool::new(false);
static QPS: AtomicI32 = AtomicI32::new(0);
static NEXT_QPN: AtomicU32 = AtomicU32::new(0x11);
static NEXT_KEY: AtomicU32 = AtomicU32::new(0x100);

/// Whether CQs created from now on are locked, so that several threads may share one CQ and its QPs. Initially off.
/// The lock costs two atomic operations per call.
pub fn set_locked(locked: bool) {
    LOCKED.store(locked, Ordering::Relaxed);
}

/// Whether receives posted to QPs created from now on complete at once, filled, as if a sender were always waiting.
/// Initially off.
pub fn set_receives_complete(complete: bool) {
    RECEIVES_COMPLETE.store(complete, Ordering::Relaxed);
}

#[derive(Clone, Copy)]
struct Cqe {
    wr_id: u64,
    qp_num: u32,
    byte_len: u32,
    opcode: u32,
}

/// A CQ. Without a lock one thread at a time uses it.
#[repr(C)]
pub(crate) struct Cq {
    locked: bool,
    held: AtomicBool,
    overflowed: AtomicBool,
    /// CQEs read and written so far; the ring holds their difference.
    head: AtomicU32,
    tail: AtomicU32,
    mask: u32,
    ring: *mut Cqe,
    events: ObjectEvents,
}

// SAFETY: the ring is the CQ's own, and used by the thread that has the lock, or the only one that uses an unlocked CQ.
unsafe impl Send for Cq {}
// SAFETY: as above.
unsafe impl Sync for Cq {}

impl Cq {
    /// Takes the lock of a locked CQ.
    #[inline(always)]
    fn lock(&self) {
        if self.locked {
            while self.held.swap(true, Ordering::Acquire) {
                while self.held.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            }
        }
    }

    /// Releases the lock, which this thread has.
    #[inline(always)]
    fn unlock(&self) {
        if self.locked {
            self.held.store(false, Ordering::Release);
        }
    }

    /// Adds a CQE.
    ///
    /// # Safety
    /// The CQ is this thread's.
    #[inline(always)]
    unsafe fn push(&self, cqe: Cqe) {
        let tail = self.tail.load(Ordering::Relaxed);
        if tail.wrapping_sub(self.head.load(Ordering::Relaxed)) > self.mask {
            return self.overflow();
        }
        // SAFETY: the index is masked to the ring's length; nobody else uses the ring meanwhile.
        unsafe { *self.ring.add((tail & self.mask) as usize) = cqe };
        self.tail.store(tail.wrapping_add(1), Ordering::Relaxed);
    }

    /// Apart from the loops, which keep their registers.
    #[cold]
    #[inline(never)]
    fn overflow(&self) {
        if !self.overflowed.swap(true, Ordering::Relaxed) {
            self.events.raise(ibv_event_type::IBV_EVENT_CQ_ERR);
        }
    }
}

impl Drop for Cq {
    fn drop(&mut self) {
        let ring = std::ptr::slice_from_raw_parts_mut(self.ring, self.mask as usize + 1);
        // SAFETY: the box of `create_cq`.
        drop(unsafe { Box::from_raw(ring) });
    }
}

impl CqEngine for Cq {
    fn capacity(&self) -> u32 {
        self.mask + 1
    }
}

pub(crate) struct Qp {
    number: u32,
    /// Flags added to each WR's: `IBV_SEND_SIGNALED` with `sq_sig_all`.
    implied_flags: u32,
    receives_complete: bool,
}

impl QpEngine for Qp {
    fn number(&self) -> u32 {
        self.number
    }

    fn modify(&self, _change: &Change<'_>) -> Result<(), c_int> {
        Ok(())
    }

    fn close(&self) {
        QPS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// It takes receives; there is no QP whose message would take one.
pub(crate) struct Srq;

impl SrqEngine for Srq {
    fn set_limit(&self, _limit: u32) {}

    fn limit(&self) -> u32 {
        0
    }
}

/// `null0`, or another device that does as it does.
pub(crate) struct Null {
    pub(crate) table: &'static Adapter,
}

impl Engine for Null {
    fn description(&self) -> &dyn Description {
        self.table
    }

    /// WRs complete before a program could sleep.
    fn has_channels(&self) -> bool {
        false
    }

    unsafe fn register(&self, _region: Region) -> Result<[u32; 2], c_int> {
        Ok([NEXT_KEY.fetch_add(1, Ordering::Relaxed); 2])
    }

    /// The memory is never touched.
    fn register_descriptor(
        &self,
        _descriptor: RawFd,
        _offset: u64,
        _region: Region,
    ) -> Result<([u32; 2], Box<dyn Send>), c_int> {
        Ok(([NEXT_KEY.fetch_add(1, Ordering::Relaxed); 2], Box::new(())))
    }

    fn deregister(&self, _lkey: u32) -> Result<(), c_int> {
        Ok(())
    }
}

impl Objects for Null {
    type Cq = Cq;
    type Srq = Srq;
    type Qp = Qp;
    type Ah = ();

    fn fill(&self, verbs: &mut verbs_context) {
        let ops = &mut verbs.context.ops;
        ops.post_send = Some(post_send);
        ops.post_recv = Some(post_recv);
        ops.post_srq_recv = Some(post_srq_recv);
        ops.poll_cq = Some(poll_cq);
        ops.req_notify_cq = Some(req_notify_cq);
    }

    /// A CQ of so many entries or the next power of two.
    fn create_cq(&self, request: CqRequest) -> Result<Cq, c_int> {
        let size = request.capacity.next_power_of_two();
        let empty = Cqe { wr_id: 0, qp_num: 0, byte_len: 0, opcode: 0 };
        let ring = Box::into_raw(vec![empty; size as usize].into_boxed_slice());
        Ok(Cq {
            locked: LOCKED.load(Ordering::Relaxed)
                || std::env::var_os("NULL_VERBS_LOCKED").is_some(),
            held: AtomicBool::new(false),
            overflowed: AtomicBool::new(false),
            head: AtomicU32::new(0),
            tail: AtomicU32::new(0),
            mask: size - 1,
            ring: ring.cast(),
            events: request.events,
        })
    }

    fn create_srq(&self, _request: SrqRequest) -> Result<Srq, c_int> {
        Ok(Srq)
    }

    fn create_qp(&self, request: QpRequest<'_, Null>) -> Result<Qp, c_int> {
        if QPS.fetch_add(1, Ordering::Relaxed) >= self.table.max_qp {
            QPS.fetch_sub(1, Ordering::Relaxed);
            return Err(libc::ENOMEM);
        }
        Ok(Qp {
            number: NEXT_QPN.fetch_add(1, Ordering::Relaxed) & 0x00ff_ffff,
            implied_flags: if request.init.sq_sig_all != 0 { SIGNALED } else { 0 },
            receives_complete: RECEIVES_COMPLETE.load(Ordering::Relaxed),
        })
    }

    fn create_ah(&self, _attr: &ibv_ah_attr) -> Result<(), c_int> {
        Ok(())
    }
}

/// # Safety
/// `list` has `count` entries.
#[inline(always)]
unsafe fn total_bytes(list: *const ibv_sge, count: c_int) -> u32 {
    let mut total = 0_u32;
    for index in 0..count.max(0) as usize {
        // SAFETY: the caller vouches for the entries.
        total = total.wrapping_add(unsafe { (*list.add(index)).length });
    }
    total
}

/// The completion opcode of a WR's opcode.
#[inline(always)]
fn completed(opcode: u32) -> u32 {
    use ibv_wc_opcode::{
        IBV_WC_COMP_SWAP, IBV_WC_FETCH_ADD, IBV_WC_RDMA_READ, IBV_WC_RDMA_WRITE, IBV_WC_SEND,
    };
    /// By `ibv_wr_opcode`: that of READ is at 4.
    const COMPLETED: [u32; 8] = [
        IBV_WC_RDMA_WRITE,
        IBV_WC_RDMA_WRITE,
        IBV_WC_SEND,
        IBV_WC_SEND,
        IBV_WC_RDMA_READ,
        IBV_WC_COMP_SWAP,
        IBV_WC_FETCH_ADD,
        IBV_WC_SEND,
    ];
    COMPLETED[(opcode & 7) as usize]
}

unsafe extern "C" fn post_send(
    verbs: *mut ibv_qp,
    mut wr: *mut ibv_send_wr,
    _bad: *mut *mut ibv_send_wr,
) -> c_int {
    // SAFETY: the caller passes a live QP of this device and a list of WRs, as ibv_post_send(3) asks.
    unsafe {
        let (qp, cq) = (Null::qp(verbs), Null::cq((*verbs).send_cq));
        let implied_flags = qp.implied_flags;
        cq.lock();
        while !wr.is_null() {
            if ((*wr).send_flags | implied_flags) & SIGNALED != 0 {
                let cqe = Cqe {
                    wr_id: (*wr).wr_id,
                    qp_num: (*verbs).qp_num,
                    byte_len: total_bytes((*wr).sg_list, (*wr).num_sge),
                    opcode: completed((*wr).opcode),
                };
                cq.push(cqe);
            }
            wr = (*wr).next;
        }
        cq.unlock();
    }
    0
}

unsafe extern "C" fn post_recv(
    verbs: *mut ibv_qp,
    mut wr: *mut ibv_recv_wr,
    _bad: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: the caller passes a live QP of this device and a list of WRs, as ibv_post_recv(3) asks.
    unsafe {
        if !Null::qp(verbs).receives_complete {
            return 0;
        }
        let cq = Null::cq((*verbs).recv_cq);
        cq.lock();
        while !wr.is_null() {
            let cqe = Cqe {
                wr_id: (*wr).wr_id,
                qp_num: (*verbs).qp_num,
                byte_len: total_bytes((*wr).sg_list, (*wr).num_sge),
                opcode: ibv_wc_opcode::IBV_WC_RECV,
            };
            cq.push(cqe);
            wr = (*wr).next;
        }
        cq.unlock();
    }
    0
}

/// Accepts them; there is no QP whose message would take one.
unsafe extern "C" fn post_srq_recv(
    _srq: *mut ibv_srq,
    _wr: *mut ibv_recv_wr,
    _bad: *mut *mut ibv_recv_wr,
) -> c_int {
    0
}

unsafe extern "C" fn poll_cq(verbs: *mut ibv_cq, num_entries: c_int, wc: *mut ibv_wc) -> c_int {
    // SAFETY: the caller passes a live CQ of this device and room for `num_entries` completions.
    unsafe {
        let cq = Null::cq(verbs);
        if cq.tail.load(Ordering::Relaxed) == cq.head.load(Ordering::Relaxed) {
            return 0;
        }
        cq.lock();
        let head = cq.head.load(Ordering::Relaxed);
        let waiting = cq.tail.load(Ordering::Relaxed).wrapping_sub(head);
        let count = waiting.min(num_entries.max(0) as u32);
        for index in 0..count {
            let cqe = *cq.ring.add((head.wrapping_add(index) & cq.mask) as usize);
            let entry = wc.add(index as usize);
            (*entry).wr_id = cqe.wr_id;
            (*entry).status = ibv_wc_status::IBV_WC_SUCCESS;
            (*entry).opcode = cqe.opcode;
            (*entry).vendor_err = 0;
            (*entry).byte_len = cqe.byte_len;
            (*entry).qp_num = cqe.qp_num;
            (*entry).wc_flags = 0;
        }
        cq.head.store(head.wrapping_add(count), Ordering::Relaxed);
        cq.unlock();
        count as c_int
    }
}

/// Does nothing: there are no completion channels.
unsafe extern "C" fn req_notify_cq(_cq: *mut ibv_cq, _solicited_only: c_int) -> c_int {
    libc::EOPNOTSUPP
}
