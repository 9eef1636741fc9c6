//! Whether one who wants the place of a link waits for it or is sent away. It must not read a clock.

use std::time::{Duration, Instant};

use crate::link::Signs;

/// The longest wait for a session to end.
pub const END_LIMIT: Duration = Duration::from_secs(10);

/// One who wants the place of a link that may be over.
#[derive(Debug)]
pub struct Newcomer {
    came: Instant,
    /// How often the link had been heard when the newcomer came.
    heard: Option<u64>,
}

impl Newcomer {
    pub fn new(came: Instant) -> Newcomer {
        Newcomer { came, heard: None }
    }

    /// Whether the place may soon be free: the link ends, or has been silent since the newcomer came, as one is whose cable
    /// was pulled. A link that is not there yet is in its handshake, which may fail.
    pub fn may_wait(&mut self, link: Option<Signs>, now: Instant) -> bool {
        now.saturating_duration_since(self.came) < END_LIMIT
            && link.is_none_or(|link| {
                let heard_before = *self.heard.get_or_insert(link.heard);
                link.is_ending || link.heard == heard_before
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALMOST: Duration = Duration::from_millis(9_999);

    fn signs(is_ending: bool, heard: u64) -> Option<Signs> {
        Some(Signs { is_ending, heard })
    }

    #[test]
    fn a_link_that_is_heard_lives() {
        let came = Instant::now();
        let mut newcomer = Newcomer::new(came);
        assert!(newcomer.may_wait(signs(false, 7), came));
        assert!(newcomer.may_wait(signs(false, 7), came + END_LIMIT / 2));
        assert!(!newcomer.may_wait(signs(false, 8), came + END_LIMIT / 2));
    }

    #[test]
    fn one_that_ends_is_waited_for_whatever_still_comes_of_it() {
        let came = Instant::now();
        let mut newcomer = Newcomer::new(came);
        for (millis, heard) in (0..10_000).step_by(100).zip(7..) {
            let now = came + Duration::from_millis(millis);
            assert!(newcomer.may_wait(signs(true, heard), now), "{millis} ms");
        }
    }

    #[test]
    fn nothing_is_waited_for_longer_than_ten_seconds() {
        for link in [None, signs(true, 7), signs(false, 7)] {
            let came = Instant::now();
            let mut newcomer = Newcomer::new(came);
            assert!(newcomer.may_wait(link, came + ALMOST), "{link:?}");
            assert!(!newcomer.may_wait(link, came + END_LIMIT), "{link:?}");
        }
    }

    #[test]
    fn a_handshake_is_waited_for_until_its_link_is_heard() {
        let came = Instant::now();
        let mut newcomer = Newcomer::new(came);
        assert!(newcomer.may_wait(None, came));
        assert!(newcomer.may_wait(signs(false, 0), came));
        assert!(!newcomer.may_wait(signs(false, 1), came));
    }
}
