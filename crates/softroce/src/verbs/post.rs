//! Posting through `ibv_context.ops`, which converts the linked lists of verbs structs; shared receive queues, to which
//! receives are posted; and extended posting (`ibv_wr_post(3)`), whose requests are built call by call between
//! `wr_start` and `wr_complete`.

use std::os::raw::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

use ibv_qp_create_send_ops_flags as Flags;
use provider::{Binding, Objects, SrqEngine, SrqRequest, array, post_receives, zero_or_error};
use rdma_sys::{
    ibv_ah, ibv_data_buf, ibv_event_type, ibv_mw, ibv_mw_bind, ibv_mw_bind_info, ibv_qp,
    ibv_qp_create_send_ops_flags, ibv_qp_ex, ibv_recv_wr, ibv_send_flags, ibv_send_wr, ibv_sge,
    ibv_srq,
};

use super::errno::post_error;
use super::open::{Softroce, usable};
use super::qp::{Batch, Builder, Qp};
use crate::transport::{
    Datagram, Kind, Nic, Operation, Payload, PdId, RecvQueue, SendRequest, Sge,
};

/// A datagram to the destination of a handle. EINVAL without a handle. It takes no lock: the transport calls it while
/// it holds the send queue.
pub(super) unsafe fn datagram(ah: *mut ibv_ah, qpn: u32, qkey: u32) -> Result<Datagram, c_int> {
    if ah.is_null() {
        return Err(libc::EINVAL);
    }
    // SAFETY: a live handle.
    let destination = unsafe { Softroce::ah(ah) };
    Ok(Datagram {
        address: destination.address,
        qpn,
        qkey,
        flow_label: destination.flow_label,
        traffic_class: destination.traffic_class,
        hop_limit: destination.hop_limit,
    })
}

/// A request in the form of the transport. EINVAL for unknown operations, and for datagrams without a handle.
///
/// # Safety
/// As for libibverbs: what the request points to is there, its unions are those of its operation.
#[inline(always)]
unsafe fn request<'a>(kind: Kind, wr: &ibv_send_wr) -> Result<SendRequest<'a>, c_int> {
    let datagram = if kind == Kind::Ud {
        // SAFETY: requests of such a QP have this member, and a live handle or none.
        Some(unsafe {
            let to = wr.wr.ud;
            datagram(to.ah, to.remote_qpn, to.remote_qkey)?
        })
    } else {
        None
    };
    // SAFETY: the caller's.
    let request = unsafe { SendRequest::from_wr(wr, datagram) }?;
    if let Operation::Bind { new_rkey, .. } = request.operation {
        // SAFETY: a live window of the caller's, which finds its new key there, as with mlx5.
        unsafe { (*wr.bind_mw_tso_union.bind_mw.mw).rkey = new_rkey };
    }
    Ok(request)
}

/// `ibv_post_send(3)`: ENOMEM if the queue is full, EINVAL for requests that the QP does not support. `bad_wr` is the
/// failed request; those before it are posted.
pub(super) unsafe extern "C" fn post_send(
    qp: *mut ibv_qp,
    mut next: *mut ibv_send_wr,
    bad_wr: *mut *mut ibv_send_wr,
) -> c_int {
    // SAFETY: a live QP.
    let qp = unsafe { Softroce::qp(qp) };
    let mut last = null_mut();
    let mut refused = None;
    let next_request = || {
        // SAFETY: null, or the next of the caller's list.
        let wr = unsafe { next.as_ref() }?;
        last = next;
        next = wr.next;
        // SAFETY: as the caller's.
        unsafe { request(qp.kind, wr) }
            .inspect_err(|error| {
                refused = Some(*error);
                next = null_mut();
            })
            .ok()
    };
    // SAFETY: inline elements are readable memory of the caller's.
    let outcome = unsafe { qp.transport.post_send(next_request) };
    let error = outcome.err().map(post_error).or(refused);
    if error.is_some() && !bad_wr.is_null() {
        // SAFETY: the caller's.
        unsafe { bad_wr.write(last) };
    }
    zero_or_error(error.map_or(Ok(()), Err))
}

