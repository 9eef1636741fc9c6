//! Which percentiles are known from so many samples: the only rule for it.

use hdrhistogram::Histogram;

/// A percentile is known if so many samples lie beyond it.
///
/// Of n samples, n (1 - q) ± √(n q (1 - q)) lie beyond the true percentile q. With ten of them the share beyond is known
/// to a third (one standard deviation); with one it may as well be none or three, and p99 would be the largest sample
/// under another name.
pub const BEYOND: u64 = 10;

/// Whether a quantile, 0 to 1, is known from `samples`: at least [`BEYOND`] of them lie beyond it. The median takes 20, p90 and
/// p10 take 100, p99 takes 1,000, p99.9 takes 10,000.
pub fn can_tell(samples: u64, quantile: f64) -> bool {
    let beyond = samples as f64 * quantile.min(1.0 - quantile);
    // 1 - 0.999 is a little less than 0.001.
    beyond >= BEYOND as f64 - 1e-6
}

/// The fewest samples for a quantile between 0 and 1.
pub fn fewest_samples(quantile: f64) -> u64 {
    (BEYOND as f64 / quantile.min(1.0 - quantile) - 1e-6).ceil() as u64
}

/// The value that a share of the samples are at most; `None` if they are too few.
pub fn percentile(histogram: &Histogram<u64>, quantile: f64) -> Option<u64> {
    can_tell(histogram.len(), quantile).then(|| histogram.value_at_quantile(quantile))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_takes_as_many_samples_as_leave_ten_beyond_it() {
        for (quantile, least) in [
            (0.01, 1_000),
            (0.1, 100),
            (0.5, 20),
            (0.9, 100),
            (0.99, 1_000),
            (0.999, 10_000),
            (0.9999, 100_000),
        ] {
            let told = |count: u64| {
                let mut histogram = Histogram::<u64>::new(3).unwrap();
                (1..=count).for_each(|value| histogram.record(value).unwrap());
                percentile(&histogram, quantile)
            };
            assert_eq!(fewest_samples(quantile), least);
            assert_eq!(told(least - 1), None, "{quantile}");
            assert!(told(least).is_some(), "{quantile}");
            assert_eq!(told(0), None);
        }
    }
}
