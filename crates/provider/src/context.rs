//! An open device: its context, and its asynchronous events.

use std::ffi::c_void;
use std::mem::offset_of;
use std::os::raw::c_int;
use std::ptr::without_provenance_mut;
use std::sync::Arc;

use rdma_sys::{ibv_async_event, ibv_context, ibv_device, ibv_event_type, verbs_context};

use crate::cq::Cq;
use crate::engine::{Description, Engine, Limits, Maker, Objects};
use crate::errno::{code, minus_one_or_zero, zero_or_error};
use crate::events::{AsyncEvent, Queue, Source};
use crate::object::{Behind, Users};
use crate::qp::Qp;
use crate::srq::Srq;

/// `__VERBS_ABI_IS_EXTENDED`, in `abi_compat`: programs may look for extended verbs around the `ibv_context`.
pub const EXTENDED_ABI: *mut c_void = without_provenance_mut(usize::MAX);

/// An open device; `verbs.context` is the struct that programs hold.
#[repr(C)]
struct Open {
    verbs: verbs_context,
    inner: Context,
}

/// The data after the verbs struct.
pub struct Context {
    /// Protection domains, CQs and completion channels.
    pub users: Users,
    pub(crate) made: Made,
    pub(crate) limits: Limits,
    pub(crate) events: Arc<Queue<AsyncEvent>>,
    pub(crate) maker: Box<dyn Maker>,
}

/// Objects of an open device whose number has a limit. QPs and MRs are counted by the engine.
#[derive(Default)]
pub(crate) struct Made {
    pub(crate) pds: Users,
    pub(crate) cqs: Users,
    pub(crate) srqs: Users,
    pub(crate) ahs: Users,
}

/// Opens `device`, whose work `engine` does; the context lives until [`close_device`]. The engine may raise events of its
/// own in the queue.
pub fn open(
    device: *mut ibv_device,
    engine: impl Objects,
    events: Arc<Queue<AsyncEvent>>,
) -> *mut ibv_context {
    let limits = engine.description().limits();
    // SAFETY: pointers, integers, optional function pointers and a pthread mutex, for all of which zero is a value
    // (that of PTHREAD_MUTEX_INITIALIZER).
    let mut verbs: verbs_context = unsafe { std::mem::zeroed() };
    verbs.sz = size_of::<verbs_context>();
    verbs.context.device = device;
    verbs.context.cmd_fd = -1;
    verbs.context.async_fd = events.fd();
    verbs.context.num_comp_vectors = limits.completion_vectors;
    engine.fill(&mut verbs);
    let (users, made) = Default::default();
    let inner = Context { users, made, limits, events, maker: Box::new(engine) };
    let open = Box::into_raw(Box::new(Open { verbs, inner }));
    // SAFETY: just made; the pointer is good for the whole of it.
    unsafe { &raw mut (*open).verbs.context }
}

impl Context {
    /// The context behind a verbs pointer.
    pub unsafe fn from_raw<'a>(context: *mut ibv_context) -> &'a Context {
        // SAFETY: the verbs struct lies there in an `Open`. The reference covers nothing that programs write.
        unsafe { &(*Context::around(context)).inner }
    }

    /// As [`Context::from_raw`].
    ///
    /// # Errors
    /// EIO in a child of the process that opened the device.
    pub unsafe fn own<'a>(context: *mut ibv_context) -> Result<&'a Context, c_int> {
        // SAFETY: the caller's.
        let inner = unsafe { Context::from_raw(context) };
        inner.engine().usable().map(|()| inner)
    }

    pub(crate) fn engine(&self) -> &dyn Engine {
        &*self.maker
    }

    pub(crate) fn description(&self) -> &dyn Description {
        self.maker.description()
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    unsafe fn around(context: *mut ibv_context) -> *mut Open {
        let offset = offset_of!(Open, verbs) + offset_of!(verbs_context, context);
        // SAFETY: the caller vouches that it lies in an `Open`.
        unsafe { context.byte_sub(offset).cast() }
    }
}

/// `ibv_close_device(3)`.
///
/// # Safety
/// As for libibverbs: everything made in the context was destroyed before.
pub unsafe extern "C" fn close_device(context: *mut ibv_context) -> c_int {
    // SAFETY: made by `open` from such a box; the caller gives it up.
    zero_or_error(unsafe {
        Context::own(context).map(|_| drop(Box::from_raw(Context::around(context))))
    })
}

/// `ibv_get_async_event(3)`: blocks, or fails with EAGAIN if `async_fd` is non-blocking.
pub unsafe extern "C" fn get_async_event(
    context: *mut ibv_context,
    event: *mut ibv_async_event,
) -> c_int {
    // SAFETY: an open context and a writable struct.
    let (own, event) = unsafe { (Context::own(context), &mut *event) };
    minus_one_or_zero(own.and_then(|opened| {
        let occurrence = opened.events.next().map_err(|error| code(&error))?;
        event.event_type = occurrence.kind;
        match occurrence.source {
            Source::Cq(cq) => event.element.cq = cq,
            Source::Qp(qp) => event.element.qp = qp,
            Source::Srq(srq) => event.element.srq = srq,
            Source::Port(number) => event.element.port_num = number,
        }
        Ok(())
    }))
}

/// `ibv_ack_async_event(3)`.
///
/// # Safety
/// As for libibverbs: the event came from [`get_async_event`] and was not acknowledged before.
pub unsafe extern "C" fn ack_async_event(taken: *mut ibv_async_event) {
    use ibv_event_type as Type;
    // SAFETY: an event that was taken; its object is not destroyed before this.
    unsafe {
        let event = &*taken;
        match event.event_type {
            Type::IBV_EVENT_CQ_ERR => Cq::<()>::from_raw(event.element.cq).events.acknowledge(),
            Type::IBV_EVENT_SRQ_ERR | Type::IBV_EVENT_SRQ_LIMIT_REACHED => {
                Srq::<()>::from_raw(event.element.srq).events.acknowledge();
            }
            Type::IBV_EVENT_QP_FATAL
            | Type::IBV_EVENT_QP_REQ_ERR
            | Type::IBV_EVENT_QP_ACCESS_ERR
            | Type::IBV_EVENT_COMM_EST
            | Type::IBV_EVENT_SQ_DRAINED
            | Type::IBV_EVENT_QP_LAST_WQE_REACHED => {
                Qp::<()>::from_raw(event.element.qp).events.acknowledge();
            }
            // Those of the port need none; no engine raises others.
            _ => {}
        }
    }
}
