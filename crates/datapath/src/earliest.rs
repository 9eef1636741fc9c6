//! The earliest of several times, of which one changes at a time: a tournament tree (Knuth, "The Art of Computer
//! Programming" 3, 2nd edition, 5.4.1). A change costs one comparison a level and no branch, where a heap guesses.

/// Times of so many places.
#[derive(Default)]
pub(super) struct Earliest {
    /// Node 1 is the root, nodes 2i and 2i + 1 are below i, the places are the last half: each has the earliest of what
    /// is below it.
    nodes: Box<[At]>,
}

#[derive(Clone, Copy)]
pub(super) struct At {
    pub(super) time: u64,
    pub(super) place: u32,
}

const NEVER: At = At { time: u64::MAX, place: 0 };

impl Earliest {
    /// Memory for each place at most, in bytes.
    pub(super) const BYTES_PER_PLACE: usize = 4 * size_of::<At>();

    pub(super) fn new(places: usize) -> Earliest {
        Earliest { nodes: vec![NEVER; 2 * places.next_power_of_two()].into() }
    }

    /// The earliest time; `u64::MAX` where there is none.
    #[inline]
    pub(super) fn first(&self) -> At {
        self.nodes.get(1).copied().unwrap_or(NEVER)
    }

    /// Sets the time of a place; `u64::MAX` for none.
    #[inline]
    pub(super) fn set(&mut self, place: u32, time: u64) {
        let mut node = self.nodes.len() / 2 + place as usize;
        let mut winner = At { time, place };
        while let Some(at) = self.nodes.get_mut(node) {
            *at = winner;
            if node <= 1 {
                break;
            }
            if let Some(other) = self.nodes.get(node ^ 1)
                && other.time < winner.time
            {
                winner = *other;
            }
            node /= 2;
        }
    }

    pub(super) fn clear(&mut self) {
        self.nodes.fill(NEVER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_the_least_of_what_was_set(
            places in 1_usize..40,
            changes in prop::collection::vec((0_usize..40, prop_oneof![Just(u64::MAX), 0_u64..50]), 0..100),
        ) {
            let (mut earliest, mut all) = (Earliest::new(places), vec![u64::MAX; places]);
            for (place, time) in changes {
                let place = place % places;
                earliest.set(place as u32, time);
                all[place] = time;
                let first = earliest.first();
                prop_assert_eq!(Some(&first.time), all.iter().min());
                prop_assert!(first.time == u64::MAX || all[first.place as usize] == first.time);
            }
            earliest.clear();
            prop_assert_eq!(earliest.first().time, u64::MAX);
        }
    }

    #[test]
    fn without_places_there_is_no_time() {
        assert_eq!(Earliest::default().first().time, u64::MAX);
    }
}