/// # Safety
/// A live QP, a live window, and a readable struct whose region is live or null.
unsafe fn bind(qp: *mut ibv_qp, mw: *mut ibv_mw, bind: &ibv_mw_bind) -> Result<(), c_int> {
    // SAFETY: the caller's.
    let binding = unsafe { Binding::of_type_1(mw, &bind.bind_info) }?;
    let has = |flag: ibv_send_flags| bind.send_flags & flag.0 != 0;
    let mut request = Some(SendRequest {
        wr_id: bind.wr_id,
        operation: binding.into(),
        immediate: None,
        signaled: has(ibv_send_flags::IBV_SEND_SIGNALED),
        solicited: false,
        fence: has(ibv_send_flags::IBV_SEND_FENCE),
        payload: Payload::Registered(&[]),
        datagram: None,
    });
    // SAFETY: the caller's; without bytes.
    unsafe {
        Softroce::qp(qp).transport.post_send(|| request.take()).map_err(post_error)?;
        (*mw).rkey = binding.new_rkey;
    }
    Ok(())
}

/// `ibv_bind_mw(3)`, by the pointer in `ibv_context.ops`: posts the binding; the window has its next key at once. Errors as
/// of `ibv_post_send(3)` and [`Binding::of_type_1`].
pub(super) unsafe extern "C" fn bind_mw(
    qp: *mut ibv_qp,
    mw: *mut ibv_mw,
    info: *mut ibv_mw_bind,
) -> c_int {
    // SAFETY: as the caller's.
    zero_or_error(unsafe { bind(qp, mw, &*info) })
}

/// `ibv_post_recv(3)`: ENOMEM if the queue is full, EINVAL for a QP in RESET or with an SRQ.
pub(super) unsafe extern "C" fn post_recv(
    qp: *mut ibv_qp,
    wr: *mut ibv_recv_wr,
    bad_wr: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: a live QP, and a list of requests.
    unsafe {
        let transport = &Softroce::qp(qp).transport;
        post_receives(wr, bad_wr, |wr_id, sges| {
            transport.post_recv(wr_id, sges).map_err(post_error)
        })
    }
}

/// The device's part of an SRQ.
pub(crate) struct Srq {
    pub(super) queue: Arc<RecvQueue>,
    nic: Arc<Nic>,
}

impl Srq {
    pub(super) fn new(nic: &Arc<Nic>, request: SrqRequest) -> Srq {
        let SrqRequest { pd, max_wr, max_sge, events, .. } = request;
        let [wrs, sges] = [max_wr, max_sge].map(|count| count as usize);
        let on_limit = Box::new(move || events.raise(ibv_event_type::IBV_EVENT_SRQ_LIMIT_REACHED));
        let queue = RecvQueue::new(PdId(pd), wrs, sges, Some(on_limit));
        Srq { queue: Arc::new(queue), nic: Arc::clone(nic) }
    }
}

impl SrqEngine for Srq {
    fn set_limit(&self, limit: u32) {
        self.queue.set_limit(limit as usize);
    }

    fn limit(&self) -> u32 {
        u32::try_from(self.queue.limit()).unwrap_or(u32::MAX)
    }
}

pub(super) unsafe extern "C" fn post_srq_recv(
    srq: *mut ibv_srq,
    wr: *mut ibv_recv_wr,
    bad_wr: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: a live SRQ of an open context, and a list of requests.
    unsafe {
        let inner = Softroce::srq(srq);
        let usable = usable(&inner.nic);
        post_receives(wr, bad_wr, |wr_id, sges| {
            usable?;
            inner.queue.post(wr_id, sges).map_err(post_error)
        })
    }
}

const MESSAGES: u64 = (Flags::IBV_QP_EX_WITH_SEND.0 | Flags::IBV_QP_EX_WITH_SEND_WITH_IMM.0) as u64;
const WRITES: u64 =
    (Flags::IBV_QP_EX_WITH_RDMA_WRITE.0 | Flags::IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM.0) as u64;
/// Those that reliable QPs alone have.
const RELIABLE: u64 = (Flags::IBV_QP_EX_WITH_SEND_WITH_INV.0
    | Flags::IBV_QP_EX_WITH_RDMA_READ.0
    | Flags::IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP.0
    | Flags::IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD.0) as u64;
const BIND: u64 = Flags::IBV_QP_EX_WITH_BIND_MW.0 as u64;
const WINDOWS: u64 = BIND | Flags::IBV_QP_EX_WITH_LOCAL_INV.0 as u64;

/// EOPNOTSUPP for operations that the service lacks.
pub(super) fn check_operations(kind: Kind, operations: u64) -> Result<(), c_int> {
    let there = match kind {
        Kind::Ud => MESSAGES,
        Kind::Uc => MESSAGES | WRITES | WINDOWS,
        Kind::Rc => MESSAGES | WRITES | WINDOWS | RELIABLE,
    };
    if operations & !there == 0 { Ok(()) } else { Err(libc::EOPNOTSUPP) }
}

