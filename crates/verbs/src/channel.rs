//! Sleeping until a CQ has a completion: completion channels, and wakeups with which another thread ends a sleep.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{NonNull, null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rdma_sys::{ibv_comp_channel, ibv_cq};

use crate::{Context, Operation, VerbsError};

/// Events of a CQ that are acknowledged together, because each acknowledgement takes a lock of the library.
const ACK_BATCH: u32 = 64;

/// A completion channel, `ibv_create_comp_channel(3)`: delivers the events of all CQs created with it. A [`Sleeper`]
/// waits on it.
pub struct CompletionChannel {
    context: Arc<Context>,
    raw: NonNull<ibv_comp_channel>,
    /// Held while events are taken, and while a CQ acknowledges its last events and is destroyed.
    reading: Mutex<()>,
    cqs: AtomicU32,
}

// SAFETY: `ibv_get_cq_event` and `ibv_destroy_comp_channel` may be called from any thread, and the fields
// never change but by atomics.
unsafe impl Send for CompletionChannel {}

// SAFETY: as above.
unsafe impl Sync for CompletionChannel {}

/// State shared by a CQ and its channel; the CQ's user context points to it.
#[derive(Default)]
pub(super) struct Notices {
    /// An event was requested and not taken since.
    armed: AtomicBool,
    /// Events taken and not acknowledged.
    unacknowledged: AtomicU32,
}

impl Notices {
    /// Records a request for an event; returns whether it is a new one.
    pub(super) fn arm(&self) -> bool {
        !self.armed.swap(true, Ordering::AcqRel)
    }
}

impl CompletionChannel {
    /// A channel of `context`.
    ///
    /// # Errors
    /// The failed call; EOPNOTSUPP if the library has no channels.
    pub fn new(context: &Arc<Context>) -> Result<Arc<Self>, VerbsError> {
        let failed = || VerbsError::last(Operation::CreateChannel, context.name());
        // SAFETY: the context is open.
        let raw = unsafe { (context.library().create_comp_channel)(context.raw()) };
        let channel = CompletionChannel {
            context: Arc::clone(context),
            raw: NonNull::new(raw).ok_or_else(failed)?,
            reading: Mutex::new(()),
            cqs: AtomicU32::new(0),
        };
        // SAFETY: a descriptor that is open as long as the channel.
        let set = unsafe {
            let flags = libc::fcntl(channel.fd(), libc::F_GETFL);
            libc::fcntl(channel.fd(), libc::F_SETFL, flags | libc::O_NONBLOCK)
        };
        if set < 0 {
            return Err(failed());
        }
        Ok(Arc::new(channel))
    }

