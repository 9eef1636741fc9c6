//! Ids and event channels from creation to destruction, and taking and acknowledging events.
//!
//! A channel is a queue of events with a descriptor that programs poll. The queue is found by the channel's address, not in its memory: programs whose threads end one after the other (rping)
//! ask a channel for events that another thread has just destroyed, and get EBADF as of librdmacm.

use std::collections::BTreeMap;
use std::os::raw::{c_int, c_void};
use std::sync::Arc;

use provider::{Acks, Behind, Lock, Queue, code, minus_one_or_zero, pointer_or_errno};
use rdma_sys::{
    rdma_cm_event, rdma_cm_event_type as kind, rdma_cm_id, rdma_event_channel, rdma_port_space,
};

use super::id::{Id, PortSpace};
use super::terms::Notice;
use super::{qp, state};
use crate::cm::{CmError, Connection, Output};
use crate::verbs::refuse;

/// The channel, or a new one for null, and its queue.
fn channel_or_own(
    channel: *mut rdma_event_channel,
) -> Result<(*mut rdma_event_channel, Arc<Queue<Notice>>), c_int> {
    let channel = if channel.is_null() { open_channel()? } else { channel };
    Ok((channel, queue(channel)?))
}

/// Makes an id; without a channel it gets one of its own, and calls on it wait for their event.
unsafe fn create(
    channel: *mut rdma_event_channel,
    context: *mut c_void,
    port_space: rdma_port_space::Type,
) -> Result<*mut rdma_cm_id, c_int> {
    let Some(space) = PortSpace::from_code(port_space) else {
        refuse("a port space of rdma_cm other than RDMA_PS_TCP and RDMA_PS_UDP");
        return Err(libc::EOPNOTSUPP);
    };
    let sync = channel.is_null();
    let (channel, queue) = channel_or_own(channel)?;
    let (_, id) = state::with(|state, _| state.create(channel, queue, space));
    // SAFETY: just made, and nobody else has it.
    unsafe {
        (*id).context = context;
        Id::from_raw(id).own(|own| own.sync = sync);
    }
    Ok(id)
}

/// `rdma_create_id(3)`. EOPNOTSUPP for another port space than those of connections and of datagrams by IP address.
pub unsafe extern "C" fn create_id(
    channel: *mut rdma_event_channel,
    id: *mut *mut rdma_cm_id,
    context: *mut c_void,
    port_space: rdma_port_space::Type,
) -> c_int {
    // SAFETY: a channel or null, and a place for the pointer.
    minus_one_or_zero(unsafe { create(channel, context, port_space).map(|made| id.write(made)) })
}

/// `rdma_destroy_id(3)`: a connection that it has ends, and one that is asked for is refused. Waits until the program
/// has acknowledged the id's events.
pub unsafe extern "C" fn destroy_id(id: *mut rdma_cm_id) -> c_int {
    // SAFETY: a live id.
    let inner = unsafe { Id::from_raw(id) };
    state::with(|state, now| {
        state.remove(now, inner.key);
        state.devices.close_unused();
    });
    // SAFETY: a live id.
    unsafe { ack_own(id) };
    inner.acks.wait();
    // SAFETY: nobody but the caller knows the id any more; its own channel has no other ids.
    unsafe {
        if inner.is_sync() {
            destroy_event_channel((*id).channel);
        }
        drop(Id::take_back(id));
    }
    0
}

/// `rdma_migrate_id(3)`: events that wait move along. A null channel gives the id one of its own.
pub unsafe extern "C" fn migrate_id(
    id: *mut rdma_cm_id,
    channel: *mut rdma_event_channel,
) -> c_int {
    // SAFETY: a live id, and a channel or null.
    minus_one_or_zero(unsafe { migrate(id, channel) })
}

pub(super) unsafe fn migrate(
    id: *mut rdma_cm_id,
    channel: *mut rdma_event_channel,
) -> Result<(), c_int> {
    // SAFETY: a live id.
    let inner = unsafe { Id::from_raw(id) };
    let (was_sync, sync) = (inner.is_sync(), channel.is_null());
    if was_sync && sync {
        return Err(libc::EINVAL);
    }
    let (channel, queue) = channel_or_own(channel)?;
    // SAFETY: as above.
    let old = unsafe {
        if was_sync {
            ack_own(id);
        }
        (*id).channel
    };
    state::with(|state, _| {
        let entry = state.entry(inner.key)?;
        for (notice, acks) in entry.queue.take_out(|notice: &Notice| {
            notice.id == id && notice.listener.is_null() || notice.listener == id
        }) {
            queue.raise(notice, acks);
        }
        entry.queue = Arc::clone(&queue);
        // SAFETY: a live id; a listener's channel is read under the state's lock.
        unsafe { (*id).channel = channel };
        Ok::<(), c_int>(())
    })?;
    inner.own(|own| own.sync = sync);
    if was_sync {
        // SAFETY: the id's own channel, which it has left.
        unsafe { destroy_event_channel(old) };
    }
    Ok(())
}

