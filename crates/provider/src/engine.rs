//! What an engine, which does the work of a device, fills in: what the device says of itself ([`Description`]), what it does
//! ([`Engine`]), and its kinds of objects with how they are made ([`Objects`], [`CqEngine`], [`SrqEngine`], [`QpEngine`]).
//!
//! Errors are the errno of the function of libibverbs that asks.

use std::os::fd::RawFd;
use std::os::raw::c_int;

use rdma_sys::{
    ibv_ah, ibv_ah_attr, ibv_context, ibv_cq, ibv_cq_init_attr_ex, ibv_device_attr, ibv_gid_entry,
    ibv_mtu, ibv_mw_type, ibv_pd, ibv_port_attr, ibv_qp, ibv_qp_attr, ibv_qp_cap, ibv_qp_init_attr,
    ibv_qp_type, ibv_srq, ibv_srq_init_attr, verbs_context,
};

use crate::context::Context;
use crate::cq::Cq;
use crate::events::{CqNotifier, ObjectEvents};
use crate::object::Behind;
use crate::qp::{Change, Qp};
use crate::srq::Srq;
use crate::{ah, cq, qp, srq};

/// What a device has; functions that make objects refuse more.
pub struct Limits {
    pub attributes: ibv_device_attr,
    /// The most inline bytes of a send.
    pub inline_bytes: u32,
    /// The largest path MTU of a QP.
    pub path_mtu: ibv_mtu::Type,
    pub completion_vectors: c_int,
}

/// A port, as `ibv_query_port(3)` and `ibv_query_port_speed(3)` tell of it.
pub struct Port {
    pub attributes: ibv_port_attr,
    /// `None` where the driver has no such function.
    pub speed_100mbit_per_s: Option<u64>,
}

/// Memory that a program registers, with values that were checked.
#[derive(Clone, Copy)]
pub struct Region {
    pub pd: u32,
    pub address: u64,
    /// More than 0; neither its end nor that from `iova` wraps.
    pub length_bytes: u64,
    /// The address that peers use.
    pub iova: u64,
    /// As the program gave them, `ibv_access_flags` and optional ones.
    pub access: u32,
}

/// What a device says of itself.
pub trait Description {
    /// The most of everything; asked once, when the device is opened.
    fn limits(&self) -> Limits;

    fn port(&self, number: u32) -> Option<Port>;

    /// An entry of the table of a port; `None` for an empty one.
    fn gid(&self, port: u32, index: u32) -> Option<ibv_gid_entry>;

    /// Whether QPs of this `ibv_qp_type` can be made.
    fn has_service(&self, qp_type: ibv_qp_type::Type) -> Result<(), c_int>;

    /// Whether QPs' UDP source ports can be set (`mlx5dv_modify_qp_udp_sport(3)`).
    fn has_udp_source_ports(&self) -> Result<(), c_int> {
        Err(libc::EOPNOTSUPP)
    }
}

/// What an open device does, apart from its objects.
pub trait Engine: Send + Sync + 'static {
    fn description(&self) -> &dyn Description;

    /// Whether this process may use it.
    ///
    /// # Errors
    /// EIO in a child of the process that opened it.
    fn usable(&self) -> Result<(), c_int> {
        Ok(())
    }

    /// Whether programs can sleep until a completion comes.
    fn has_channels(&self) -> bool {
        true
    }

    /// Registers memory, and returns its lkey and rkey.
    ///
    /// # Safety
    /// The memory stays until [`Engine::deregister`].
    unsafe fn register(&self, region: Region) -> Result<[u32; 2], c_int>;

    /// Registers memory behind a descriptor, from `offset` on; the address of the region is 0. The second of what it returns
    /// goes with the region.
    fn register_descriptor(
        &self,
        _descriptor: RawFd,
        _offset: u64,
        _region: Region,
    ) -> Result<([u32; 2], Box<dyn Send>), c_int> {
        Err(libc::EOPNOTSUPP)
    }

    /// Ends a region.
    ///
    /// # Errors
    /// EBUSY while a memory window is bound to it.
    fn deregister(&self, lkey: u32) -> Result<(), c_int>;

    /// Makes a memory window that is not bound, and returns its key.
    ///
    /// # Errors
    /// EOPNOTSUPP where there are none.
    fn allocate_window(&self, _pd: u32, _mw_type: ibv_mw_type::Type) -> Result<u32, c_int> {
        Err(libc::EOPNOTSUPP)
    }

    /// Ends a window that was made with this key.
    fn free_window(&self, _rkey: u32) {}
}

