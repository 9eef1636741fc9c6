//! Percentiles of latency since the last look, while the recorders are written.

use std::sync::atomic::Ordering::Relaxed;

use report::results::percentile::can_tell;

use super::histogram::LiveCounters;

/// Recorders that are read together, one interval after the other.
pub struct IntervalLatency {
    /// Each with its counts at the last look.
    of_recorders: Vec<(LiveCounters, Box<[u32]>)>,
    /// Counts of the interval; memory that is kept from one look to the next.
    interval: Box<[u64]>,
}

impl IntervalLatency {
    /// The first interval begins now. All memory is taken here.
    pub fn new(recorders: Vec<LiveCounters>) -> IntervalLatency {
        let counters = recorders.iter().map(|it| it.low.len()).max().unwrap_or(0);
        IntervalLatency {
            of_recorders: recorders
                .into_iter()
                .map(|recorder| {
                    let counts = recorder.low.iter().map(|count| count.load(Relaxed)).collect();
                    (recorder, counts)
                })
                .collect(),
            interval: vec![0; counters].into(),
        }
    }

    /// The 99th percentile of the interval that ends now, in nanoseconds; `None` of too few samples.
    pub fn p99_ns(&mut self) -> Option<u64> {
        self.interval.fill(0);
        let mut samples = 0_u64;
        for (recorder, before) in &mut self.of_recorders {
            for ((count, before), sum) in
                recorder.low.iter().zip(before.iter_mut()).zip(&mut self.interval)
            {
                let now = count.load(Relaxed);
                // The counter may have passed 2^32 once.
                let grown = u64::from(now.wrapping_sub(std::mem::replace(before, now)));
                *sum += grown;
                samples += grown;
            }
        }
        let (recorder, _) = self.of_recorders.first()?;
        // As the histogram does: the smallest value that 99 % do not exceed.
        let mut rank = samples - samples / 100;
        let index = self.interval.iter().position(|&count| {
            rank = rank.saturating_sub(count);
            rank == 0
        })?;
        can_tell(samples, 0.99).then(|| recorder.highest_ns(index as u64))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::histogram::{Digits, Samples};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn p99_is_that_of_what_came_since_the_last_look(
            before in proptest::collection::vec(1..50_000_000_u64, 900..1100),
            since in proptest::collection::vec(1..50_000_000_u64, 1000..2000),
            digits in 0..2,
        ) {
            let digits = if digits == 0 { Digits::Two } else { Digits::Three };
            let mut of_qps = [Samples::new(digits), Samples::new(digits)];
            let mut interval = IntervalLatency::new(of_qps.iter().map(Samples::live).collect());
            prop_assert_eq!(interval.p99_ns(), None);
            before.iter().for_each(|&ns| of_qps[0].record(ns));
            prop_assert_eq!(interval.p99_ns().is_some(), before.len() >= 1000);
            let mut alone = Samples::new(digits);
            for (place, &ns) in since.iter().enumerate() {
                of_qps[place % 2].record(ns);
                alone.record(ns);
            }
            let expected = alone.into_recorder().histogram().value_at_quantile(0.99);
            prop_assert_eq!(interval.p99_ns(), Some(expected));
            prop_assert_eq!(interval.p99_ns(), None);
        }
    }
}
