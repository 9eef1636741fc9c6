//! Creating and destroying ids, and moving them to other channels.

use std::os::raw::{c_int, c_void};
use std::sync::Arc;

use rdma_sys::{rdma_cm_id, rdma_event_channel, rdma_port_space};

use super::channel::destroy_event_channel;
use super::id::Id;
use super::notice::Notice;
use super::port_space::PortSpace;
use super::taken::ack_own;
use super::{channel, service};
use crate::verbs::context::Queue;
use crate::verbs::errno::minus_one_or_zero;
use crate::verbs::object::Behind;
use crate::verbs::refuse;

/// The channel, or a new one for null, and its queue.
fn channel_or_own(
    channel: *mut rdma_event_channel,
) -> Result<(*mut rdma_event_channel, Arc<Queue<Notice>>), c_int> {
    let channel = if channel.is_null() { channel::create()? } else { channel };
    Ok((channel, channel::queue(channel)?))
}

/// Makes an id; without a channel it gets one of its own, and calls on it wait for their event.
unsafe fn create(
    channel: *mut rdma_event_channel,
    context: *mut c_void,
    port_space: rdma_port_space::Type,
) -> Result<*mut rdma_cm_id, c_int> {
    let Some(space) = PortSpace::of(port_space) else {
        refuse("a port space of rdma_cm other than RDMA_PS_TCP and RDMA_PS_UDP");
        return Err(libc::EOPNOTSUPP);
    };
    let sync = channel.is_null();
    let (channel, queue) = channel_or_own(channel)?;
    let (_, id) = service::with(|state, _| state.create(channel, queue, space));
    // SAFETY: just made, and nobody else has it.
    unsafe {
        (*id).context = context;
        Id::of(id).own(|own| own.sync = sync);
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
    let inner = unsafe { Id::of(id) };
    service::with(|state, now| {
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
    let inner = unsafe { Id::of(id) };
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
    service::with(|state, _| {
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
