//! Queues of events, each with a descriptor that is readable while the queue is not empty: a context's asynchronous
//! events and a completion channel's. It must not know the events' contents.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Condvar, PoisonError};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::{OFlags, fcntl_getfl};

use crate::lock::Lock;

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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use testing::verbs_user::{is_readable, never_block};

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
