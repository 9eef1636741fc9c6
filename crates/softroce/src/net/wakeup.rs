//! Sleeping until packets arrive, a time is reached or another thread wakes the sleeper: an eventfd beside the
//! socket.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

/// Wakes a sleeping thread.
pub struct Wakeup(OwnedFd);

impl Wakeup {
    /// A wakeup that is not set.
    ///
    /// # Errors
    /// No more descriptors.
    pub fn new() -> io::Result<Wakeup> {
        // SAFETY: takes no pointers; a descriptor that is returned is ours alone.
        unsafe {
            let fd = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Wakeup(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// Wakes the sleeping thread, or ends its next sleep if it is awake.
    pub fn wake(&self) {
        let one = 1_u64.to_ne_bytes();
        // SAFETY: eight readable bytes. Failing means that the counter is full: the sleeper wakes anyway.
        unsafe { libc::write(self.0.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Sleeps until woken, until `socket` is readable, or for `at_most_ns` (for ever if `u64::MAX`).
    pub fn wait(&self, socket: Option<RawFd>, at_most_ns: u64) {
        let poll = |fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        // poll(2) ignores a negative descriptor.
        let mut polls = [poll(self.0.as_raw_fd()), poll(socket.unwrap_or(-1))];
        let time = libc::timespec {
            tv_sec: (at_most_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (at_most_ns % 1_000_000_000) as libc::c_long,
        };
        let time = if at_most_ns == u64::MAX {
            ptr::null()
        } else {
            &raw const time
        };
        let mut count = [0_u8; 8];
        // SAFETY: two entries, a time or null, no signal mask; then eight writable bytes. Whatever comes out, the
        // caller looks for work and may sleep again.
        unsafe {
            libc::ppoll(polls.as_mut_ptr(), 2, time, ptr::null());
            if polls[0].revents != 0 {
                libc::read(self.0.as_raw_fd(), count.as_mut_ptr().cast(), count.len());
            }
        }
    }
}

/// Blocks all signals in the calling thread: they are for the program's threads.
pub fn block_signals() {
    // SAFETY: a set on the stack, filled before it is used.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, ptr::null_mut());
    }
}

/// Requests short time slices for the calling thread, which works for microseconds at a time. Linux 6.12 and later
/// then runs it at once when it wakes, instead of after the time slice of a thread that spins.
pub fn prefer_short_turns() {
    /// `struct sched_attr` of sched_setattr(2), in its first version.
    #[repr(C)]
    #[derive(Default)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime_ns: u64,
        deadline_ns: u64,
        period_ns: u64,
    }
    /// Linux' minimum.
    const TURN_NS: u64 = 100_000;
    let mut attributes = Attributes::default();
    let size = size_of::<Attributes>();
    // SAFETY: a struct of the size that is told, for the calling thread (0).
    let read = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    // A real-time or idle policy was chosen deliberately.
    if read != 0 || attributes.policy != libc::SCHED_OTHER.cast_unsigned() {
        return;
    }
    attributes.runtime_ns = TURN_NS;
    // SAFETY: as above. Failing changes nothing, and all works as well as it can then.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::now_ns;

    #[test]
    fn a_kick_before_the_sleep_ends_it() {
        let wake = Wakeup::new().unwrap();
        wake.wake();
        wake.wait(None, u64::MAX);
        let start = now_ns();
        wake.wait(None, 2_000_000);
        assert!(now_ns() - start >= 2_000_000);
    }
}
