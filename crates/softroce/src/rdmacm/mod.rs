//! The functions of librdmacm over the connection manager in [`crate::cm`] and the devices in [`crate::verbs`], under
//! their names without `rdma_`.
//!
//! One lock guards all ids and managers of the process (`state`), and one thread takes what arrives at their QPs 1 and
//! keeps the timers. An id is one allocation that begins with its `rdma_cm_id`.
//!
//! # Safety
//! Here and in the functions within, as for librdmacm: pointers that it would not accept must not be passed, and ids and
//! their QPs are live. Where a function wants more, it says so.
#![allow(unsafe_code)]
#![allow(clippy::missing_safety_doc)] // it stands above, once for all

mod address;
mod connect;
mod devices;
mod endpoint;
mod event;
mod id;
mod qp;
mod state;
mod terms;

pub use address::{
    bind_addr, free_devices, get_devices, get_dst_port, get_src_port, listen, resolve_addr,
    resolve_route, set_option,
};
pub use connect::{accept, connect, disconnect, establish, notify, reject};
pub use endpoint::{create_ep, destroy_ep, freeaddrinfo, get_request, getaddrinfo};
pub use event::{
    ack_cm_event, create_event_channel, create_id, destroy_event_channel, destroy_id, get_cm_event,
    migrate_id,
};
pub use qp::{create_qp, create_qp_ex, create_srq, destroy_qp, destroy_srq, init_qp_attr};
