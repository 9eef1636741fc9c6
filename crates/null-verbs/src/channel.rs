//! Completion channels: CQ events for programs that sleep. Only `loop0` has them.
#![expect(clippy::missing_safety_doc, reason = "as of `verbs`")]

use std::io;
use std::os::raw::{c_int, c_uint, c_void};

use rdma_sys::{ibv_comp_channel, ibv_context, ibv_cq};

use crate::events::EventQueue;
use crate::objects::{free, keep};

#[derive(Clone, Copy, PartialEq, Eq)]
struct Notice(*mut ibv_cq);

// SAFETY: the queue never dereferences the pointer.
unsafe impl Send for Notice {}

/// A channel; the verbs struct comes first, so a pointer to one is a pointer to the other.
#[repr(C)]
pub(crate) struct Channel {
    verbs: ibv_comp_channel,
    notices: EventQueue<Notice>,
}

impl Channel {
    pub(crate) fn create(context: *mut ibv_context) -> io::Result<*mut ibv_comp_channel> {
        let notices = EventQueue::new()?;
        let verbs = ibv_comp_channel { context, fd: notices.fd(), refcnt: 0 };
        Ok(keep(Channel { verbs, notices }).cast())
    }

    /// The channel behind a verbs pointer.
    ///
    /// # Safety
    /// `channel` came from [`Channel::create`] and was not destroyed.
    pub(crate) unsafe fn from_raw<'a>(channel: *mut ibv_comp_channel) -> &'a Channel {
        // SAFETY: the verbs struct is the first field.
        unsafe { &*channel.cast::<Channel>() }
    }

    pub(crate) fn raise(&self, cq: *mut ibv_cq) {
        self.notices.raise(Notice(cq));
    }

    /// Discards the events of a CQ that is being destroyed.
    pub(crate) fn forget(&self, cq: *mut ibv_cq) {
        self.notices.forget(|notice| *notice == Notice(cq));
    }

    /// Waits for an event, as `ibv_get_cq_event` does.
    pub(crate) fn next(&self) -> io::Result<*mut ibv_cq> {
        self.notices.next().map(|Notice(cq)| cq)
    }
}

/// `ibv_destroy_comp_channel(3)`, but without a check for CQs that still use it.
pub unsafe extern "C" fn destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int {
    // SAFETY: made by `create`.
    unsafe { free(channel.cast::<Channel>()) }
}

/// `ibv_get_cq_event(3)`: blocks, or returns -1 with EAGAIN if the descriptor is non-blocking.
pub unsafe extern "C" fn get_cq_event(
    channel: *mut ibv_comp_channel,
    cq: *mut *mut ibv_cq,
    cq_context: *mut *mut c_void,
) -> c_int {
    // SAFETY: a live channel, and two writable pointers; the CQ lives, or its events were forgotten.
    unsafe {
        match Channel::from_raw(channel).next() {
            Ok(source) => {
                cq.write(source);
                cq_context.write((*source).cq_context);
                0
            }
            Err(error) => {
                *libc::__errno_location() = error.raw_os_error().unwrap_or(libc::EIO);
                -1
            }
        }
    }
}

/// `ibv_ack_cq_events(3)`: does nothing, since no call waits for it.
pub unsafe extern "C" fn ack_cq_events(_cq: *mut ibv_cq, _events: c_uint) {}
