//! The device as a verbs library: the functions of libibverbs, under their names without `ibv_`. Posting, polling and
//! arming use the function pointers of `ibv_context.ops`; the extended interfaces use those of the surrounding
//! `verbs_context`.
//!
//! Each object is one allocation that begins with its verbs struct, so the program's pointers point to it. It
//! translates between C structs and [`crate::transport`].
//!
//! # Safety
//! Here and in the functions within, as for libibverbs: pointers that it would not accept (null, freed, of another
//! library) must not be passed, and objects are live. Where a function wants more, it says so.
#![allow(unsafe_code)]
#![allow(clippy::missing_safety_doc)] // it stands above, once for all

pub(crate) mod context;
mod cq;
pub(crate) mod device;
mod dmabuf;
mod domain;
pub(crate) mod errno;
pub(crate) mod gid;
pub(crate) mod object;
pub(crate) mod open;
mod post;
pub(crate) mod qp;
mod qp_create;
pub(crate) mod query;

pub use cq::{
    ack_cq_events, create_comp_channel, create_cq, destroy_comp_channel, destroy_cq, get_cq_event,
    resize_cq,
};
pub use device::{
    AddressError, address_of_environment, free_device_list, get_device_guid, get_device_index,
    get_device_list, get_device_name,
};
pub use dmabuf::reg_dmabuf_mr;
pub use domain::{alloc_pd, dealloc_pd, dereg_mr, reg_mr, reg_mr_iova, reg_mr_iova2};
pub use errno::refuse;
pub use gid::{create_ah, create_ah_from_wc, destroy_ah, init_ah_from_wc};
pub use open::{
    Listing, OpenOptions, ack_async_event, close_device, devices, get_async_event, named, nic,
    open_device, open_with,
};
pub use post::{create_srq, destroy_srq, modify_srq, query_srq};
pub use qp::{destroy_qp, modify_qp, modify_qp_udp_sport, qp_to_qp_ex, query_qp, udp_source_port};
pub(crate) use qp_create::plain_attributes;
pub use qp_create::{create_qp, create_qp_ex};
pub use query::{
    KernelFile, get_pkey_index, kernel_file, query_device, query_device_ex, query_gid,
    query_gid_ex, query_gid_table, query_gid_type, query_pkey, query_port, query_port_compat,
    query_port_speed,
};
