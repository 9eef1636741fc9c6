//! The embedded RoCEv2 device under the names of libibverbs and librdmacm: with `LD_PRELOAD`
//! unmodified programs such as `ibv_rc_pingpong`, `ib_send_bw` and `rping` run on `soft0`. `scripts/with-softroce` sets
//! it up.
//!
//! It contains every function of these libraries that takes one of their objects, so that the real ones never get a
//! foreign pointer. Functions that the device lacks fail with EOPNOTSUPP and one line on stderr. Functions that only
//! convert numbers to texts or other numbers stay in the real ones. Some programs open the libraries while they run:
//! `opening`. Some also look for devices in files of the kernel: `kernel_files`. Of librdmacm, rsockets and multicast are
//! refused.
//!
//! # Safety
//! Each function here is as safe as the one of its name in its library.
#![allow(clippy::missing_safety_doc)] // it stands above, once for all

mod kernel_files;
mod opening;

use std::os::raw::{c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

use libc::sockaddr;
use rdma_sys::{
    ibv_ah, ibv_ah_attr, ibv_async_event, ibv_comp_channel, ibv_context, ibv_cq, ibv_device,
    ibv_device_attr, ibv_gid, ibv_gid_entry, ibv_grh, ibv_mr, ibv_pd, ibv_port_attr, ibv_qp,
    ibv_qp_attr, ibv_qp_ex, ibv_qp_init_attr, ibv_qp_init_attr_ex, ibv_srq, ibv_srq_attr,
    ibv_srq_init_attr, ibv_wc, rdma_addrinfo, rdma_cm_event, rdma_cm_id, rdma_conn_param,
    rdma_event_channel, rdma_port_space,
};
use softroce::{rdmacm, verbs};

/// Exports functions of the device unchanged.
macro_rules! export {
    ($room:ident; $($name:ident = $function:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {$(
        #[doc = concat!("`", stringify!($name), "(3)`.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            // SAFETY: forwarded as it came.
            unsafe { $room::$function($($argument),*) }
        }
    )*};
}

/// Exports functions that fail with EOPNOTSUPP, whatever their arguments.
macro_rules! refuse {
    ($($name:ident -> $result:ty = $value:expr;)*) => {$(
        #[doc = concat!("`", stringify!($name), "(3)`, refused.")]
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> $result {
            verbs::refuse(stringify!($name));
            $value
        }
    )*};
}

export! { verbs;
    ibv_get_device_list = get_device_list(count: *mut c_int) -> *mut *mut ibv_device;
    ibv_free_device_list = free_device_list(list: *mut *mut ibv_device);
    ibv_get_device_name = get_device_name(device: *mut ibv_device) -> *const c_char;
    ibv_get_device_guid = get_device_guid(device: *mut ibv_device) -> u64;
    ibv_get_device_index = get_device_index(device: *mut ibv_device) -> c_int;
    ibv_open_device = open_device(device: *mut ibv_device) -> *mut ibv_context;
    ibv_close_device = close_device(context: *mut ibv_context) -> c_int;
    ibv_query_device = query_device(context: *mut ibv_context, attr: *mut ibv_device_attr) -> c_int;
    ibv_query_port = query_port_compat(context: *mut ibv_context, port: u8, attr: *mut ibv_port_attr) -> c_int;
    ibv_query_port_speed = query_port_speed(context: *mut ibv_context, port: u32, speed_100_mbps: *mut u64) -> c_int;
    ibv_query_gid = query_gid(context: *mut ibv_context, port: u8, index: c_int, gid: *mut ibv_gid) -> c_int;
    ibv_query_gid_type = query_gid_type(context: *mut ibv_context, port: u8, index: c_uint, gid_type: *mut c_uint) -> c_int;
    _ibv_query_gid_table = query_gid_table(context: *mut ibv_context, entries: *mut ibv_gid_entry, max_entries: usize, flags: u32, entry_bytes: usize) -> isize;
    _ibv_query_gid_ex = query_gid_ex_sized(context: *mut ibv_context, port: u32, gid_index: u32, entry: *mut ibv_gid_entry, flags: u32, entry_bytes: usize) -> c_int;
    ibv_query_pkey = query_pkey(context: *mut ibv_context, port: u8, index: c_int, pkey: *mut u16) -> c_int;
    ibv_get_pkey_index = get_pkey_index(context: *mut ibv_context, port: u8, pkey: u16) -> c_int;
    ibv_get_async_event = get_async_event(context: *mut ibv_context, event: *mut ibv_async_event) -> c_int;
    ibv_ack_async_event = ack_async_event(event: *mut ibv_async_event);
    ibv_alloc_pd = alloc_pd(context: *mut ibv_context) -> *mut ibv_pd;
    ibv_dealloc_pd = dealloc_pd(pd: *mut ibv_pd) -> c_int;
    ibv_reg_mr = reg_mr(pd: *mut ibv_pd, address: *mut c_void, length: usize, access: c_int) -> *mut ibv_mr;
    ibv_reg_mr_iova = reg_mr_iova(pd: *mut ibv_pd, address: *mut c_void, length: usize, iova: u64, access: c_int) -> *mut ibv_mr;
    ibv_reg_mr_iova2 = reg_mr_iova2(pd: *mut ibv_pd, address: *mut c_void, length: usize, iova: u64, access: c_uint) -> *mut ibv_mr;
    ibv_reg_dmabuf_mr = reg_dmabuf_mr(pd: *mut ibv_pd, offset: u64, length: usize, iova: u64, descriptor: c_int, access: c_int) -> *mut ibv_mr;
    ibv_dereg_mr = dereg_mr(mr: *mut ibv_mr) -> c_int;
    ibv_create_comp_channel = create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel;
    ibv_destroy_comp_channel = destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int;
    ibv_create_cq = create_cq(context: *mut ibv_context, entries: c_int, cq_context: *mut c_void, channel: *mut ibv_comp_channel, vector: c_int) -> *mut ibv_cq;
    ibv_resize_cq = resize_cq(cq: *mut ibv_cq, entries: c_int) -> c_int;
    ibv_destroy_cq = destroy_cq(cq: *mut ibv_cq) -> c_int;
    ibv_get_cq_event = get_cq_event(channel: *mut ibv_comp_channel, cq: *mut *mut ibv_cq, cq_context: *mut *mut c_void) -> c_int;
    ibv_ack_cq_events = ack_cq_events(cq: *mut ibv_cq, events: c_uint);
    ibv_create_srq = create_srq(pd: *mut ibv_pd, init: *mut ibv_srq_init_attr) -> *mut ibv_srq;
    ibv_modify_srq = modify_srq(srq: *mut ibv_srq, attr: *mut ibv_srq_attr, mask: c_int) -> c_int;
    ibv_query_srq = query_srq(srq: *mut ibv_srq, attr: *mut ibv_srq_attr) -> c_int;
    ibv_destroy_srq = destroy_srq(srq: *mut ibv_srq) -> c_int;
    ibv_create_qp = create_qp(pd: *mut ibv_pd, init: *mut ibv_qp_init_attr) -> *mut ibv_qp;
    ibv_qp_to_qp_ex = qp_to_qp_ex(qp: *mut ibv_qp) -> *mut ibv_qp_ex;
    ibv_query_qp = query_qp(qp: *mut ibv_qp, attr: *mut ibv_qp_attr, mask: c_int, init: *mut ibv_qp_init_attr) -> c_int;
    ibv_modify_qp = modify_qp(qp: *mut ibv_qp, attr: *mut ibv_qp_attr, mask: c_int) -> c_int;
    ibv_destroy_qp = destroy_qp(qp: *mut ibv_qp) -> c_int;
    ibv_create_ah = create_ah(pd: *mut ibv_pd, attr: *mut ibv_ah_attr) -> *mut ibv_ah;
    ibv_init_ah_from_wc = init_ah_from_wc(context: *mut ibv_context, port: u8, wc: *mut ibv_wc, grh: *mut ibv_grh, attr: *mut ibv_ah_attr) -> c_int;
    ibv_create_ah_from_wc = create_ah_from_wc(pd: *mut ibv_pd, wc: *mut ibv_wc, grh: *mut ibv_grh, port: u8) -> *mut ibv_ah;
    ibv_destroy_ah = destroy_ah(ah: *mut ibv_ah) -> c_int;
}

export! { rdmacm;
    rdma_create_event_channel = create_event_channel() -> *mut rdma_event_channel;
    rdma_destroy_event_channel = destroy_event_channel(channel: *mut rdma_event_channel);
    rdma_create_id = create_id(channel: *mut rdma_event_channel, id: *mut *mut rdma_cm_id, context: *mut c_void, port_space: rdma_port_space::Type) -> c_int;
    rdma_destroy_id = destroy_id(id: *mut rdma_cm_id) -> c_int;
    rdma_migrate_id = migrate_id(id: *mut rdma_cm_id, channel: *mut rdma_event_channel) -> c_int;
    rdma_bind_addr = bind_addr(id: *mut rdma_cm_id, address: *mut sockaddr) -> c_int;
    rdma_resolve_addr = resolve_addr(id: *mut rdma_cm_id, source: *mut sockaddr, target: *mut sockaddr, timeout_ms: c_int) -> c_int;
    rdma_resolve_route = resolve_route(id: *mut rdma_cm_id, timeout_ms: c_int) -> c_int;
    rdma_listen = listen(id: *mut rdma_cm_id, backlog: c_int) -> c_int;
    rdma_get_src_port = get_src_port(id: *mut rdma_cm_id) -> u16;
    rdma_get_dst_port = get_dst_port(id: *mut rdma_cm_id) -> u16;
    rdma_connect = connect(id: *mut rdma_cm_id, parameters: *mut rdma_conn_param) -> c_int;
    rdma_establish = establish(id: *mut rdma_cm_id) -> c_int;
    rdma_accept = accept(id: *mut rdma_cm_id, parameters: *mut rdma_conn_param) -> c_int;
    rdma_reject = reject(id: *mut rdma_cm_id, private_data: *const c_void, private_data_bytes: u8) -> c_int;
    rdma_reject_ece = reject(id: *mut rdma_cm_id, private_data: *const c_void, private_data_bytes: u8) -> c_int;
    rdma_notify = notify(id: *mut rdma_cm_id, event: c_int) -> c_int;
    rdma_disconnect = disconnect(id: *mut rdma_cm_id) -> c_int;
    rdma_get_cm_event = get_cm_event(channel: *mut rdma_event_channel, event: *mut *mut rdma_cm_event) -> c_int;
    rdma_ack_cm_event = ack_cm_event(event: *mut rdma_cm_event) -> c_int;
    rdma_create_qp = create_qp(id: *mut rdma_cm_id, pd: *mut ibv_pd, init: *mut ibv_qp_init_attr) -> c_int;
    rdma_create_qp_ex = create_qp_ex(id: *mut rdma_cm_id, init: *mut ibv_qp_init_attr_ex) -> c_int;
    rdma_destroy_qp = destroy_qp(id: *mut rdma_cm_id);
    rdma_create_srq = create_srq(id: *mut rdma_cm_id, pd: *mut ibv_pd, init: *mut ibv_srq_init_attr) -> c_int;
    rdma_destroy_srq = destroy_srq(id: *mut rdma_cm_id);
    rdma_init_qp_attr = init_qp_attr(id: *mut rdma_cm_id, attr: *mut ibv_qp_attr, mask: *mut c_int) -> c_int;
    rdma_create_ep = create_ep(id: *mut *mut rdma_cm_id, addresses: *mut rdma_addrinfo, pd: *mut ibv_pd, init: *mut ibv_qp_init_attr) -> c_int;
    rdma_destroy_ep = destroy_ep(id: *mut rdma_cm_id);
    rdma_get_request = get_request(listener: *mut rdma_cm_id, id: *mut *mut rdma_cm_id) -> c_int;
    rdma_getaddrinfo = getaddrinfo(node: *const c_char, service: *const c_char, hints: *const rdma_addrinfo, result: *mut *mut rdma_addrinfo) -> c_int;
    rdma_freeaddrinfo = freeaddrinfo(list: *mut rdma_addrinfo);
    rdma_set_option = set_option(id: *mut rdma_cm_id, level: c_int, name: c_int, value: *mut c_void, value_bytes: usize) -> c_int;
    rdma_get_devices = get_devices(count: *mut c_int) -> *mut *mut ibv_context;
    rdma_free_devices = free_devices(list: *mut *mut ibv_context);
}

refuse! {
    ibv_rereg_mr -> c_int = -1;
    ibv_reg_mr_ex -> *mut c_void = null_mut();
    ibv_alloc_dmah -> *mut c_void = null_mut();
    ibv_dealloc_dmah -> c_int = libc::EOPNOTSUPP;
    ibv_dm_export_dmabuf_fd -> c_int = -1;
    ibv_alloc_buf -> *mut c_void = null_mut();
    ibv_free_buf -> () = ();
    ibv_reg_buf_mr -> *mut c_void = null_mut();
    ibv_export_buf_dmabuf_fd -> c_int = -1;
    _ibv_query_comp_cntr_caps -> c_int = libc::EOPNOTSUPP;
    ibv_create_comp_cntr -> *mut c_void = null_mut();
    ibv_destroy_comp_cntr -> c_int = libc::EOPNOTSUPP;
    ibv_set_comp_cntr -> c_int = libc::EOPNOTSUPP;
    ibv_set_err_comp_cntr -> c_int = libc::EOPNOTSUPP;
    ibv_inc_comp_cntr -> c_int = libc::EOPNOTSUPP;
    ibv_inc_err_comp_cntr -> c_int = libc::EOPNOTSUPP;
    ibv_read_comp_cntr -> c_int = libc::EOPNOTSUPP;
    ibv_read_err_comp_cntr -> c_int = libc::EOPNOTSUPP;
    ibv_qp_attach_comp_cntr -> c_int = libc::EOPNOTSUPP;
    ibv_attach_mcast -> c_int = libc::EOPNOTSUPP;
    ibv_detach_mcast -> c_int = libc::EOPNOTSUPP;
    ibv_query_ece -> c_int = libc::EOPNOTSUPP;
    ibv_set_ece -> c_int = libc::EOPNOTSUPP;
    ibv_resolve_eth_l2_from_gid -> c_int = libc::EOPNOTSUPP;
    ibv_import_device -> *mut c_void = null_mut();
    ibv_import_pd -> *mut c_void = null_mut();
    ibv_import_mr -> *mut c_void = null_mut();
    ibv_import_dm -> *mut c_void = null_mut();
    ibv_unimport_pd -> () = ();
    ibv_unimport_mr -> () = ();
    ibv_unimport_dm -> () = ();
}

refuse! {
    rdma_create_srq_ex -> c_int = -1;
    rdma_join_multicast -> c_int = -1;
    rdma_join_multicast_ex -> c_int = -1;
    rdma_leave_multicast -> c_int = -1;
    rdma_set_local_ece -> c_int = -1;
    rdma_get_remote_ece -> c_int = -1;
    rdma_query_addrinfo -> c_int = -1;
    rdma_resolve_addrinfo -> c_int = -1;
    rdma_write_cm_event -> c_int = -1;
    // The entry point of rsockets: their other functions need what this returns.
    rsocket -> c_int = -1;
}

/// `ibv_query_qp_data_in_order(3)`: the device promises no order of the bytes of a message.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_query_qp_data_in_order(_: *mut ibv_qp, _: c_int, _: u32) -> c_int {
    0
}
