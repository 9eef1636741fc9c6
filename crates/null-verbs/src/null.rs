//! `null0`: every WR completes at once and no byte moves.
//!
//! It shows the minimum cost, so it does what every provider must do: walks the WR list, puts a CQE into the CQ's
//! ring for each signalled WR, and copies CQEs out. It allocates only in `create_*` and checks nothing. A CQ's ring
//! has a lock only if [`set_locked`] or the environment variable `NULL_VERBS_LOCKED` asked for it when the CQ was
//! created; otherwise only one thread at a time may use the CQ and its QPs.
//!
//! A full CQ drops the CQE and raises `IBV_EVENT_CQ_ERR`, once. Receives are accepted and never complete, not even in
//! ERR, unless [`set_receives_complete`] makes them complete at once.

use std::os::raw::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

use rdma_sys::{
    ibv_context, ibv_context_ops, ibv_cq, ibv_event_type, ibv_mr, ibv_pd, ibv_qp, ibv_qp_attr,
    ibv_qp_cap, ibv_qp_init_attr, ibv_recv_wr, ibv_send_flags, ibv_send_wr, ibv_sge, ibv_srq,
    ibv_wc, ibv_wc_opcode, ibv_wc_status,
};

use crate::context::{Context, Source};
use crate::structs::{fill_qp_query, free, keep, merge, new_cq, new_mr, new_qp};

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

/// A CQ; only touched through raw pointers, since several threads may hold one.
#[repr(C)]
struct Cq {
    verbs: ibv_cq,
    locked: bool,
    overflowed: bool,
    held: AtomicBool,
    /// CQEs read and written so far; the ring holds their difference.
    head: AtomicU32,
    tail: AtomicU32,
    mask: u32,
    ring: *mut Cqe,
}

#[repr(C)]
struct Qp {
    verbs: ibv_qp,
    /// Flags added to each WR's: `IBV_SEND_SIGNALED` with `sq_sig_all`.
    implied_flags: u32,
    receives_complete: bool,
    attr: ibv_qp_attr,
    cap: ibv_qp_cap,
    sq_sig_all: c_int,
}

pub(crate) fn fill_ops(ops: &mut ibv_context_ops) {
    ops.post_send = Some(post_send);
    ops.post_recv = Some(post_recv);
    ops.post_srq_recv = Some(post_srq_recv);
    ops.poll_cq = Some(poll_cq);
    ops.req_notify_cq = Some(req_notify_cq);
}

impl Cq {
    /// Takes the lock of a locked CQ.
    ///
    /// # Safety
    /// `cq` is live.
    #[inline(always)]
    unsafe fn lock(cq: *mut Cq) {
        // SAFETY: `locked` never changes, `held` is atomic.
        unsafe {
            if (*cq).locked {
                while (*cq).held.swap(true, Ordering::Acquire) {
                    while (*cq).held.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                }
            }
        }
    }

    /// Releases the lock.
    ///
    /// # Safety
    /// `cq` is live and locked by this thread.
    #[inline(always)]
    unsafe fn unlock(cq: *mut Cq) {
        // SAFETY: as in `lock`.
        unsafe {
            if (*cq).locked {
                (*cq).held.store(false, Ordering::Release);
            }
        }
    }

    /// Adds a CQE.
    ///
    /// # Safety
    /// `cq` is live and this thread's.
    #[inline(always)]
    unsafe fn push(cq: *mut Cq, cqe: Cqe) {
        // SAFETY: the index is masked to the ring's length; nobody else uses the ring meanwhile.
        unsafe {
            let tail = (*cq).tail.load(Ordering::Relaxed);
            if tail.wrapping_sub((*cq).head.load(Ordering::Relaxed)) > (*cq).mask {
                return Cq::overflow(cq);
            }
            *(*cq).ring.add((tail & (*cq).mask) as usize) = cqe;
            (*cq).tail.store(tail.wrapping_add(1), Ordering::Relaxed);
        }
    }

    /// # Safety
    /// As for `push`.
    #[cold]
    unsafe fn overflow(cq: *mut Cq) {
        // SAFETY: the CQ's context outlives it.
        unsafe {
            if !(*cq).overflowed {
                (*cq).overflowed = true;
                let context = Context::from_raw((*cq).verbs.context);
                context.raise(ibv_event_type::IBV_EVENT_CQ_ERR, Source::Cq(cq.cast()));
            }
        }
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
        let qp = verbs.cast::<Qp>();
        let cq = (*qp).verbs.send_cq.cast::<Cq>();
        let implied_flags = (*qp).implied_flags;
        Cq::lock(cq);
        while !wr.is_null() {
            if ((*wr).send_flags | implied_flags) & SIGNALED != 0 {
                let cqe = Cqe {
                    wr_id: (*wr).wr_id,
                    qp_num: (*qp).verbs.qp_num,
                    byte_len: total_bytes((*wr).sg_list, (*wr).num_sge),
                    opcode: completed((*wr).opcode),
                };
                Cq::push(cq, cqe);
            }
            wr = (*wr).next;
        }
        Cq::unlock(cq);
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
        let qp = verbs.cast::<Qp>();
        if !(*qp).receives_complete {
            return 0;
        }
        let cq = (*qp).verbs.recv_cq.cast::<Cq>();
        Cq::lock(cq);
        while !wr.is_null() {
            let cqe = Cqe {
                wr_id: (*wr).wr_id,
                qp_num: (*qp).verbs.qp_num,
                byte_len: total_bytes((*wr).sg_list, (*wr).num_sge),
                opcode: ibv_wc_opcode::IBV_WC_RECV,
            };
            Cq::push(cq, cqe);
            wr = (*wr).next;
        }
        Cq::unlock(cq);
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
        let cq = verbs.cast::<Cq>();
        if (*cq).tail.load(Ordering::Relaxed) == (*cq).head.load(Ordering::Relaxed) {
            return 0;
        }
        Cq::lock(cq);
        let head = (*cq).head.load(Ordering::Relaxed);
        let waiting = (*cq).tail.load(Ordering::Relaxed).wrapping_sub(head);
        let count = waiting.min(num_entries.max(0) as u32);
        for index in 0..count {
            let cqe = *(*cq).ring.add((head.wrapping_add(index) & (*cq).mask) as usize);
            let entry = wc.add(index as usize);
            (*entry).wr_id = cqe.wr_id;
            (*entry).status = ibv_wc_status::IBV_WC_SUCCESS;
            (*entry).opcode = cqe.opcode;
            (*entry).vendor_err = 0;
            (*entry).byte_len = cqe.byte_len;
            (*entry).qp_num = cqe.qp_num;
            (*entry).wc_flags = 0;
        }
        (*cq).head.store(head.wrapping_add(count), Ordering::Relaxed);
        Cq::unlock(cq);
        count as c_int
    }
}

