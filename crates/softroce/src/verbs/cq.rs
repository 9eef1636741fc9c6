//! Completion queues, plain and extended, whose completions are read field by field (`ibv_create_cq_ex(3)`).

use std::cell::UnsafeCell;
use std::net::IpAddr;
use std::os::raw::{c_int, c_uint};

use provider::{Context, CqEngine, CqRequest, Objects, pointer_or_errno};
use rdma_sys::{
    ibv_context, ibv_cq, ibv_cq_ex, ibv_cq_init_attr_ex, ibv_cq_init_attr_mask as Mask,
    ibv_event_type, ibv_poll_cq_attr, ibv_wc, ibv_wc_flags, imm_data_invalidated_rkey_union_t,
};

use super::errno::refuse;
use super::latch::Latch;
use super::open::Softroce;
use crate::transport;
use crate::transport::{Attached, Completion};

/// The device's part of a CQ.
pub(crate) struct Cq {
    pub(super) transport: transport::Cq,
    /// The service level of datagrams' completions.
    datagram_sl: u8,
    /// Held from `start_poll` to `end_poll`.
    polling: Latch,
    /// The completion that `start_poll` or `next_poll` took last, and its stamp; protected by `polling`.
    current: UnsafeCell<Option<(Completion, u64)>>,
}

// SAFETY: who holds the latch has what it protects.
unsafe impl Sync for Cq {}

/// `IBV_WC_EX_WITH_COMPLETION_TIMESTAMP`, a bit of `wc_flags` when a CQ is created.
const STAMPS: u64 = 1 << 7;

impl Cq {
    pub(super) fn new(device: &Softroce, request: CqRequest) -> Cq {
        let CqRequest { capacity, wc_flags, events, notifier, .. } = request;
        let on_event: Box<dyn Fn() + Send + Sync> = match notifier {
            None => Box::new(|| ()),
            Some(notifier) => Box::new(move || notifier.raise()),
        };
        let on_overrun = Box::new(move || events.raise(ibv_event_type::IBV_EVENT_CQ_ERR));
        let (nic, has_stamps) = (&device.nic, wc_flags & STAMPS != 0);
        Cq {
            transport: transport::Cq::with_stamps(
                nic,
                capacity as usize,
                has_stamps,
                on_event,
                on_overrun,
            ),
            datagram_sl: datagram_sl(device.address()),
            polling: Latch::default(),
            current: UnsafeCell::new(None),
        }
    }
}

impl CqEngine for Cq {
    fn capacity(&self) -> u32 {
        u32::try_from(self.transport.capacity()).unwrap_or(u32::MAX)
    }

    fn resize(&self, capacity: u32) -> Result<(), c_int> {
        self.transport.resize(capacity as usize).then_some(()).ok_or(libc::EINVAL)
    }

    fn remind(&self) {
        self.transport.remind();
    }
}

/// The `wc_flags` of a completion.
pub(super) fn wc_flags(completion: &Completion) -> u32 {
    let mut flags = 0;
    if completion.has_grh {
        flags |= ibv_wc_flags::IBV_WC_GRH.0;
    }
    flags |= match completion.attached {
        Attached::Nothing => 0,
        Attached::Immediate(_) => ibv_wc_flags::IBV_WC_WITH_IMM.0,
        Attached::Invalidated(_) => ibv_wc_flags::IBV_WC_WITH_INV.0,
    };
    flags
}

/// The member of `ibv_wc` that is immediate data or a key.
fn attached(completion: &Completion) -> u32 {
    match completion.attached {
        Attached::Nothing => 0,
        Attached::Immediate(value) | Attached::Invalidated(value) => value,
    }
}

/// The service level of a datagram's completion. RoCE v2 has none on the wire. What annex A17.4.5.1 wants of a
/// completion instead, whether an IPv4 or an IPv6 header is before the payload, has no member in `ibv_wc`; mlx5 says it
/// here, and UCX takes every adapter's to be so: 8 for UDP, and 2 for IPv4 or 1 for IPv6.
fn datagram_sl(address: IpAddr) -> u8 {
    const UDP: u8 = 8;
    UDP | if address.is_ipv4() { 2 } else { 1 }
}

