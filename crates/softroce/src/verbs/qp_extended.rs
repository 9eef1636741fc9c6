//! Extended posting (`ibv_wr_post(3)`): requests are built call by call between `wr_start` and `wr_complete`.

use std::cell::UnsafeCell;
use std::os::raw::{c_int, c_void};
use std::slice;

use rdma_sys::{
    ibv_ah, ibv_data_buf, ibv_qp_create_send_ops_flags, ibv_qp_ex, ibv_send_flags, ibv_sge,
};

use super::errno::post_error;
use super::latch::Latch;
use super::post::{datagram, elements};
use super::qp::Qp;
use crate::transport::{Datagram, Kind, Operation, Payload, SendRequest, Sge};

use ibv_qp_create_send_ops_flags as Flags;

const MESSAGES: u64 = (Flags::IBV_QP_EX_WITH_SEND.0 | Flags::IBV_QP_EX_WITH_SEND_WITH_IMM.0) as u64;
const WRITES: u64 =
    (Flags::IBV_QP_EX_WITH_RDMA_WRITE.0 | Flags::IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM.0) as u64;
const READS_AND_ATOMICS: u64 = (Flags::IBV_QP_EX_WITH_RDMA_READ.0
    | Flags::IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP.0
    | Flags::IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD.0) as u64;

/// EOPNOTSUPP for operations that the service does not have.
pub(super) fn check_operations(kind: Kind, operations: u64) -> Result<(), c_int> {
    let there = match kind {
        Kind::Ud => MESSAGES,
        Kind::Uc => MESSAGES | WRITES,
        Kind::Rc => MESSAGES | WRITES | READS_AND_ATOMICS,
    };
    if operations & !there == 0 {
        Ok(())
    } else {
        Err(libc::EOPNOTSUPP)
    }
}

/// Fills the function pointers of the operations that the QP was made for.
pub(super) fn fill(verbs: &mut ibv_qp_ex, operations: u64) {
    macro_rules! operation {
        ($($flag:ident => $function:ident;)*) => {
            $(if operations & u64::from(Flags::$flag.0) != 0 { verbs.$function = Some($function); })*
        };
    }
    operation! {
        IBV_QP_EX_WITH_SEND => wr_send;
        IBV_QP_EX_WITH_SEND_WITH_IMM => wr_send_imm;
        IBV_QP_EX_WITH_RDMA_WRITE => wr_rdma_write;
        IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM => wr_rdma_write_imm;
        IBV_QP_EX_WITH_RDMA_READ => wr_rdma_read;
        IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP => wr_atomic_cmp_swp;
        IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD => wr_atomic_fetch_add;
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

/// A request that is being built.
struct Pending {
    wr_id: u64,
    flags: u32,
    operation: Operation,
    immediate: Option<u32>,
    inline: bool,
    /// Its elements: from here, this many.
    first_sge: usize,
    sges: usize,
    datagram: Option<Datagram>,
}

/// What was called since `wr_start`. The memory is kept for the next time.
#[derive(Default)]
struct Batch {
    requests: Vec<Pending>,
    /// Elements of all requests. Those of inline ones hold an offset in `bytes` until `wr_complete`.
    sges: Vec<Sge>,
    /// Inline data: it may change once it was given.
    bytes: Vec<u8>,
    /// Of a call that cannot report it.
    error: Option<c_int>,
}

impl Batch {
    fn clear(&mut self) {
        self.requests.clear();
        self.sges.clear();
        self.bytes.clear();
        self.error = None;
    }

    /// The request that setters are about; without one the program called them too early.
    fn set(&mut self, change: impl FnOnce(&mut Pending)) {
        match self.requests.last_mut() {
            Some(request) => change(request),
            None => self.error = Some(libc::EINVAL),
        }
    }

    fn set_elements(&mut self, elements: &[Sge]) {
        let first_sge = self.sges.len();
        self.sges.extend_from_slice(elements);
        self.set(|request| {
            request.inline = false;
            request.first_sge = first_sge;
            request.sges = elements.len();
        });
    }

    /// Copies the pieces, as one element.
    fn set_inline<'a>(&mut self, pieces: impl Iterator<Item = &'a [u8]>) {
        let offset = self.bytes.len();
        for piece in pieces {
            self.bytes.extend_from_slice(piece);
        }
        let Ok(length_bytes) = u32::try_from(self.bytes.len() - offset) else {
            self.error = Some(libc::EINVAL);
            return;
        };
        let first_sge = self.sges.len();
        self.sges.push(Sge {
            address: offset as u64,
            length_bytes,
            lkey: 0,
        });
        self.set(|request| {
            request.inline = true;
            request.first_sge = first_sge;
            request.sges = 1;
        });
    }

    /// Turns offsets into addresses: from now on the bytes stay where they are.
    fn settle(&mut self) {
        let start = self.bytes.as_ptr().addr() as u64;
        for request in self.requests.iter().filter(|request| request.inline) {
            for sge in &mut self.sges[request.first_sge..][..request.sges] {
                sge.address += start;
            }
        }
    }

    fn request(&self, index: usize) -> Option<SendRequest<'_>> {
        let request = self.requests.get(index)?;
        let sges = &self.sges[request.first_sge..][..request.sges];
        let flag = |flag: ibv_send_flags| request.flags & flag.0 != 0;
        Some(SendRequest {
            wr_id: request.wr_id,
            operation: request.operation,
            immediate: request.immediate,
            signaled: flag(ibv_send_flags::IBV_SEND_SIGNALED),
            solicited: flag(ibv_send_flags::IBV_SEND_SOLICITED),
            fence: flag(ibv_send_flags::IBV_SEND_FENCE),
            payload: if request.inline {
                Payload::Inline(sges)
            } else {
                Payload::Registered(sges)
            },
            datagram: request.datagram,
        })
    }
}

