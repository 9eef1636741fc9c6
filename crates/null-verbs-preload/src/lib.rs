//! `null-verbs` under libibverbs' names: with `LD_PRELOAD` an unmodified program such as `ib_write_bw` runs on
//! `null0`, so its cost per message is measured on the same library as rocebench's.
//!
//! With `NULL_VERBS_PERSONA` it is an adapter of `null-verbs/personas`, such as `connectx8_mrc`, which moves bytes within the
//! process.
//!
//! It exports the functions that perftest imports from libibverbs. Functions that `null-verbs` lacks (completion
//! channels, SRQs, address handles made of a completion) fail with EOPNOTSUPP, so that the real library never gets a foreign context.

use std::os::raw::{c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

use null_verbs::personas::ALL;
use rdma_sys::{
    ibv_ah, ibv_ah_attr, ibv_async_event, ibv_comp_channel, ibv_context, ibv_cq, ibv_device,
    ibv_device_attr, ibv_gid, ibv_gid_entry, ibv_grh, ibv_mr, ibv_pd, ibv_port_attr, ibv_qp,
    ibv_qp_attr, ibv_qp_ex, ibv_qp_init_attr, ibv_srq, ibv_srq_init_attr, ibv_wc,
};

/// Exports functions of `null-verbs` unchanged.
macro_rules! export {
    ($($name:ident = $function:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {$(
        #[doc = concat!("`", stringify!($name), "(3)`.")]
        /// # Safety
        /// As for libibverbs.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            // SAFETY: forwarded as it came.
            unsafe { null_verbs::$function($($argument),*) }
        }
    )*};
}

/// Exports functions that fail with EOPNOTSUPP.
macro_rules! refuse {
    ($($name:ident($($type:ty),*) -> $result:ty = $value:expr;)*) => {$(
        #[doc = concat!("`", stringify!($name), "(3)`, refused.")]
        /// # Safety
        /// As for libibverbs.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($(_: $type),*) -> $result {
            // SAFETY: the calling thread's own errno.
            unsafe { *libc::__errno_location() = libc::EOPNOTSUPP };
            $value
        }
    )*};
}

/// `ibv_get_device_list(3)`: `null0` and `loop0`, or the devices of the persona that `NULL_VERBS_PERSONA` names.
///
/// # Safety
/// As for libibverbs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_device_list(count: *mut c_int) -> *mut *mut ibv_device {
    let name = std::env::var("NULL_VERBS_PERSONA").unwrap_or_else(|_| "plain".to_owned());
    let named = ALL.iter().find(|entry| entry.name == name);
    // SAFETY: forwarded as it came.
    named.map_or(null_mut(), |entry| unsafe { (entry.get_device_list)(count) })
}

export! {
    ibv_free_device_list = free_device_list(list: *mut *mut ibv_device);
    ibv_get_device_name = get_device_name(device: *mut ibv_device) -> *const c_char;
    ibv_open_device = open_device(device: *mut ibv_device) -> *mut ibv_context;
    ibv_close_device = close_device(context: *mut ibv_context) -> c_int;
    ibv_query_device = query_device(context: *mut ibv_context, attr: *mut ibv_device_attr) -> c_int;
    ibv_query_port = query_port_compat(context: *mut ibv_context, port: u8, attr: *mut ibv_port_attr) -> c_int;
    ibv_query_port_speed = query_port_speed(context: *mut ibv_context, port: u32, speed: *mut u64) -> c_int;
    ibv_query_gid = query_gid(context: *mut ibv_context, port: u8, index: c_int, gid: *mut ibv_gid) -> c_int;
    _ibv_query_gid_ex = query_gid_ex_sized(context: *mut ibv_context, port: u32, gid_index: u32, entry: *mut ibv_gid_entry, flags: u32, entry_bytes: usize) -> c_int;
    ibv_query_pkey = query_pkey(context: *mut ibv_context, port: u8, index: c_int, pkey: *mut u16) -> c_int;
    ibv_get_async_event = get_async_event(context: *mut ibv_context, event: *mut ibv_async_event) -> c_int;
    ibv_ack_async_event = ack_async_event(event: *mut ibv_async_event);
    ibv_alloc_pd = alloc_pd(context: *mut ibv_context) -> *mut ibv_pd;
    ibv_dealloc_pd = dealloc_pd(pd: *mut ibv_pd) -> c_int;
    ibv_reg_mr = reg_mr(pd: *mut ibv_pd, address: *mut c_void, length: usize, access: c_int) -> *mut ibv_mr;
    ibv_reg_mr_iova2 = reg_mr_iova2(pd: *mut ibv_pd, address: *mut c_void, length: usize, iova: u64, access: c_uint) -> *mut ibv_mr;
    ibv_dereg_mr = dereg_mr(mr: *mut ibv_mr) -> c_int;
    ibv_create_cq = create_cq(context: *mut ibv_context, entries: c_int, cq_context: *mut c_void, channel: *mut ibv_comp_channel, vector: c_int) -> *mut ibv_cq;
    ibv_ack_cq_events = ack_cq_events(cq: *mut ibv_cq, events: c_uint);
    ibv_destroy_cq = destroy_cq(cq: *mut ibv_cq) -> c_int;
    ibv_create_qp = create_qp(pd: *mut ibv_pd, init: *mut ibv_qp_init_attr) -> *mut ibv_qp;
    ibv_query_qp = query_qp(qp: *mut ibv_qp, attr: *mut ibv_qp_attr, mask: c_int, init: *mut ibv_qp_init_attr) -> c_int;
    ibv_modify_qp = modify_qp(qp: *mut ibv_qp, attr: *mut ibv_qp_attr, mask: c_int) -> c_int;
    ibv_destroy_qp = destroy_qp(qp: *mut ibv_qp) -> c_int;
    ibv_create_ah = create_ah(pd: *mut ibv_pd, attr: *mut ibv_ah_attr) -> *mut ibv_ah;
    ibv_destroy_ah = destroy_ah(ah: *mut ibv_ah) -> c_int;
}

refuse! {
    ibv_create_comp_channel(*mut ibv_context) -> *mut ibv_comp_channel = null_mut();
    ibv_destroy_comp_channel(*mut ibv_comp_channel) -> c_int = libc::EOPNOTSUPP;
    ibv_get_cq_event(*mut ibv_comp_channel, *mut *mut ibv_cq, *mut *mut c_void) -> c_int = -1;
    ibv_create_srq(*mut ibv_pd, *mut ibv_srq_init_attr) -> *mut ibv_srq = null_mut();
    ibv_destroy_srq(*mut ibv_srq) -> c_int = libc::EOPNOTSUPP;
    ibv_create_ah_from_wc(*mut ibv_pd, *mut ibv_wc, *mut ibv_grh, u8) -> *mut ibv_ah = null_mut();
    ibv_qp_to_qp_ex(*mut ibv_qp) -> *mut ibv_qp_ex = null_mut();
}