fn work_completion(cq: &Cq, completion: &Completion) -> ibv_wc {
    ibv_wc {
        wr_id: completion.wr_id,
        status: completion.status as u32,
        opcode: completion.kind as u32,
        vendor_err: 0,
        byte_len: completion.length_bytes,
        imm_data_invalidated_rkey_union: imm_data_invalidated_rkey_union_t {
            imm_data: attached(completion),
        },
        qp_num: completion.qpn,
        src_qp: completion.source_qpn,
        wc_flags: wc_flags(completion),
        pkey_index: 0,
        slid: 0,
        sl: if completion.has_grh { cq.datagram_sl } else { 0 },
        dlid_path_bits: 0,
    }
}

/// `ibv_poll_cq(3)`: -1 after an overrun, and in a child of the process that opened the device.
///
/// # Safety
/// As for libibverbs: `wc` has room for `entries`.
pub(super) unsafe extern "C" fn poll_cq(cq: *mut ibv_cq, entries: c_int, wc: *mut ibv_wc) -> c_int {
    let Ok(most) = usize::try_from(entries) else {
        return -1;
    };
    let mut taken = 0;
    // SAFETY: a live CQ.
    let inner = unsafe { Softroce::cq(cq) };
    let outcome = inner.transport.poll(most, |completion| {
        // SAFETY: the caller has room for `most`.
        unsafe { wc.add(taken).write(work_completion(inner, completion)) };
        taken += 1;
    });
    match outcome {
        Ok(_) => taken as c_int,
        Err(_) => {
            // Says so if the CQ is the parent's. SAFETY: a live CQ of an open context.
            let _ = unsafe { Context::own((*cq).context) };
            -1
        }
    }
}

pub(super) unsafe extern "C" fn req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    // SAFETY: a live CQ.
    unsafe { Softroce::cq(cq) }.transport.arm(solicited_only != 0);
    0
}

/// Byte count, immediate data, QPN, source QPN, LIDs and service level: the fields that plain completions have.
const PLAIN_FIELDS: u64 = 0x7f;
/// Only one thread polls at a time; it makes no difference here.
const SINGLE_THREADED: u32 = 1;

/// `ibv_create_cq_ex(3)`, by the pointer in `verbs_context`. EOPNOTSUPP for fields that completions do not have here
/// (wall-clock stamps, VLAN, flow tags, tag matching), and a CQ that ignores overruns; EINVAL as of `ibv_create_cq`, and
/// without the parent domain that is named.
pub(super) unsafe extern "C" fn create_cq_ex(
    context: *mut ibv_context,
    init: *mut ibv_cq_init_attr_ex,
) -> *mut ibv_cq_ex {
    // SAFETY: a readable struct of the caller's.
    let init = unsafe { &*init };
    let known = Mask::IBV_CQ_INIT_ATTR_MASK_FLAGS.0 | Mask::IBV_CQ_INIT_ATTR_MASK_PD.0;
    let unknown = init.comp_mask & !known;
    if init.wc_flags & !(PLAIN_FIELDS | STAMPS) != 0
        || init.comp_mask & Mask::IBV_CQ_INIT_ATTR_MASK_FLAGS.0 != 0
            && init.flags & !SINGLE_THREADED != 0
        || unknown != 0
    {
        refuse("ibv_create_cq_ex with such fields or flags");
        return pointer_or_errno(Err(libc::EOPNOTSUPP));
    }
    // SAFETY: as the caller's.
    let made = pointer_or_errno(unsafe { provider::new_cq(context, init) });
    // SAFETY: null, or just made, and nobody else has it.
    if let Some(verbs) = unsafe { made.as_mut() } {
        verbs.start_poll = Some(start_poll);
        verbs.next_poll = Some(next_poll);
        verbs.end_poll = Some(end_poll);
        fill_readers(verbs);
    }
    made
}

