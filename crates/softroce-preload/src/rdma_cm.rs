//! The device under librdmacm's names. `rdma_event_str(3)` is left to the real library; rsockets and multicast are
//! refused.

use std::os::raw::{c_char, c_int, c_void};

use libc::sockaddr;
use rdma_sys::{
    ibv_context, ibv_pd, ibv_qp_attr, ibv_qp_init_attr, ibv_qp_init_attr_ex, ibv_srq_init_attr,
    rdma_addrinfo, rdma_cm_event, rdma_cm_id, rdma_conn_param, rdma_event_channel, rdma_port_space,
};
use softroce::{rdmacm, verbs};

use crate::exporting::{export, refuse};

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
