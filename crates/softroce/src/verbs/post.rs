//! Posting through `ibv_context.ops`: converts the linked lists of verbs structs.

use std::os::raw::c_int;
use std::ptr::null_mut;
use std::slice;

use rdma_sys::{ibv_ah, ibv_qp, ibv_recv_wr, ibv_send_flags, ibv_send_wr, ibv_sge, ibv_wr_opcode};

use super::address_handle::Ah;
use super::errno::post_error;
use super::object::Behind;
use super::qp::Qp;
use crate::transport::{Datagram, Kind, Operation, Payload, PostError, SendRequest, Sge};

/// An array of a C caller.
///
/// # Safety
/// There are so many at `start`, or none.
pub(super) unsafe fn array<'a, T>(start: *const T, count: usize) -> &'a [T] {
    if count == 0 {
        return &[];
    }
    // SAFETY: the caller vouches for them.
    unsafe { slice::from_raw_parts(start, count) }
}

/// A datagram to the destination of a handle. EINVAL without a handle. It takes no lock: the transport calls it while
/// it holds the send queue.
pub(super) unsafe fn datagram(ah: *mut ibv_ah, qpn: u32, qkey: u32) -> Result<Datagram, c_int> {
    if ah.is_null() {
        return Err(libc::EINVAL);
    }
    // SAFETY: a live handle.
    let destination = &unsafe { Ah::of(ah) }.destination;
    Ok(Datagram {
        address: destination.address,
        qpn,
        qkey,
        flow_label: destination.flow_label,
        traffic_class: destination.traffic_class,
        hop_limit: destination.hop_limit,
    })
}

/// A request in the form of the transport. EINVAL for unknown operations.
///
/// # Safety
/// As for libibverbs: what the request points to is there, its unions are those of its operation.
unsafe fn request<'a>(kind: Kind, wr: &ibv_send_wr) -> Result<SendRequest<'a>, c_int> {
    use ibv_wr_opcode as Opcode;
    // SAFETY: the member that the operation needs; of the others the bytes are read, which all are numbers.
    let (rdma, atomic, immediate) =
        unsafe { (wr.wr.rdma, wr.wr.atomic, wr.imm_data_invalidated_rkey_union.imm_data) };
    let (address, rkey) = (rdma.remote_addr, rdma.rkey);
    let write = Operation::Write { address, rkey };
    let (operation, immediate) = match wr.opcode {
        Opcode::IBV_WR_SEND => (Operation::Send, None),
        Opcode::IBV_WR_SEND_WITH_IMM => (Operation::Send, Some(immediate)),
        Opcode::IBV_WR_RDMA_WRITE => (write, None),
        Opcode::IBV_WR_RDMA_WRITE_WITH_IMM => (write, Some(immediate)),
        Opcode::IBV_WR_RDMA_READ => (Operation::Read { address, rkey }, None),
        Opcode::IBV_WR_ATOMIC_FETCH_AND_ADD => (
            Operation::FetchAdd {
                address: atomic.remote_addr,
                rkey: atomic.rkey,
                add: atomic.compare_add,
            },
            None,
        ),
        Opcode::IBV_WR_ATOMIC_CMP_AND_SWP => (
            Operation::CompareSwap {
                address: atomic.remote_addr,
                rkey: atomic.rkey,
                compare: atomic.compare_add,
                swap: atomic.swap,
            },
            None,
        ),
        _ => return Err(libc::EINVAL),
    };
    let count = usize::try_from(wr.num_sge).map_err(|_| libc::EINVAL)?;
    // SAFETY: the caller's list.
    let sges = unsafe { array(wr.sg_list.cast::<Sge>(), count) };
    let datagram = if kind == Kind::Ud {
        // SAFETY: requests of such a QP have this member, and a live handle or none.
        Some(unsafe {
            let to = wr.wr.ud;
            datagram(to.ah, to.remote_qpn, to.remote_qkey)?
        })
    } else {
        None
    };
    Ok(SendRequest {
        wr_id: wr.wr_id,
        operation,
        immediate,
        signaled: wr.send_flags & ibv_send_flags::IBV_SEND_SIGNALED.0 != 0,
        solicited: wr.send_flags & ibv_send_flags::IBV_SEND_SOLICITED.0 != 0,
        fence: wr.send_flags & ibv_send_flags::IBV_SEND_FENCE.0 != 0,
        payload: if wr.send_flags & ibv_send_flags::IBV_SEND_INLINE.0 != 0 {
            Payload::Inline(sges)
        } else {
            Payload::Registered(sges)
        },
        datagram,
    })
}

/// `ibv_post_send(3)`: ENOMEM if the queue is full, EINVAL for requests that the QP does not support. `bad_wr` is the
/// failed request; those before it are posted.
pub(super) unsafe extern "C" fn post_send(
    qp: *mut ibv_qp,
    wr: *mut ibv_send_wr,
    bad_wr: *mut *mut ibv_send_wr,
) -> c_int {
    // SAFETY: a live QP.
    let qp = unsafe { Qp::of(qp) };
    let mut next = wr;
    let mut last = null_mut();
    let mut refused = None;
    let next_request = || {
        // SAFETY: null, or the next of the caller's list.
        let wr = unsafe { next.as_ref() }?;
        last = next;
        next = wr.next;
        // SAFETY: as the caller's.
        let request = unsafe { request(qp.kind, wr) }.inspect_err(|error| {
            refused = Some(*error);
            next = null_mut();
        });
        request.ok()
    };
    // SAFETY: inline elements are readable memory of the caller's.
    let outcome = unsafe { qp.transport.post_send(next_request) };
    let error = outcome.err().map(post_error).or(refused);
    if error.is_some() && !bad_wr.is_null() {
        // SAFETY: the caller's.
        unsafe { bad_wr.write(last) };
    }
    error.unwrap_or(0)
}

/// Posts a list of receives to a queue.
pub(super) unsafe fn post_receives(
    wr: *mut ibv_recv_wr,
    bad_wr: *mut *mut ibv_recv_wr,
    mut post: impl FnMut(u64, &[Sge]) -> Result<(), PostError>,
) -> c_int {
    let mut next = wr;
    // SAFETY: null, or the next of the caller's list.
    while let Some(request) = unsafe { next.as_ref() } {
        let outcome = match usize::try_from(request.num_sge) {
            Ok(count) => {
                // SAFETY: the caller's list.
                post(request.wr_id, unsafe { array(request.sg_list.cast::<Sge>(), count) })
            }
            Err(_) => Err(PostError::Elements),
        };
        if let Err(error) = outcome {
            if !bad_wr.is_null() {
                // SAFETY: the caller's.
                unsafe { bad_wr.write(next) };
            }
            return post_error(error);
        }
        next = request.next;
    }
    0
}

/// `ibv_post_recv(3)`: ENOMEM if the queue is full, EINVAL for a QP in RESET or with an SRQ.
pub(super) unsafe extern "C" fn post_recv(
    qp: *mut ibv_qp,
    wr: *mut ibv_recv_wr,
    bad_wr: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: a live QP, and a list of requests.
    unsafe {
        let transport = &Qp::of(qp).transport;
        post_receives(wr, bad_wr, |wr_id, sges| transport.post_recv(wr_id, sges))
    }
}

// Elements are posted as they are: both structs are an address, a length and a key.
const _: () =
    assert!(size_of::<Sge>() == size_of::<ibv_sge>() && align_of::<Sge>() == align_of::<ibv_sge>());
