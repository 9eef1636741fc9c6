//! An open device: the data behind the context pointer, and queues of events.
//!
//! Queues of events, each with a descriptor that is readable while the queue is not empty: a context's asynchronous
//! events and a completion channel's.

use std::collections::VecDeque;
use std::io;
use std::mem::offset_of;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::raw::c_int;
use std::sync::{Arc, Condvar, Once, PoisonError};

use rdma_sys::{ibv_context, ibv_cq, ibv_event_type, ibv_qp, ibv_srq, verbs_context};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::{OFlags, fcntl_getfl};

use super::device::Device;
use super::errno::complain;
use super::object::Users;
use crate::lock::Lock;
use crate::transport::{Nic, PortListener};

/// An open device; `verbs.context` is the struct that programs hold.
#[repr(C)]
struct Open {
    verbs: verbs_context,
    inner: Context,
}

/// The data after the verbs struct.
pub(crate) struct Context {
    pub(crate) nic: Arc<Nic>,
    pub(super) device: &'static Device,
    pub(super) events: Arc<Queue<AsyncEvent>>,
    /// Puts the port's events there.
    pub(super) _port_listener: Arc<PortListener>,
    /// Protection domains, CQs and completion channels.
    pub(crate) users: Users,
}

impl Context {
    /// Gives the context to the program as its verbs struct, until [`Context::close`].
    pub(super) fn lend(self, verbs: verbs_context) -> *mut ibv_context {
        let open = Box::into_raw(Box::new(Open { verbs, inner: self }));
        // SAFETY: just made; the pointer is good for the whole of it.
        unsafe { &raw mut (*open).verbs.context }
    }

    /// Frees the context.
    ///
    /// # Safety
    /// As for [`Context::from_raw`]; nothing of it is used again.
    pub(super) unsafe fn close(context: *mut ibv_context) {
        // SAFETY: made by `lend` from such a box; the caller gives it up.
        drop(unsafe { Box::from_raw(Context::open(context)) });
    }

    /// The context behind a verbs pointer.
    ///
    /// # Safety
    /// `context` came from [`Context::lend`] and was not closed.
    pub(crate) unsafe fn from_raw<'a>(context: *mut ibv_context) -> &'a Context {
        // SAFETY: the verbs struct lies there in an `Open`. The reference covers nothing that programs write.
        unsafe { &(*Self::open(context)).inner }
    }

    /// As [`Context::from_raw`]. EIO, and a line on stderr the first time, in a child of the process that opened the device:
    /// there the locks are as another thread of the parent may have left them.
    pub(super) unsafe fn own<'a>(context: *mut ibv_context) -> Result<&'a Context, c_int> {
        static SAID: Once = Once::new();
        // SAFETY: the caller's.
        let inner = unsafe { Self::from_raw(context) };
        if inner.nic.is_of_this_process() {
            return Ok(inner);
        }
        SAID.call_once(|| {
            complain(format_args!(
                "a device that was opened before fork or daemon is the parent's; open it again in the child"
            ));
        });
        Err(libc::EIO)
    }

    unsafe fn open(context: *mut ibv_context) -> *mut Open {
        let offset = offset_of!(Open, verbs) + offset_of!(verbs_context, context);
        // SAFETY: the caller vouches that it lies in an `Open`.
        unsafe { context.byte_sub(offset).cast() }
    }

    /// Raises events of an object, which the program acknowledges to `acks`.
    pub(super) fn events_of(
        &self,
        source: Source,
        acks: &Arc<Acks>,
    ) -> impl Fn(ibv_event_type) + Send + Sync + 'static {
        let (events, acks) = (self.events.clone(), acks.clone());
        move |kind| events.raise(AsyncEvent { kind, source }, Some(acks.clone()))
    }

    /// Forgets the events of an object that is about to go, once the program has acknowledged those that it took.
    pub(super) fn end_events_of(&self, source: Source, acks: &Acks) {
        drop(self.events.take_out(|event| event.source == source));
        acks.wait();
    }

    pub(crate) fn address(&self) -> IpAddr {
        self.nic.address()
    }

    pub(crate) fn guid(&self) -> u64 {
        self.device.guid()
    }
}

/// Counts one object's events that the program took and those that it acknowledged. An object is destroyed only when
/// both are equal, so that no event refers to a destroyed object.
#[derive(Default)]
pub(crate) struct Acks {
    outstanding: Lock<i64>,
    changed: Condvar,
}

impl Acks {
    fn take(&self) {
        *self.outstanding.lock() += 1;
    }

    pub(crate) fn acknowledge(&self, events: u32) {
        *self.outstanding.lock() -= i64::from(events);
        self.changed.notify_all();
    }

