//! The time that is left once the user has asked to stop, or nothing was measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};

use machine::threads;

/// Longest time for all nodes to come to rest, or to report, when there is a reason to end. The user who asked to stop
/// is promised 3 s in all.
const GRACE: Duration = Duration::from_millis(1500);

/// A stop flag that is set when the time is over.
pub(crate) struct Grace {
    over: Arc<AtomicBool>,
    /// Ends the timer when dropped.
    _timer: Sender<()>,
}

impl Grace {
    /// Begins now.
    pub(crate) fn begin() -> Grace {
        Grace::new(GRACE)
    }

    fn new(time: Duration) -> Grace {
        let over = Arc::new(AtomicBool::new(false));
        let (timer, dropped) = bounded(0);
        let for_timer = Arc::clone(&over);
        let spawned = threads::spawn("grace", move || {
            if dropped.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
                for_timer.store(true, Ordering::Relaxed);
            }
        });
        if spawned.is_err() {
            over.store(true, Ordering::Relaxed);
        }
        Grace { over, _timer: timer }
    }

    /// Set when the time is over.
    pub(crate) fn over(&self) -> &AtomicBool {
        &self.over
    }
}

#[cfg(test)]
mod tests {
    use testing::wait::wait_until;

    use super::*;

    #[test]
    fn grace_ends_and_not_before_its_time() {
        let is_over = |grace: &Grace| grace.over().load(Ordering::Relaxed);
        let (long, short) = (Grace::new(Duration::MAX), Grace::new(Duration::ZERO));
        wait_until("the end", Duration::from_secs(1), || is_over(&short));
        assert!(!is_over(&long));
    }
}
