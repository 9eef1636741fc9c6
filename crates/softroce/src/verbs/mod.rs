//! The device as a verbs library: the functions of libibverbs, under their names without `ibv_`. Posting, polling and
//! arming use the function pointers of `ibv_context.ops`; the extended interfaces use those of the surrounding
//! `verbs_context`.
//!
//! The functions and their objects are `provider`'s; this is their engine. It translates between C structs and
//! [`crate::transport`].
//!
//! # Safety
//! Here and in the functions within, as for libibverbs: pointers that it would not accept (null, freed, of another
//! library) must not be passed, and objects are live. Where a function wants more, it says so.
#![allow(unsafe_code)]
#![allow(clippy::missing_safety_doc)] // it stands above, once for all

mod cq;
pub(crate) mod device;
mod dmabuf;
mod domain;
mod errno;
pub(crate) mod gid;
mod latch;
pub(crate) mod open;
mod post;
mod qp;
pub(crate) mod query;

pub use device::{
    AddressError, address_of_environment, get_device_guid, get_device_index, get_device_list,
};
pub use errno::refuse;
pub use gid::{create_ah_from_wc, init_ah_from_wc};
pub use open::{Listing, OpenOptions, devices, named, nic, open_device, open_with};
pub use provider::{
    ack_async_event, ack_cq_events, alloc_pd, close_device, create_ah, create_comp_channel,
    create_cq, create_qp, create_srq, dealloc_pd, dereg_mr, destroy_ah, destroy_comp_channel,
    destroy_cq, destroy_qp, destroy_srq, free_device_list, get_async_event, get_cq_event,
    get_device_name, get_pkey_index, modify_qp, modify_qp_udp_sport, modify_srq, qp_to_qp_ex,
    query_device, query_gid, query_gid_ex, query_gid_ex_sized, query_gid_table, query_gid_type,
    query_pkey, query_port, query_port_compat, query_port_speed, query_qp, query_srq,
    reg_dmabuf_mr, reg_mr, reg_mr_iova, reg_mr_iova2, resize_cq,
};
pub(crate) use qp::plain_attributes;
pub use qp::{create_qp_ex, udp_source_port};
pub use query::{KernelFile, kernel_file, query_device_ex};
