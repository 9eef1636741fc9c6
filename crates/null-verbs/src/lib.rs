//! Verbs libraries without a device: the functions of libibverbs, under their names without `ibv_`, for two devices
//! in this process.
//!
//! - `null0` ([`null`]) completes every WR at once and moves no bytes, so a program's cost on it is its own.
//! - `loop0` ([`loopback`]) moves bytes between QPs of this process, slowly and strictly: it refuses what a real
//!   device would refuse.
//!
//! Besides, [`personas`] has tables of what real adapters report, each of which makes a library whose devices say that and move
//! bytes as `loop0` does.
//!
//! Its users build a table of these functions, or export them under libibverbs' names. They are `provider`'s, but for the
//! list of devices and their opening.
//!
//! Differences from libibverbs: an SRQ of `null0` takes receives and never uses them, only `loop0` has completion
//! channels, only `null0` has UC and UD QPs and address handles, and there are no extended verbs.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod answers;
pub mod loopback;
pub mod null;
pub mod personas;

pub use personas::{Persona, get_device_list, open_device};
pub use provider::{
    ack_async_event, ack_cq_events, alloc_pd, close_device, create_ah, create_comp_channel,
    create_cq, create_qp, create_srq, dealloc_pd, dereg_mr, destroy_ah, destroy_comp_channel,
    destroy_cq, destroy_qp, destroy_srq, free_device_list, get_async_event, get_cq_event,
    get_device_name, modify_qp, modify_qp_udp_sport, modify_srq, qp_to_qp_ex, query_device,
    query_gid, query_gid_ex, query_gid_ex_sized, query_pkey, query_port, query_port_compat,
    query_port_speed, query_qp, reg_dmabuf_mr, reg_mr, reg_mr_iova2,
};
