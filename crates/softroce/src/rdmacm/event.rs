//! Taking events, and waiting for them.

use std::os::raw::c_int;

use rdma_sys::{rdma_cm_event, rdma_cm_event_type as kind, rdma_cm_id, rdma_event_channel};

use super::channel::queue;
use super::connections::of_connection;
use super::id::Id;
use super::lifetime::{destroy_id, migrate};
use super::notice::Notice;
use super::qp;
use super::taken::{ack_own, give};
use crate::verbs::errno::{code, minus_one_or_zero};
use crate::verbs::object::Behind;

/// Does with a QP that is the id's own what the event asks for; returns what the program is told.
unsafe fn follow(notice: &Notice) -> (kind::Type, c_int) {
    let (id, told) = (notice.id, (notice.kind, notice.status));
    // SAFETY: the caller's; the QP is the id's.
    unsafe {
        if (*id).qp.is_null() {
            return told;
        }
        match notice.kind {
            kind::RDMA_CM_EVENT_CONNECT_RESPONSE => {
                match qp::to_rts(id)
                    .and_then(|()| of_connection(id, |it, _, out| it.establish(out)))
                {
                    Ok(()) => (kind::RDMA_CM_EVENT_ESTABLISHED, 0),
                    Err(error) => {
                        qp::fail(id);
                        (kind::RDMA_CM_EVENT_CONNECT_ERROR, -error)
                    }
                }
            }
            kind::RDMA_CM_EVENT_REJECTED => {
                qp::fail(id);
                told
            }
            _ => told,
        }
    }
}

/// Gives the new id of a request what its listener has, and a channel of its own if the listener has one.
///
/// # Safety
/// `notice` is a request's, or has no listener; both ids are live.
unsafe fn hand_over(notice: &Notice) -> Result<(), c_int> {
    let (id, listener) = (notice.id, notice.listener);
    if listener.is_null() {
        return Ok(());
    }
    // SAFETY: the caller's.
    unsafe {
        (*id).context = (*listener).context;
        if Id::of(listener).is_sync() { migrate(id, std::ptr::null_mut()) } else { Ok(()) }
    }
}

/// # Safety
/// Ids whose events are in the channel are live.
unsafe fn take(channel: *mut rdma_event_channel) -> Result<*mut rdma_cm_event, c_int> {
    let queue = queue(channel)?;
    let notice = queue.next().map_err(|error| code(&error))?;
    // SAFETY: an id with an event that is taken and not acknowledged is alive; of a request it is the listener that
    // is, and nobody but this thread knows the new one.
    let (event, status) = unsafe {
        if let Err(error) = hand_over(&notice) {
            // The program does not get the id, so that nobody else would destroy it.
            destroy_id(notice.id);
            notice.acks.acknowledge(1);
            return Err(error);
        }
        follow(&notice)
    };
    Ok(give(notice, event, status))
}

/// `rdma_get_cm_event(3)`: blocks, or fails with EAGAIN if the channel's descriptor is non-blocking.
pub unsafe extern "C" fn get_cm_event(
    channel: *mut rdma_event_channel,
    event: *mut *mut rdma_cm_event,
) -> c_int {
    if event.is_null() {
        return minus_one_or_zero(Err(libc::EINVAL));
    }
    // SAFETY: the program destroys no id whose event nobody took; there is a place for the pointer.
    minus_one_or_zero(unsafe { take(channel).map(|taken| event.write(taken)) })
}

/// Of an id with a channel of its own: waits for the event of a call, which stays in `id.event`, and returns its
/// failure. Other ids' programs get their events themselves.
pub(super) unsafe fn complete(id: *mut rdma_cm_id) -> Result<(), c_int> {
    // SAFETY: the caller's; the event was taken by a former call.
    unsafe {
        if !Id::of(id).is_sync() {
            return Ok(());
        }
        ack_own(id);
        let event = take((*id).channel)?;
        (*id).event = event;
        match ((*event).status, (*event).event) {
            (0, _) => Ok(()),
            (_, kind::RDMA_CM_EVENT_REJECTED) => Err(libc::ECONNREFUSED),
            (status, _) => Err(status.abs()),
        }
    }
}
