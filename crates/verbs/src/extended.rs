//! Extended verbs by functions with the signatures of the plain ones.
//!
//! Polling is by `ibv_start_poll` and `ibv_next_poll` (ibv_create_cq_ex(3)), with the signature of `ibv_poll_cq`: of each
//! completion it reads what the program looks at, and no more. Posting is by `ibv_wr_post(3)`, with the signature of
//! `ibv_post_send`: it walks a chain of work requests and builds each of them call by call.

use std::mem::{MaybeUninit, zeroed};
use std::os::raw::{c_int, c_void};
use std::ptr::{NonNull, null_mut};

use rdma_sys::{
    ibv_cq, ibv_cq_ex, ibv_cq_init_attr_ex, ibv_cq_init_attr_mask, ibv_create_cq_attr_flags,
    ibv_create_cq_wc_flags as field, ibv_data_buf, ibv_pd, ibv_poll_cq_attr, ibv_qp,
    ibv_qp_create_send_ops_flags as flag, ibv_qp_ex, ibv_qp_init_attr, ibv_qp_init_attr_ex,
    ibv_qp_init_attr_mask as mask, ibv_qp_type, ibv_send_flags, ibv_send_wr, ibv_wc, ibv_wc_flags,
    ibv_wc_opcode, ibv_wr_opcode as opcode,
};

use crate::{Context, Service, ffi};

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
    /// A CQ as `ibv_create_cq(3)` makes it, polled by `ibv_poll_cq(3)`.
    pub const USUAL: CqCalls = CqCalls { extended: false, stamps: false, single_threaded: false };
}

/// What is read of completions, as flags of `ibv_create_cq_ex`.
const FIELDS: u64 = (field::IBV_WC_EX_WITH_BYTE_LEN.0
    | field::IBV_WC_EX_WITH_IMM.0
    | field::IBV_WC_EX_WITH_QP_NUM.0) as u64;

/// What is read besides of completions with stamps.
const STAMPS: u64 = field::IBV_WC_EX_WITH_COMPLETION_TIMESTAMP.0 as u64;

