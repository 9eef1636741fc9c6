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
pub use provider::verbs::*;
pub(crate) use qp::plain_attributes;
pub use qp::{create_qp_ex, udp_source_port};
pub use query::{KernelFile, kernel_file, query_device_ex};
