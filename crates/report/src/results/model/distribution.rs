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
    /// Median; `null` of fewer than 20 samples. A percentile is told where ten samples or more lie beyond it.
    pub p50: Option<u64>,
    /// 90 % of samples are at most this; `null` of fewer than 100.
    pub p90: Option<u64>,
    /// 99 % of samples are at most this; `null` of fewer than 1,000.
    pub p99: Option<u64>,
    /// 99.9 % of samples are at most this; `null` of fewer than 10,000.
    pub p99_9: Option<u64>,
    /// 99.99 % of samples are at most this; `null` of fewer than 100,000.
    pub p99_99: Option<u64>,
    /// Largest.
    pub max: u64,
    /// Samples above the histogram's range, counted in it at its upper end.
    pub overflows: u64,
    /// The whole distribution: `HdrHistogram` V2, deflated, in base64; `null` where it was left out.
    pub histogram: Option<String>,
}

/// A distribution of payload throughput over the intervals of a window, in gigabits a second; each interval is one
/// sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bandwidth {
    /// Intended length of an interval: over longer ones throughput scatters less.
    pub interval_seconds: f64,
    /// Intervals.
    pub count: u64,
    /// The slowest.
    pub min: f64,
    /// 1 % of the intervals were at most this fast; `null` of fewer than 1,000.
    pub p1: Option<f64>,
    /// Median; `null` of fewer than 20.
    pub p50: Option<f64>,
    /// 99 % of the intervals were at most this fast; `null` of fewer than 1,000.
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
