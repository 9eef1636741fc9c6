//! Verbs libraries without a device: what libibverbs exports, under its names without `ibv_`, over
//! two devices that live in this process.
//!
//! - `null0` ([`null`]) completes every WR at once and moves nothing: what a program takes on it is
//!   that program's own cost.
//! - `loop0` ([`loopback`]) moves bytes between QPs of this process, slowly and strictly: what a
//!   real device would refuse, it refuses.
//!
//! The crate must not know `rocebench`: whoever uses it builds a table of these functions, or
//! exports them under libibverbs' names. It depends on rdma-sys for the layout of the structs alone.
//!
//! What differs from libibverbs: destroying a CQ or QP does not wait until its events are
//! acknowledged, and there are no SRQs or address handles. Completion channels are `loop0`'s alone.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod channel;
mod context;
mod device;
mod events;
pub mod loopback;
pub mod null;
mod qp_attributes;
#[cfg(test)]
mod testbed;
mod verbs;

pub use channel::{ack_cq_events, destroy_comp_channel, get_cq_event};
pub use device::{free_device_list, get_device_list, get_device_name};
pub use verbs::{
    ack_async_event, alloc_pd, close_device, create_comp_channel, create_cq, create_qp, dealloc_pd,
    dereg_mr, destroy_cq, destroy_qp, get_async_event, modify_qp, open_device, query_device,
    query_gid_ex, query_port, query_qp, reg_mr,
};