/// Takes one completion: 0, ENOENT if there is none, EIO after an overrun.
///
/// # Safety
/// `cq` is live, and this thread holds its latch.
unsafe fn advance(cq: *mut ibv_cq_ex) -> c_int {
    // SAFETY: a live CQ.
    let inner = unsafe { Softroce::cq(cq.cast()) };
    let outcome = inner.transport.take_stamped(1, |completion, stamp_ns| {
        // SAFETY: who holds the latch owns the place; the two fields are written by nobody else.
        unsafe {
            *inner.current.get() = Some((*completion, stamp_ns));
            (*cq).status = completion.status as u32;
            (*cq).wr_id = completion.wr_id;
        }
    });
    match outcome {
        Ok(0) => libc::ENOENT,
        Ok(_) => 0,
        Err(_) => libc::EIO,
    }
}

unsafe extern "C" fn start_poll(cq: *mut ibv_cq_ex, attr: *mut ibv_poll_cq_attr) -> c_int {
    // SAFETY: null or a readable struct.
    if unsafe { attr.as_ref() }.is_some_and(|attr| attr.comp_mask != 0) {
        return libc::EINVAL;
    }
    // SAFETY: a live CQ.
    let inner = unsafe { Softroce::cq(cq.cast()) };
    // The latch is free while this thread does the device's work.
    match inner.transport.has_some() {
        Ok(true) => inner.polling.take(),
        Ok(false) => return libc::ENOENT,
        Err(_) => return libc::EIO,
    }
    // SAFETY: as above, and the latch is held.
    let outcome = unsafe { advance(cq) };
    if outcome != 0 {
        // The program calls `end_poll` only after a success.
        inner.polling.give();
    }
    outcome
}

unsafe extern "C" fn next_poll(cq: *mut ibv_cq_ex) -> c_int {
    // SAFETY: a live CQ whose latch this thread took in `start_poll`.
    unsafe { advance(cq) }
}

unsafe extern "C" fn end_poll(cq: *mut ibv_cq_ex) {
    // SAFETY: a live CQ whose latch this thread took in `start_poll`.
    unsafe { Softroce::cq(cq.cast()) }.polling.give();
}

/// Reads the completion that `start_poll` or `next_poll` took last, and its stamp; 0 if there was none.
///
/// # Safety
/// The caller is between `start_poll` and `end_poll`.
unsafe fn read<T: Default>(cq: *mut ibv_cq_ex, field: impl Fn(&Cq, &Completion, u64) -> T) -> T {
    // SAFETY: a live CQ whose latch this thread holds.
    let (inner, current) =
        unsafe { (Softroce::cq(cq.cast()), *Softroce::cq(cq.cast()).current.get()) };
    current.map_or_else(T::default, |(completion, stamp_ns)| field(inner, &completion, stamp_ns))
}

/// Defines the functions that read a field of the current completion, and gives them to the program.
macro_rules! readers {
    ($($name:ident -> $type:ty = $field:expr;)*) => {
        $(unsafe extern "C" fn $name(cq: *mut ibv_cq_ex) -> $type {
            // SAFETY: the caller is between `start_poll` and `end_poll`.
            unsafe { read(cq, $field) }
        })*

        fn fill_readers(verbs: &mut ibv_cq_ex) {
            $(verbs.$name = Some($name);)*
        }
    };
}

readers! {
    read_opcode -> u32 = |_, it, _| it.kind as u32;
    read_vendor_err -> u32 = |_, _, _| 0;
    read_byte_len -> u32 = |_, it, _| it.length_bytes;
    read_imm_data -> u32 = |_, it, _| attached(it);
    read_qp_num -> u32 = |_, it, _| it.qpn;
    read_src_qp -> u32 = |_, it, _| it.source_qpn;
    read_wc_flags -> c_uint = |_, it, _| wc_flags(it);
    read_slid -> u32 = |_, _, _| 0;
    read_sl -> u8 = |cq, it, _| if it.has_grh { cq.datagram_sl } else { 0 };
    read_dlid_path_bits -> u8 = |_, _, _| 0;
    read_completion_ts -> u64 = |_, _, stamp_ns| stamp_ns;
}
