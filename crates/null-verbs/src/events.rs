//! Queues of events for the program. Each has a file descriptor that is readable while the queue is not empty, like a
//! context's `async_fd` and a completion channel's `fd`.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rdma_sys::{ibv_cq, ibv_event_type, ibv_qp, ibv_srq};

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
