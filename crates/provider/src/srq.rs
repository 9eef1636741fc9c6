//! Shared receive queues.

use std::os::raw::c_int;

use rdma_sys::{ibv_pd, ibv_srq, ibv_srq_attr, ibv_srq_attr_mask, ibv_srq_init_attr};

use crate::context::Context;
use crate::domain::Pd;
use crate::engine::{Objects, SrqEngine, SrqRequest};
use crate::errno::{pointer_or_errno, zero_or_error};
use crate::events::{ObjectEvents, Source};
use crate::object::{Behind, Use, Users};

/// The data of an SRQ.
#[repr(C)]
pub(crate) struct Srq<E = ()> {
    /// The engine's part, and the end of the object, by functions that know the former's type.
    engine_of: unsafe fn(*mut ibv_srq) -> &'static dyn SrqEngine,
    free: unsafe fn(*mut ibv_srq),
    pub(crate) users: Users,
    pub(crate) events: ObjectEvents,
    max_wr: u32,
    max_sge: u32,
    _uses: [Use; 2],
    pub(crate) engine: E,
}

impl<E> Behind<ibv_srq> for Srq<E> {}

/// # Safety
/// As of [`create_srq`]; the engine is that of the context.
pub(crate) unsafe fn make<E: Objects>(
    engine: &E,
    pd: *mut ibv_pd,
    init: &ibv_srq_init_attr,
) -> Result<*mut ibv_srq, c_int> {
    // SAFETY: a live domain.
    let (domain, context) = unsafe { (Pd::from_raw(pd), (*pd).context) };
    // SAFETY: as above, of an open context.
    let open = unsafe { Context::own(context) }?;
    let counted = open.made.srqs.begin_within(open.limits.attributes.max_srq)?;
    // Its events contain its address.
    let srq = Srq::<E::Srq>::reserve();
    let events = ObjectEvents::new(&open.events, Source::Srq(srq));
    let (max_wr, max_sge) = (init.attr.max_wr, init.attr.max_sge);
    let request = SrqRequest { srq, pd: domain.id, max_wr, max_sge, events: events.clone() };
    let made = engine.create_srq(request).inspect_err(|_| {
        // SAFETY: reserved above, and nothing was made there.
        unsafe { Srq::<E::Srq>::give_up(srq) };
    })?;
    // SAFETY: pointers, integers and pthread objects, for all of which zero is a value.
    let mut verbs: ibv_srq = unsafe { std::mem::zeroed() };
    verbs.context = context;
    verbs.srq_context = init.srq_context;
    verbs.pd = pd;
    let inner = Srq {
        // SAFETY: as the caller's: an object of this engine.
        engine_of: |object| unsafe { E::srq(object) },
        free: Srq::<E::Srq>::free,
        users: Users::default(),
        events,
        max_wr,
        max_sge,
        _uses: [domain.users.begin(), counted],
        engine: made,
    };
    // SAFETY: reserved above for just this.
    unsafe { inner.lend_at(srq, verbs) };
    Ok(srq)
}

/// `ibv_create_srq(3)`. EINVAL beyond the limits of one, ENOMEM beyond the device's number of them.
pub unsafe extern "C" fn create_srq(pd: *mut ibv_pd, init: *mut ibv_srq_init_attr) -> *mut ibv_srq {
    // SAFETY: a live domain of an open context, and a struct that can be read and written.
    let (context, init) = unsafe { (Context::from_raw((*pd).context), &mut *init) };
    let (limits, attr) = (&context.limits.attributes, &mut init.attr);
    if !(1..=limits.max_srq_wr.cast_unsigned()).contains(&attr.max_wr)
        || attr.max_sge > limits.max_srq_sge.cast_unsigned()
    {
        return pointer_or_errno(Err(libc::EINVAL));
    }
    attr.max_sge = attr.max_sge.max(1);
    // SAFETY: as above.
    pointer_or_errno(unsafe { context.maker.make_srq(pd, init) })
}

/// An SRQ of a context that this process may use.
unsafe fn own<'a>(srq: *mut ibv_srq) -> Result<&'a Srq, c_int> {
    // SAFETY: a live SRQ of an open context.
    unsafe { Context::own((*srq).context).map(|_| Srq::from_raw(srq)) }
}

/// `ibv_modify_srq(3)`: arms the limit. EINVAL for a limit above the capacity; EOPNOTSUPP for another capacity.
pub unsafe extern "C" fn modify_srq(
    srq: *mut ibv_srq,
    attr: *mut ibv_srq_attr,
    mask: c_int,
) -> c_int {
    const LIMIT: u32 = ibv_srq_attr_mask::IBV_SRQ_LIMIT.0;
    const MAX_WR: u32 = ibv_srq_attr_mask::IBV_SRQ_MAX_WR.0;
    // SAFETY: a live SRQ, and a readable struct.
    let (inner, limit) = unsafe { (own(srq), (*attr).srq_limit) };
    zero_or_error(inner.and_then(|inner| match mask.cast_unsigned() {
        0 => Ok(()),
        LIMIT if limit <= inner.max_wr => {
            // SAFETY: as above.
            unsafe { (inner.engine_of)(srq) }.set_limit(limit);
            Ok(())
        }
        mask if mask & MAX_WR != 0 => Err(libc::EOPNOTSUPP),
        _ => Err(libc::EINVAL),
    }))
}

pub unsafe extern "C" fn query_srq(srq: *mut ibv_srq, attr: *mut ibv_srq_attr) -> c_int {
    // SAFETY: a live SRQ, and a writable struct.
    zero_or_error(unsafe {
        own(srq).map(|inner| {
            attr.write(ibv_srq_attr {
                max_wr: inner.max_wr,
                max_sge: inner.max_sge,
                srq_limit: (inner.engine_of)(srq).limit(),
            });
        })
    })
}

/// `ibv_destroy_srq(3)`: waits until the program has acknowledged all events that it took. EBUSY while a QP uses it.
pub unsafe extern "C" fn destroy_srq(srq: *mut ibv_srq) -> c_int {
    // SAFETY: a live SRQ, to which nobody refers once its events have ended.
    zero_or_error(unsafe {
        own(srq).and_then(|_| {
            let inner = Srq::<()>::from_raw(srq);
            inner.users.none()?;
            (inner.engine_of)(srq).close();
            inner.events.end();
            (inner.free)(srq);
            Ok(())
        })
    })
}
