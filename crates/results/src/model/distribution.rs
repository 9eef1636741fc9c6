//! Distributions of latency and of throughput, their histograms, and which percentiles are known from so many samples.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A distribution of latencies, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Number of samples, those beyond the histogram's range included.
    pub count: u64,
    /// The smallest sample, to the precision of the histogram.
    pub min: u64,
    /// Arithmetic mean of the samples.
    pub mean: f64,
    /// Standard deviation of the samples.
    pub stddev: f64,
    /// Median; left out with fewer than 20 samples. A percentile needs ten samples beyond it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50: Option<u64>,
    /// 90 % of samples are at most this; left out with fewer than 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p90: Option<u64>,
    /// 95 % of samples are at most this; left out with fewer than 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95: Option<u64>,
    /// 99 % of samples are at most this; left out with fewer than 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<u64>,
    /// 99.9 % of samples are at most this; left out with fewer than 10,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_9: Option<u64>,
    /// 99.99 % of samples are at most this; left out with fewer than 100,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_99: Option<u64>,
    /// The largest sample, to the precision of the histogram.
    pub max: u64,
    /// Samples above the histogram's range; they count at its upper end. Left out if there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub overflows: u64,
    /// The whole distribution: `HdrHistogram` V2, deflated, in base64; without it the histogram was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Latency {
    /// What the file says of a distribution of nanoseconds, `overflows` of whose samples were above
    /// its upper end; `None` for an empty one.
    pub fn from_histogram(histogram: &Histogram<u64>, overflows: u64) -> Option<Latency> {
        let figures = Latency::without_histogram(histogram, overflows)?;
        Some(Latency { histogram: encode(histogram), ..figures })
    }

    /// The same without the histogram, which takes most of the time and of the room.
    pub fn without_histogram(histogram: &Histogram<u64>, overflows: u64) -> Option<Latency> {
        if histogram.is_empty() {
            return None;
        }
        let without_percentiles = Latency {
            count: histogram.len(),
            min: histogram.min(),
            mean: histogram.mean(),
            stddev: histogram.stdev(),
            max: histogram.max(),
            overflows,
            ..Latency::default()
        };
        Some(without_percentiles.with_percentiles(|known, _| percentile(histogram, known.quantile)))
    }

    /// The whole distribution, in nanoseconds.
    ///
    /// # Errors
    /// When the file has none, or it is damaged.
    pub fn histogram(&self) -> Result<Histogram<u64>, HistogramError> {
        decode(self.histogram.as_deref())
    }

    /// The percentiles, rising, each with its value in nanoseconds.
    pub fn percentiles(&self) -> impl Iterator<Item = (Percentile, Option<u64>)> {
        let values_ns = [self.p50, self.p90, self.p95, self.p99, self.p99_9, self.p99_99];
        Percentile::ALL.into_iter().zip(values_ns)
    }

    /// With other values of the percentiles.
    #[must_use]
    pub fn with_percentiles(
        self,
        change: impl Fn(Percentile, Option<u64>) -> Option<u64>,
    ) -> Latency {
        let values_ns = [self.p50, self.p90, self.p95, self.p99, self.p99_9, self.p99_99];
        let [p50, p90, p95, p99, p99_9, p99_99] =
            std::array::from_fn(|index| change(Percentile::ALL[index], values_ns[index]));
        Latency { p50, p90, p95, p99, p99_9, p99_99, ..self }
    }
}

/// A percentile of which [`Latency`] has the value, and the comparisons of latency have a metric.
#[derive(Clone, Copy, Debug)]
pub struct Percentile {
    /// Its name where limits are given.
    pub name: &'static str,
    /// The share of samples that are at most so long, from 0 to 100.
    pub percent: f64,
    /// The same share, from 0 to 1.
    pub quantile: f64,
}

impl Percentile {
    /// The percentiles that a result has, rising.
    pub const ALL: [Percentile; 6] = [
        Percentile::new("p50", 50.0, 0.5),
        Percentile::new("p90", 90.0, 0.9),
        Percentile::new("p95", 95.0, 0.95),
        Percentile::new("p99", 99.0, 0.99),
        Percentile::new("p99.9", 99.9, 0.999),
        Percentile::new("p99.99", 99.99, 0.9999),
    ];

    const fn new(name: &'static str, percent: f64, quantile: f64) -> Percentile {
        Percentile { name, percent, quantile }
    }
}

