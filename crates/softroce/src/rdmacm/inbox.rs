//! Datagrams that have come to the QPs 1 of this process's devices, sockets from which more can be taken, and the time of
//! the next timer: what the thread of the connection managers waits for.

use std::io;
use std::net::IpAddr;
use std::os::fd::RawFd;
use std::sync::OnceLock;

use crate::lock::Lock;
use crate::net::{Wakeup, now_ns};
use crate::wire::cm::MAD_BYTES;

/// The most datagrams that wait; more are dropped, and their senders repeat them.
const MOST_WAITING: usize = 4096;

pub(super) struct Arrived {
    /// The address of the device.
    pub(super) at: IpAddr,
    pub(super) from: IpAddr,
    pub(super) bytes: [u8; MAD_BYTES],
}

struct Waiting {
    datagrams: Vec<Arrived>,
    wake_ns: u64,
}

pub(super) struct Inbox {
    waiting: Lock<Waiting>,
    wakeup: OnceLock<Wakeup>,
}

impl Inbox {
    pub(super) const fn new() -> Inbox {
        Inbox {
            waiting: Lock::new(Waiting { datagrams: Vec::new(), wake_ns: u64::MAX }),
            wakeup: OnceLock::new(),
        }
    }

    /// Lets a thread wait.
    ///
    /// # Errors
    /// No more descriptors.
    pub(super) fn begin(&self) -> io::Result<()> {
        let wakeup = Wakeup::new()?;
        // It is called once; a second wakeup would do nothing.
        let _ = self.wakeup.set(wakeup);
        Ok(())
    }

    pub(super) fn wake(&self) {
        if let Some(wakeup) = self.wakeup.get() {
            wakeup.wake();
        }
    }

    /// Adds a datagram. Called by whoever polls, in the middle of a device's work: takes no other lock.
    pub(super) fn put(&self, at: IpAddr, from: IpAddr, payload: &[u8]) {
        let Ok(bytes) = payload.try_into() else {
            return;
        };
        let mut waiting = self.waiting.lock();
        if waiting.datagrams.len() < MOST_WAITING {
            waiting.datagrams.push(Arrived { at, from, bytes });
            self.wake();
        }
    }

    /// Ends the waiting at this time or earlier.
    pub(super) fn wake_at(&self, ns: u64) {
        let mut waiting = self.waiting.lock();
        if ns < waiting.wake_ns {
            waiting.wake_ns = ns;
            self.wake();
        }
    }

    /// Waits until a datagram is there, one of the sockets is readable, the time has come or somebody wakes it, and moves
    /// the datagrams into `to`, which is empty.
    pub(super) fn wait(&self, to: &mut Vec<Arrived>, sockets: &[RawFd]) {
        let left_ns = {
            let waiting = self.waiting.lock();
            match (waiting.datagrams.is_empty(), waiting.wake_ns) {
                (false, _) => 0,
                (true, u64::MAX) => u64::MAX,
                (true, wake_ns) => wake_ns.saturating_sub(now_ns()),
            }
        };
        if left_ns > 0
            && let Some(wakeup) = self.wakeup.get()
        {
            wakeup.wait_for_any(sockets, left_ns);
        }
        let mut waiting = self.waiting.lock();
        waiting.wake_ns = u64::MAX;
        std::mem::swap(to, &mut waiting.datagrams);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_bounded_and_takes_mads_only() {
        let inbox = Inbox::new();
        let address = IpAddr::from([127, 0, 0, 1]);
        inbox.put(address, address, &[0; MAD_BYTES + 1]);
        for _ in 0..MOST_WAITING + 3 {
            inbox.put(address, address, &[0; MAD_BYTES]);
        }
        let mut taken = Vec::new();
        inbox.wait(&mut taken, &[]);
        assert_eq!(taken.len(), MOST_WAITING);
    }

    #[test]
    fn a_timer_ends_the_waiting() {
        let inbox = Inbox::new();
        inbox.begin().unwrap();
        let due = now_ns() + 5_000_000;
        let mut taken = Vec::new();
        while now_ns() < due {
            inbox.wake_at(due);
            inbox.wait(&mut taken, &[]);
        }
    }
}