    /// Waits until all taken events are acknowledged.
    pub(crate) fn wait(&self) {
        let waited =
            self.changed.wait_while(self.outstanding.lock(), |outstanding| *outstanding > 0);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

/// One event, with the counter of its acknowledgements.
type Waiting<T> = (T, Option<Arc<Acks>>);

/// Events raised and not yet taken.
///
/// A queue with a bound drops its oldest event when it is full: of many events that nobody takes, the last tell why
/// QPs fail.
pub(crate) struct Queue<T> {
    /// An eventfd (`EFD_SEMAPHORE`); its count equals the queue's length whenever the lock is free.
    fd: OwnedFd,
    waiting: Lock<VecDeque<Waiting<T>>>,
    most: usize,
    on_full: fn(),
}

impl<T> Queue<T> {
    /// An empty queue without a bound.
    ///
    /// # Errors
    /// No more descriptors.
    pub(crate) fn new() -> io::Result<Queue<T>> {
        Queue::bounded(usize::MAX, || {})
    }

    /// An empty queue of at most this many events; calls `on_full` for each that it drops.
    ///
    /// # Errors
    /// No more descriptors.
    pub(crate) fn bounded(most: usize, on_full: fn()) -> io::Result<Queue<T>> {
        Ok(Queue {
            fd: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::SEMAPHORE)?,
            waiting: Lock::new(VecDeque::new()),
            most,
            on_full,
        })
    }

    /// The descriptor that programs poll and may make non-blocking.
    pub(crate) fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.lock().is_empty()
    }

    pub(crate) fn raise(&self, what: T, acks: Option<Arc<Acks>>) {
        let mut waiting = self.waiting.lock();
        waiting.push_back((what, acks));
        if waiting.len() > self.most {
            // The count stays.
            waiting.pop_front();
            drop(waiting);
            return (self.on_full)();
        }
        // It cannot fail: the count is far from its maximum.
        let _ = rustix::io::write(&self.fd, &1_u64.to_ne_bytes());
    }

    /// Decrements the count. Call it only with the lock held and a count above 0, so that it does not block.
    fn count_down(&self) {
        let _ = rustix::io::read(&self.fd, &mut [0; 8]);
    }

    /// Takes the oldest event, which must be acknowledged afterwards.
    ///
    /// # Errors
    /// EAGAIN if there is none and the descriptor is non-blocking; EINTR.
    pub(crate) fn next(&self) -> io::Result<T> {
        loop {
            {
                let mut waiting = self.waiting.lock();
                if let Some((what, acks)) = waiting.pop_front() {
                    self.count_down();
                    if let Some(acks) = acks {
                        acks.take();
                    }
                    return Ok(what);
                }
            }
            if fcntl_getfl(&self.fd)?.contains(OFlags::NONBLOCK) {
                return Err(io::Error::from_raw_os_error(libc::EAGAIN));
            }
            poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], None)?;
        }
    }

    /// Takes out the events of an object that are not yet taken, with their counters, in their order; they are forgotten
    /// if it is being destroyed.
    pub(crate) fn take_out(&self, of_object: impl Fn(&T) -> bool) -> VecDeque<Waiting<T>> {
        let mut waiting = self.waiting.lock();
        let (out, stay): (VecDeque<_>, _) =
            std::mem::take(&mut *waiting).into_iter().partition(|(what, _)| of_object(what));
        *waiting = stay;
        for _ in &out {
            self.count_down();
        }
        out
    }
}

/// The object of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    Cq(*mut ibv_cq),
    Qp(*mut ibv_qp),
    Srq(*mut ibv_srq),
    Port,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct AsyncEvent {
    pub(super) kind: ibv_event_type,
    pub(super) source: Source,
}

// SAFETY: the pointers are only carried, never followed, on the way to the program.
unsafe impl Send for Source {}
// SAFETY: as above.
unsafe impl Sync for Source {}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use testing::verbs_user::{is_readable, never_block};

    use super::*;

    fn readable<T>(queue: &Queue<T>) -> bool {
        is_readable(queue.fd())
    }

    #[test]
    fn the_descriptor_is_readable_exactly_while_events_wait() {
        let queue = Queue::new().unwrap();
        never_block(queue.fd());
        let empty = queue.next().unwrap_err();
        assert_eq!(empty.raw_os_error(), Some(libc::EAGAIN));
        for event in [1, 2, 1] {
            queue.raise(event, None);
        }
        assert!(readable(&queue));
        drop(queue.take_out(|event| *event == 1));
        assert_eq!(queue.next().unwrap(), 2);
        assert!(!readable(&queue));
        queue.raise(3, None);
        drop(queue.take_out(|_| true));
        assert!(!readable(&queue));
    }

    #[test]
    fn a_full_queue_keeps_the_newest() {
        static DROPPED: AtomicUsize = AtomicUsize::new(0);
        let queue = Queue::bounded(3, || {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        })
        .unwrap();
        for event in 0..10 {
            queue.raise(event, None);
        }
        assert_eq!(DROPPED.load(Ordering::Relaxed), 7);
        for event in 7..10 {
            assert!(readable(&queue));
            assert_eq!(queue.next().unwrap(), event);
        }
        assert!(!readable(&queue));
    }
}
