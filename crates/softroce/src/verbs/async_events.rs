//! Taking and acknowledging asynchronous events.

use std::io;
use std::os::raw::c_int;

use rdma_sys::{ibv_async_event, ibv_context, ibv_event_type};

use super::context::Context;
use super::cq::Cq;
use super::errno::{code, minus_one_or_zero};
use super::gid;
use super::occurrence::Source;
use super::qp::Qp;
use super::srq::Srq;

/// `ibv_get_async_event(3)`: blocks, or fails with EAGAIN if `async_fd` is non-blocking.
///
/// # Safety
/// As for libibverbs.
pub unsafe extern "C" fn get_async_event(
    context: *mut ibv_context,
    event: *mut ibv_async_event,
) -> c_int {
    // SAFETY: an open context.
    let next = unsafe { Context::own(context) }
        .map_err(io::Error::from_raw_os_error)
        .and_then(|context| context.events().next());
    let given = next.map(|occurrence| {
        // SAFETY: the caller passes a writable struct.
        let event = unsafe { &mut *event };
        event.event_type = occurrence.kind;
        match occurrence.source {
            Source::Cq(cq) => event.element.cq = cq,
            Source::Qp(qp) => event.element.qp = qp,
            Source::Srq(srq) => event.element.srq = srq,
            Source::Port => event.element.port_num = gid::PORT.into(),
        }
    });
    minus_one_or_zero(given.map_err(|error| code(&error)))
}

/// `ibv_ack_async_event(3)`.
///
/// # Safety
/// As for libibverbs: the event came from [`get_async_event`] and was not acknowledged before.
pub unsafe extern "C" fn ack_async_event(event: *mut ibv_async_event) {
    use ibv_event_type as Type;
    // SAFETY: an event that was taken; its object is not destroyed before this.
    unsafe {
        let event = &*event;
        match event.event_type {
            Type::IBV_EVENT_CQ_ERR => Cq::of(event.element.cq).async_acks.acknowledge(1),
            Type::IBV_EVENT_SRQ_ERR | Type::IBV_EVENT_SRQ_LIMIT_REACHED => {
                Srq::of(event.element.srq).acks.acknowledge(1);
            }
            Type::IBV_EVENT_QP_FATAL
            | Type::IBV_EVENT_QP_REQ_ERR
            | Type::IBV_EVENT_QP_ACCESS_ERR
            | Type::IBV_EVENT_COMM_EST
            | Type::IBV_EVENT_SQ_DRAINED
            | Type::IBV_EVENT_QP_LAST_WQE_REACHED => {
                Qp::of(event.element.qp).acks.acknowledge(1);
            }
            // Those of the port need none; this device raises no others.
            _ => {}
        }
    }
}
