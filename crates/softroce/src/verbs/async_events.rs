//! Taking and acknowledging asynchronous events.

use std::os::raw::c_int;

use rdma_sys::{ibv_async_event, ibv_context, ibv_event_type};

use super::context::{Context, Source};
use super::cq::Cq;
use super::errno::{code, minus_one_or_zero};
use super::gid;
use super::object::Behind;
use super::qp::Qp;
use super::srq::Srq;

/// `ibv_get_async_event(3)`: blocks, or fails with EAGAIN if `async_fd` is non-blocking.
pub unsafe extern "C" fn get_async_event(
    context: *mut ibv_context,
    event: *mut ibv_async_event,
) -> c_int {
    // SAFETY: an open context and a writable struct.
    let (own, event) = unsafe { (Context::own(context), &mut *event) };
    minus_one_or_zero(own.and_then(|context| {
        let occurrence = context.events.next().map_err(|error| code(&error))?;
        event.event_type = occurrence.kind;
        match occurrence.source {
            Source::Cq(cq) => event.element.cq = cq,
            Source::Qp(qp) => event.element.qp = qp,
            Source::Srq(srq) => event.element.srq = srq,
            Source::Port => event.element.port_num = gid::PORT.into(),
        }
        Ok(())
    }))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::now_ns;
    use crate::verbs::{OpenOptions, close_device, open_with};

    /// At made-up instants: of an outage during which no thread had a core, nobody is told.
    #[test]
    fn a_port_that_goes_down_and_comes_up_tells() {
        let options =
            OpenOptions { faults: "down=1000s+1000s".parse().unwrap(), ..OpenOptions::default() };
        let context = open_with("soft0", options).unwrap().as_ptr();
        for (after_s, kind) in [
            (1500, ibv_event_type::IBV_EVENT_PORT_ERR),
            (2500, ibv_event_type::IBV_EVENT_PORT_ACTIVE),
        ] {
            // SAFETY: an open context, and an event of plain data.
            unsafe {
                let now_ns = now_ns() + after_s * 1_000_000_000;
                Context::own(context).unwrap().nic.tell_of_port(now_ns);
                let mut event: ibv_async_event = std::mem::zeroed();
                assert_eq!(get_async_event(context, &raw mut event), 0);
                assert_eq!((event.event_type, event.element.port_num), (kind, 1));
                ack_async_event(&raw mut event);
            }
        }
        // SAFETY: an open context, not used again.
        assert_eq!(unsafe { close_device(context) }, 0);
    }
}
