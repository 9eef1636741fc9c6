//! Event channels: a queue of events with a descriptor that programs poll.

use std::sync::Arc;

use rdma_sys::rdma_event_channel;

use super::notice::Notice;
use super::service;
use crate::verbs::errno::{code, pointer_or_errno};
use crate::verbs::events::Queue;

/// A channel; the struct that programs hold comes first, so a pointer to one is a pointer to the other.
#[repr(C)]
struct Object {
    verbs: rdma_event_channel,
    queue: Arc<Queue<Notice>>,
}

/// The queue of a channel.
///
/// # Safety
/// `channel` is live.
pub(super) unsafe fn queue(channel: *mut rdma_event_channel) -> Arc<Queue<Notice>> {
    // SAFETY: made by `create`; the queue is never replaced.
    Arc::clone(unsafe { &(*channel.cast::<Object>()).queue })
}

fn create() -> Result<*mut rdma_event_channel, i32> {
    service::start()?;
    let queue = Arc::new(Queue::new().map_err(|error| code(&error))?);
    let verbs = rdma_event_channel { fd: queue.fd() };
    Ok(Box::into_raw(Box::new(Object { verbs, queue })).cast())
}

/// `rdma_create_event_channel(3)`.
///
/// # Safety
/// None; as the function of librdmacm it is called from C.
pub unsafe extern "C" fn create_event_channel() -> *mut rdma_event_channel {
    pointer_or_errno(create())
}

/// `rdma_destroy_event_channel(3)`.
///
/// # Safety
/// As for librdmacm: all its ids were destroyed.
pub unsafe extern "C" fn destroy_event_channel(channel: *mut rdma_event_channel) {
    // SAFETY: made by `create` from such a box.
    drop(unsafe { Box::from_raw(channel.cast::<Object>()) });
}
