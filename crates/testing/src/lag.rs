//! How late this machine runs threads that are due: nobody can notice anything in that time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Adds up how much later than asked for a sleeping thread wakes, beyond the usual, until dropped.
pub struct Lag(Arc<AtomicU64>);

impl Lag {
    /// Begins to watch.
    pub fn watch() -> Lag {
        let late_ns = Arc::new(AtomicU64::new(0));
        let watched = Arc::downgrade(&late_ns);
        std::thread::spawn(move || add_up(&watched));
        Lag(late_ns)
    }

    /// Since it began.
    pub fn so_far(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

fn add_up(late_ns: &Weak<AtomicU64>) {
    const NAP: Duration = Duration::from_millis(20);
    while let Some(late_ns) = late_ns.upgrade() {
        let before = Instant::now();
        std::thread::sleep(NAP);
        let late = before.elapsed().saturating_sub(NAP * 2);
        late_ns.fetch_add(late.as_nanos() as u64, Ordering::Relaxed);
    }
}
