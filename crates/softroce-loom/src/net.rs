//! What the device's files take from its sockets, without any.

use std::io;
use std::os::fd::RawFd;

use loom::sync::{Condvar, Mutex};

use crate::sync::{AtomicUsize, Ordering};

pub(crate) const SENDING_SOCKETS: usize = 1;

#[derive(Clone)]
pub(crate) struct Flow;

/// Time stands still; what is due later is waited for in no time.
pub(crate) struct Clock;

pub(crate) const NOW_NS: u64 = 1 << 30;

impl Clock {
    pub(crate) fn now_ns(&self) -> u64 {
        NOW_NS
    }
}

/// How many packets wait in it.
pub(crate) struct Inbox(pub(crate) AtomicUsize);

impl Inbox {
    pub(crate) fn has_some(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }
}

/// The engine's eventfd: a wakeup stays until a wait takes it.
pub(crate) struct Wakeup {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl Wakeup {
    pub(crate) fn new() -> io::Result<Wakeup> {
        Ok(Wakeup { is_set: Mutex::new(false), changed: Condvar::new() })
    }

    pub(crate) fn wake(&self) {
        *self.is_set.lock().unwrap() = true;
        self.changed.notify_one();
    }

    /// No packet comes, and a full socket has room at once.
    pub(crate) fn wait(
        &self,
        _socket: Option<RawFd>,
        full: Option<[RawFd; SENDING_SOCKETS]>,
        at_most_ns: u64,
    ) {
        let mut is_set = self.is_set.lock().unwrap();
        while !*is_set && full.is_none() && at_most_ns == u64::MAX {
            is_set = self.changed.wait(is_set).unwrap();
        }
        *is_set = false;
    }
}
