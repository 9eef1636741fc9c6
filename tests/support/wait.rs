//! Waiting for an event instead of a time.

use std::time::{Duration, Instant};

/// Waits until `what` gives something, for `limit`; longer is a hang, and fails with what `told` says.
#[track_caller]
pub fn wait_at_most<T>(
    limit: Duration,
    mut what: impl FnMut() -> Option<T>,
    told: impl Fn() -> String,
) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = what() {
            return found;
        }
        assert!(started.elapsed() < limit, "{}", told());
        std::thread::sleep(Duration::from_millis(5));
    }
}