/// Collects requests; held by a thread from `wr_start` to `wr_complete` or `wr_abort`.
#[derive(Default)]
pub(super) struct Builder {
    latch: Latch,
    batch: UnsafeCell<Batch>,
}

/// The QP, and its builder; a QP without one never got these functions.
///
/// # Safety
/// `qp` is live.
unsafe fn builder<'a>(qp: *mut ibv_qp_ex) -> Option<(&'a Qp, &'a Builder)> {
    // SAFETY: as the caller's.
    let inner = unsafe { Qp::of(qp.cast()) };
    inner.builder.as_ref().map(|builder| (inner, builder))
}

/// Works on the batch.
///
/// # Safety
/// `qp` is live, and this thread called `wr_start`.
unsafe fn with_batch(qp: *mut ibv_qp_ex, work: impl FnOnce(&Qp, &mut Batch)) {
    // SAFETY: a live QP; who holds the latch owns the batch.
    unsafe {
        if let Some((inner, builder)) = builder(qp) {
            work(inner, &mut *builder.batch.get());
        }
    }
}

/// Begins a request.
///
/// # Safety
/// As for [`with_batch`].
unsafe fn begin(qp: *mut ibv_qp_ex, operation: Operation, immediate: Option<u32>) {
    // SAFETY: a live QP, of which the program set these two before the call.
    let (wr_id, flags) = unsafe { ((*qp).wr_id, (*qp).wr_flags) };
    // SAFETY: as the caller's.
    unsafe {
        with_batch(qp, |_, batch| {
            let first_sge = batch.sges.len();
            batch.requests.push(Pending {
                wr_id,
                flags,
                operation,
                immediate,
                inline: false,
                first_sge,
                sges: 0,
                datagram: None,
            });
        });
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
        return libc::EINVAL;
    };
    // SAFETY: this thread holds the latch since `wr_start`.
    let batch = unsafe { &mut *builder.batch.get() };
    batch.settle();
    let outcome = match batch.error {
        Some(error) => Err(error),
        None => {
            let mut next = 0;
            inner
                .transport
                .post_send(|| {
                    next += 1;
                    batch.request(next - 1)
                })
                .map_err(post_error)
        }
    };
    builder.latch.give();
    outcome.err().unwrap_or(0)
}

unsafe extern "C" fn wr_abort(qp: *mut ibv_qp_ex) {
    // SAFETY: a live QP whose latch this thread took in `wr_start`.
    unsafe {
        if let Some((_, builder)) = builder(qp) {
            builder.latch.give();
        }
    }
}

unsafe extern "C" fn wr_send(qp: *mut ibv_qp_ex) {
    // SAFETY: as the caller's.
    unsafe { begin(qp, Operation::Send, None) };
}

unsafe extern "C" fn wr_send_imm(qp: *mut ibv_qp_ex, immediate: u32) {
    // SAFETY: as the caller's.
    unsafe { begin(qp, Operation::Send, Some(immediate)) };
}

unsafe extern "C" fn wr_rdma_write(qp: *mut ibv_qp_ex, rkey: u32, address: u64) {
    // SAFETY: as the caller's.
    unsafe { begin(qp, Operation::Write { address, rkey }, None) };
}

unsafe extern "C" fn wr_rdma_write_imm(
    qp: *mut ibv_qp_ex,
    rkey: u32,
    address: u64,
    immediate: u32,
) {
    // SAFETY: as the caller's.
    unsafe { begin(qp, Operation::Write { address, rkey }, Some(immediate)) };
}

unsafe extern "C" fn wr_rdma_read(qp: *mut ibv_qp_ex, rkey: u32, address: u64) {
    // SAFETY: as the caller's.
    unsafe { begin(qp, Operation::Read { address, rkey }, None) };
}

unsafe extern "C" fn wr_atomic_fetch_add(qp: *mut ibv_qp_ex, rkey: u32, address: u64, add: u64) {
    let operation = Operation::FetchAdd { address, rkey, add };
    // SAFETY: as the caller's.
    unsafe { begin(qp, operation, None) };
}

unsafe extern "C" fn wr_atomic_cmp_swp(
    qp: *mut ibv_qp_ex,
    rkey: u32,
    address: u64,
    compare: u64,
    swap: u64,
) {
    let operation = Operation::CompareSwap {
        address,
        rkey,
        compare,
        swap,
    };
    // SAFETY: as the caller's.
    unsafe { begin(qp, operation, None) };
}

