//! Shared receive queues of `loop0`.

use std::collections::VecDeque;
use std::os::raw::c_int;

use rdma_sys::{
    ibv_event_type, ibv_pd, ibv_recv_wr, ibv_srq, ibv_srq_attr, ibv_srq_attr_mask,
    ibv_srq_init_attr,
};

use super::datapath::post_each;
use super::fabric::{Fabric, RecvWr, Srq, fabric};
use super::memory::segments;
use crate::context::Context;
use crate::events::Source;
use crate::objects::{free, new_srq};

/// # Safety
/// `pd` is live.
pub(crate) unsafe fn create_srq(pd: *mut ibv_pd, init: &ibv_srq_init_attr) -> *mut ibv_srq {
    // SAFETY: the caller's.
    let verbs = unsafe { new_srq(pd, init) };
    let srq = Srq {
        pd: pd as usize,
        max_wr: init.attr.max_wr,
        max_sge: init.attr.max_sge.max(1),
        limit: 0,
        receives: VecDeque::new(),
        outstanding: 0,
    };
    fabric().srqs.insert(verbs, srq);
    verbs
}

/// Arms the limit; EINVAL above the capacity, and for another capacity.
pub(crate) fn modify_srq(srq: *mut ibv_srq, attr: &ibv_srq_attr, mask: u32) -> c_int {
    let mut fabric = fabric();
    let Some(state) = fabric.srqs.get_mut(&srq) else {
        return libc::EINVAL;
    };
    if mask != ibv_srq_attr_mask::IBV_SRQ_LIMIT.0 || attr.srq_limit > state.max_wr {
        return libc::EINVAL;
    }
    state.limit = attr.srq_limit;
    0
}

/// EBUSY while a QP uses it.
///
/// # Safety
/// `srq` is live; if the outcome is 0, it is not used again.
pub(crate) unsafe fn destroy_srq(srq: *mut ibv_srq) -> c_int {
    let mut fabric = fabric();
    if fabric.qps.values().any(|qp| qp.srq == srq) {
        return libc::EBUSY;
    }
    if fabric.srqs.remove(&srq).is_none() {
        return libc::EINVAL;
    }
    // SAFETY: it was in the table, so `create_srq` made it.
    unsafe { free(srq) }
}

/// `ibv_post_srq_recv(3)`. EINVAL for too many SGEs; ENOMEM when the queue is full.
///
/// # Safety
/// As for libibverbs.
pub(super) unsafe extern "C" fn post_srq_recv(
    srq: *mut ibv_srq,
    wr: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: the caller passes a live SRQ of this device and a list of WRs, as ibv_post_srq_recv(3) asks.
    unsafe { post_each(wr, bad, |wr| wr.next, |fabric, wr| post_one(fabric, srq, wr)) }
}

/// # Safety
/// As for [`post_srq_recv`].
unsafe fn post_one(fabric: &mut Fabric, srq: *mut ibv_srq, wr: &ibv_recv_wr) -> Result<(), c_int> {
    let srq = fabric.srqs.get_mut(&srq).ok_or(libc::EINVAL)?;
    if !(0..=srq.max_sge as c_int).contains(&wr.num_sge) {
        return Err(libc::EINVAL);
    }
    if srq.outstanding >= srq.max_wr {
        return Err(libc::ENOMEM);
    }
    srq.outstanding += 1;
    srq.receives.push_back(RecvWr {
        wr_id: wr.wr_id,
        // SAFETY: the caller vouches for the WR.
        segments: unsafe { segments(wr.sg_list, wr.num_sge) },
    });
    Ok(())
}

impl Fabric {
    /// Takes the oldest receive of an SRQ, and raises its event if that leaves fewer than the limit.
    pub(super) fn take_shared_receive(&mut self, srq: *mut ibv_srq) -> Option<RecvWr> {
        let state = self.srqs.get_mut(&srq)?;
        let receive = state.receives.pop_front()?;
        if state.receives.len() < state.limit as usize {
            state.limit = 0;
            // SAFETY: an SRQ of the table is live, and so is its context.
            let context = unsafe { Context::from_raw((*srq).context) };
            let kind = ibv_event_type::IBV_EVENT_SRQ_LIMIT_REACHED;
            context.raise(kind, Source::Srq(srq));
        }
        Some(receive)
    }
}
