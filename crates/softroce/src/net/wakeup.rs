//! Sleeping until packets arrive, a time is reached or another thread wakes the sleeper: an eventfd beside the
//! socket.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use super::address::SENDING_SOCKETS;

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

    /// Sleeps until woken, until one of `sockets` is readable, or for `at_most_ns` (for ever if `u64::MAX`).
    pub fn wait_for_any(&self, sockets: &[RawFd], at_most_ns: u64) {
        let own = [self.0.as_raw_fd()];
        let mut polls: Vec<libc::pollfd> = own
            .iter()
            .chain(sockets)
            .map(|fd| libc::pollfd { fd: *fd, events: libc::POLLIN, revents: 0 })
            .collect();
        self.wait_for_polls(&mut polls, at_most_ns);
    }

    /// Sleeps until woken, until `socket` is readable or one of `full` has room, or for `at_most_ns` (for ever if
    /// `u64::MAX`). Descriptors below 0 count for nothing.
    pub fn wait(
        &self,
        socket: Option<RawFd>,
        full: Option<[RawFd; SENDING_SOCKETS]>,
        at_most_ns: u64,
    ) {
        let mut polls =
            [libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 }; 2 + SENDING_SOCKETS];
        polls[0].fd = self.0.as_raw_fd();
        polls[1].fd = socket.unwrap_or(-1);
        for (poll, fd) in polls[2..].iter_mut().zip(full.iter().flatten()) {
            (poll.fd, poll.events) = (*fd, libc::POLLOUT);
        }
        let count = if full.is_some() { polls.len() } else { 2 };
        self.wait_for_polls(&mut polls[..count], at_most_ns);
    }

    /// `polls` begins with the wakeup's own.
    fn wait_for_polls(&self, polls: &mut [libc::pollfd], at_most_ns: u64) {
        let time = libc::timespec {
            tv_sec: (at_most_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (at_most_ns % 1_000_000_000) as libc::c_long,
        };
        let time = if at_most_ns == u64::MAX { ptr::null() } else { &raw const time };
        let mut wakes = [0_u8; 8];
        // SAFETY: as many entries as there are, a time or null, no signal mask; then eight writable bytes. Whatever comes out, the
        // caller looks for work and may sleep again.
        unsafe {
            libc::ppoll(polls.as_mut_ptr(), polls.len() as _, time, ptr::null());
            if polls[0].revents != 0 {
                libc::read(self.0.as_raw_fd(), wakes.as_mut_ptr().cast(), wakes.len());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kick_before_the_sleep_ends_it_and_no_other() {
        let wake = Wakeup::new().unwrap();
        wake.wake();
        wake.wait(None, None, u64::MAX);
        assert!(!testing::verbs_user::is_readable(wake.0.as_raw_fd()));
    }
}