/// A CQ that is to be made.
pub struct CqRequest {
    /// Its address, once it is made.
    pub cq: *mut ibv_cq,
    /// The least number of completions.
    pub capacity: u32,
    /// The fields that an extended one is asked for (`ibv_create_cq_wc_flags`).
    pub wc_flags: u64,
    pub events: ObjectEvents,
    /// `None` without a channel.
    pub notifier: Option<CqNotifier>,
}

/// The engine's part of a CQ.
pub trait CqEngine: Send + Sync + 'static {
    /// The number of completions for which it has room.
    fn capacity(&self) -> u32;

    /// Gives it room for this many.
    ///
    /// # Errors
    /// EOPNOTSUPP where the engine cannot; EINVAL if more completions wait.
    fn resize(&self, _capacity: u32) -> Result<(), c_int> {
        Err(libc::EOPNOTSUPP)
    }

    /// A program is about to wait at the channel of a CQ that it may not have emptied.
    fn remind(&self) {}

    /// It is about to go: no event comes any more.
    fn close(&self) {}
}

/// An SRQ that is to be made.
pub struct SrqRequest {
    /// Its address, once it is made.
    pub srq: *mut ibv_srq,
    pub pd: u32,
    pub max_wr: u32,
    /// At least 1.
    pub max_sge: u32,
    pub events: ObjectEvents,
}

/// The engine's part of an SRQ.
pub trait SrqEngine: Send + Sync + 'static {
    /// Arms the limit, which is at most the capacity.
    fn set_limit(&self, limit: u32);

    /// The limit; 0 after its event.
    fn limit(&self) -> u32;

    /// It is about to go: no event comes any more.
    fn close(&self) {}
}

/// A QP that is to be made.
pub struct QpRequest<'a, E: Objects> {
    /// Its address, once it is made.
    pub qp: *mut ibv_qp,
    pub pd: u32,
    pub init: &'a ibv_qp_init_attr,
    /// What the QP will have; the engine may raise it.
    pub cap: &'a mut ibv_qp_cap,
    pub send_cq: &'a E::Cq,
    pub recv_cq: &'a E::Cq,
    pub srq: Option<&'a E::Srq>,
    /// Whether the program posts with `ibv_wr_post(3)`.
    pub is_extended: bool,
    pub events: ObjectEvents,
}

/// The engine's part of a QP.
pub trait QpEngine: Send + Sync + 'static {
    fn number(&self) -> u32;

    /// Its state, which `ibv_modify_qp(3)` set to this.
    fn state(&self, set: u32) -> u32 {
        set
    }

    /// Does what a change means whose transition and values were checked.
    /// After an error nothing has changed.
    fn modify(&self, change: &Change<'_>) -> Result<(), c_int>;

    /// Adds what the engine alone knows to the attributes of `ibv_query_qp(3)`.
    fn complete_query(&self, _attr: &mut ibv_qp_attr) {}

    /// Whether `ibv_wr_post(3)` works.
    fn is_extended(&self) -> bool {
        false
    }

    /// It is about to go: no event and no completion comes any more.
    fn close(&self) {}
}

/// The kinds of objects of an engine. The engine's part of a CQ, an SRQ or a QP lies in the memory of the object, so that
/// its functions of the data path get it without a call.
pub trait Objects: Engine + Sized {
    type Cq: CqEngine;
    type Srq: SrqEngine;
    type Qp: QpEngine;
    /// Where datagrams of an address handle go.
    type Ah: Send + Sync + 'static;

    /// Fills the functions of the data path; and with [`crate::EXTENDED_ABI`] those of extended verbs, where the engine has some.
    fn fill(&self, verbs: &mut verbs_context);

