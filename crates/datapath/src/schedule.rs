//! When the messages of a QP are planned in an open loop: at absolute times, which follow from a seed and a start alone. And
//! samples of the times between posts, by which the arrivals are tested.

use metrics::Clock;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand_distr::{Distribution, Exp1};
use settings::Arrivals;

use crate::GapSamples;
use crate::operation::mix;

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
        for (planned_raw, gap) in self.planned_raw.iter_mut().zip(mean_gaps) {
            after_start_raw += gap * self.mean_gap_raw;
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

/// The lateness that is tolerated at least, in nanoseconds.
pub const TOLERATED_NS: u64 = 2_000;

/// How often the spread of a sample is to contain it.
const SPREADS: f64 = 10.0;

/// The fewest messages of a sample: of fewer, the shortest of many samples would be as short as a pass of a worker's loop, and
/// two that are posted in one pass are 0 apart, which exponential gaps never are.
const LEAST_MESSAGES: u64 = 8;

/// The part of the samples that a full queue may end, one in so many.
const MOST_INTERRUPTED: u64 = 100;

/// The most samples that a worker keeps; of more, a random choice.
const MOST_SAMPLES: usize = 2_048;

/// Samples of the time between posts of a worker in an open loop, by which its arrivals are tested for their
/// distribution.
///
/// A sample is the time from a post to the k-th post after it. k is so large that the natural spread of such a time,
/// which is sqrt(k) mean gaps, is ten times the lateness that is tolerated: what a test finds is then the arrivals', and
/// not the jitter of a worker whose lateness is told apart. Samples are taken only while all queues have room. Queues are
/// full when arrivals are dense, so that the samples which that leaves are too long: where it ends many, there are none.
#[derive(Default)]
pub(super) struct GapSampler {
    /// Messages from the first post of a sample to its last; 0 where none is taken.
    messages: u64,
    mean_gap_raw: f64,
    seed: u64,
    /// The post with which the sample under way began, and messages until it ends.
    began_raw: Option<u64>,
    left: u64,
    taken: u64,
    interrupted: u64,
    samples: Vec<f64>,
}

impl GapSampler {
    /// For messages with this mean gap over all QPs of the worker.
    pub(super) fn new(arrivals: Arrivals, mean_gap_raw: f64, clock: &Clock, seed: u64) -> Self {
        if arrivals == Arrivals::Fixed {
            return GapSampler::default();
        }
        let tolerated_raw = clock.raw_after(0, TOLERATED_NS) as f64;
        let messages = (SPREADS * tolerated_raw / mean_gap_raw).powi(2).ceil();
        GapSampler {
            // A float beyond the range becomes its end.
            messages: (messages as u64).max(LEAST_MESSAGES),
            mean_gap_raw,
            seed,
            samples: Vec::with_capacity(MOST_SAMPLES),
            ..GapSampler::default()
        }
    }

    /// So many messages are posted, together.
    #[inline]
    pub(super) fn posted(&mut self, at_raw: u64, messages: u64) {
        if self.left > messages {
            self.left -= messages;
        } else {
            self.ends_within(at_raw, messages);
        }
    }

    #[inline(never)]
    fn ends_within(&mut self, at_raw: u64, messages: u64) {
        let mut rest = messages;
        while rest > 0 && self.left <= rest {
            rest -= self.left.max(1);
            self.ends(at_raw);
        }
        self.left = self.left.saturating_sub(rest);
    }

    /// A sample ends, and the next begins.
    fn ends(&mut self, at_raw: u64) {
        let began_raw = self.began_raw.replace(at_raw);
        self.left = self.messages;
        let (Some(began_raw), 1..) = (began_raw, self.messages) else {
            return;
        };
        let gaps = at_raw.saturating_sub(began_raw) as f64 / self.mean_gap_raw;
        self.taken += 1;
        if self.samples.len() < MOST_SAMPLES {
            self.samples.push(gaps);
            return;
        }
        // Algorithm R of Vitter, "Random sampling with a reservoir", ACM TOMS 11(1), 1985.
        let place = u128::from(mix(self.seed.wrapping_add(self.taken))) * u128::from(self.taken);
        if let Some(sample) = self.samples.get_mut((place >> 64) as usize) {
            *sample = gaps;
        }
    }

    /// A queue is full: the sample under way is none.
    pub(super) fn interrupt(&mut self) {
        self.interrupted += u64::from(self.began_raw.is_some());
        (self.began_raw, self.left) = (None, 0);
    }

    pub(super) fn into_samples(self) -> GapSamples {
        let is_whole = self.interrupted <= self.taken / MOST_INTERRUPTED;
        GapSamples {
            messages_of_gap: self.messages,
            mean_gaps: if is_whole { self.samples } else { Vec::new() },
        }
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
            let (mut earliest, mut expected) = (Earliest::new(places), vec![u64::MAX; places]);
            for (number, time) in changes {
                let place = number % places;
                earliest.set(place as u32, time);
                expected[place] = time;
                let first = earliest.first();
                prop_assert_eq!(Some(&first.time), expected.iter().min());
                prop_assert!(first.time == u64::MAX || expected[first.place as usize] == first.time);
            }
            earliest.clear();
            prop_assert_eq!(earliest.first().time, u64::MAX);
        }
    }

    #[test]
    fn without_places_there_is_no_time() {
        assert_eq!(Earliest::default().first().time, u64::MAX);
    }

    /// A sampler of messages with this mean gap, and the raw reading at a time in microseconds. A microsecond may be
    /// no whole number of ticks.
    fn sampler(arrivals: Arrivals, mean_gap_us: u64) -> (GapSampler, impl Fn(u64) -> u64) {
        let clock = Clock::new();
        let us = clock.raw_after(0, TOLERATED_NS) as f64 / (TOLERATED_NS as f64 / 1e3);
        (GapSampler::new(arrivals, mean_gap_us as f64 * us, &clock, 1), move |at_us| {
            (at_us as f64 * us) as u64
        })
    }

    /// Readings are whole ticks.
    fn is_about(gaps: f64, expected: f64) -> bool {
        (gaps - expected).abs() < 1e-3
    }

    #[test]
    fn samples_are_as_long_as_their_spread_asks_and_cover_all_of_the_time() {
        // sqrt(16) gaps of 5 µs are ten times 2 µs.
        for (mean_gap_us, messages) in
            [(5, 16), (1, 400), (10, LEAST_MESSAGES), (1_000, LEAST_MESSAGES)]
        {
            let (mut gaps, at) = sampler(Arrivals::Poisson, mean_gap_us);
            for message in 0..=2_100 * messages {
                gaps.posted(at(5 + message * mean_gap_us), 1);
            }
            assert_eq!(gaps.taken, 2_100);
            let samples = gaps.into_samples();
            assert_eq!(
                (samples.messages_of_gap, samples.mean_gaps.len()),
                (messages, MOST_SAMPLES)
            );
            assert!(samples.mean_gaps.iter().all(|length| is_about(*length, messages as f64)));
        }
    }

    #[test]
    fn messages_that_are_posted_together_count_each() {
        let samples = |together: u64| {
            let (mut gaps, at) = sampler(Arrivals::Poisson, 5);
            for message in (together..=9_600).step_by(together as usize) {
                gaps.posted(at(message * 5), together);
            }
            gaps.into_samples().mean_gaps
        };
        assert_eq!(samples(1).len(), 599);
        for together in [3, 16, 40] {
            let (sum, count) = (samples(together).iter().sum::<f64>(), samples(together).len());
            // Of 40 messages some samples begin and end together: as long as nothing, and the others longer.
            assert!((count as i64 - 599).abs() <= 2, "{together}: {count}");
            assert!((sum / count as f64 - 16.0).abs() < 0.1, "{together}: {sum}");
        }
    }

    #[test]
    fn a_full_queue_interrupts_a_sample_and_many_leave_none() {
        let (mut gaps, at) = sampler(Arrivals::Poisson, 1_000);
        let mut at_ms = 0;
        let mut post = |sampler: &mut GapSampler, messages: u64, after_ms: u64| {
            for _ in 0..messages {
                at_ms += after_ms;
                sampler.posted(at(at_ms * 1_000), 1);
            }
        };
        post(&mut gaps, 1 + 100 * LEAST_MESSAGES, 1);
        post(&mut gaps, 3, 9);
        gaps.interrupt();
        gaps.interrupt();
        post(&mut gaps, 1 + LEAST_MESSAGES, 2);
        let whole = gaps.samples.clone();
        assert_eq!((gaps.interrupted, whole.len()), (1, 101));
        let expected = LEAST_MESSAGES as f64;
        assert!(whole[..100].iter().all(|length| is_about(*length, expected)));
        assert!(is_about(whole[100], 2.0 * expected), "{}", whole[100]);
        gaps.interrupt();
        assert_eq!(gaps.into_samples().mean_gaps, [0.0; 0]);
    }

    #[test]
    fn a_fixed_schedule_has_no_samples() {
        let (mut fixed, at) = sampler(Arrivals::Fixed, 1_000);
        (1..99).for_each(|at_ms| fixed.posted(at(at_ms * 1_000), 1));
        assert_eq!(fixed.into_samples().mean_gaps, [0.0; 0]);
    }
}