/// Does nothing: there are no completion channels.
pub(crate) unsafe extern "C" fn req_notify_cq(_cq: *mut ibv_cq, _solicited_only: c_int) -> c_int {
    libc::EOPNOTSUPP
}

/// # Safety
/// `pd` is live.
pub(crate) unsafe fn reg_mr(pd: *mut ibv_pd, address: *mut c_void, length: usize) -> *mut ibv_mr {
    let key = NEXT_KEY.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the caller's.
    unsafe { new_mr(pd, address, length, [key; 2]) }
}

/// A CQ of so many `entries` or the next power of two.
pub(crate) fn create_cq(
    context: *mut ibv_context,
    entries: u32,
    cq_context: *mut c_void,
) -> *mut ibv_cq {
    let size = entries.next_power_of_two();
    let empty = Cqe { wr_id: 0, qp_num: 0, byte_len: 0, opcode: 0 };
    let ring = Box::into_raw(vec![empty; size as usize].into_boxed_slice());
    let locked = LOCKED.load(Ordering::Relaxed) || std::env::var_os("NULL_VERBS_LOCKED").is_some();
    keep(Cq {
        verbs: new_cq(context, size, cq_context),
        locked,
        overflowed: false,
        held: AtomicBool::new(false),
        head: AtomicU32::new(0),
        tail: AtomicU32::new(0),
        mask: size - 1,
        ring: ring.cast(),
    })
    .cast()
}

/// # Safety
/// `cq` is live, and not used again.
pub(crate) unsafe fn destroy_cq(cq: *mut ibv_cq) -> c_int {
    // SAFETY: both boxes were made by `create_cq`.
    unsafe {
        let cq = Box::from_raw(cq.cast::<Cq>());
        let length = cq.mask as usize + 1;
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(cq.ring, length)));
    }
    0
}

/// # Safety
/// `pd` is live, and so are the CQs of `init`.
pub(crate) unsafe fn create_qp(
    pd: *mut ibv_pd,
    init: &mut ibv_qp_init_attr,
) -> Result<*mut ibv_qp, c_int> {
    // SAFETY: the caller vouches for `pd`.
    let table = unsafe { Context::from_raw((*pd).context) }.table();
    if QPS.fetch_add(1, Ordering::Relaxed) >= table.max_qp {
        QPS.fetch_sub(1, Ordering::Relaxed);
        return Err(libc::ENOMEM);
    }
    let qpn = NEXT_QPN.fetch_add(1, Ordering::Relaxed) & 0x00ff_ffff;
    Ok(keep(Qp {
        // SAFETY: the caller's.
        verbs: unsafe { new_qp(pd, init, qpn) },
        implied_flags: if init.sq_sig_all != 0 { SIGNALED } else { 0 },
        receives_complete: RECEIVES_COMPLETE.load(Ordering::Relaxed),
        // SAFETY: integers and arrays of them: zero is a value of each, and RESET is 0.
        attr: unsafe { std::mem::zeroed() },
        cap: init.cap,
        sq_sig_all: init.sq_sig_all,
    })
    .cast())
}

/// # Safety
/// `qp` is live, the others are writable.
pub(crate) unsafe fn query_qp(
    qp: *mut ibv_qp,
    attr: *mut ibv_qp_attr,
    init: *mut ibv_qp_init_attr,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        let kept = &*qp.cast::<Qp>();
        fill_qp_query(qp, &kept.attr, kept.cap, kept.sq_sig_all, attr, init)
    }
}

/// # Safety
/// `verbs` is live.
pub(crate) unsafe fn modify_qp(verbs: *mut ibv_qp, attr: &ibv_qp_attr, mask: u32) -> c_int {
    // SAFETY: the caller vouches for the QP, which no other thread modifies meanwhile.
    unsafe {
        let qp = verbs.cast::<Qp>();
        merge(&mut (*qp).attr, attr, mask);
        (*qp).verbs.state = (*qp).attr.qp_state;
    }
    0
}

/// # Safety
/// `qp` is live, and not used again.
pub(crate) unsafe fn destroy_qp(qp: *mut ibv_qp) -> c_int {
    QPS.fetch_sub(1, Ordering::Relaxed);
    // SAFETY: made by `create_qp`.
    unsafe { free(qp.cast::<Qp>()) }
}
