//! Numbers that a stranger cannot guess, not even with some of them at hand: SipHash of a counter, with a key from the
//! system's randomness (`RandomState` has one).

use std::hash::{BuildHasher, RandomState};

/// Draws numbers.
#[derive(Default)]
pub(super) struct Unguessable {
    key: RandomState,
    drawn: u64,
}

impl Unguessable {
    /// The next number.
    pub(super) fn draw(&mut self) -> u64 {
        self.drawn += 1;
        self.key.hash_one(self.drawn)
    }
}