/// Fills the function pointers of the operations with which the QP was created.
pub(super) fn fill_extended(verbs: &mut ibv_qp_ex, operations: u64) {
    fill_operations(verbs, operations);
    if operations & BIND != 0 {
        verbs.wr_bind_mw = Some(wr_bind_mw);
    }
    verbs.wr_set_ud_addr = Some(wr_set_ud_addr);
    verbs.wr_set_sge = Some(wr_set_sge);
    verbs.wr_set_sge_list = Some(wr_set_sge_list);
    verbs.wr_set_inline_data = Some(wr_set_inline_data);
    verbs.wr_set_inline_data_list = Some(wr_set_inline_data_list);
    verbs.wr_start = Some(wr_start);
    verbs.wr_complete = Some(wr_complete);
    verbs.wr_abort = Some(wr_abort);
}

/// The QP and its builder. The program has these functions only for a QP with a builder.
unsafe fn builder<'a>(qp: *mut ibv_qp_ex) -> Option<(&'a Qp, &'a Builder)> {
    // SAFETY: as the caller's.
    let inner = unsafe { Softroce::qp(qp.cast()) };
    inner.builder.as_ref().map(|builder| (inner, builder))
}

/// Calls `work` with the batch.
///
/// # Safety
/// `qp` is live, and this thread called `wr_start`.
unsafe fn with_batch(qp: *mut ibv_qp_ex, work: impl FnOnce(&mut Batch)) {
    // SAFETY: a live QP; who holds the latch owns the batch.
    unsafe {
        if let Some((_, builder)) = builder(qp) {
            work(&mut *builder.batch.get());
        }
    }
}

/// Begins a request.
///
/// # Safety
/// As for [`with_batch`].
unsafe fn begin(qp: *mut ibv_qp_ex, operation: Operation, immediate: Option<u32>) {
    // SAFETY: as the caller's; a live QP, of which the program set these two before the call.
    unsafe {
        let (wr_id, flags) = ((*qp).wr_id, (*qp).wr_flags);
        with_batch(qp, |batch| batch.begin(wr_id, flags, operation, immediate));
    }
}

unsafe extern "C" fn wr_start(qp: *mut ibv_qp_ex) {
    // SAFETY: a live QP; the latch is taken before the batch.
    unsafe {
        if let Some((_, builder)) = builder(qp) {
            builder.latch.take();
            (*builder.batch.get()).clear();
        }
    }
}

unsafe extern "C" fn wr_complete(qp: *mut ibv_qp_ex) -> c_int {
    // SAFETY: a live QP.
    let Some((inner, builder)) = (unsafe { builder(qp) }) else {
        return zero_or_error(Err(libc::EINVAL));
    };
    // SAFETY: this thread holds the latch since `wr_start`.
    let batch = unsafe { &mut *builder.batch.get() };
    batch.settle();
    let outcome = match batch.error {
        Some(error) => Err(error),
        None => {
            let mut next = 0;
            // SAFETY: inline elements lie in the batch, which stays until the latch is given.
            unsafe {
                inner.transport.post_send(|| {
                    next += 1;
                    batch.request(next - 1)
                })
            }
            .map_err(post_error)
        }
    };
    builder.latch.give();
    zero_or_error(outcome)
}

unsafe extern "C" fn wr_abort(qp: *mut ibv_qp_ex) {
    // SAFETY: a live QP whose latch this thread took in `wr_start`.
    unsafe {
        if let Some((_, builder)) = builder(qp) {
            builder.latch.give();
        }
    }
}

/// Defines the functions that begin a request, and gives the program those of its operations.
macro_rules! operations {
    ($($flag:ident: $name:ident($($argument:ident: $type:ty),*) => $operation:expr, $immediate:expr;)*) => {
        $(unsafe extern "C" fn $name(qp: *mut ibv_qp_ex, $($argument: $type),*) {
            // SAFETY: as the caller's.
            unsafe { begin(qp, $operation, $immediate) };
        })*

        fn fill_operations(verbs: &mut ibv_qp_ex, operations: u64) {
            $(if operations & u64::from(Flags::$flag.0) != 0 { verbs.$name = Some($name); })*
        }
    };
}

