//! The device's limits (`ibv_query_device(3)`).

use std::os::raw::{c_char, c_int};

use rdma_sys::{
    ibv_atomic_cap, ibv_context, ibv_device_attr, ibv_device_attr_ex, ibv_device_cap_flags,
    ibv_packet_pacing_caps, ibv_qp_type, ibv_query_device_ex_input, ibv_values_ex, ibv_values_mask,
};

use super::context::Context;
use crate::net::now_ns;
use crate::transport::{MAX_QPS, MAX_REGIONS};

/// 1 Mb/s: a packet of 4096 bytes each 33 ms.
pub(super) const LEAST_KBIT_PER_S: u32 = 1_000;
/// 100 Gb/s, more than one QP reaches.
pub(super) const MOST_KBIT_PER_S: u32 = 100_000_000;

/// What `ibv_query_device_ex(3)` tells of it. Datagrams have no limits.
pub(super) const PACING_CAPS: ibv_packet_pacing_caps = ibv_packet_pacing_caps {
    qp_rate_limit_min: LEAST_KBIT_PER_S,
    qp_rate_limit_max: MOST_KBIT_PER_S,
    supported_qpts: 1 << ibv_qp_type::IBV_QPT_RC | 1 << ibv_qp_type::IBV_QPT_UC,
};

/// As Linux' Soft-RoCE has: of no vendor. Programs take 0 for an error.
const VENDOR_ID: u32 = 0x00ff_ffff;
/// The most QPs of a device.
const MAX_QP: c_int = MAX_QPS as c_int;
/// The most WRs of a send, receive or shared receive queue.
pub(super) const MAX_QP_WR: u32 = 16384;
/// The most scatter/gather elements of a WR.
pub(super) const MAX_SGE: u32 = 16;
/// The most inline bytes of a send.
pub(super) const MAX_INLINE_BYTES: u32 = 1024;
/// The most completions of a CQ.
pub(super) const MAX_CQE: u32 = 4_194_303;
/// The most outstanding READs and atomics of a QP, in either role.
pub(crate) const MAX_RD_ATOM: u8 = 128;
/// The most receives of an SRQ.
pub(super) const MAX_SRQ_WR: u32 = 16384;
/// Reported for objects that only memory limits.
const MAX_OBJECTS: c_int = 1 << 20;
/// Ticks in a millisecond of the clock that stamps completions, which is the system's monotonic one.
const STAMP_KHZ: u64 = 1_000_000;
/// 4.096 µs × 2^15 = 134 ms: an engine thread that waits for a core answers late.
pub(crate) const LOCAL_ACK_DELAY: u8 = 15;

/// Completion vectors: as many as CPUs, as Linux' Soft-RoCE has, since programs ask for the vector of the CPU on which
/// they poll. Here all are the same, because the device has no interrupts.
pub(super) fn completion_vectors() -> c_int {
    // SAFETY: takes no pointers.
    let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    c_int::try_from(cpus).map_or(1, |cpus| cpus.max(1))
}

pub unsafe extern "C" fn query_device(
    context: *mut ibv_context,
    attr: *mut ibv_device_attr,
) -> c_int {
    // SAFETY: an open context and a writable struct.
    unsafe { attr.write(attributes(Context::of(context).guid())) };
    0
}

