//! Address handles: the destinations of datagrams.

use std::os::raw::c_int;

use rdma_sys::{ibv_ah, ibv_ah_attr, ibv_pd};

use crate::context::Context;
use crate::domain::Pd;
use crate::engine::Objects;
use crate::errno::pointer_or_errno;
use crate::object::{Behind, Use};

/// The data of a handle.
#[repr(C)]
pub(crate) struct Ah<E = ()> {
    _uses: [Use; 2],
    free: unsafe fn(*mut ibv_ah),
    pub(crate) engine: E,
}

impl<E> Behind<ibv_ah> for Ah<E> {}

/// # Safety
/// As of [`create_ah`]; the engine is that of the context.
pub(crate) unsafe fn make<E: Objects>(
    engine: &E,
    pd: *mut ibv_pd,
    attr: &ibv_ah_attr,
) -> Result<*mut ibv_ah, c_int> {
    // SAFETY: a live domain of an open context.
    let (domain, context, open) =
        unsafe { (Pd::from_raw(pd), (*pd).context, Context::from_raw((*pd).context)) };
    let counted = open.made.ahs.begin_within(open.limits.attributes.max_ah)?;
    let ah = Ah {
        engine: engine.create_ah(attr)?,
        free: Ah::<E::Ah>::free,
        _uses: [domain.users.begin(), counted],
    };
    Ok(ah.lend(ibv_ah { context, pd, handle: 0 }))
}

/// `ibv_create_ah(3)`. ENOMEM beyond the device's number of handles; the other errors are the engine's.
pub unsafe extern "C" fn create_ah(pd: *mut ibv_pd, attr: *mut ibv_ah_attr) -> *mut ibv_ah {
    // SAFETY: a live domain of an open context, and a readable struct.
    pointer_or_errno(unsafe { Context::from_raw((*pd).context).maker.make_ah(pd, &*attr) })
}

pub unsafe extern "C" fn destroy_ah(ah: *mut ibv_ah) -> c_int {
    // SAFETY: a live handle.
    unsafe {
        let free = Ah::<()>::from_raw(ah).free;
        free(ah);
    }
    0
}
