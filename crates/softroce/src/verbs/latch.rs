//! A lock that is taken in one C call and released in another, for extended polling and posting.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Held by one thread at a time, across several calls.
#[derive(Default)]
pub(super) struct Latch {
    is_held: AtomicBool,
    /// Whether somebody has waited long. A thread that takes the latch again as soon as it has given it would keep all
    /// others out, for seconds where they share its core.
    is_awaited: AtomicBool,
}

impl Latch {
    /// Waits until it is free; other threads hold it for a few polls or posts.
    pub(super) fn take(&self) {
        const SPINS: u32 = 100;
        if self.is_awaited.load(Ordering::Relaxed) {
            thread::yield_now();
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
                thread::yield_now();
            }
        }
        if spins >= SPINS {
            self.is_awaited.store(false, Ordering::Relaxed);
        }
    }

    pub(super) fn give(&self) {
        self.is_held.store(false, Ordering::Release);
    }
}