operations! {
    IBV_QP_EX_WITH_SEND: wr_send() => Operation::Send, None;
    IBV_QP_EX_WITH_SEND_WITH_IMM: wr_send_imm(immediate: u32) => Operation::Send, Some(immediate);
    IBV_QP_EX_WITH_SEND_WITH_INV: wr_send_inv(rkey: u32) => Operation::SendInvalidate { rkey }, None;
    IBV_QP_EX_WITH_RDMA_WRITE: wr_rdma_write(rkey: u32, address: u64) => Operation::Write { address, rkey }, None;
    IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM: wr_rdma_write_imm(rkey: u32, address: u64, immediate: u32)
        => Operation::Write { address, rkey }, Some(immediate);
    IBV_QP_EX_WITH_RDMA_READ: wr_rdma_read(rkey: u32, address: u64) => Operation::Read { address, rkey }, None;
    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD: wr_atomic_fetch_add(rkey: u32, address: u64, add: u64)
        => Operation::FetchAdd { address, rkey, add }, None;
    IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP: wr_atomic_cmp_swp(rkey: u32, address: u64, compare: u64, swap: u64)
        => Operation::CompareSwap { address, rkey, compare, swap }, None;
    IBV_QP_EX_WITH_LOCAL_INV: wr_local_inv(rkey: u32) => Operation::Invalidate { rkey }, None;
}

unsafe extern "C" fn wr_bind_mw(
    qp: *mut ibv_qp_ex,
    mw: *mut ibv_mw,
    rkey: u32,
    info: *const ibv_mw_bind_info,
) {
    // SAFETY: as the caller's; a live window, and a readable struct whose region is live or null.
    unsafe {
        match Binding::of_type_2(mw, rkey, &*info) {
            Ok(binding) => {
                (*mw).rkey = binding.new_rkey;
                begin(qp, binding.into(), None);
            }
            Err(error) => with_batch(qp, |batch| batch.error = Some(error)),
        }
    }
}

unsafe extern "C" fn wr_set_ud_addr(qp: *mut ibv_qp_ex, ah: *mut ibv_ah, qpn: u32, qkey: u32) {
    // SAFETY: as the caller's; a live handle, or null.
    unsafe {
        with_batch(qp, |batch| match datagram(ah, qpn, qkey) {
            Ok(to) => batch.set(|request| request.datagram = Some(to)),
            Err(error) => batch.error = Some(error),
        });
    }
}

unsafe extern "C" fn wr_set_sge(qp: *mut ibv_qp_ex, lkey: u32, address: u64, length_bytes: u32) {
    let sge = Sge { address, length_bytes, lkey };
    // SAFETY: as the caller's.
    unsafe { with_batch(qp, |batch| batch.set_elements(&[sge])) };
}

unsafe extern "C" fn wr_set_sge_list(qp: *mut ibv_qp_ex, count: usize, list: *const ibv_sge) {
    // SAFETY: as the caller's; a list of so many.
    unsafe { with_batch(qp, |batch| batch.set_elements(array(list.cast(), count))) };
}

unsafe extern "C" fn wr_set_inline_data(qp: *mut ibv_qp_ex, address: *mut c_void, length: usize) {
    // SAFETY: as the caller's; so many readable bytes.
    unsafe {
        with_batch(qp, |batch| {
            batch.set_inline([array(address.cast(), length)].into_iter());
        });
    };
}

unsafe extern "C" fn wr_set_inline_data_list(
    qp: *mut ibv_qp_ex,
    count: usize,
    list: *const ibv_data_buf,
) {
    // SAFETY: as the caller's; a list of so many, each of readable bytes.
    unsafe {
        let pieces = array(list, count).iter();
        with_batch(qp, |batch| {
            batch.set_inline(pieces.map(|buf| array(buf.addr.cast(), buf.length)));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_have_their_operations() {
        assert!(check_operations(Kind::Rc, MESSAGES | WRITES | RELIABLE | WINDOWS).is_ok());
        assert!(check_operations(Kind::Ud, WINDOWS).is_err());
        let invalidate = u64::from(Flags::IBV_QP_EX_WITH_SEND_WITH_INV.0);
        assert!(check_operations(Kind::Uc, RELIABLE).is_err());
        assert!(check_operations(Kind::Uc, invalidate).is_err());
        assert!(check_operations(Kind::Ud, WRITES).is_err());
        let tso = u64::from(Flags::IBV_QP_EX_WITH_TSO.0);
        assert_eq!(check_operations(Kind::Ud, tso), Err(libc::EOPNOTSUPP));
    }
}
