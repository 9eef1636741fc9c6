//! Posting by `ibv_wr_post(3)`, with the signature of `ibv_post_send`: walks a chain of work requests and builds each of
//! them call by call.

use std::mem::{MaybeUninit, zeroed};
use std::os::raw::{c_int, c_void};
use std::ptr::{NonNull, null_mut};

use rdma_sys::{
    ibv_data_buf, ibv_pd, ibv_qp, ibv_qp_create_send_ops_flags as flag, ibv_qp_ex,
    ibv_qp_init_attr, ibv_qp_init_attr_ex, ibv_qp_init_attr_mask as mask, ibv_qp_type,
    ibv_send_flags, ibv_send_wr, ibv_wr_opcode as opcode,
};

use super::{Context, Service, ffi};

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
pub(super) unsafe fn create(
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
        // SAFETY: just made.
        let is_extended = |qp: &NonNull<ibv_qp>| unsafe {
            (context.library().qp_to_qp_ex)(qp.as_ptr()) == qp.as_ptr().cast::<ibv_qp_ex>()
        };
        match made {
            Some(qp) if is_extended(&qp) => return Some(qp),
            Some(qp) => {
                // SAFETY: made above, and nothing uses it.
                unsafe { (context.library().destroy_qp)(qp.as_ptr()) };
                // SAFETY: the calling thread's own errno.
                unsafe { *libc::__errno_location() = libc::EOPNOTSUPP };
                return None;
            }
            None => {}
        }
    }
    None
}

/// As `ibv_post_send(3)`; where it fails, none of the chain is posted.
///
/// # Safety
/// As for `ibv_post_send`; the QP comes from [`create`].
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
