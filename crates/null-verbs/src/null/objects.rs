//! Creating, changing and destroying the device's objects.

use std::os::raw::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

use rdma_sys::{
    ibv_ah, ibv_context, ibv_cq, ibv_mr, ibv_pd, ibv_qp, ibv_qp_attr, ibv_qp_init_attr, ibv_srq,
    ibv_srq_init_attr,
};

use super::{Cq, Cqe, LOCKED, Qp, RECEIVES_COMPLETE, SIGNALED};
use crate::context::Context;
use crate::qp_attributes::merge;

static QPS: AtomicI32 = AtomicI32::new(0);
static NEXT_QPN: AtomicU32 = AtomicU32::new(0x11);
static NEXT_KEY: AtomicU32 = AtomicU32::new(0x100);

pub(crate) fn reg_mr(pd: *mut ibv_pd, address: *mut c_void, length: usize) -> *mut ibv_mr {
    let key = NEXT_KEY.fetch_add(1, Ordering::Relaxed);
    Box::into_raw(Box::new(ibv_mr {
        // SAFETY: the caller of `ibv_reg_mr` passes a live protection domain.
        context: unsafe { (*pd).context },
        pd,
        addr: address,
        length,
        handle: key,
        lkey: key,
        rkey: key,
    }))
}

/// # Safety
/// `pd` is live.
pub(crate) unsafe fn create_ah(pd: *mut ibv_pd) -> *mut ibv_ah {
    Box::into_raw(Box::new(ibv_ah {
        // SAFETY: the caller vouches for `pd`.
        context: unsafe { (*pd).context },
        pd,
        handle: 0,
    }))
}

/// # Safety
/// `ah` is live, and not used again.
pub(crate) unsafe fn destroy_ah(ah: *mut ibv_ah) -> c_int {
    // SAFETY: made by `create_ah` from such a box.
    drop(unsafe { Box::from_raw(ah) });
    0
}

/// A CQ of `size` entries or the next power of two.
pub(crate) fn create_cq(
    context: *mut ibv_context,
    size: u32,
    cq_context: *mut c_void,
) -> *mut ibv_cq {
    let size = size.next_power_of_two();
    let empty = Cqe {
        wr_id: 0,
        qp_num: 0,
        byte_len: 0,
        opcode: 0,
    };
    let ring = Box::into_raw(vec![empty; size as usize].into_boxed_slice());
    // SAFETY: pointers, integers and pthread objects, for all of which zero is a value.
    let mut verbs: ibv_cq = unsafe { std::mem::zeroed() };
    verbs.context = context;
    verbs.cq_context = cq_context;
    verbs.cqe = size as c_int;
    let locked = LOCKED.load(Ordering::Relaxed) || std::env::var_os("NULL_VERBS_LOCKED").is_some();
    Box::into_raw(Box::new(Cq {
        verbs,
        locked,
        overflowed: false,
        held: AtomicBool::new(false),
        head: AtomicU32::new(0),
        tail: AtomicU32::new(0),
        mask: size - 1,
        ring: ring.cast(),
    }))
    .cast()
}

/// # Safety
/// `cq` is live, and not used again.
pub(crate) unsafe fn destroy_cq(cq: *mut ibv_cq) -> c_int {
    // SAFETY: both boxes were made by `create_cq`.
    unsafe {
        let cq = Box::from_raw(cq.cast::<Cq>());
        let length = cq.mask as usize + 1;
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(
            cq.ring, length,
        )));
    }
    0
}

/// # Safety
/// `pd` is live.
pub(crate) unsafe fn create_srq(pd: *mut ibv_pd, init: &ibv_srq_init_attr) -> *mut ibv_srq {
    // SAFETY: pointers, integers and pthread objects, for all of which zero is a value.
    let mut verbs: ibv_srq = unsafe { std::mem::zeroed() };
    // SAFETY: the caller vouches for `pd`.
    verbs.context = unsafe { (*pd).context };
    verbs.srq_context = init.srq_context;
    verbs.pd = pd;
    Box::into_raw(Box::new(verbs))
}

/// # Safety
/// `srq` is live, and not used again.
pub(crate) unsafe fn destroy_srq(srq: *mut ibv_srq) -> c_int {
    // SAFETY: made by `create_srq` from such a box.
    drop(unsafe { Box::from_raw(srq) });
    0
}

/// # Safety
/// `pd` is live, and so are the CQs of `init`.
pub(crate) unsafe fn create_qp(
    pd: *mut ibv_pd,
    init: &mut ibv_qp_init_attr,
) -> Result<*mut ibv_qp, c_int> {
    // SAFETY: the caller vouches for `pd`.
    let table = unsafe { Context::of((*pd).context) }.table();
    if QPS.fetch_add(1, Ordering::Relaxed) >= table.max_qp {
        QPS.fetch_sub(1, Ordering::Relaxed);
        return Err(libc::ENOMEM);
    }
    // SAFETY: pointers, integers and pthread objects, for all of which zero is a value.
    let mut verbs: ibv_qp = unsafe { std::mem::zeroed() };
    // SAFETY: the caller vouches for `pd`.
    verbs.context = unsafe { (*pd).context };
    verbs.qp_context = init.qp_context;
    verbs.pd = pd;
    verbs.send_cq = init.send_cq;
    verbs.recv_cq = init.recv_cq;
    verbs.srq = init.srq;
    verbs.qp_num = NEXT_QPN.fetch_add(1, Ordering::Relaxed) & 0x00ff_ffff;
    verbs.qp_type = init.qp_type;
    Ok(Box::into_raw(Box::new(Qp {
        verbs,
        implied_flags: if init.sq_sig_all != 0 { SIGNALED } else { 0 },
        receives_complete: RECEIVES_COMPLETE.load(Ordering::Relaxed),
        // SAFETY: integers and arrays of them: zero is a value of each, and RESET is 0.
        attr: unsafe { std::mem::zeroed() },
        cap: init.cap,
        sq_sig_all: init.sq_sig_all,
    }))
    .cast())
}

/// # Safety
/// `qp` is live, the others are writable.
pub(crate) unsafe fn query_qp(
    qp: *mut ibv_qp,
    attr: *mut ibv_qp_attr,
    init: *mut ibv_qp_init_attr,
) -> c_int {
    let qp = qp.cast::<Qp>();
    // SAFETY: the caller vouches for all three; an `ibv_qp_attr` is plain data.
    unsafe {
        attr.copy_from_nonoverlapping(&raw const (*qp).attr, 1);
        (*attr).cap = (*qp).cap;
        (*init).qp_context = (*qp).verbs.qp_context;
        (*init).send_cq = (*qp).verbs.send_cq;
        (*init).recv_cq = (*qp).verbs.recv_cq;
        (*init).srq = (*qp).verbs.srq;
        (*init).cap = (*qp).cap;
        (*init).qp_type = (*qp).verbs.qp_type;
        (*init).sq_sig_all = (*qp).sq_sig_all;
    }
    0
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
    // SAFETY: made by `create_qp` from such a box.
    drop(unsafe { Box::from_raw(qp.cast::<Qp>()) });
    QPS.fetch_sub(1, Ordering::Relaxed);
    0
}
