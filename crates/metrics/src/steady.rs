//! When a warm-up has done its work: the rule of `--warmup auto`. Pure logic over samples that the caller takes.
//!
//! Throughput is counted in intervals of at least 50 ms, and at least 20 signalled completions, so that moderation's
//! bursts do not look like a change. A straight line is laid through the last 8, 16, 32 … intervals and through all of
//! them. Throughput is steady when one of these lines shows that
//! - it would change by less than 2.5 % in the next 2 s: its slope and twice the slope's standard error together; or
//! - it has scattered too much to show so little for 3 s, and the slope is within twice its standard error.
//!
//! So an even flow is steady after 400 ms, one that scatters by 1 % from interval to interval after about 1.5 s, and one
//! that scatters by 5 % or more after 3 s. The cap of the warm-up ends one that never gets there.
//!
//! A window shorter than 2 s is measured before so much can change. All times above are then shorter in its proportion,
//! down to a tenth of a second ahead: intervals of 25 ms, and 300 ms for what scatters.
//!
//! What this cannot tell: a rise slower than the noise (with a scatter of 15 % one of less than about 4 % a second),
//! and a plateau of half a second before a further rise. The window's own test (`drift`) may still find them.

use std::collections::VecDeque;

use super::drift::Line;

/// The shortest interval, in nanoseconds; sampling more often than this gains nothing.
pub const INTERVAL_NS: u64 = 50_000_000;
/// The same before short windows.
const LEAST_INTERVAL_NS: u64 = 25_000_000;

/// Intervals of the shortest line.
const FEWEST_INTERVALS: usize = 8;
const MOST_INTERVALS: usize = 256;
/// Signalled completions in an interval, so that one more or less is no more than 5 %.
const COMPLETIONS: u64 = 20;
/// How far ahead a change is judged, in seconds: over the window, within these bounds.
const AHEAD_S: std::ops::RangeInclusive<f64> = 0.1..=2.0;
/// The change in that time that does not matter, relative to the rate.
const MOST_CHANGE: f64 = 0.025;
/// Standard errors that a slope may be off.
const ERRORS: f64 = 2.0;
/// How long noise must have averaged out where it hides so small a change, in times of that; and at least, in seconds.
const NOISY_TIMES: f64 = 1.5;
const LEAST_NOISY_S: f64 = 0.3;

/// Watches a count of messages until it grows steadily.
#[derive(Clone, Debug)]
pub struct SteadyDetector {
    min_messages: u64,
    ahead_s: f64,
    interval_ns: u64,
    /// Where the open interval began: time and count.
    open: Option<(u64, u64)>,
    /// The last closed intervals, oldest first.
    intervals: VecDeque<Interval>,
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    began_s: f64,
    ended_s: f64,
    messages_per_s: f64,
}

impl SteadyDetector {
    /// `messages_per_completion` is how many messages one completion retires (`signal_every`).
    pub fn new(messages_per_completion: u32) -> Self {
        SteadyDetector::before(f64::INFINITY, messages_per_completion)
    }

    /// The same before a window of so many seconds.
    pub fn before(window_s: f64, messages_per_completion: u32) -> Self {
        let ahead_s = window_s.clamp(*AHEAD_S.start(), *AHEAD_S.end());
        let interval_ns = INTERVAL_NS as f64 * ahead_s / AHEAD_S.end();
        SteadyDetector {
            ahead_s,
            interval_ns: (interval_ns as u64).max(LEAST_INTERVAL_NS),
            min_messages: COMPLETIONS * u64::from(messages_per_completion.max(1)),
            open: None,
            intervals: VecDeque::with_capacity(MOST_INTERVALS),
        }
    }

    /// Takes a sample: all messages completed so far, and when that was, in nanoseconds from any fixed
    /// moment. Says whether throughput is steady now.
    pub fn push(&mut self, at_ns: u64, messages: u64) -> bool {
        let Some((since_ns, before)) = self.open else {
            self.open = Some((at_ns, messages));
            return false;
        };
        let elapsed_ns = at_ns.saturating_sub(since_ns);
        let moved = messages.saturating_sub(before);
        if elapsed_ns >= self.interval_ns && moved >= self.min_messages {
            if self.intervals.len() == MOST_INTERVALS {
                self.intervals.pop_front();
            }
            self.intervals.push_back(Interval {
                began_s: since_ns as f64 / 1e9,
                ended_s: at_ns as f64 / 1e9,
                messages_per_s: moved as f64 / elapsed_ns as f64 * 1e9,
            });
            self.open = Some((at_ns, messages));
        }
        self.is_steady()
    }

