//! What is common to both devices: an open context and its asynchronous events, completion channels (for programs that sleep; only
//! `loop0` has them), and the queues of both. Each queue has a file descriptor that is readable while it is not empty: a context's
//! `async_fd`, a completion channel's `fd`.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rdma_sys::{
    ibv_async_event, ibv_comp_channel, ibv_context, ibv_context_ops, ibv_cq, ibv_device,
    ibv_event_type, ibv_qp, ibv_srq,
};

use crate::personas::{Adapter, Device, Engine};
use crate::structs::keep;

/// A context; the verbs struct comes first, so a pointer to one is a pointer to the other.
#[repr(C)]
pub(crate) struct Context {
    verbs: ibv_context,
    device: &'static Device,
    events: EventQueue<Event>,
}

impl Context {
    /// Opens `device`, with `ops` as its data path.
    ///
    /// # Safety
    /// `device` is of a list of this library.
    pub(crate) unsafe fn open(
        device: *mut ibv_device,
        ops: ibv_context_ops,
    ) -> io::Result<*mut ibv_context> {
        let events = EventQueue::new()?;
        // `abi_compat` stays null, so that no program looks for extended verbs before this struct.
        // SAFETY: pointers, integers, optional function pointers and a pthread mutex, for all of
        // which zero is a value (that of PTHREAD_MUTEX_INITIALIZER).
        let mut verbs: ibv_context = unsafe { std::mem::zeroed() };
        verbs.device = device;
        verbs.cmd_fd = -1;
        verbs.async_fd = events.fd();
        verbs.num_comp_vectors = 1;
        verbs.ops = ops;
        let context = Context {
            verbs,
            // SAFETY: the caller's.
            device: unsafe { Device::from_raw(device) },
            events,
        };
        Ok(keep(context).cast())
    }

    /// The context behind a verbs pointer.
    ///
    /// # Safety
    /// `context` came from [`Context::open`] and was not closed.
    pub(crate) unsafe fn from_raw<'a>(context: *mut ibv_context) -> &'a Context {
        // SAFETY: the verbs struct is the first field of a `Context`.
        unsafe { &*context.cast::<Context>() }
    }

    pub(crate) fn engine(&self) -> Engine {
        self.device.table.engine
    }

    /// What the device says of itself.
    pub(crate) fn table(&self) -> &'static Adapter {
        self.device.table
    }

    pub(crate) fn raise(&self, kind: ibv_event_type, source: Source) {
        self.events.raise(Event { kind, source });
    }

    /// Discards the events of an object that is being destroyed.
    pub(crate) fn forget(&self, source: Source) {
        self.events.forget(|event| event.source == source);
    }

    /// Waits for an event, as `ibv_get_async_event` does.
    pub(crate) fn next_event(&self, into: &mut ibv_async_event) -> io::Result<()> {
        let event = self.events.next()?;
        into.event_type = event.kind;
        match event.source {
            Source::Cq(cq) => into.element.cq = cq,
            Source::Qp(qp) => into.element.qp = qp,
            Source::Srq(srq) => into.element.srq = srq,
        }
        Ok(())
    }
}

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

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    Cq(*mut ibv_cq),
    Qp(*mut ibv_qp),
    Srq(*mut ibv_srq),
}

/// One event, with the fields of `ibv_async_event`.
#[derive(Clone, Copy)]
pub(crate) struct Event {
    pub(crate) kind: ibv_event_type,
    pub(crate) source: Source,
}

// SAFETY: the queue never dereferences the pointers.
unsafe impl Send for Event {}

/// Events raised and not yet read. The eventfd counts them (`EFD_SEMAPHORE`).
pub(crate) struct EventQueue<T> {
    fd: OwnedFd,
    events: Mutex<VecDeque<T>>,
}

impl<T> EventQueue<T> {
    pub(crate) fn new() -> io::Result<EventQueue<T>> {
        // SAFETY: no pointer is passed.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_SEMAPHORE) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(EventQueue {
            // SAFETY: just created, owned by nobody else.
            fd: unsafe { OwnedFd::from_raw_fd(fd) },
            events: Mutex::new(VecDeque::new()),
        })
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event and makes the descriptor readable.
    pub(crate) fn raise(&self, event: T) {
        self.lock().push_back(event);
        let one = 1_u64.to_ne_bytes();
        // SAFETY: eight readable bytes. It cannot fail: the counter is far from its maximum.
        unsafe { libc::write(self.fd(), one.as_ptr().cast(), one.len()) };
    }

    /// The oldest event. Blocks unless the descriptor is non-blocking (then `EAGAIN`).
    pub(crate) fn next(&self) -> io::Result<T> {
        loop {
            let mut count = [0_u8; 8];
            // SAFETY: eight writable bytes.
            let read = unsafe { libc::read(self.fd(), count.as_mut_ptr().cast(), count.len()) };
            if read < 0 {
                return Err(io::Error::last_os_error());
            }
            // The event may have been discarded with its object: read the next.
            if let Some(event) = self.lock().pop_front() {
                return Ok(event);
            }
        }
    }

    /// Discards the events of an object that is being destroyed.
    pub(crate) fn forget(&self, of_object: impl Fn(&T) -> bool) {
        self.lock().retain(|event| !of_object(event));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::verbs_user::{is_readable, never_block};

    #[test]
    fn the_descriptor_is_readable_while_events_wait() {
        let queue = EventQueue::new().unwrap();
        never_block(queue.fd());
        let empty = queue.next().err().unwrap();
        assert_eq!(empty.raw_os_error(), Some(libc::EAGAIN));
        let gone = Source::Cq(std::ptr::without_provenance_mut(0x10));
        let live = Source::Cq(std::ptr::without_provenance_mut(0x20));
        for source in [gone, live] {
            let kind = ibv_event_type::IBV_EVENT_CQ_ERR;
            queue.raise(Event { kind, source });
        }
        assert!(is_readable(queue.fd()));
        queue.forget(|event| event.source == gone);
        assert_eq!(queue.next().unwrap().source, live);
        assert!(queue.next().is_err());
    }
}
