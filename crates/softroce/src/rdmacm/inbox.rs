//! Datagrams that have come to the QPs 1 of this process's devices, and the time of the next timer: what the thread of
//! the connection managers waits for.

use std::net::IpAddr;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::net::now_ns;
use crate::wire::cm::MAD_BYTES;

/// The most datagrams that wait; more are dropped, and their senders repeat them.
const MOST_WAITING: usize = 4096;

/// A datagram.
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

/// What waits.
pub(super) struct Inbox {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

impl Inbox {
    pub(super) const fn new() -> Inbox {
        Inbox {
            waiting: Mutex::new(Waiting {
                datagrams: Vec::new(),
                wake_ns: u64::MAX,
            }),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a datagram. Called by whoever polls, in the middle of a device's work: takes no other lock.
    pub(super) fn put(&self, at: IpAddr, from: IpAddr, payload: &[u8]) {
        let Ok(bytes) = payload.try_into() else {
            return;
        };
        let mut waiting = self.lock();
        if waiting.datagrams.len() < MOST_WAITING {
            waiting.datagrams.push(Arrived { at, from, bytes });
            self.changed.notify_one();
        }
    }

    /// Ends the waiting at this time or earlier.
    pub(super) fn wake_at(&self, ns: u64) {
        let mut waiting = self.lock();
        if ns < waiting.wake_ns {
            waiting.wake_ns = ns;
            self.changed.notify_one();
        }
    }

    /// Waits until a datagram is there or the time has come, and moves the datagrams into `to`, which is empty.
    pub(super) fn wait(&self, to: &mut Vec<Arrived>) {
        let mut waiting = self.lock();
        while waiting.datagrams.is_empty() {
            let left_ns = waiting.wake_ns.saturating_sub(now_ns());
            if left_ns == 0 {
                break;
            }
            let left = Duration::from_nanos(left_ns);
            waiting = match self.changed.wait_timeout(waiting, left) {
                Ok((waiting, _)) => waiting,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
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
        inbox.wait(&mut taken);
        assert_eq!(taken.len(), MOST_WAITING);
    }

    #[test]
    fn a_timer_ends_the_waiting() {
        let inbox = Inbox::new();
        let due = now_ns() + 5_000_000;
        inbox.wake_at(due);
        inbox.wake_at(due + 1_000_000_000);
        let mut taken = Vec::new();
        inbox.wait(&mut taken);
        assert!(taken.is_empty() && now_ns() >= due);
    }
}
