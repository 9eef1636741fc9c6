//! Memory that changes while the peer reads it: each READ completes with bytes that were there at some time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::support::end::{Plan, pair};

const READ_BYTES: usize = 4096;
const READS: usize = 4000;

#[test]
fn reads_of_an_object_that_is_being_updated_all_complete() {
    let (client, server) = pair(&Plan::default());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let start = server.address(0);
            let mut value = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                value += 1;
                for word in 0..READ_BYTES as u64 / 8 {
                    let at = std::ptr::with_exposed_provenance_mut((start + word * 8) as usize);
                    // SAFETY: aligned, and memory of the server's, which all use as atomics meanwhile.
                    let word = unsafe { AtomicU64::from_ptr(at) };
                    word.store(value, Ordering::Relaxed);
                }
            }
        });
        // Also if it panics, since the scope waits for the other thread.
        let _stop = Stop(&stop);
        client.run(READS, 8, READ_BYTES, |_| (server.read_from(0), 0));
    });
    assert_eq!(client.counter("bad_icrc"), 0);
}

struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
