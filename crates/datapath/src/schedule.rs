//! When the messages of a QP are planned in an open loop: at absolute times, which follow from a seed and a start alone.

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand_distr::{Distribution, Exp1};
use settings::Arrivals;

use super::pattern::mix;

/// The planned times of one QP, in raw clock units.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    arrivals: Arrivals,
    mean_gap_raw: f64,
    /// How far into its first gap a fixed schedule begins, 0 to 1.
    phase: f64,
    chance: Xoshiro256PlusPlus,
    start_raw: u64,
    /// The last of `planned_raw`, from the start. 53 bits are enough for a month in nanoseconds, and the rest of one.
    after_start_raw: f64,
    /// Planned times that were made together, which costs half as much as each alone.
    planned_raw: [u64; TOGETHER],
    next: usize,
}

const TOGETHER: usize = 16;

impl Schedule {
    /// A schedule with this mean gap, in raw clock units. Schedules of one `seed` and different `qp`s are independent
    /// of each other; fixed ones of `qps` lie evenly between each other.
    pub(super) fn new(
        arrivals: Arrivals,
        mean_gap_raw: f64,
        seed: u64,
        qp: u32,
        qps: u32,
    ) -> Schedule {
        Schedule {
            arrivals,
            mean_gap_raw,
            phase: (f64::from(qp) + 0.5) / f64::from(qps.max(1)),
            chance: Xoshiro256PlusPlus::seed_from_u64(mix(mix(seed).wrapping_add(qp.into()))),
            start_raw: 0,
            after_start_raw: 0.0,
            planned_raw: [0; TOGETHER],
            next: 0,
        }
    }

    pub(super) fn start(&mut self, start_raw: u64) {
        self.start_raw = start_raw.max(1);
        self.after_start_raw = match self.arrivals {
            Arrivals::Poisson => 0.0,
            // A gap before its first time.
            Arrivals::Fixed => (self.phase - 1.0) * self.mean_gap_raw,
        };
        self.plan();
    }

    /// The next planned time, never 0.
    #[inline]
    pub(super) fn next_raw(&self) -> u64 {
        // The mask says to the compiler that there is one.
        self.planned_raw[self.next % TOGETHER]
    }

    /// Goes on to the one after it.
    #[inline]
    pub(super) fn advance(&mut self) {
        self.next += 1;
        if self.next == TOGETHER {
            self.plan();
        }
    }

    #[inline(never)]
    fn plan(&mut self) {
        let mut mean_gaps = [1.0; TOGETHER];
        if self.arrivals == Arrivals::Poisson {
            let mut chance = self.chance.clone();
            mean_gaps.fill_with(|| Exp1.sample(&mut chance));
            self.chance = chance;
        }
        // A loop of its own, since calls in the other one would keep the sum out of a register.
        let mut after_start_raw = self.after_start_raw;
        for (planned_raw, mean_gaps) in self.planned_raw.iter_mut().zip(mean_gaps) {
            after_start_raw += mean_gaps * self.mean_gap_raw;
            *planned_raw = self.start_raw + whole(after_start_raw);
        }
        self.after_start_raw = after_start_raw;
        self.next = 0;
    }
}

/// The whole number nearest to a float from 0 on, [`LAST`] at most, in a quarter of the instructions of `as u64`: the
/// sum's last bit stands for 1, so that its lower bits are the number (Goldberg, "What every computer scientist should know about
/// floating-point arithmetic", ACM Computing Surveys 23(1), 1991).
#[inline]
fn whole(number: f64) -> u64 {
    (number.min(LAST) + TWO_TO_52).to_bits() & (TWO_TO_52 as u64 - 1)
}

/// From here on a float has no fraction.
const TWO_TO_52: f64 = 4_503_599_627_370_496.0;

/// The longest time that can be planned: 17 days of a clock of 3 GHz.
const LAST: f64 = TWO_TO_52 - 1.0;

// The earliest of several times, of which one changes at a time: a tournament tree (Knuth, "The Art of Computer
// Programming" 3, 2nd edition, 5.4.1). A change costs one comparison a level and no branch, where a heap guesses.

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
    use proptest::prelude::*;

    use super::*;

    fn times(arrivals: Arrivals, seed: u64, qp: u32, count: usize) -> Vec<u64> {
        let mut schedule = Schedule::new(arrivals, 1_000.0, seed, qp, 4);
        schedule.start(5_000_000);
        (0..count)
            .map(|_| {
                let at = schedule.next_raw();
                schedule.advance();
                at
            })
            .collect()
    }

    #[test]
    fn floats_become_the_nearest_whole_number_up_to_the_last() {
        let nearest = [0.0, 0.4, 0.6, 1.0, 1.5, 1e9 + 0.25, 1e15, LAST];
        let found = nearest.map(whole);
        assert_eq!(found, nearest.map(|it| it.round() as u64));
        assert_eq!([LAST + 1.0, 1e300, f64::INFINITY].map(whole), [LAST as u64; 3]);
    }

    #[test]
    fn the_mean_gap_is_as_asked_over_a_long_time() {
        let count = 1_000_000;
        let last = times(Arrivals::Poisson, 3, 2, count).pop().unwrap() - 5_000_000;
        let mean = last as f64 / count as f64;
        // Five standard errors of an exponential's mean.
        assert!((mean - 1_000.0).abs() < 5.0, "{mean}");
    }

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
