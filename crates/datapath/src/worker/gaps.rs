//! Samples of the time between posts of a worker in an open loop, by which its arrivals are tested for their
//! distribution.
//!
//! A sample is the time from a post to the k-th post after it. k is so large that the natural spread of such a time,
//! which is sqrt(k) mean gaps, is ten times the lateness that is tolerated: what a test finds is then the arrivals', and
//! not the jitter of a worker whose lateness is told apart. Samples are taken only while all queues have room. Queues are
//! full when arrivals are dense, so that the samples which that leaves are too long: where it ends many, there are none.

use super::super::pattern::mix;
use super::super::report::GapSamples;
use metrics::clock::Clock;
use settings::Arrivals;

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
    use super::*;

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
            assert!(samples.mean_gaps.iter().all(|gaps| is_about(*gaps, messages as f64)));
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
        let mut post = |gaps: &mut GapSampler, messages: u64, after_ms: u64| {
            for _ in 0..messages {
                at_ms += after_ms;
                gaps.posted(at(at_ms * 1_000), 1);
            }
        };
        post(&mut gaps, 1 + 100 * LEAST_MESSAGES, 1);
        post(&mut gaps, 3, 9);
        gaps.interrupt();
        gaps.interrupt();
        post(&mut gaps, 1 + LEAST_MESSAGES, 2);
        let whole = gaps.samples.clone();
        assert_eq!((gaps.interrupted, whole.len()), (1, 101));
        let length = LEAST_MESSAGES as f64;
        assert!(whole[..100].iter().all(|gaps| is_about(*gaps, length)));
        assert!(is_about(whole[100], 2.0 * length), "{}", whole[100]);
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
