//! Polling by `ibv_start_poll` and `ibv_next_poll` (ibv_create_cq_ex(3)), with the signature of `ibv_poll_cq`: of each
//! completion it reads what the program looks at, and no more.

use std::mem::zeroed;
use std::os::raw::c_int;

use rdma_sys::{
    ibv_cq, ibv_cq_ex, ibv_cq_init_attr_ex, ibv_cq_init_attr_mask, ibv_create_cq_attr_flags,
    ibv_create_cq_wc_flags as field, ibv_poll_cq_attr, ibv_wc, ibv_wc_flags, ibv_wc_opcode,
};

use super::{Context, ffi};

/// `ibv_poll_cq`, or a function like it.
pub(super) type PollFunction = unsafe extern "C" fn(*mut ibv_cq, c_int, *mut ibv_wc) -> c_int;

/// How a CQ is made and polled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CqCalls {
    /// By `ibv_start_poll(3)`, and not by `ibv_poll_cq(3)`.
    pub extended: bool,
    /// Completions have stamps of the device; only together with `extended`.
    pub stamps: bool,
    /// One thread at a time uses it, so that the library need not lock it.
    pub single_threaded: bool,
}

impl CqCalls {
    /// As `ibv_create_cq(3)` makes it.
    pub const USUAL: CqCalls = CqCalls { extended: false, stamps: false, single_threaded: false };
}

/// What is read of completions, as flags of `ibv_create_cq_ex`.
const FIELDS: u64 = (field::IBV_WC_EX_WITH_BYTE_LEN.0
    | field::IBV_WC_EX_WITH_IMM.0
    | field::IBV_WC_EX_WITH_QP_NUM.0) as u64;

/// The same of stamps.
const STAMPS: u64 = field::IBV_WC_EX_WITH_COMPLETION_TIMESTAMP.0 as u64;

/// `ibv_create_cq_ex(3)` for these calls; null with `errno` where it fails.
///
/// # Safety
/// `init` names live objects of the context.
pub(super) unsafe fn create(
    context: &Context,
    mut init: ibv_cq_init_attr_ex,
    calls: CqCalls,
) -> *mut ibv_cq {
    if calls.extended {
        init.wc_flags = FIELDS;
    }
    if calls.stamps {
        init.wc_flags |= STAMPS;
    }
    if calls.single_threaded {
        init.comp_mask = ibv_cq_init_attr_mask::IBV_CQ_INIT_ATTR_MASK_FLAGS.0;
        init.flags = ibv_create_cq_attr_flags::IBV_CREATE_CQ_ATTR_SINGLE_THREADED.0;
    }
    // SAFETY: as the caller's.
    unsafe { ffi::create_cq_ex(context.raw(), &mut init) }.cast()
}

/// The function that polls the CQs of a device as `ibv_poll_cq(3)` would.
pub(super) fn poll_function(context: &Context) -> PollFunction {
    // When it finds no more, `ibv_next_poll` of Soft-RoCE's library moves the consumer index, and `ibv_end_poll` moves it again
    // (up to rdma-core 54; "rxe: fix completion queue consumer index overrun").
    if context.is_soft_roce() { poll_cq_one_by_one } else { poll_cq }
}

/// As [`poll_cq`], without `ibv_next_poll`.
///
/// # Safety
/// As for [`poll_cq`].
unsafe extern "C" fn poll_cq_one_by_one(cq: *mut ibv_cq, most: c_int, wc: *mut ibv_wc) -> c_int {
    for taken in 0..most {
        // SAFETY: the caller's; `wc` has room for `most`.
        match unsafe { poll_cq(cq, 1, wc.add(taken as usize)) } {
            1 => {}
            // A failure is found by the next poll again.
            none_or_error if taken == 0 => return none_or_error,
            _ => return taken,
        }
    }
    most
}

/// As `ibv_poll_cq(3)`.
///
/// # Safety
/// As for `ibv_poll_cq`; the CQ is an extended one with [`FIELDS`].
pub(super) unsafe extern "C" fn poll_cq(cq: *mut ibv_cq, most: c_int, wc: *mut ibv_wc) -> c_int {
    // SAFETY: the caller's; `wc` has room for `most`.
    unsafe { poll(cq, most, |cq, place| wc.add(place).write(completion(cq))) }
}

/// The same, with the stamp of each completion.
///
/// # Safety
/// As for [`poll_cq`]; the CQ has [`STAMPS`] too, and `stamps` has room for `most`.
pub(super) unsafe fn poll_stamped(
    cq: *mut ibv_cq,
    most: c_int,
    wc: *mut ibv_wc,
    stamps: *mut u64,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        poll(cq, most, |cq, place| {
            wc.add(place).write(completion(cq));
            stamps.add(place).write(rdma_sys::ibv_wc_read_completion_ts(cq));
        })
    }
}

/// Calls `take` for up to `most` completions, with the place of each. Returns how many, or a negative number.
///
/// # Safety
/// The CQ is a live extended one.
unsafe fn poll(cq: *mut ibv_cq, most: c_int, mut take: impl FnMut(*mut ibv_cq_ex, usize)) -> c_int {
    let extended = cq.cast::<ibv_cq_ex>();
    let mut attr = ibv_poll_cq_attr { comp_mask: 0 };
    // SAFETY: the caller's; calls come in the order that the manual page asks for.
    unsafe {
        match rdma_sys::ibv_start_poll(extended, &mut attr) {
            0 => {}
            libc::ENOENT => return 0,
            code => return -code.abs().max(1),
        }
        let mut taken = 0;
        loop {
            take(extended, taken as usize);
            taken += 1;
            // An error is found by the next poll again.
            if taken >= most || rdma_sys::ibv_next_poll(extended) != 0 {
                break;
            }
        }
        rdma_sys::ibv_end_poll(extended);
        taken
    }
}

/// The completion that was taken last.
///
/// # Safety
/// Between `ibv_start_poll` and `ibv_end_poll`, on a CQ with [`FIELDS`].
#[inline]
unsafe fn completion(cq: *mut ibv_cq_ex) -> ibv_wc {
    // SAFETY: plain data, for which zero is valid.
    let mut wc: ibv_wc = unsafe { zeroed() };
    // SAFETY: the caller's; immediate data is read where there is some.
    unsafe {
        (wc.wr_id, wc.status) = ((*cq).wr_id, (*cq).status);
        if wc.status != 0 {
            wc.vendor_err = rdma_sys::ibv_wc_read_vendor_err(cq);
            wc.qp_num = rdma_sys::ibv_wc_read_qp_num(cq);
            return wc;
        }
        wc.opcode = rdma_sys::ibv_wc_read_opcode(cq);
        // The QP of a send is in the `wr_id` of whoever posted it, and the SRQ's receives have none.
        if wc.opcode & ibv_wc_opcode::IBV_WC_RECV != 0 {
            wc.qp_num = rdma_sys::ibv_wc_read_qp_num(cq);
            wc.byte_len = rdma_sys::ibv_wc_read_byte_len(cq);
            wc.wc_flags = rdma_sys::ibv_wc_read_wc_flags(cq);
            if wc.wc_flags & ibv_wc_flags::IBV_WC_WITH_IMM.0 != 0 {
                wc.imm_data_invalidated_rkey_union.imm_data = rdma_sys::ibv_wc_read_imm_data(cq);
            }
        }
    }
    wc
}
