//! Event channels: a queue of events with a descriptor that programs poll.
//!
//! The queue is found by the channel's address, not in its memory: programs whose threads end one after the other (rping)
//! ask a channel for events that another thread has just destroyed, and get EBADF as of librdmacm.

use std::collections::BTreeMap;
use std::os::raw::c_int;
use std::sync::Arc;

use rdma_sys::rdma_event_channel;

use super::notice::Notice;
use super::service;
use crate::lock::Lock;
use crate::verbs::context::Queue;
use crate::verbs::errno::{code, pointer_or_errno};

/// Queues of all live channels, by the channels' addresses.
static QUEUES: Lock<BTreeMap<usize, Arc<Queue<Notice>>>> = Lock::new(BTreeMap::new());

/// The queue of a channel.
///
/// # Errors
/// EBADF: there is no such channel any more.
pub(super) fn queue(channel: *mut rdma_event_channel) -> Result<Arc<Queue<Notice>>, c_int> {
    QUEUES.lock().get(&channel.addr()).map(Arc::clone).ok_or(libc::EBADF)
}

pub(super) fn create() -> Result<*mut rdma_event_channel, c_int> {
    service::start()?;
    let queue = Arc::new(Queue::new().map_err(|error| code(&error))?);
    let channel = Box::into_raw(Box::new(rdma_event_channel { fd: queue.fd() }));
    QUEUES.lock().insert(channel.addr(), queue);
    Ok(channel)
}

pub unsafe extern "C" fn create_event_channel() -> *mut rdma_event_channel {
    pointer_or_errno(create())
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