    fn is_steady(&self) -> bool {
        let intervals = self.intervals.len();
        let doubled = std::iter::successors(Some(FEWEST_INTERVALS), |count| Some(count * 2));
        doubled
            .take_while(|&count| count < intervals)
            .chain((intervals >= FEWEST_INTERVALS).then_some(intervals))
            .any(|count| self.is_steady_over(count))
    }

    /// Whether the last `count` intervals show it.
    fn is_steady_over(&self, count: usize) -> bool {
        let last = self.intervals.range(self.intervals.len() - count..);
        let points: Vec<(f64, f64)> =
            last.clone().map(|it| ((it.began_s + it.ended_s) / 2.0, it.messages_per_s)).collect();
        let (Some(line), Some(first), Some(end)) =
            (Line::through(&points), last.clone().next(), self.intervals.back())
        else {
            return false;
        };
        let (slope, error) = (line.slope.abs(), ERRORS * line.slope_error);
        let lasted_s = end.ended_s - first.began_s;
        let noisy_s = (NOISY_TIMES * self.ahead_s).max(LEAST_NOISY_S);
        (slope + error) * self.ahead_s <= MOST_CHANGE * line.mean
            || lasted_s >= noisy_s && slope <= error
    }
}

#[cfg(test)]
mod tests {
    use super::super::noise::Noise;
    use super::*;

    const MS: u64 = 1_000_000;

    /// Feeds a sample every `step_ms` and says after how many milliseconds it is steady.
    fn steady_after_ms(
        messages_per_completion: u32,
        step_ms: u64,
        count_at_ms: impl Fn(u64) -> u64,
    ) -> Option<u64> {
        let mut detector = SteadyDetector::new(messages_per_completion);
        (0..=10_000).step_by(step_ms as usize).find(|&ms| detector.push(ms * MS, count_at_ms(ms)))
    }

    #[test]
    fn a_late_sample_counts_by_its_own_time() {
        let mut detector = SteadyDetector::new(1);
        let times_ms = [0, 50, 130, 180, 240, 390, 440, 490, 700];
        let steady = times_ms.map(|ms| detector.push(ms * MS, ms * 1000));
        assert_eq!(steady.iter().position(|&steady| steady), Some(8));
    }

    /// Before a window of 50 ms an even flow is steady after 200 ms and one that scatters by 5 % mostly after 300 ms, but a
    /// steep rise is none.
    #[test]
    fn a_short_window_takes_a_short_warm_up() {
        let after_ms = |rate: &dyn Fn(f64) -> f64, scatter: f64, seed: u64| {
            let mut noise = Noise::new(seed, 0.0);
            let mut detector = SteadyDetector::before(0.05, 1);
            let mut messages = 0.0;
            (0..=200u64).find_map(|step| {
                let is_steady = detector.push(step * 25 * MS, messages as u64);
                let moved = rate(step as f64 * 0.025) * (1.0 + scatter * noise.next());
                messages += moved.max(0.0) * 25_000.0;
                is_steady.then_some(step * 25)
            })
        };
        assert_eq!(after_ms(&|_| 1.0, 0.0, 0), Some(200));
        let soon = |seed: &u64| after_ms(&|_| 1.0, 0.05, *seed).is_some_and(|ms| ms <= 300);
        assert!((0..100).filter(soon).count() >= 80);
        let doubles = |at_s: f64| (1.0 + at_s).min(2.0);
        assert!(after_ms(&doubles, 0.0, 0).unwrap() >= 1_000);
    }

    #[test]
    fn nothing_moving_is_never_steady() {
        assert_eq!(steady_after_ms(1, 50, |_| 0), None);
        assert_eq!(steady_after_ms(1, 50, |_| 5_000_000), None);
    }

    #[test]
    fn a_see_saw_averages_out_but_not_at_once() {
        // 50 ms at full rate, 50 ms at a third of it, for ever.
        let after = steady_after_ms(1, 50, |ms: u64| {
            let (pairs, rest) = (ms / 100, ms % 100);
            pairs * 50 * 4 * 1000 + rest.min(50) * 3000 + rest.saturating_sub(50) * 1000
        })
        .unwrap();
        assert!((3000..=4000).contains(&after), "{after} ms");
    }

    #[test]
    fn bursts_of_moderation_do_not_hide_an_even_flow() {
        // 2.5 completions of 100 messages fall into 50 ms: the intervals become longer instead.
        let after = steady_after_ms(100, 50, |ms: u64| ms * 5 / 100 * 100).unwrap();
        assert!((8 * 400..=8 * 500).contains(&after), "{after} ms");
    }