unsafe extern "C" fn wr_set_ud_addr(qp: *mut ibv_qp_ex, ah: *mut ibv_ah, qpn: u32, qkey: u32) {
    // SAFETY: as the caller's; a live handle, or null.
    unsafe {
        with_batch(qp, |inner, batch| match datagram(inner, ah, qpn, qkey) {
            Ok(to) => batch.set(|request| request.datagram = Some(to)),
            Err(error) => batch.error = Some(error),
        });
    }
}

unsafe extern "C" fn wr_set_sge(qp: *mut ibv_qp_ex, lkey: u32, address: u64, length_bytes: u32) {
    let sge = Sge {
        address,
        length_bytes,
        lkey,
    };
    // SAFETY: as the caller's.
    unsafe { with_batch(qp, |_, batch| batch.set_elements(&[sge])) };
}

unsafe extern "C" fn wr_set_sge_list(qp: *mut ibv_qp_ex, count: usize, list: *const ibv_sge) {
    // SAFETY: as the caller's; a list of so many.
    unsafe { with_batch(qp, |_, batch| batch.set_elements(elements(list, count))) };
}

/// # Safety
/// There are so many bytes.
unsafe fn piece<'a>(address: *const c_void, length: usize) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    // SAFETY: the caller vouches for them.
    unsafe { slice::from_raw_parts(address.cast(), length) }
}

unsafe extern "C" fn wr_set_inline_data(qp: *mut ibv_qp_ex, address: *mut c_void, length: usize) {
    // SAFETY: as the caller's; so many readable bytes.
    unsafe {
        with_batch(qp, |_, batch| {
            batch.set_inline([piece(address, length)].into_iter())
        })
    };
}

unsafe extern "C" fn wr_set_inline_data_list(
    qp: *mut ibv_qp_ex,
    count: usize,
    list: *const ibv_data_buf,
) {
    // SAFETY: as the caller's; a list of so many, each of readable bytes.
    unsafe {
        let list = if count == 0 {
            &[]
        } else {
            slice::from_raw_parts(list, count)
        };
        with_batch(qp, |_, batch| {
            batch.set_inline(list.iter().map(|buf| piece(buf.addr, buf.length)));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending() -> Pending {
        Pending {
            wr_id: 5,
            flags: ibv_send_flags::IBV_SEND_SIGNALED.0,
            operation: Operation::Send,
            immediate: None,
            inline: false,
            first_sge: 0,
            sges: 0,
            datagram: None,
        }
    }

    #[test]
    fn inline_data_is_copied_when_it_is_given() {
        let mut batch = Batch::default();
        let mut data = *b"ab";
        batch.requests.push(pending());
        batch.set_inline([&data[..1], &data[1..]].into_iter());
        data = *b"xy";
        batch.requests.push(pending());
        batch.set_inline([&data[..]].into_iter());
        batch.settle();
        let text = |index| {
            let Some(Payload::Inline([sge])) = batch.request(index).map(|r| r.payload) else {
                panic!("one inline element");
            };
            let start = sge.address - batch.bytes.as_ptr().addr() as u64;
            &batch.bytes[start as usize..][..sge.length_bytes as usize]
        };
        assert_eq!(text(0), b"ab");
        assert_eq!(text(1), b"xy");
        assert!(batch.request(2).is_none());
    }

    #[test]
    fn elements_belong_to_the_request_before_them() {
        let sge = |address| Sge {
            address,
            length_bytes: 1,
            lkey: 2,
        };
        let mut batch = Batch::default();
        batch.requests.push(pending());
        batch.set_elements(&[sge(10), sge(20)]);
        batch.requests.push(pending());
        batch.set_elements(&[sge(30)]);
        batch.settle();
        let Payload::Registered(second) = batch.request(1).unwrap().payload else {
            panic!("registered memory");
        };
        assert_eq!(second, [sge(30)]);
        let Payload::Registered(first) = batch.request(0).unwrap().payload else {
            panic!("registered memory");
        };
        assert_eq!(first, [sge(10), sge(20)]);
        assert!(batch.request(0).unwrap().signaled);
    }

    #[test]
    fn a_setter_without_a_request_is_an_error() {
        let mut batch = Batch::default();
        batch.set_elements(&[]);
        assert_eq!(batch.error, Some(libc::EINVAL));
        batch.clear();
        assert_eq!(batch.error, None);
    }

    #[test]
    fn services_have_their_operations() {
        assert!(check_operations(Kind::Rc, MESSAGES | WRITES | READS_AND_ATOMICS).is_ok());
        assert!(check_operations(Kind::Uc, READS_AND_ATOMICS).is_err());
        assert!(check_operations(Kind::Ud, WRITES).is_err());
        let tso = u64::from(Flags::IBV_QP_EX_WITH_TSO.0);
        assert_eq!(check_operations(Kind::Ud, tso), Err(libc::EOPNOTSUPP));
    }
}
