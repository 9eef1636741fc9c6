//! What time it is for a device: the machine's monotonic time, or one that a test sets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::sockets::now_ns;

/// Where a device takes its time from.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    #[default]
    Machine,
    /// The time that is stored here, in nanoseconds.
    Set(Arc<AtomicU64>),
}

impl Clock {
    /// The time, in nanoseconds.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        match self {
            Clock::Machine => now_ns(),
            Clock::Set(ns) => ns.load(Ordering::Relaxed),
        }
    }
}
