//! Verbs' structs of objects as both devices make, tell and free them.

use std::os::raw::{c_int, c_void};

use rdma_sys::{
    ibv_context, ibv_cq, ibv_mr, ibv_pd, ibv_qp, ibv_qp_attr, ibv_qp_cap, ibv_qp_init_attr,
    ibv_srq, ibv_srq_init_attr,
};

/// A pointer to a new object, for [`free`].
pub(crate) fn keep<T>(object: T) -> *mut T {
    Box::into_raw(Box::new(object))
}

/// Frees an object. Returns 0, as the functions do that destroy one.
///
/// # Safety
/// [`keep`] made it, and it is not used again.
pub(crate) unsafe fn free<T>(object: *mut T) -> c_int {
    // SAFETY: made from such a box.
    drop(unsafe { Box::from_raw(object) });
    0
}

/// # Safety
/// `pd` is live.
pub(crate) unsafe fn new_mr(
    pd: *mut ibv_pd,
    addr: *mut c_void,
    length: usize,
    [lkey, rkey]: [u32; 2],
) -> *mut ibv_mr {
    keep(ibv_mr {
        // SAFETY: the caller vouches for `pd`.
        context: unsafe { (*pd).context },
        pd,
        addr,
        length,
        handle: lkey,
        lkey,
        rkey,
    })
}

pub(crate) fn new_cq(context: *mut ibv_context, size: u32, cq_context: *mut c_void) -> ibv_cq {
    // SAFETY: pointers, integers and pthread objects, for all of which zero is a value.
    let mut cq: ibv_cq = unsafe { std::mem::zeroed() };
    (cq.context, cq.cq_context, cq.cqe) = (context, cq_context, size as c_int);
    cq
}

/// # Safety
/// `pd` is live.
pub(crate) unsafe fn new_srq(pd: *mut ibv_pd, init: &ibv_srq_init_attr) -> *mut ibv_srq {
    // SAFETY: pointers, integers and pthread objects, for all of which zero is a value.
    let mut srq: ibv_srq = unsafe { std::mem::zeroed() };
    // SAFETY: the caller vouches for `pd`.
    srq.context = unsafe { (*pd).context };
    srq.srq_context = init.srq_context;
    srq.pd = pd;
    keep(srq)
}

/// # Safety
/// `pd` is live.
pub(crate) unsafe fn new_qp(pd: *mut ibv_pd, init: &ibv_qp_init_attr, qp_num: u32) -> ibv_qp {
    // SAFETY: pointers, integers and pthread objects, for all of which zero is a value.
    let mut qp: ibv_qp = unsafe { std::mem::zeroed() };
    // SAFETY: the caller vouches for `pd`.
    qp.context = unsafe { (*pd).context };
    qp.qp_context = init.qp_context;
    qp.pd = pd;
    qp.send_cq = init.send_cq;
    qp.recv_cq = init.recv_cq;
    qp.srq = init.srq;
    qp.qp_num = qp_num;
    qp.qp_type = init.qp_type;
    qp
}

/// Tells of a QP what `ibv_query_qp(3)` does: besides its struct these attributes and what it was created with.
///
/// # Safety
/// `qp` is live, the last two are writable.
pub(crate) unsafe fn tell_qp(
    qp: *const ibv_qp,
    kept: &ibv_qp_attr,
    cap: ibv_qp_cap,
    sq_sig_all: c_int,
    attr: *mut ibv_qp_attr,
    init: *mut ibv_qp_init_attr,
) -> c_int {
    // SAFETY: the caller vouches for all three; an `ibv_qp_attr` is plain data.
    unsafe {
        attr.copy_from_nonoverlapping(kept, 1);
        (*attr).cap = cap;
        (*init).qp_context = (*qp).qp_context;
        (*init).send_cq = (*qp).send_cq;
        (*init).recv_cq = (*qp).recv_cq;
        (*init).srq = (*qp).srq;
        (*init).cap = cap;
        (*init).qp_type = (*qp).qp_type;
        (*init).sq_sig_all = sq_sig_all;
    }
    0
}
