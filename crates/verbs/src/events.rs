//! Asynchronous events of a device: errors without a completion, above all an overflowed CQ.

use std::mem::zeroed;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rdma_sys::ibv_async_event;

use crate::{CompletionQueue, Context, SharedReceiveQueue, ffi};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsyncEvent {
    /// A CQ overflowed: completions are lost.
    CqError {
        /// The CQ's identity; see [`AsyncEvents::is_cq`].
        cq: usize,
    },
    /// A QP failed without a completion.
    QpError {
        qpn: u32,
        /// The event's name in `verbs.h`.
        name: &'static str,
    },
    /// The device is gone or in an error state.
    DeviceFatal,
    PortError {
        port: u8,
    },
    /// An SRQ failed: its QPs get no more receives.
    SrqError {
        /// The SRQ's identity; see [`AsyncEvents::is_srq`].
        srq: usize,
    },
    /// An SRQ has fewer receives left than the limit that was armed.
    SrqLimit {
        /// The SRQ's identity; see [`AsyncEvents::is_srq`].
        srq: usize,
    },
    /// An event that harms no run.
    Other,
}

/// A device's queue of asynchronous events; reading does not block.
pub struct AsyncEvents {
    context: Arc<Context>,
    file: OwnedFd,
}

impl AsyncEvents {
    pub fn new(context: &Arc<Context>) -> std::io::Result<Self> {
        Ok(AsyncEvents { file: context.async_file()?, context: Arc::clone(context) })
    }

    /// The next event, if one is pending.
    pub fn next(&self) -> Option<AsyncEvent> {
        if !Context::readable(self.file.as_fd()) {
            return None;
        }
        let library = self.context.library();
        // SAFETY: plain data; zero is IBV_EVENT_CQ_ERR, a valid value of the enum inside.
        let mut event: ibv_async_event = unsafe { zeroed() };
        // SAFETY: the context is open and `event` writable.
        if unsafe { (library.get_async_event)(self.context.raw(), &mut event) } != 0 {
            return None;
        }
        // SAFETY: the event was just filled in.
        let code = unsafe { ffi::event_type(&event) };
        // SAFETY: the member read is the one that belongs to the event's type (ibv_get_async_event(3)), and
        // its object is not destroyed before the event is acknowledged.
        let read = unsafe {
            match code {
                0 => AsyncEvent::CqError { cq: event.element.cq as usize },
                1..=3 | 7 => AsyncEvent::QpError {
                    qpn: (*event.element.qp).qp_num,
                    name: [
                        "",
                        "QP_FATAL",
                        "QP_REQ_ERR",
                        "QP_ACCESS_ERR",
                        "",
                        "",
                        "",
                        "PATH_MIG_ERR",
                    ][code as usize],
                },
                8 => AsyncEvent::DeviceFatal,
                10 => AsyncEvent::PortError {
                    port: u8::try_from(event.element.port_num).unwrap_or(0),
                },
                14 => AsyncEvent::SrqError { srq: event.element.srq as usize },
                15 => AsyncEvent::SrqLimit { srq: event.element.srq as usize },
                _ => AsyncEvent::Other,
            }
        };
        // SAFETY: each event that was got is acknowledged once.
        unsafe { (library.ack_async_event)(&mut event) };
        Some(read)
    }

    /// Whether an event's CQ is this one.
    pub fn is_cq(cq: &CompletionQueue, identity: usize) -> bool {
        cq.identity() == identity
    }

    /// Whether an event's SRQ is this one.
    pub fn is_srq(srq: &SharedReceiveQueue, identity: usize) -> bool {
        srq.identity() == identity
    }
}
