//! The checksum of a file: the sum, modulo 2^128, of the XXH3-128 hashes of its chunks, each seeded with the chunk's
//! number. Chunks may be added in any order and by several threads, without storing anything per chunk. It detects
//! errors of networks, devices and this program; it does not protect against deliberate forgery.

use std::fmt;
use std::str::FromStr;

use twox_hash::XxHash3_128;

/// The checksum of the chunks added so far; of the file once all are added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest(u128);

impl Digest {
    pub fn add(&mut self, index: u64, chunk: &[u8]) {
        let hash = XxHash3_128::oneshot_with_seed(index, chunk);
        self.0 = self.0.wrapping_add(hash);
    }

    /// Adds the chunks of another digest.
    pub fn merge(&mut self, other: Digest) {
        self.0 = self.0.wrapping_add(other.0);
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for Digest {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u128::from_str_radix(text, 16).map(Digest)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(chunks: &[(u64, &[u8])]) -> Digest {
        let mut digest = Digest::default();
        for (index, chunk) in chunks {
            digest.add(*index, chunk);
        }
        digest
    }

    #[test]
    fn it_is_xxh3() {
        // XXH3-128 of no bytes, as `xxhsum -H2` prints it.
        let of_nothing = "99aa06d3014798d86001c324468d497f";
        assert_eq!(of(&[(0, b"")]).to_string(), of_nothing);
    }

    #[test]
    fn what_can_go_wrong_shows() {
        let right = of(&[(0, b"aa"), (1, b"bb"), (2, b"aa")]);
        let shows = |wrong: &[(u64, &[u8])], what| assert_ne!(right, of(wrong), "{what}");
        shows(&[(0, b"bb"), (1, b"aa"), (2, b"aa")], "exchanged");
        shows(&[(0, b"aa"), (1, b"bb")], "missing");
        shows(&[(0, b"aa"), (0, b"aa"), (1, b"bb")], "doubled");
        shows(&[(0, b"aa"), (1, b"bb"), (2, b"ab")], "spoilt");
    }

    proptest! {
        #[test]
        fn order_and_threads_do_not_matter(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..20),
            split in 0_usize..20,
        ) {
            let numbered: Vec<(u64, &[u8])> = (0..).zip(chunks.iter().map(Vec::as_slice)).collect();
            let whole = of(&numbered);
            let (first, second) = numbered.split_at(split.min(numbered.len()));
            let mut merged = of(second);
            merged.merge(of(&first.iter().rev().copied().collect::<Vec<_>>()));
            prop_assert_eq!(whole, merged);
            prop_assert_eq!(whole.to_string().parse(), Ok(whole));
        }
    }
}