    /// Takes the pending events, at most one of each CQ: a CQ raises no more until it is armed again.
    fn take(&self) -> Result<(), VerbsError> {
        let library = self.context.library();
        let _reading = self.lock();
        for _ in 0..self.cqs.load(Ordering::Relaxed) {
            let (mut cq, mut context) = (null_mut(), null_mut());
            // SAFETY: a live channel and two writable pointers.
            if unsafe { (library.get_cq_event)(self.raw.as_ptr(), &mut cq, &mut context) } != 0 {
                return match std::io::Error::last_os_error().raw_os_error() {
                    // Another thread has taken them, or a signal interrupted the call.
                    Some(libc::EAGAIN | libc::EINTR) => Ok(()),
                    _ => Err(self.failed(Operation::GetCqEvent)),
                };
            }
            // SAFETY: every CQ of the channel was created with such a user context and keeps it. The CQ cannot be
            // destroyed meanwhile, because that takes the lock held here.
            let notices = unsafe { &*context.cast::<Notices>() };
            if notices.unacknowledged.fetch_add(1, Ordering::Relaxed) + 1 == ACK_BATCH {
                notices.unacknowledged.store(0, Ordering::Relaxed);
                // SAFETY: so many events of this live CQ were taken and not acknowledged.
                unsafe { (library.ack_cq_events)(cq, ACK_BATCH) };
            }
            notices.armed.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// Counts a CQ that was created with this channel.
    pub(super) fn joined(&self) {
        self.cqs.fetch_add(1, Ordering::Relaxed);
    }

    /// Acknowledges a CQ's events, then has `destroy` destroy it: destroying would otherwise wait for ever.
    pub(super) fn leave(&self, cq: *mut ibv_cq, notices: &Notices, destroy: impl FnOnce()) {
        let _reading = self.lock();
        let events = notices.unacknowledged.swap(0, Ordering::Relaxed);
        if events > 0 {
            // SAFETY: so many events of this live CQ were taken and not acknowledged.
            unsafe { (self.context.library().ack_cq_events)(cq, events) };
        }
        destroy();
        self.cqs.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn raw(&self) -> *mut ibv_comp_channel {
        self.raw.as_ptr()
    }

    fn fd(&self) -> RawFd {
        // SAFETY: a live channel, whose descriptor does not change.
        unsafe { (*self.raw.as_ptr()).fd }
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, operation: Operation) -> VerbsError {
        VerbsError::last(operation, self.context.name())
    }
}

impl Drop for CompletionChannel {
    fn drop(&mut self) {
        // SAFETY: its CQs held an `Arc` to it and are destroyed.
        unsafe { (self.context.library().destroy_comp_channel)(self.raw.as_ptr()) };
    }
}

/// Wakes one sleeping thread, or ends its next sleep if it is awake (an eventfd).
pub struct Wakeup(OwnedFd);

impl Wakeup {
    /// A wakeup that is not set.
    pub fn new() -> Result<Self, VerbsError> {
        // SAFETY: takes no pointers; a descriptor that is returned is ours alone.
        unsafe {
            let fd = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
            if fd < 0 {
                return Err(VerbsError::last(Operation::CreateEventFd, "a worker"));
            }
            Ok(Wakeup(OwnedFd::from_raw_fd(fd)))
        }
    }

    pub fn wake(&self) {
        let one = 1_u64.to_ne_bytes();
        // SAFETY: eight readable bytes. Failing means that the counter is full: the sleeper wakes anyway.
        unsafe { libc::write(self.0.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    fn clear(&self) {
        let mut count = [0_u8; 8];
        // SAFETY: eight writable bytes. Failing means that it was not set.
        unsafe { libc::read(self.0.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
    }
}

/// Where one thread sleeps: the channels of all CQs that it polls, of any devices, and its wakeup.
pub struct Sleeper {
    channels: Vec<Arc<CompletionChannel>>,
    wakeup: Arc<Wakeup>,
    /// The descriptors of the wakeup and of the channels, in this order.
    files: Vec<libc::pollfd>,
}

impl Sleeper {
    /// A thread that waits for events of `channels` and for `wakeup`.
    pub fn new(channels: Vec<Arc<CompletionChannel>>, wakeup: Arc<Wakeup>) -> Self {
        let descriptors = channels.iter().map(|channel| channel.fd());
        let files = std::iter::once(wakeup.0.as_raw_fd())
            .chain(descriptors)
            .map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 })
            .collect();
        Sleeper { channels, wakeup, files }
    }

    pub fn wakeup(&self) -> &Arc<Wakeup> {
        &self.wakeup
    }

    /// Sleeps until an event of one of the channels' CQs, a wakeup or the end of `longest`, and takes the events. May
    /// also return for no reason.
    ///
    /// To miss no completion: arm all CQs ([`CompletionQueue::arm`](super::CompletionQueue::arm)); if one was not
    /// armed before, poll all CQs again; wait only if they are still empty; then poll all. If several threads wait on
    /// one channel, each must poll all of its CQs, because any of them may take an event, and each must also arm these
    /// CQs directly after waiting, so that new completions wake the others while it works.
    pub fn wait(&mut self, longest: Option<Duration>) -> Result<(), VerbsError> {
        let limit = longest.map(|longest| libc::timespec {
            tv_sec: longest.as_secs().try_into().unwrap_or(libc::time_t::MAX),
            tv_nsec: longest.subsec_nanos().into(),
        });
        // Of the variable: a temporary in its place would be gone before the call.
        let limit_or_null = limit.as_ref().map_or(null(), std::ptr::from_ref);
        let count = self.files.len() as libc::nfds_t;
        // SAFETY: so many valid pollfds, a time that lives as long as the call or none, and no mask of signals.
        if unsafe { libc::ppoll(self.files.as_mut_ptr(), count, limit_or_null, null()) } < 0 {
            return match std::io::Error::last_os_error().raw_os_error() {
                Some(libc::EINTR) => Ok(()),
                _ => Err(VerbsError::last(Operation::WaitForEvent, "a worker")),
            };
        }
        let mut rung = self.files.iter().map(|file| file.revents != 0);
        if rung.next() == Some(true) {
            self.wakeup.clear();
        }
        for (channel, _) in self.channels.iter().zip(rung).filter(|(_, rung)| *rung) {
            channel.take()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows that end by time pass one. This crate is optimised for tests too, which shows a time that is gone before the call.
    #[test]
    fn a_sleep_has_an_end_without_events() {
        let wakeup = Arc::new(Wakeup::new().unwrap());
        let mut sleeper = Sleeper::new(Vec::new(), Arc::clone(&wakeup));
        sleeper.wait(Some(Duration::from_millis(1))).unwrap();
        wakeup.wake();
        sleeper.wait(Some(Duration::MAX)).unwrap();
        wakeup.wake();
        sleeper.wait(None).unwrap();
    }
}
