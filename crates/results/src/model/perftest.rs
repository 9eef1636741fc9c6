//! A case beside the perftest program that does the same.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A case beside the perftest program that does the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PerftestComparison {
    /// Program, such as `ib_send_bw`.
    pub program: String,
    /// Its version, such as `6.06`; `null` when it did not report it.
    pub version: Option<String>,
    /// Arguments of its client, without the address and port at which its ends meet.
    pub arguments: Vec<String>,
    /// The compared figure: `gbit_per_s` or `mmsg_per_s`, both directions together, or `latency_ns`, the median of the
    /// messages.
    pub metric: String,
    /// Difference that does not matter, as a part of perftest's figure: 0.03 is 3 %.
    pub margin: Option<f64>,
    /// Every pair of runs, in order.
    pub pairs: Vec<PerftestPair>,
    /// Median of rocebench's figures in the pairs that count; `null` without one.
    pub rocebench_median: Option<f64>,
    /// Median of perftest's.
    pub perftest_median: Option<f64>,
    /// rocebench's figure over perftest's: the middle between the medians of pairs that begin with one and the other.
    pub ratio: Option<f64>,
    /// Lower end of the ratio's 95 % interval, over all looks; `null` with few pairs.
    pub ratio_low: Option<f64>,
    /// Upper end of it.
    pub ratio_high: Option<f64>,
    /// rocebench is `faster`, `equal` or `slower`, or the comparison is `unclear`.
    pub verdict: String,
    /// What to know about the verdict, such as why it is unclear.
    pub note: Option<String>,
}

/// One run of rocebench and one of perftest, one right after the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PerftestPair {
    /// The program that ran first: `rocebench` or `perftest`.
    pub first: String,
    /// Number of rocebench's run within the case.
    pub run: u32,
    /// rocebench's figure, in the unit of `metric`; `null` when its run is not complete.
    pub rocebench: Option<f64>,
    /// perftest's; `null` when it failed.
    pub perftest: Option<f64>,
    /// Why the pair failed.
    pub failure: Option<String>,
    /// Why rocebench's figure is in doubt, in a few words: the pair does not count.
    pub doubt: Option<String>,
    /// Output of the failed perftest at both ends; only the end of long output.
    pub output: Option<String>,
}

impl PerftestPair {
    /// rocebench's figure and perftest's, where the pair counts.
    pub fn counted(&self) -> Option<(f64, f64)> {
        let counts = self.failure.is_none() && self.doubt.is_none();
        self.rocebench.zip(self.perftest).filter(|_| counts)
    }
}