/// A distribution of payload throughput in gigabits a second; each interval of a window is one sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bandwidth {
    /// Intended length of an interval, in seconds; throughput scatters less over longer ones.
    pub interval_seconds: f64,
    /// Number of intervals, those without a message included.
    pub count: u64,
    /// Throughput of the slowest interval.
    pub min: f64,
    /// 1 % of the intervals were at most this fast; `null` with fewer than 1,000.
    pub p1: Option<f64>,
    /// Median; `null` with fewer than 20.
    pub p50: Option<f64>,
    /// 99 % of the intervals were at most this fast; `null` with fewer than 1,000.
    pub p99: Option<f64>,
    /// Throughput of the fastest interval.
    pub max: f64,
    /// Arithmetic mean of the intervals' throughput.
    pub mean: f64,
    /// Standard deviation of the intervals.
    pub stddev: f64,
    /// The whole distribution, in kilobits a second: `HdrHistogram` V2, deflated, in base64.
    pub histogram_kbit_per_s: Option<String>,
}

impl Bandwidth {
    /// What the file says of the throughputs of a window's intervals, in gigabits a second; `None` of none.
    pub fn of_intervals(
        interval_seconds: f64,
        rates_gbit_per_s: impl Iterator<Item = f64>,
    ) -> Option<Bandwidth> {
        let mut histogram = Histogram::new_with_bounds(1, HIGHEST_KBIT_PER_S, 3).ok()?;
        rates_gbit_per_s
            .for_each(|rate| histogram.saturating_record((rate * KBIT_PER_GBIT).round() as u64));
        Bandwidth::from_histogram(interval_seconds, &histogram)
    }

    /// What the file says of such a distribution in kilobits a second; `None` of an empty one.
    pub fn from_histogram(interval_seconds: f64, histogram: &Histogram<u64>) -> Option<Bandwidth> {
        if histogram.is_empty() {
            return None;
        }
        let gbit_per_s = |kbit_per_s: u64| kbit_per_s as f64 / KBIT_PER_GBIT;
        Some(Bandwidth {
            interval_seconds,
            count: histogram.len(),
            min: gbit_per_s(histogram.min()),
            p1: percentile(histogram, 0.01).map(gbit_per_s),
            p50: percentile(histogram, 0.5).map(gbit_per_s),
            p99: percentile(histogram, 0.99).map(gbit_per_s),
            max: gbit_per_s(histogram.max()),
            mean: histogram.mean() / KBIT_PER_GBIT,
            stddev: histogram.stdev() / KBIT_PER_GBIT,
            histogram_kbit_per_s: encode(histogram),
        })
    }

    /// The whole distribution, in kilobits a second.
    ///
    /// # Errors
    /// When the file has none, or it is damaged.
    pub fn histogram_kbit_per_s(&self) -> Result<Histogram<u64>, HistogramError> {
        decode(self.histogram_kbit_per_s.as_deref())
    }
}

/// The fastest interval in range, in kilobits a second: 10 Tb/s.
const HIGHEST_KBIT_PER_S: u64 = 10_000_000_000;

const KBIT_PER_GBIT: f64 = 1e6;

/// A result's histogram could not be read back.
#[derive(Debug, thiserror::Error)]
pub enum HistogramError {
    /// The file has percentiles only.
    #[error("the result has no histogram, only percentiles; run the case again to get one")]
    Missing,
    /// The text of the histogram is not base64: the file was changed.
    #[error("the histogram is not base64 ({0}); the file was changed after it was written")]
    Base64(#[from] base64::DecodeError),
    /// What the base64 stands for is not an `HdrHistogram` V2: the file was changed.
    #[error(
        "the histogram is not an HdrHistogram V2 ({0:?}); the file was changed after it was written"
    )]
    Format(hdrhistogram::serialization::DeserializeError),
}

/// Fails only for counts above `i64::MAX`: the percentiles are then all there is.
fn encode(histogram: &Histogram<u64>) -> Option<String> {
    let mut encoded = Vec::new();
    let serialised = V2DeflateSerializer::new().serialize(histogram, &mut encoded);
    serialised.is_ok().then(|| STANDARD.encode(&encoded))
}

