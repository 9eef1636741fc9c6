//! Queues of events, each with a descriptor that is readable while the queue is not empty: a context's asynchronous
//! events and a completion channel's.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::raw::c_int;
use std::sync::{Arc, Condvar, PoisonError};

use rdma_sys::{ibv_cq, ibv_event_type, ibv_qp, ibv_srq};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::{OFlags, fcntl_getfl};

use crate::Lock;

/// Counts one object's events that the program took and those that it acknowledged. An object is destroyed only when
/// both are equal, so that no event refers to a destroyed object.
#[derive(Default)]
pub struct Acks {
    outstanding: Lock<i64>,
    changed: Condvar,
}

impl Acks {
    fn take(&self) {
        *self.outstanding.lock() += 1;
    }

    pub fn acknowledge(&self, events: u32) {
        *self.outstanding.lock() -= i64::from(events);
        self.changed.notify_all();
    }

    /// Waits until all taken events are acknowledged.
    pub fn wait(&self) {
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
pub struct Queue<T> {
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
    pub fn new() -> io::Result<Queue<T>> {
        Queue::bounded(usize::MAX, || {})
    }

    /// An empty queue of at most this many events; calls `on_full` for each that it drops.
    ///
    /// # Errors
    /// No more descriptors.
    pub fn bounded(most: usize, on_full: fn()) -> io::Result<Queue<T>> {
        Ok(Queue {
            fd: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::SEMAPHORE)?,
            waiting: Lock::new(VecDeque::new()),
            most,
            on_full,
        })
    }

    /// The descriptor that programs poll and may make non-blocking.
    pub fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.lock().is_empty()
    }

    pub fn raise(&self, what: T, acks: Option<Arc<Acks>>) {
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
    pub fn next(&self) -> io::Result<T> {
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
    pub fn take_out(&self, of_object: impl Fn(&T) -> bool) -> VecDeque<Waiting<T>> {
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
pub enum Source {
    Cq(*mut ibv_cq),
    Qp(*mut ibv_qp),
    Srq(*mut ibv_srq),
    /// The number of a port.
    Port(c_int),
}

// SAFETY: the pointers are only carried, never followed, on the way to the program.
unsafe impl Send for Source {}
// SAFETY: as above.
unsafe impl Sync for Source {}

/// What `ibv_get_async_event(3)` tells.
#[derive(Clone, Copy, Debug)]
pub struct AsyncEvent {
    pub kind: ibv_event_type,
    pub source: Source,
}

/// The asynchronous events of one CQ, QP or SRQ.
#[derive(Clone)]
pub struct ObjectEvents {
    queue: Arc<Queue<AsyncEvent>>,
    source: Source,
    acks: Arc<Acks>,
}

impl ObjectEvents {
    pub(crate) fn new(queue: &Arc<Queue<AsyncEvent>>, source: Source) -> ObjectEvents {
        ObjectEvents { queue: Arc::clone(queue), source, acks: Arc::default() }
    }

    pub fn raise(&self, kind: ibv_event_type) {
        let event = AsyncEvent { kind, source: self.source };
        self.queue.raise(event, Some(Arc::clone(&self.acks)));
    }

    pub(crate) fn acknowledge(&self) {
        self.acks.acknowledge(1);
    }

    /// Forgets those of an object that is about to go, once the program has acknowledged those that it took.
    pub(crate) fn end(&self) {
        drop(self.queue.take_out(|event| event.source == self.source));
        self.acks.wait();
    }
}

/// The CQ of an event of a completion channel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Notice(pub(crate) *mut ibv_cq);

// SAFETY: the pointer is only carried, never followed, on the way to the program.
unsafe impl Send for Notice {}
// SAFETY: as above.
unsafe impl Sync for Notice {}

/// The events of one CQ in its completion channel.
#[derive(Clone)]
pub struct CqNotifier {
    queue: Arc<Queue<Notice>>,
    notice: Notice,
    acks: Arc<Acks>,
}

impl CqNotifier {
    pub(crate) fn new(queue: &Arc<Queue<Notice>>, cq: *mut ibv_cq) -> CqNotifier {
        CqNotifier { queue: Arc::clone(queue), notice: Notice(cq), acks: Arc::default() }
    }

    /// Wakes who waits at the channel.
    pub fn raise(&self) {
        self.queue.raise(self.notice, Some(Arc::clone(&self.acks)));
    }

    pub(crate) fn acknowledge(&self, events: u32) {
        self.acks.acknowledge(events);
    }

    /// As [`ObjectEvents::end`].
    pub(crate) fn end(&self) {
        drop(self.queue.take_out(|notice| *notice == self.notice));
        self.acks.wait();
    }
}

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