/// Queues of all live channels, by the channels' addresses.
static QUEUES: Lock<BTreeMap<usize, Arc<Queue<Notice>>>> = Lock::new(BTreeMap::new());

/// The queue of a channel.
///
/// # Errors
/// EBADF: there is no such channel any more.
pub(super) fn queue(channel: *mut rdma_event_channel) -> Result<Arc<Queue<Notice>>, c_int> {
    QUEUES.lock().get(&channel.addr()).map(Arc::clone).ok_or(libc::EBADF)
}

pub(super) fn open_channel() -> Result<*mut rdma_event_channel, c_int> {
    state::start()?;
    let queue = Arc::new(Queue::new().map_err(|error| code(&error))?);
    let channel = Box::into_raw(Box::new(rdma_event_channel { fd: queue.fd() }));
    QUEUES.lock().insert(channel.addr(), queue);
    Ok(channel)
}

pub unsafe extern "C" fn create_event_channel() -> *mut rdma_event_channel {
    pointer_or_errno(open_channel())
}

/// `rdma_destroy_event_channel(3)`.
///
/// # Safety
/// As for librdmacm: all its ids were destroyed.
pub unsafe extern "C" fn destroy_event_channel(channel: *mut rdma_event_channel) {
    let queue = QUEUES.lock().remove(&channel.addr());
    if queue.is_some() {
        // SAFETY: a live channel is such a box of `create`.
        drop(unsafe { Box::from_raw(channel) });
    }
}

/// The error number of a call that does not fit the connection.
pub(super) fn errno(error: CmError) -> c_int {
    match error {
        CmError::Ended => libc::ENOTCONN,
        CmError::State => libc::EINVAL,
        CmError::AddressInUse => libc::EADDRINUSE,
    }
}

/// Does something with an id's connection. ENOTCONN if it has ended, EINVAL if there was none, or in another state.
pub(super) unsafe fn of_connection(
    id: *mut rdma_cm_id,
    step: impl FnOnce(&mut Connection, u64, &mut Output) -> bool,
) -> Result<(), c_int> {
    // SAFETY: a live id.
    let key = unsafe { Id::from_raw(id) }.key;
    state::with(|state, now| {
        let entry = state.entry(key)?;
        let (Some(address), Some(comm)) = (entry.device, entry.comm) else {
            return Err(libc::EINVAL);
        };
        let done = state.run(address, |manager, out| {
            manager.with(comm, |connection| step(connection, now, out))
        });
        done.ok_or(libc::ENODEV)?.map_err(errno)
    })
}

/// Does with a QP that is the id's own what the event asks for; returns the kind and status that the program gets.
unsafe fn follow(notice: &Notice) -> (kind::Type, c_int) {
    let (id, unchanged) = (notice.id, (notice.kind, notice.status));
    // SAFETY: the caller's; the QP is the id's.
    unsafe {
        if (*id).qp.is_null() {
            return unchanged;
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
                unchanged
            }
            _ => unchanged,
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
        if Id::from_raw(listener).is_sync() { migrate(id, std::ptr::null_mut()) } else { Ok(()) }
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
    minus_one_or_zero(unsafe { take(channel).map(|next| event.write(next)) })
}

/// Of an id with a channel of its own: waits for the event of a call, which stays in `id.event`, and returns its
/// failure. Other ids' programs get their events themselves.
pub(super) unsafe fn complete(id: *mut rdma_cm_id) -> Result<(), c_int> {
    // SAFETY: the caller's; the event was taken by a former call.
    unsafe {
        if !Id::from_raw(id).is_sync() {
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

/// The data of an event that the program has.
struct EventData {
    _private_data: Box<[u8]>,
    acks: Arc<Acks>,
}

impl Behind<rdma_cm_event> for EventData {}

/// The event as the program gets it.
pub(super) fn give(notice: Notice, event: kind::Type, status: c_int) -> *mut rdma_cm_event {
    // SAFETY: pointers and integers, for which zero is a value.
    let mut verbs: rdma_cm_event = unsafe { std::mem::zeroed() };
    verbs.id = notice.id;
    verbs.listen_id = notice.listener;
    verbs.event = event;
    verbs.status = status;
    verbs.param = notice.parameters.param;
    let data = EventData { _private_data: notice.parameters.private_data, acks: notice.acks };
    data.lend(verbs)
}

pub unsafe extern "C" fn ack_cm_event(event: *mut rdma_cm_event) -> c_int {
    if event.is_null() {
        return minus_one_or_zero(Err(libc::EINVAL));
    }
    // SAFETY: a live event.
    unsafe { EventData::take_back(event) }.inner.acks.acknowledge(1);
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
