//! How long a peer that lives is waited for: as long as its work moves, which its heart-beats tell. It must not read a
//! clock.

use std::time::{Duration, Instant};

/// Since when a peer's work has not moved.
pub struct Patience {
    progress: u64,
    since: Instant,
}

impl Patience {
    /// `progress` is what the peer tells `now`.
    pub fn new(progress: u64, now: Instant) -> Self {
        Patience { progress, since: now }
    }

    /// Whether nothing has moved for `limit`.
    pub fn is_over(&mut self, progress: u64, now: Instant, limit: Duration) -> bool {
        if progress != self.progress {
            *self = Patience::new(progress, now);
        }
        now.saturating_duration_since(self.since) >= limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(1);

    #[test]
    fn a_peer_that_moves_is_waited_for_beyond_the_limit() {
        let start = Instant::now();
        let mut patience = Patience::new(7, start);
        for step in 1..20 {
            let now = start + LIMIT * step * 9 / 10;
            assert!(!patience.is_over(7 + u64::from(step), now, LIMIT), "{step}");
        }
        let moved = start + LIMIT * 19 * 9 / 10;
        let almost = LIMIT - Duration::from_nanos(1);
        assert!(!patience.is_over(26, moved + almost, LIMIT));
        assert!(patience.is_over(26, moved + LIMIT, LIMIT));
    }
}
