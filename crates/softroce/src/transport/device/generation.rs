//! Which process this is among those that it was forked from.

use std::sync::atomic::{AtomicU32, Ordering};

/// Forks on the way to this process.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// A process among those that it was forked from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Generation(u32);

impl Generation {
    pub(crate) fn current() -> Generation {
        Generation(FORKS.load(Ordering::Relaxed))
    }

    /// Called in the child of a fork.
    pub(crate) fn begin() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
}
