//! Distributions of latency and of throughput.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A distribution of latencies, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Samples.
    pub count: u64,
    /// Smallest.
    pub min: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the samples.
    pub stddev: f64,
    /// Median; `null` with fewer than 20 samples. A percentile needs ten samples beyond it.
    pub p50: Option<u64>,
    /// 90 % of samples are at most this; `null` with fewer than 100.
    pub p90: Option<u64>,
    /// 95 % of samples are at most this; `null` with fewer than 200.
    pub p95: Option<u64>,
    /// 99 % of samples are at most this; `null` with fewer than 1,000.
    pub p99: Option<u64>,
    /// 99.9 % of samples are at most this; `null` with fewer than 10,000.
    pub p99_9: Option<u64>,
    /// 99.99 % of samples are at most this; `null` with fewer than 100,000.
    pub p99_99: Option<u64>,
    /// Largest.
    pub max: u64,
    /// Samples above the histogram's range; they count at its upper end.
    pub overflows: u64,
    /// The whole distribution: `HdrHistogram` V2, deflated, in base64; `null` if it was left out.
    pub histogram: Option<String>,
}

/// A percentile of latencies.
#[derive(Clone, Copy, Debug)]
pub struct Percentile {
    /// Its name where limits are given.
    pub name: &'static str,
    /// The share of samples that are at most so long, 0 to 100.
    pub percent: f64,
    /// The same, 0 to 1.
    pub quantile: f64,
}

impl Percentile {
    /// All, rising.
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

impl Latency {
    /// The percentiles, rising, each with its value in nanoseconds.
    pub fn percentiles(&self) -> impl Iterator<Item = (Percentile, Option<u64>)> {
        let it = self;
        let told = [it.p50, it.p90, it.p95, it.p99, it.p99_9, it.p99_99];
        Percentile::ALL.into_iter().zip(told)
    }

    /// With other values of the percentiles.
    #[must_use]
    pub fn with_percentiles(
        self,
        change: impl Fn(Percentile, Option<u64>) -> Option<u64>,
    ) -> Latency {
        let mut told = self.percentiles();
        let [p50, p90, p95, p99, p99_9, p99_99] = std::array::from_fn(|_| {
            told.next().and_then(|(percentile, ns)| change(percentile, ns))
        });
        drop(told);
        Latency { p50, p90, p95, p99, p99_9, p99_99, ..self }
    }
}

/// A distribution of payload throughput in gigabits a second; each interval of a window is one sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bandwidth {
    /// Intended length of an interval; throughput scatters less over longer ones.
    pub interval_seconds: f64,
    /// Intervals.
    pub count: u64,
    /// The slowest.
    pub min: f64,
    /// 1 % of the intervals were at most this fast; `null` with fewer than 1,000.
    pub p1: Option<f64>,
    /// Median; `null` with fewer than 20.
    pub p50: Option<f64>,
    /// 99 % of the intervals were at most this fast; `null` with fewer than 1,000.
    pub p99: Option<f64>,
    /// The fastest.
    pub max: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the intervals.
    pub stddev: f64,
    /// The whole distribution, in kilobits a second: `HdrHistogram` V2, deflated, in base64.
    pub histogram_kbit_per_s: Option<String>,
}