    fn create_cq(&self, request: CqRequest) -> Result<Self::Cq, c_int>;
    fn create_srq(&self, request: SrqRequest) -> Result<Self::Srq, c_int>;
    fn create_qp(&self, request: QpRequest<'_, Self>) -> Result<Self::Qp, c_int>;
    fn create_ah(&self, attr: &ibv_ah_attr) -> Result<Self::Ah, c_int>;

    /// The engine behind a context.
    ///
    /// # Safety
    /// `context` is an open one of this engine.
    unsafe fn from_context<'a>(context: *mut ibv_context) -> &'a Self {
        // SAFETY: the caller's: the box has this type.
        unsafe { &*(&raw const *Context::from_raw(context).maker).cast::<Self>() }
    }

    /// The engine's part of a CQ.
    ///
    /// # Safety
    /// `cq` is a live one of this engine.
    #[inline(always)]
    unsafe fn cq<'a>(cq: *mut ibv_cq) -> &'a Self::Cq {
        // SAFETY: the caller's.
        &unsafe { Cq::<Self::Cq>::from_raw(cq) }.engine
    }

    /// The engine's part of an SRQ.
    ///
    /// # Safety
    /// `srq` is a live one of this engine.
    #[inline(always)]
    unsafe fn srq<'a>(srq: *mut ibv_srq) -> &'a Self::Srq {
        // SAFETY: the caller's.
        &unsafe { Srq::<Self::Srq>::from_raw(srq) }.engine
    }

    /// The engine's part of a QP.
    ///
    /// # Safety
    /// `qp` is a live one of this engine.
    #[inline(always)]
    unsafe fn qp<'a>(qp: *mut ibv_qp) -> &'a Self::Qp {
        // SAFETY: the caller's.
        &unsafe { Qp::<Self::Qp>::from_raw(qp) }.engine
    }

    /// Where datagrams of an address handle go.
    ///
    /// # Safety
    /// `handle` is a live one of this engine.
    #[inline(always)]
    unsafe fn ah<'a>(handle: *mut ibv_ah) -> &'a Self::Ah {
        // SAFETY: the caller's.
        &unsafe { ah::Ah::<Self::Ah>::from_raw(handle) }.engine
    }
}

/// [`Objects`] for functions that do not know their types.
///
/// # Safety
/// Of each function: it is the engine of the objects and the context, and what the attributes name is live.
pub(crate) trait Maker: Engine {
    unsafe fn make_cq(
        &self,
        context: *mut ibv_context,
        init: &ibv_cq_init_attr_ex,
    ) -> Result<*mut ibv_cq, c_int>;

    unsafe fn make_srq(
        &self,
        pd: *mut ibv_pd,
        init: &ibv_srq_init_attr,
    ) -> Result<*mut ibv_srq, c_int>;

    unsafe fn make_qp(
        &self,
        pd: *mut ibv_pd,
        init: &mut ibv_qp_init_attr,
        is_extended: bool,
    ) -> Result<*mut ibv_qp, c_int>;

    unsafe fn make_ah(&self, pd: *mut ibv_pd, attr: &ibv_ah_attr) -> Result<*mut ibv_ah, c_int>;
}

impl<E: Objects> Maker for E {
    unsafe fn make_cq(
        &self,
        context: *mut ibv_context,
        init: &ibv_cq_init_attr_ex,
    ) -> Result<*mut ibv_cq, c_int> {
        // SAFETY: the caller's.
        unsafe { cq::make(self, context, init) }
    }

    unsafe fn make_srq(
        &self,
        pd: *mut ibv_pd,
        init: &ibv_srq_init_attr,
    ) -> Result<*mut ibv_srq, c_int> {
        // SAFETY: the caller's.
        unsafe { srq::make(self, pd, init) }
    }

    unsafe fn make_qp(
        &self,
        pd: *mut ibv_pd,
        init: &mut ibv_qp_init_attr,
        is_extended: bool,
    ) -> Result<*mut ibv_qp, c_int> {
        // SAFETY: the caller's.
        unsafe { qp::make(self, pd, init, is_extended) }
    }

    unsafe fn make_ah(&self, pd: *mut ibv_pd, attr: &ibv_ah_attr) -> Result<*mut ibv_ah, c_int> {
        // SAFETY: the caller's.
        unsafe { ah::make(self, pd, attr) }
    }
}
