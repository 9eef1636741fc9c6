//! A lock taken in one C call and released in another, for extended polling and posting.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Held by one thread at a time, across several calls.
#[derive(Default)]
pub(super) struct Latch(AtomicBool);

impl Latch {
    /// Waits until it is free; other threads hold it for a few polls or posts.
    pub(super) fn take(&self) {
        const SPINS: u32 = 100;
        let mut spins = 0;
        while self
            .0
            .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            spins += 1;
            if spins < SPINS {
                spin_loop();
            } else {
                thread::yield_now();
            }
        }
    }

    /// Releases it.
    pub(super) fn give(&self) {
        self.0.store(false, Ordering::Release);
    }
}
