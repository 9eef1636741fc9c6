//! The device as a verbs library: the functions of libibverbs, under their names without `ibv_`. Posting, polling and
//! arming use the function pointers of `ibv_context.ops`; the extended interfaces use those of the surrounding
//! `verbs_context`.
//!
//! Each object is one allocation that begins with its verbs struct, so the program's pointers point to it. It must not
//! know packets; it translates between C structs and [`crate::transport`].
//!
//! # Safety
//! Here and in the functions within, as for libibverbs: pointers that it would not accept (null, freed, of another
//! library) must not be passed, and objects are live. Where a function wants more, it says so.
#![allow(unsafe_code)]
#![allow(clippy::missing_safety_doc)] // it stands above, once for all

mod address_handle;
mod async_events;
pub(crate) mod context;
mod cq;
pub(crate) mod device;
mod domain;
pub(crate) mod errno;
pub(crate) mod gid;
pub(crate) mod interfaces;
mod kernel_files;
pub(crate) mod limits;
mod listing;
pub(crate) mod object;
pub(crate) mod open;
pub(crate) mod port;
mod post;
mod qp;
mod qp_create;
mod qp_extended;
mod qp_modify;
mod rate_limit;
mod srq;
pub(crate) mod transitions;
mod wr_batch;

pub use address_handle::{create_ah, create_ah_from_wc, destroy_ah, init_ah_from_wc};
pub use async_events::{ack_async_event, get_async_event};
pub use cq::{
    ack_cq_events, create_comp_channel, create_cq, destroy_comp_channel, destroy_cq, get_cq_event,
    resize_cq,
};
pub use device::{
    AddressError, address_of_environment, free_device_list, get_device_guid, get_device_index,
    get_device_list, get_device_name,
};
pub use domain::{alloc_pd, dealloc_pd, dereg_mr, reg_mr, reg_mr_iova, reg_mr_iova2};
pub use errno::refuse;
pub use kernel_files::{KernelFile, kernel_file};
pub use limits::{query_device, query_device_ex};
pub use listing::{Listing, devices, named, nic, open_with};
pub use open::{OpenOptions, close_device, open_device};
pub use port::{
    get_pkey_index, query_gid, query_gid_ex, query_gid_table, query_gid_type, query_pkey,
    query_port, query_port_compat, query_port_speed,
};
pub use qp::{destroy_qp, modify_qp_udp_sport, qp_to_qp_ex, query_qp, udp_source_port};
pub(crate) use qp_create::plain_attributes;
pub use qp_create::{create_qp, create_qp_ex};
pub use qp_modify::modify_qp;
pub use srq::{create_srq, destroy_srq, modify_srq, query_srq};