/// `ibv_query_device_ex(3)`, by the pointer in `verbs_context`. EINVAL for a struct without room for the plain
/// attributes, or for unknown input.
///
/// # Safety
/// As for libibverbs: `attr` has `attr_bytes` bytes.
pub unsafe extern "C" fn query_device_ex(
    context: *mut ibv_context,
    input: *const ibv_query_device_ex_input,
    attr: *mut ibv_device_attr_ex,
    attr_bytes: usize,
) -> c_int {
    // SAFETY: null, or a readable struct.
    let input_mask = unsafe { input.as_ref() }.map_or(0, |input| input.comp_mask);
    if input_mask != 0 || attr_bytes < size_of::<ibv_device_attr>() + size_of::<u32>() {
        return libc::EINVAL;
    }
    // SAFETY: integers and arrays of them, for which zero is a value, and says that the capability is not there.
    let mut whole: ibv_device_attr_ex = unsafe { std::mem::zeroed() };
    // SAFETY: an open context.
    whole.orig_attr = attributes(unsafe { Context::of(context) }.guid());
    whole.device_cap_flags_ex = u64::from(whole.orig_attr.device_cap_flags);
    whole.phys_port_cnt_ex = 1;
    whole.completion_timestamp_mask = u64::MAX;
    whole.hca_core_clock = STAMP_KHZ;
    whole.packet_pacing_caps = PACING_CAPS;
    let known = attr_bytes.min(size_of::<ibv_device_attr_ex>());
    // SAFETY: the caller's struct has `attr_bytes`; of `whole` no more than there is is read.
    unsafe {
        attr.cast::<u8>().write_bytes(0, attr_bytes);
        attr.cast::<u8>().copy_from_nonoverlapping((&raw const whole).cast(), known);
    }
    0
}

/// `ibv_query_rt_values_ex(3)`, by the pointer in `verbs_context`: the clock of stamps. EINVAL for other values.
pub unsafe extern "C" fn query_rt_values(
    _context: *mut ibv_context,
    values: *mut ibv_values_ex,
) -> c_int {
    // SAFETY: a struct that can be read and written.
    let values = unsafe { &mut *values };
    if values.comp_mask & !ibv_values_mask::IBV_VALUES_MASK_RAW_CLOCK.0 != 0 {
        return libc::EINVAL;
    }
    // As mlx5 does: ticks, and no seconds.
    values.raw_clock.tv_sec = 0;
    values.raw_clock.tv_nsec = now_ns().cast_signed();
    0
}

fn attributes(guid: u64) -> ibv_device_attr {
    use ibv_device_cap_flags as Cap;
    // SAFETY: integers and arrays of them: zero is a value of each.
    let mut attr: ibv_device_attr = unsafe { std::mem::zeroed() };
    let version = env!("CARGO_PKG_VERSION").as_bytes();
    for (to, from) in attr.fw_ver.iter_mut().zip(version) {
        *to = *from as c_char;
    }
    attr.node_guid = guid.to_be();
    attr.sys_image_guid = guid.to_be();
    attr.vendor_id = VENDOR_ID;
    attr.max_mr_size = i64::MAX.cast_unsigned();
    // SAFETY: has no preconditions; it cannot fail.
    attr.page_size_cap = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.cast_unsigned();
    attr.max_qp = MAX_QP;
    attr.max_qp_wr = MAX_QP_WR.cast_signed();
    attr.device_cap_flags = Cap::IBV_DEVICE_CURR_QP_STATE_MOD.0
        | Cap::IBV_DEVICE_RC_RNR_NAK_GEN.0
        | Cap::IBV_DEVICE_SYS_IMAGE_GUID.0;
    attr.max_sge = MAX_SGE.cast_signed();
    attr.max_sge_rd = MAX_SGE.cast_signed();
    attr.max_cq = MAX_OBJECTS;
    attr.max_cqe = MAX_CQE.cast_signed();
    attr.max_mr = MAX_REGIONS as c_int;
    attr.max_pd = MAX_OBJECTS;
    attr.max_qp_rd_atom = c_int::from(MAX_RD_ATOM);
    attr.max_qp_init_rd_atom = c_int::from(MAX_RD_ATOM);
    attr.max_res_rd_atom = c_int::from(MAX_RD_ATOM) * MAX_QP;
    attr.atomic_cap = ibv_atomic_cap::IBV_ATOMIC_HCA;
    attr.max_ah = MAX_OBJECTS;
    attr.max_srq = MAX_OBJECTS;
    attr.max_srq_wr = MAX_SRQ_WR.cast_signed();
    attr.max_srq_sge = MAX_SGE.cast_signed();
    attr.max_pkeys = 1;
    attr.local_ca_ack_delay = LOCAL_ACK_DELAY;
    attr.phys_port_cnt = 1;
    attr
}
