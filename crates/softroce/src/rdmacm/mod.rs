//! The functions of librdmacm over the connection manager in [`crate::cm`] and the devices in [`crate::verbs`], under
//! their names without `rdma_`. It must not know the bytes of messages.
//!
//! One lock guards all ids and managers of the process (`state`), and one thread takes what arrives at their QPs 1 and
//! keeps the timers (`service`). An id is one allocation that begins with its `rdma_cm_id`.
//!
//! # Safety
//! Here and in the functions within, as for librdmacm: pointers that it would not accept must not be passed, and ids and
//! their QPs are live. Where a function wants more, it says so.
#![allow(unsafe_code)]
#![allow(clippy::missing_safety_doc)] // it stands above, once for all

mod address;
mod addrinfo;
mod channel;
mod connect;
mod connections;
mod devices;
mod endpoint;
mod event;
mod happenings;
mod id;
mod inbox;
mod lifetime;
mod notice;
mod options;
mod port_space;
mod qp;
mod service;
mod sockaddr;
mod state;
mod taken;
mod terms;

pub use address::{bind_addr, get_dst_port, get_src_port, listen, resolve_addr, resolve_route};
pub use addrinfo::{freeaddrinfo, getaddrinfo};
pub use channel::{create_event_channel, destroy_event_channel};
pub use connect::{accept, connect, disconnect, establish, notify, reject};
pub use endpoint::{create_ep, destroy_ep, get_request};
pub use event::get_cm_event;
pub use lifetime::{create_id, destroy_id, migrate_id};
pub use options::{free_devices, get_devices, set_option};
pub use qp::{create_qp, create_qp_ex, create_srq, destroy_qp, destroy_srq, init_qp_attr};
pub use taken::ack_cm_event;
