//! Extended completion queues, whose completions are read field by field (`ibv_create_cq_ex(3)`).

use std::os::raw::{c_int, c_uint};

use rdma_sys::{
    ibv_context, ibv_cq_ex, ibv_cq_init_attr_ex, ibv_cq_init_attr_mask as Mask, ibv_poll_cq_attr,
};

use super::cq::{self, Cq, STAMPS};
use super::errno::pointer_or_errno;
use super::object::Behind;
use super::refused::refuse;
use crate::transport::Completion;

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
    let made = pointer_or_errno(unsafe { cq::create(context, init) });
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
    let inner = unsafe { Cq::of(cq.cast()) };
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
    let inner = unsafe { Cq::of(cq.cast()) };
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
    unsafe { Cq::of(cq.cast()) }.polling.give();
}

/// Reads the completion that `start_poll` or `next_poll` took last, and its stamp; 0 if there was none.
///
/// # Safety
/// The caller is between `start_poll` and `end_poll`.
unsafe fn read<T: Default>(cq: *mut ibv_cq_ex, field: impl Fn(&Cq, &Completion, u64) -> T) -> T {
    // SAFETY: a live CQ whose latch this thread holds.
    let (inner, current) = unsafe { (Cq::of(cq.cast()), *Cq::of(cq.cast()).current.get()) };
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
    read_imm_data -> u32 = |_, it, _| it.immediate.unwrap_or(0);
    read_qp_num -> u32 = |_, it, _| it.qpn;
    read_src_qp -> u32 = |_, it, _| it.source_qpn;
    read_wc_flags -> c_uint = |_, it, _| cq::wc_flags(it);
    read_slid -> u32 = |_, _, _| 0;
    read_sl -> u8 = |cq, it, _| if it.has_grh { cq.datagram_sl } else { 0 };
    read_dlid_path_bits -> u8 = |_, _, _| 0;
    read_completion_ts -> u64 = |_, _, stamp_ns| stamp_ns;
}
