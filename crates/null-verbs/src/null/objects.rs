//! Creating, changing and destroying the device's objects.

use std::os::raw::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

use rdma_sys::{ibv_context, ibv_cq, ibv_mr, ibv_pd, ibv_qp, ibv_qp_attr, ibv_qp_init_attr};

use super::{Cq, Cqe, LOCKED, Qp, RECEIVES_COMPLETE, SIGNALED};
use crate::context::Context;
use crate::objects::{free, keep, new_cq, new_mr, new_qp, tell_qp};
use crate::qp_attributes::merge;

static QPS: AtomicI32 = AtomicI32::new(0);
static NEXT_QPN: AtomicU32 = AtomicU32::new(0x11);
static NEXT_KEY: AtomicU32 = AtomicU32::new(0x100);

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
        tell_qp(qp, &kept.attr, kept.cap, kept.sq_sig_all, attr, init)
    }
}

/// # Safety
/// `qp` is live.
pub(crate) unsafe fn modify_qp(qp: *mut ibv_qp, attr: &ibv_qp_attr, mask: u32) -> c_int {
    // SAFETY: the caller vouches for the QP, which no other thread modifies meanwhile.
    unsafe {
        let qp = qp.cast::<Qp>();
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