    #[test]
    fn counts_that_go_back_are_not_progress() {
        let mut detector = SteadyDetector::new(1);
        for step in 0..20 {
            assert!(!detector.push(step * 50 * MS, 1_000_000 - step * 1000));
        }
    }

    #[test]
    fn a_long_warm_up_keeps_no_more_than_it_needs() {
        let mut detector = SteadyDetector::new(1);
        (0..2_000).for_each(|step| {
            detector.push(step * 50 * MS, step * step);
        });
        assert_eq!(detector.intervals.len(), MOST_INTERVALS);
    }

    /// The default cap of a warm-up.
    const CAP_S: f64 = 5.0;

    /// When a rate that scatters by `scatter` from interval to interval is called steady, in seconds; `None` where the
    /// cap ends the warm-up.
    fn steady_after_s(
        rate: &dyn Fn(f64) -> f64,
        scatter: f64,
        alike_intervals: f64,
        seed: u64,
    ) -> Option<f64> {
        let mut noise = Noise::new(seed, alike_intervals);
        let mut detector = SteadyDetector::new(1);
        detector.push(0, 0);
        let mut messages = 0.0;
        let steps = (CAP_S / 0.05) as u64;
        (1..=steps).find_map(|step| {
            let middle_s = (step as f64 - 0.5) * 0.05;
            messages += (rate(middle_s) * (1.0 + scatter * noise.next())).max(0.0) * 1e6 * 0.05;
            let is_steady = detector.push(step * INTERVAL_NS, messages as u64);
            is_steady.then_some(step as f64 * 0.05)
        })
    }

    type Rate = Box<dyn Fn(f64) -> f64>;

    /// Rates of warm-ups that take so long, from a part of the final rate, 1: on a line, and approaching it
    /// exponentially, 95 % of the way in that time.
    fn ramps() -> Vec<(String, Rate)> {
        let mut ramps: Vec<(String, Rate)> = Vec::new();
        for seconds in [1.0, 2.0, 5.0] {
            for from in [0.2, 0.5, 0.8] {
                let what = format!("{seconds} s from {from}");
                let linear = move |at: f64| from + (1.0 - from) * (at / seconds).min(1.0);
                let gradual = move |at: f64| 1.0 - (1.0 - from) * (-3.0 * at / seconds).exp();
                ramps.push((format!("{what}, linear"), Box::new(linear)));
                ramps.push((format!("{what}, exponential"), Box::new(gradual)));
            }
        }
        ramps
    }

    /// How many of some warm-ups are called steady below 97 % of the final rate, and the lowest rate of those.
    fn early(rate: &dyn Fn(f64) -> f64, scatter: f64, times: u64) -> (usize, f64) {
        (0..times)
            .filter_map(|seed| steady_after_s(rate, scatter, 0.0, seed))
            .map(rate)
            .filter(|rate| *rate < 0.97)
            .fold((0, 1.0), |(count, least), rate| (count + 1, rate.min(least)))
    }

    #[test]
    fn a_ramp_is_not_steady_before_it_ends() {
        for (name, rate) in ramps() {
            assert_eq!(early(&rate, 0.0, 1).0, 0, "{name}");
            for scatter in [0.003, 0.01, 0.03, 0.05] {
                let (count, least) = early(&rate, scatter, 25);
                let is_late = count <= 1 && least >= 0.95;
                assert!(is_late, "{name}, {scatter}: {count}, {least}");
            }
        }
    }

    #[test]
    fn steep_ramps_are_seen_through_much_noise() {
        for (name, rate) in ramps() {
            // One that rises in 3 s by less than the noise hides is not told.
            let is_steep = !name.starts_with("5 s") || name == "5 s from 0.2, linear";
            for scatter in [0.15, 0.30].into_iter().filter(|_| is_steep) {
                assert!(early(&rate, scatter, 25).0 <= 1, "{name}, {scatter}");
            }
        }
    }

    #[test]
    fn plain_noise_is_steady_within_the_cap() {
        let medians_s = [0.7, 1.6, 3.0, 3.0, 3.0, 3.0];
        let scatters = [0.003, 0.01, 0.03, 0.05, 0.15, 0.30];
        for (scatter, median_s) in scatters.into_iter().zip(medians_s) {
            for alike in [0.0, 2.0] {
                let mut known: Vec<f64> = (0..100)
                    .filter_map(|seed| steady_after_s(&|_| 1.0, scatter, alike, seed))
                    .collect();
                known.sort_by(f64::total_cmp);
                assert!(known.len() >= 99, "scatter {scatter}: {}", known.len());
                assert!(known[50] <= median_s + 0.01, "{scatter}: {} s", known[50]);
            }
        }
    }
}