fn decode(text: Option<&str>) -> Result<Histogram<u64>, HistogramError> {
    let encoded = STANDARD.decode(text.ok_or(HistogramError::Missing)?)?;
    Deserializer::new().deserialize(&mut encoded.as_slice()).map_err(HistogramError::Format)
}

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
    use proptest::prelude::*;

    use super::*;
    use crate::sample::has;

    fn histogram(digits: u8, values: &[u64]) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, 60_000_000_000, digits).unwrap();
        values.iter().for_each(|&value| histogram.saturating_record(value));
        histogram
    }

    #[test]
    fn percentiles_are_the_distributions() {
        let values: Vec<u64> = (1..=100_000).collect();
        let latency = Latency::from_histogram(&histogram(3, &values), 2).unwrap();
        let counts = (latency.count, latency.min, latency.overflows);
        assert_eq!(counts, (100_000, 1, 2));
        for (value, exact) in [
            (latency.p50, 50_000.0),
            (latency.p90, 90_000.0),
            (latency.p95, 95_000.0),
            (latency.p99, 99_000.0),
            (latency.p99_9, 99_900.0),
            (latency.p99_99, 99_990.0),
            (Some(latency.max), 100_000.0),
        ] {
            let ns = value.unwrap();
            let error = (ns as f64 / exact - 1.0).abs();
            assert!(error < 0.001, "{ns} for {exact}");
        }
        assert!((latency.mean / 50_000.5 - 1.0).abs() < 0.001);
        assert!((latency.stddev / 28_867.5 - 1.0).abs() < 0.001);
        let few = Latency::from_histogram(&histogram(3, &values[..9_999]), 0).unwrap();
        assert!(few.p99.is_some() && few.p99_9.is_none(), "{few:?}");
        assert_eq!(Latency::from_histogram(&histogram(3, &[]), 0), None);
    }

    #[test]
    fn bandwidth_is_of_intervals_and_keeps_those_without_a_message() {
        let rates = (0..=2000).map(|index| f64::from(index) * 0.05);
        let bandwidth = Bandwidth::of_intervals(0.01, rates).unwrap();
        assert_eq!((bandwidth.count, bandwidth.interval_seconds), (2001, 0.01));
        assert_eq!(bandwidth.min, 0.0);
        for (value, exact) in [
            (bandwidth.p1, 1.0),
            (bandwidth.p50, 50.0),
            (bandwidth.p99, 99.0),
            (Some(bandwidth.max), 100.0),
            (Some(bandwidth.mean), 50.0),
            (Some(bandwidth.stddev), 28.88),
        ] {
            let gbit_per_s = value.unwrap();
            assert!((gbit_per_s / exact - 1.0).abs() < 0.002, "{gbit_per_s} for {exact}");
        }
        let histogram = bandwidth.histogram_kbit_per_s().unwrap();
        assert_eq!((histogram.len(), histogram.count_at(0)), (2001, 1));
        let few = Bandwidth::of_intervals(0.01, [0.0, 1e-6, 400.0].into_iter()).unwrap();
        assert_eq!((few.p1, few.p50, few.p99), (None, None, None));
        assert_eq!(Bandwidth::of_intervals(0.01, std::iter::empty()), None);
    }

    #[test]
    fn damage_is_told() {
        let mut latency = Latency::from_histogram(&histogram(2, &[5, 7]), 0).unwrap();
        latency.histogram = Some("not base64!".to_owned());
        has(latency.histogram().unwrap_err().to_string(), ["base64"]);
        latency.histogram = Some(STANDARD.encode("something else"));
        let error = latency.histogram();
        assert!(matches!(error, Err(HistogramError::Format(_))));
        latency.histogram = None;
        assert!(matches!(latency.histogram(), Err(HistogramError::Missing)));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_read_back(
            values in proptest::collection::vec(1..80_000_000_000u64, 1..300),
            digits in 2u8..=3,
        ) {
            let histogram = histogram(digits, &values);
            let read = Latency::from_histogram(&histogram, 0).unwrap().histogram().unwrap();
            prop_assert_eq!(read, histogram);
        }
    }

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
            let percentile_of = |count: u64| {
                let mut histogram = Histogram::<u64>::new(3).unwrap();
                (1..=count).for_each(|value| histogram.record(value).unwrap());
                percentile(&histogram, quantile)
            };
            assert_eq!(fewest_samples(quantile), least);
            assert_eq!(percentile_of(least - 1), None, "{quantile}");
            assert!(percentile_of(least).is_some(), "{quantile}");
            assert_eq!(percentile_of(0), None);
        }
    }
}
