//! The surface of a verbs library for devices of this project: the functions of libibverbs under their names without
//! `ibv_`, the objects behind the pointers that programs hold, their events, and the transitions of QPs. What differs
//! from device to device is an [`Engine`] and its kinds of objects ([`Objects`]).
//!
//! Control functions find the engine through the context of their object, by one dynamic call. Posting, polling and
//! arming are the engine's own functions in `ibv_context.ops`, which find its part of a QP, an SRQ or a CQ inline behind
//! the verbs struct ([`Objects::qp`] and so on).
//!
//! # Safety
//! Here and in the functions within, as for libibverbs: pointers that it would not accept (null, freed, of another
//! library) must not be passed, and objects are live. Where a function wants more, it says so.
#![allow(clippy::missing_safety_doc)] // it stands above, once for all
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod ah;
mod context;
mod cq;
mod device;
mod domain;
mod engine;
mod errno;
mod events;
mod lock;
mod mw;
mod object;
mod qp;
mod query;
mod srq;
mod work;

pub use context::{Context, EXTENDED_ABI, open};
pub use cq::new_cq;
pub use device::{Listed, null_terminated, write_name};
pub use domain::Pd;
pub use engine::{
    CqEngine, CqRequest, Description, Engine, Limits, Objects, Port, QpEngine, QpRequest, Region,
    SrqEngine, SrqRequest,
};
pub use errno::{code, last_errno, minus_one_or_zero, pointer_or_errno, set_errno, zero_or_error};
pub use events::{Acks, AsyncEvent, CqNotifier, ObjectEvents, Queue, Source};
pub use lock::Lock;
pub use mw::Binding;
pub use object::{Behind, Object, Use, Users};
pub use qp::{Change, new_qp, required};
pub use query::{DEFAULT_PKEY, fill_as_known, mtu_bytes, mtu_code};
pub use work::{Operation, Payload, SendRequest, Sge, array, post_list, post_receives};

/// The functions that programs call, but for the list of devices and their opening, which are each library's own.
pub mod verbs {
    pub use crate::ah::{create_ah, destroy_ah};
    pub use crate::context::{ack_async_event, close_device, get_async_event};
    pub use crate::cq::{
        ack_cq_events, create_comp_channel, create_cq, destroy_comp_channel, destroy_cq,
        get_cq_event, resize_cq,
    };
    pub use crate::device::{free_device_list, get_device_name};
    pub use crate::domain::{
        alloc_pd, dealloc_pd, dereg_mr, reg_dmabuf_mr, reg_mr, reg_mr_iova, reg_mr_iova2,
    };
    pub use crate::mw::{alloc_mw, dealloc_mw};
    pub use crate::qp::{
        create_qp, destroy_qp, modify_qp, modify_qp_udp_sport, qp_to_qp_ex, query_qp,
    };
    pub use crate::query::{
        get_pkey_index, query_device, query_gid, query_gid_ex, query_gid_ex_sized, query_gid_table,
        query_gid_type, query_pkey, query_port, query_port_bytes, query_port_compat,
        query_port_speed,
    };
    pub use crate::srq::{create_srq, destroy_srq, modify_srq, query_srq};
}
