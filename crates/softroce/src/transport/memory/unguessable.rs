//! Numbers that a stranger cannot guess, not even with some of them at hand: SipHash of a counter, with a key from the
//! system's randomness (`RandomState` has one). In a network in memory, which nobody attacks, they come from its seed.

use std::hash::{BuildHasher, RandomState};

use fastrand::Rng;

pub(crate) enum Unguessable {
    /// Each is the hash of the next number.
    Keyed(RandomState, u64),
    /// The same from the same seed.
    Seeded(Rng),
}

impl Default for Unguessable {
    fn default() -> Unguessable {
        Unguessable::Keyed(RandomState::new(), 0)
    }
}

impl Unguessable {
    pub(crate) fn from_seed(seed: Option<u64>) -> Unguessable {
        seed.map_or_else(Unguessable::default, |seed| Unguessable::Seeded(Rng::with_seed(seed)))
    }

    pub(crate) fn draw(&mut self) -> u64 {
        match self {
            Unguessable::Keyed(key, drawn) => {
                *drawn += 1;
                key.hash_one(*drawn)
            }
            Unguessable::Seeded(chance) => chance.u64(..),
        }
    }
}
