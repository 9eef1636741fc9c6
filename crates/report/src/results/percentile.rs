//! Which percentiles so many samples can tell. It must not know what was sampled.

use hdrhistogram::Histogram;

/// Whether `samples` can tell a quantile, 0 to 1: at least one of them must lie beyond it, or it would be the
/// largest (or smallest) sample under another name. So p99 takes 100 samples, p99.9 takes 1,000, p1 takes 100.
pub fn can_tell(samples: u64, quantile: f64) -> bool {
    let beyond = samples as f64 * quantile.min(1.0 - quantile);
    // 1 - 0.999 is a little less than 0.001.
    beyond >= 1.0 - 1e-9
}

/// The value that a share of the samples are at most; `None` where there are too few to tell it.
pub fn percentile(histogram: &Histogram<u64>, quantile: f64) -> Option<u64> {
    can_tell(histogram.len(), quantile).then(|| histogram.value_at_quantile(quantile))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_takes_as_many_samples_as_leave_one_beyond_it() {
        for (quantile, least) in [
            (0.01, 100),
            (0.5, 2),
            (0.9, 10),
            (0.99, 100),
            (0.999, 1_000),
            (0.9999, 10_000),
        ] {
            let told = |count: u64| {
                let mut histogram = Histogram::<u64>::new(3).unwrap();
                (1..=count).for_each(|value| histogram.record(value).unwrap());
                percentile(&histogram, quantile)
            };
            assert_eq!(told(least - 1), None, "{quantile}");
            assert!(told(least).unwrap() <= least, "{quantile}");
            assert_eq!(told(0), None);
        }
    }
}
