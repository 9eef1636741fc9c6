//! The device as a verbs library: what libibverbs exports, under its names without `ibv_`.
#![allow(clippy::todo, unused_variables)]

use std::os::raw::{c_char, c_int, c_void};

use rdma_sys::{
    ibv_async_event, ibv_comp_channel, ibv_context, ibv_cq, ibv_device, ibv_device_attr,
    ibv_gid_entry, ibv_mr, ibv_pd, ibv_port_attr, ibv_qp, ibv_qp_attr, ibv_qp_init_attr,
};

/// `ibv_get_device_list(3)`.
///
/// # Safety
/// As for libibverbs.
pub unsafe extern "C" fn get_device_list(count: *mut c_int) -> *mut *mut ibv_device {
    todo!()
}

/// `ibv_free_device_list(3)`.
///
/// # Safety
/// As for libibverbs.
pub unsafe extern "C" fn free_device_list(list: *mut *mut ibv_device) {
    todo!()
}

/// `ibv_get_device_name(3)`.
///
/// # Safety
/// As for libibverbs.
pub unsafe extern "C" fn get_device_name(device: *mut ibv_device) -> *const c_char {
    todo!()
}

/// `ibv_open_device(3)`.
///
/// # Safety
/// As for libibverbs.
pub unsafe extern "C" fn open_device(device: *mut ibv_device) -> *mut ibv_context {
    todo!()
}

/// `ibv_close_device(3)`.
///
/// # Safety
/// As for libibverbs.
pub unsafe extern "C" fn close_device(context: *mut ibv_context) -> c_int {
    todo!()
}

/// `ibv_query_device(3)`.
///
/// # Safety
/// As for libibverbs.
pub unsafe extern "C" fn query_device(
    context: *mut ibv_context,
    attr: *mut ibv_device_attr,
) -> c_int {
    todo!()
}

/// `ibv_query_port(3)`.
///
/// # Safety
/// As for libibverbs.
pub unsafe extern "C" fn query_port(
    context: *mut ibv_context,
    port: u8,
    attr: *mut ibv_port_attr,
) -> c_int {
    todo!()
}

/// `ibv_query_gid_ex(3)`.
///
/// # Safety
/// As for libibverbs.
pub unsafe extern "C" fn query_gid_ex(
    context: *mut ibv_context,
    port: u32,
    gid_index: u32,
    entry: *mut ibv_gid_entry,
    flags: u32,
) -> c_int {
    todo!()
}

/// `ibv_get_async_event(3)`.
///
/// # Safety
/// As for libibverbs.
pub unsafe extern "C" fn get_async_event(
    context: *mut ibv_context,
    event: *mut ibv_async_event,
) -> c_int {
    todo!()
}

/// `ibv_ack_async_event(3)`.
///
/// # Safety
/// As for libibverbs.
pub unsafe extern "C" fn ack_async_event(event: *mut ibv_async_event) {
    todo!()
}

/// `ibv_alloc_pd(3)`.
///
/// # Safety
/// As for libibverbs.
pub unsafe extern "C" fn alloc_pd(context: *mut ibv_context) -> *mut ibv_pd {
    todo!()
}

/// `ibv_dealloc_pd(3)`.
///
/// # Safety
/// As for libibverbs.
pub unsafe extern "C" fn dealloc_pd(pd: *mut ibv_pd) -> c_int {
    todo!()
}

/// `ibv_reg_mr(3)`.
///
/// # Safety
/// As for libibverbs.
pub unsafe extern "C" fn reg_mr(
    pd: *mut ibv_pd,
    address: *mut c_void,
    length: usize,
    access: c_int,
) -> *mut ibv_mr {
    todo!()
}

/// `ibv_dereg_mr(3)`.
///
/// # Safety
/// As for libibverbs.
pub unsafe extern "C" fn dereg_mr(mr: *mut ibv_mr) -> c_int {
    todo!()
}

/// `ibv_create_cq(3)`.
///
/// # Safety
/// As for libibverbs.
pub unsafe extern "C" fn create_cq(
    context: *mut ibv_context,
    entries: c_int,
    cq_context: *mut c_void,
    channel: *mut ibv_comp_channel,
    vector: c_int,
) -> *mut ibv_cq {
    todo!()
}

/// `ibv_destroy_cq(3)`.
///
/// # Safety
/// As for libibverbs.
pub unsafe extern "C" fn destroy_cq(cq: *mut ibv_cq) -> c_int {
    todo!()
}

/// `ibv_create_qp(3)`.
///
/// # Safety
/// As for libibverbs.
pub unsafe extern "C" fn create_qp(pd: *mut ibv_pd, init: *mut ibv_qp_init_attr) -> *mut ibv_qp {
    todo!()
}

/// `ibv_query_qp(3)`.
///
/// # Safety
/// As for libibverbs.
pub unsafe extern "C" fn query_qp(
    qp: *mut ibv_qp,
    attr: *mut ibv_qp_attr,
    mask: c_int,
    init: *mut ibv_qp_init_attr,
) -> c_int {
    todo!()
}

/// `ibv_modify_qp(3)`.
///
/// # Safety
/// As for libibverbs.
pub unsafe extern "C" fn modify_qp(qp: *mut ibv_qp, attr: *mut ibv_qp_attr, mask: c_int) -> c_int {
    todo!()
}

/// `ibv_destroy_qp(3)`.
///
/// # Safety
/// As for libibverbs.
pub unsafe extern "C" fn destroy_qp(qp: *mut ibv_qp) -> c_int {
    todo!()
}
