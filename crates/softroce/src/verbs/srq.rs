//! Shared receive queues.

use std::os::raw::c_int;
use std::sync::Arc;

use rdma_sys::{
    ibv_event_type, ibv_pd, ibv_recv_wr, ibv_srq, ibv_srq_attr, ibv_srq_attr_mask,
    ibv_srq_init_attr,
};

use super::context::{Acks, Context, Source};
use super::domain::Pd;
use super::errno::{pointer_or_errno, zero_or_error};
use super::limits::{MAX_SGE, MAX_SRQ_WR};
use super::object::{Behind, Use, Users};
use super::post::post_receives;
use crate::transport::{PostError, RecvQueue};

/// The data of an SRQ.
pub(super) struct Srq {
    pub(super) queue: Arc<RecvQueue>,
    pub(super) users: Users,
    pub(super) acks: Arc<Acks>,
    max_wr: u32,
    max_sge: u32,
    _domain: Use,
}

impl Behind<ibv_srq> for Srq {}

unsafe fn create(pd: *mut ibv_pd, init: &mut ibv_srq_init_attr) -> Result<*mut ibv_srq, c_int> {
    let attr = &mut init.attr;
    if !(1..=MAX_SRQ_WR).contains(&attr.max_wr) || attr.max_sge > MAX_SGE {
        return Err(libc::EINVAL);
    }
    attr.max_sge = attr.max_sge.max(1);
    // SAFETY: a live domain of an open context.
    let (domain, context) = unsafe { (Pd::of(pd), (*pd).context) };
    // SAFETY: as above.
    let device = unsafe { Context::own(context) }?;
    // Its events contain its address.
    let object = Srq::reserve();
    let acks = Arc::new(Acks::default());
    let raise = device.events_of(Source::Srq(object), &acks);
    let on_limit = Box::new(move || raise(ibv_event_type::IBV_EVENT_SRQ_LIMIT_REACHED));
    let queue = RecvQueue::new(attr.max_wr as usize, attr.max_sge as usize, Some(on_limit));
    // SAFETY: pointers, integers and pthread objects, for all of which zero is a value.
    let mut verbs: ibv_srq = unsafe { std::mem::zeroed() };
    verbs.context = context;
    verbs.srq_context = init.srq_context;
    verbs.pd = pd;
    let inner = Srq {
        queue: Arc::new(queue),
        users: Users::default(),
        acks,
        max_wr: attr.max_wr,
        max_sge: attr.max_sge,
        _domain: domain.users.begin(),
    };
    // SAFETY: reserved above for just this.
    unsafe { inner.lend_at(object, verbs) };
    Ok(object)
}

/// `ibv_create_srq(3)`. EINVAL beyond the limits.
pub unsafe extern "C" fn create_srq(pd: *mut ibv_pd, init: *mut ibv_srq_init_attr) -> *mut ibv_srq {
    // SAFETY: a live domain, and a struct that can be read and written.
    pointer_or_errno(unsafe { create(pd, &mut *init) })
}

/// `ibv_modify_srq(3)`: arms the limit. EINVAL for a limit above the capacity; EOPNOTSUPP for another capacity.
pub unsafe extern "C" fn modify_srq(
    srq: *mut ibv_srq,
    attr: *mut ibv_srq_attr,
    mask: c_int,
) -> c_int {
    const LIMIT: u32 = ibv_srq_attr_mask::IBV_SRQ_LIMIT.0;
    const MAX_WR: u32 = ibv_srq_attr_mask::IBV_SRQ_MAX_WR.0;
    // SAFETY: a live SRQ of an open context, and a readable struct.
    let (own, inner, limit) =
        unsafe { (Context::own((*srq).context), Srq::of(srq), (*attr).srq_limit) };
    zero_or_error(own.and_then(|_| match mask.cast_unsigned() {
        0 => Ok(()),
        LIMIT if limit <= inner.max_wr => {
            inner.queue.set_limit(limit as usize);
            Ok(())
        }
        mask if mask & MAX_WR != 0 => Err(libc::EOPNOTSUPP),
        _ => Err(libc::EINVAL),
    }))
}

pub unsafe extern "C" fn query_srq(srq: *mut ibv_srq, attr: *mut ibv_srq_attr) -> c_int {
    // SAFETY: a live SRQ of an open context, and a writable struct.
    zero_or_error(unsafe {
        Context::own((*srq).context).map(|_| {
            let inner = Srq::of(srq);
            attr.write(ibv_srq_attr {
                max_wr: inner.max_wr,
                max_sge: inner.max_sge,
                srq_limit: u32::try_from(inner.queue.limit()).unwrap_or(u32::MAX),
            });
        })
    })
}

/// `ibv_destroy_srq(3)`: waits until the program has acknowledged all events that it took. EBUSY while a QP uses it.
pub unsafe extern "C" fn destroy_srq(srq: *mut ibv_srq) -> c_int {
    // SAFETY: a live SRQ of an open context, to which nobody refers once its events have ended.
    zero_or_error(unsafe {
        Context::own((*srq).context).and_then(|context| {
            let inner = Srq::of(srq);
            inner.users.none()?;
            context.end_events_of(Source::Srq(srq), &inner.acks);
            drop(Srq::take_back(srq));
            Ok(())
        })
    })
}

pub(super) unsafe extern "C" fn post_srq_recv(
    srq: *mut ibv_srq,
    wr: *mut ibv_recv_wr,
    bad_wr: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: a live SRQ of an open context, and a list of requests.
    unsafe {
        let (own, queue) = (Context::own((*srq).context), &Srq::of(srq).queue);
        post_receives(wr, bad_wr, |wr_id, sges| {
            own.map_err(|_| PostError::Process)?;
            queue.post(wr_id, sges)
        })
    }
}