/// `ibv_create_cq_ex(3)` for these calls; null with `errno` where it fails.
///
/// # Safety
/// `init` names live objects of the context.
pub(super) unsafe fn create_cq(
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

/// The operations with which a QP of `service` is made.
fn operations(service: Service) -> u32 {
    let sends = flag::IBV_QP_EX_WITH_SEND.0 | flag::IBV_QP_EX_WITH_SEND_WITH_IMM.0;
    let writes = flag::IBV_QP_EX_WITH_RDMA_WRITE.0 | flag::IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM.0;
    match service {
        Service::Datagram { .. } => sends,
        Service::UnreliableConnection => sends | writes,
        Service::ReliableConnection => sends | writes | flag::IBV_QP_EX_WITH_RDMA_READ.0 | ATOMICS,
    }
}

const ATOMICS: u32 =
    flag::IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP.0 | flag::IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD.0;

/// `ibv_create_qp_ex(3)` with the operations of its service; without atomics on a device that has none. `None` with
/// `errno` where it fails.
///
/// # Safety
/// `pd` and what `plain` names are live objects of `context`.
pub(super) unsafe fn create_qp(
    context: &Context,
    pd: *mut ibv_pd,
    plain: &ibv_qp_init_attr,
    service: Service,
) -> Option<NonNull<ibv_qp>> {
    // SAFETY: plain data, for which zero is valid.
    let mut init: ibv_qp_init_attr_ex = unsafe { zeroed() };
    init.send_cq = plain.send_cq;
    init.recv_cq = plain.recv_cq;
    init.srq = plain.srq;
    init.cap = plain.cap;
    init.qp_type = plain.qp_type;
    init.sq_sig_all = plain.sq_sig_all;
    init.pd = pd;
    init.comp_mask = mask::IBV_QP_INIT_ATTR_PD.0 | mask::IBV_QP_INIT_ATTR_SEND_OPS_FLAGS.0;
    let usual = operations(service);
    for operations in [usual, usual & !ATOMICS] {
        init.send_ops_flags = operations.into();
        // SAFETY: as the caller's; `init` is filled.
        let made = NonNull::new(unsafe { ffi::create_qp_ex(context.raw(), &mut init) });
        let Some(qp) = made else {
            continue;
        };
        // SAFETY: just made.
        let extended = unsafe { (context.library().qp_to_qp_ex)(qp.as_ptr()) };
        if extended == qp.as_ptr().cast() {
            return made;
        }
        // SAFETY: made above, and nothing uses it.
        unsafe { (context.library().destroy_qp)(qp.as_ptr()) };
        // SAFETY: the calling thread's own errno.
        unsafe { *libc::__errno_location() = libc::EOPNOTSUPP };
        return None;
    }
    None
}

/// As `ibv_post_send(3)`; where it fails, none of the chain is posted.
///
/// # Safety
/// As for `ibv_post_send`; the QP comes from [`create_qp`].
pub(super) unsafe extern "C" fn post_send(
    qp: *mut ibv_qp,
    first: *mut ibv_send_wr,
    bad: *mut *mut ibv_send_wr,
) -> c_int {
    let extended = qp.cast::<ibv_qp_ex>();
    // SAFETY: a live QP.
    let is_datagram = unsafe { (*qp).qp_type == ibv_qp_type::IBV_QPT_UD };
    // SAFETY: a live QP that has all of the functions for its operations; requests as the caller's, linked.
    unsafe {
        rdma_sys::ibv_wr_start(extended);
        let mut next = first;
        while let Some(wr) = next.as_ref() {
            if !begin(extended, wr) {
                rdma_sys::ibv_wr_abort(extended);
                *bad = next;
                return libc::EINVAL;
            }
            if is_datagram {
                let to = wr.wr.ud;
                rdma_sys::ibv_wr_set_ud_addr(extended, to.ah, to.remote_qpn, to.remote_qkey);
            }
            set_payload(extended, wr);
            next = wr.next;
        }
        let code = rdma_sys::ibv_wr_complete(extended);
        *bad = if code == 0 { null_mut() } else { first };
        code
    }
}

/// Begins a request; false for an operation that is not built here.
///
/// # Safety
/// Between `ibv_wr_start` and `ibv_wr_complete`; the unions of `wr` are those of its operation.
unsafe fn begin(qp: *mut ibv_qp_ex, wr: &ibv_send_wr) -> bool {
    // SAFETY: the caller's; of the unions the member of the operation is read.
    unsafe {
        (*qp).wr_id = wr.wr_id;
        // The call that sets inline data chooses it; Soft-RoCE's library takes the flag on besides.
        (*qp).wr_flags = wr.send_flags;
        let immediate = wr.imm_data_invalidated_rkey_union.imm_data;
        let (rdma, atomic) = (wr.wr.rdma, wr.wr.atomic);
        match wr.opcode {
            opcode::IBV_WR_SEND => rdma_sys::ibv_wr_send(qp),
            opcode::IBV_WR_SEND_WITH_IMM => rdma_sys::ibv_wr_send_imm(qp, immediate),
            opcode::IBV_WR_RDMA_WRITE => {
                rdma_sys::ibv_wr_rdma_write(qp, rdma.rkey, rdma.remote_addr);
            }
            opcode::IBV_WR_RDMA_WRITE_WITH_IMM => {
                rdma_sys::ibv_wr_rdma_write_imm(qp, rdma.rkey, rdma.remote_addr, immediate);
            }
            opcode::IBV_WR_RDMA_READ => {
                rdma_sys::ibv_wr_rdma_read(qp, rdma.rkey, rdma.remote_addr);
            }
            opcode::IBV_WR_ATOMIC_FETCH_AND_ADD => {
                let (rkey, address) = (atomic.rkey, atomic.remote_addr);
                rdma_sys::ibv_wr_atomic_fetch_add(qp, rkey, address, atomic.compare_add);
            }
            opcode::IBV_WR_ATOMIC_CMP_AND_SWP => {
                let (rkey, address) = (atomic.rkey, atomic.remote_addr);
                let (expected, new) = (atomic.compare_add, atomic.swap);
                rdma_sys::ibv_wr_atomic_cmp_swp(qp, rkey, address, expected, new);
            }
            _ => return false,
        }
    }
    true
}

/// The most elements of a message with inline data: those of any message here.
const MOST_PIECES: usize = 1024;

/// # Safety
/// As for [`begin`], after it. Inline data has [`MOST_PIECES`] elements at most.
unsafe fn set_payload(qp: *mut ibv_qp_ex, wr: &ibv_send_wr) {
    let is_inline = wr.send_flags & ibv_send_flags::IBV_SEND_INLINE.0 != 0;
    // SAFETY: the caller's; the list has as many elements as it says.
    unsafe {
        match (is_inline, wr.num_sge) {
            (true, 1) => {
                let piece = *wr.sg_list;
                let address = piece.addr as *mut c_void;
                rdma_sys::ibv_wr_set_inline_data(qp, address, piece.length as usize);
            }
            (true, _) => set_inline_list(qp, wr),
            (false, 1) => {
                let piece = *wr.sg_list;
                rdma_sys::ibv_wr_set_sge(qp, piece.lkey, piece.addr, piece.length);
            }
            (_, count) => {
                let count = usize::try_from(count).unwrap_or(0);
                rdma_sys::ibv_wr_set_sge_list(qp, count, wr.sg_list);
            }
        }
    }
}

/// # Safety
/// As for [`set_payload`].
unsafe fn set_inline_list(qp: *mut ibv_qp_ex, wr: &ibv_send_wr) {
    let mut list = [const { MaybeUninit::<ibv_data_buf>::uninit() }; MOST_PIECES];
    let count = usize::try_from(wr.num_sge).unwrap_or(0).min(MOST_PIECES);
    for (place, piece) in list[..count].iter_mut().enumerate() {
        // SAFETY: the list has as many elements as it says.
        let element = unsafe { *wr.sg_list.add(place) };
        piece.write(ibv_data_buf {
            addr: element.addr as *mut c_void,
            length: element.length as usize,
        });
    }
    // SAFETY: the caller's; so many were written.
    unsafe { rdma_sys::ibv_wr_set_inline_data_list(qp, count, list.as_ptr().cast()) }
}
