//! When a warm-up has done its work: the rule of `--warmup auto`. Pure logic over samples that the
//! caller takes; it must not know clocks or threads.
//!
//! The rule in words: throughput is counted in intervals of at least 50 ms, and at least 20 signalled
//! completions, so that moderation's bursts do not look like a change. It is steady when each of the
//! last 6 intervals is within 10 % of their mean, and the means of their earlier and later half are within
//! 3 % of each other. That takes 300 ms at least. The cap of the warm-up ends one that never gets there.

/// The shortest interval, in nanoseconds; sampling more often than this gains nothing.
pub const INTERVAL_NS: u64 = 50_000_000;

/// Intervals that are looked at; even, so that it has halves.
const INTERVALS: usize = 6;
/// Signalled completions in an interval, so that one more or less is no more than 5 %.
const COMPLETIONS: u64 = 20;
/// Largest distance of an interval's rate from the mean, relative to it.
const MAX_DEVIATION: f64 = 0.10;
/// Largest distance of the halves' means, relative to the whole's.
const MAX_DRIFT: f64 = 0.03;

/// Watches a count of messages until it grows steadily.
#[derive(Clone, Debug)]
pub struct SteadyDetector {
    min_messages: u64,
    /// Where the open interval began: time and count.
    open: Option<(u64, u64)>,
    /// Messages a nanosecond of the last closed intervals, oldest first.
    rates: Vec<f64>,
}

impl SteadyDetector {
    /// `messages_per_completion` is how many messages one completion retires (`signal_every`).
    pub fn new(messages_per_completion: u32) -> Self {
        SteadyDetector {
            min_messages: COMPLETIONS * u64::from(messages_per_completion.max(1)),
            open: None,
            rates: Vec::with_capacity(INTERVALS),
        }
    }

    /// Takes a sample: all messages completed so far, and when that was, in nanoseconds from any fixed
    /// moment. Says whether throughput is steady now.
    pub fn push(&mut self, at_ns: u64, messages: u64) -> bool {
        let Some((since_ns, before)) = self.open else {
            self.open = Some((at_ns, messages));
            return false;
        };
        let (elapsed_ns, moved) = (
            at_ns.saturating_sub(since_ns),
            messages.saturating_sub(before),
        );
        if elapsed_ns >= INTERVAL_NS && moved >= self.min_messages {
            if self.rates.len() == INTERVALS {
                self.rates.remove(0);
            }
            self.rates.push(moved as f64 / elapsed_ns as f64);
            self.open = Some((at_ns, messages));
        }
        self.is_steady()
    }

    fn is_steady(&self) -> bool {
        if self.rates.len() < INTERVALS {
            return false;
        }
        let (earlier, later) = self.rates.split_at(INTERVALS / 2);
        let average = mean(&self.rates);
        let drift = (mean(later) - mean(earlier)).abs();
        let deviation = |rate: &f64| (rate - average).abs();
        drift <= MAX_DRIFT * average
            && self
                .rates
                .iter()
                .all(|rate| deviation(rate) <= MAX_DEVIATION * average)
    }
}

fn mean(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>() / rates.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Feeds a sample every `step_ms` and says after how many milliseconds it is steady.
    fn steady_after_ms(
        messages_per_completion: u32,
        step_ms: u64,
        count_at_ms: impl Fn(u64) -> u64,
    ) -> Option<u64> {
        let mut detector = SteadyDetector::new(messages_per_completion);
        (0..=10_000)
            .step_by(step_ms as usize)
            .find(|&ms| detector.push(ms * MS, count_at_ms(ms)))
    }

    #[test]
    fn an_even_flow_is_steady_after_six_intervals() {
        assert_eq!(steady_after_ms(1, 50, |ms| ms * 1000), Some(300));
        assert_eq!(steady_after_ms(1, 10, |ms| ms * 1000), Some(300));
    }

    #[test]
    fn a_late_sample_counts_by_its_own_time() {
        let mut detector = SteadyDetector::new(1);
        let times_ms = [0, 50, 130, 180, 240, 390, 440];
        let steady: Vec<_> = times_ms.map(|ms| detector.push(ms * MS, ms * 1000)).into();
        assert_eq!(steady, [false, false, false, false, false, false, true]);
    }

    #[test]
    fn nothing_moving_is_never_steady() {
        assert_eq!(steady_after_ms(1, 50, |_| 0), None);
        assert_eq!(steady_after_ms(1, 50, |_| 5_000_000), None);
    }

    #[test]
    fn a_ramp_is_not_steady_before_it_ends() {
        // The rate grows fivefold in the first second, then stays.
        let count = |ms: u64| {
            let ramp = ms.min(1000);
            ramp * 200 + ramp * ramp * 2 / 5 + ms.saturating_sub(1000) * 1000
        };
        let after = steady_after_ms(1, 50, count).unwrap();
        assert!((1000..=1400).contains(&after), "{after} ms");
    }

    #[test]
    fn a_see_saw_is_never_steady() {
        // 50 ms at full rate, 50 ms at a third of it, for ever.
        let count = |ms: u64| {
            (ms / 100) * 50 * 4 * 1000
                + (ms % 100).min(50) * 3000
                + (ms % 100).saturating_sub(50) * 1000
        };
        assert_eq!(steady_after_ms(1, 50, count), None);
    }

    #[test]
    fn bursts_of_moderation_do_not_hide_an_even_flow() {
        // 2.5 completions of 100 messages fall into 50 ms: the intervals become longer instead.
        let count = |ms: u64| ms * 5 / 100 * 100;
        let after = steady_after_ms(100, 50, count).unwrap();
        assert!(after >= 6 * 400, "{after} ms");
        assert!(after <= 6 * 500, "{after} ms");
    }

    #[test]
    fn counts_that_go_back_are_not_progress() {
        let mut detector = SteadyDetector::new(1);
        for step in 0..20 {
            assert!(!detector.push(step * 50 * MS, 1_000_000 - step * 1000));
        }
    }
}
