//! A lock that is taken in one C call and released in another, for extended polling and posting.

use crate::sync::{AtomicBool, Ordering, spin_loop, yield_now};

/// Held by one thread at a time, across several calls.
#[derive(Default)]
pub(crate) struct Latch {
    is_held: AtomicBool,
    /// Whether somebody has waited long. A thread that takes the latch again as soon as it has given it would keep all
    /// others out, for seconds where they share its core.
    is_awaited: AtomicBool,
}

impl Latch {
    /// Waits until it is free; other threads hold it for a few polls or posts.
    pub(crate) fn take(&self) {
        const SPINS: u32 = 100;
        if self.is_awaited.load(Ordering::Relaxed) {
            yield_now();
        }
        let mut spins = 0;
        while self
            .is_held
            .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            spins += 1;
            if spins < SPINS {
                spin_loop();
            } else {
                self.is_awaited.store(true, Ordering::Relaxed);
                yield_now();
            }
        }
        if spins >= SPINS {
            self.is_awaited.store(false, Ordering::Relaxed);
        }
    }

    pub(crate) fn give(&self) {
        self.is_held.store(false, Ordering::Release);
    }
}
