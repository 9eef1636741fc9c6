//! Events that the program has taken and not acknowledged.

use std::os::raw::c_int;
use std::sync::Arc;

use rdma_sys::{rdma_cm_event, rdma_cm_event_type as kind, rdma_cm_id};

use super::notice::Notice;
use crate::verbs::context::Acks;
use crate::verbs::errno::minus_one_or_zero;
use crate::verbs::object::Behind;

/// The data of an event that the program has.
struct Taken {
    _private_data: Box<[u8]>,
    acks: Arc<Acks>,
}

impl Behind<rdma_cm_event> for Taken {}

/// The event as the program gets it.
pub(super) fn give(notice: Notice, event: kind::Type, status: c_int) -> *mut rdma_cm_event {
    // SAFETY: pointers and integers, for which zero is a value.
    let mut verbs: rdma_cm_event = unsafe { std::mem::zeroed() };
    verbs.id = notice.id;
    verbs.listen_id = notice.listener;
    verbs.event = event;
    verbs.status = status;
    verbs.param = notice.parameters.param;
    let taken = Taken { _private_data: notice.parameters.private_data, acks: notice.acks };
    taken.lend(verbs)
}

pub unsafe extern "C" fn ack_cm_event(event: *mut rdma_cm_event) -> c_int {
    if event.is_null() {
        return minus_one_or_zero(Err(libc::EINVAL));
    }
    // SAFETY: a live event.
    unsafe { Taken::take_back(event) }.inner.acks.acknowledge(1);
    0
}

/// Acknowledges the event that the last call on an id has waited for, if there is one.
pub(super) unsafe fn ack_own(id: *mut rdma_cm_id) {
    // SAFETY: the caller's; the event was taken by a call on the id, and is the id's until now.
    unsafe {
        if !(*id).event.is_null() {
            ack_cm_event((*id).event);
            (*id).event = std::ptr::null_mut();
        }
    }
}
