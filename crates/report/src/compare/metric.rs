//! The figures of a run that are compared and drawn over time, and what is known of each.

use serde::{Deserialize, Serialize};

use crate::results::model::Run;

/// One figure of a run. In documents it is its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Metric {
    /// Payload throughput, in 10^9 bits a second.
    #[serde(rename = "gbit_per_s")]
    GbitPerS,
    /// Message rate, in 10^6 a second.
    #[serde(rename = "mmsg_per_s")]
    MmsgPerS,
    /// Median latency, in nanoseconds.
    #[serde(rename = "latency_p50_ns")]
    P50Ns,
    /// 99 % of latencies are at most this, in nanoseconds.
    #[serde(rename = "latency_p99_ns")]
    P99Ns,
    /// 99.9 % of latencies are at most this, in nanoseconds.
    #[serde(rename = "latency_p99_9_ns")]
    P99_9Ns,
    /// Jain's index over the QPs.
    #[serde(rename = "fairness_jain")]
    Fairness,
    /// Workers' CPU time for 10^9 payload bytes.
    #[serde(rename = "cpu_seconds_per_gb")]
    CpuSecondsPerGb,
    /// QPs that were set up, a second.
    #[serde(rename = "connections_per_s")]
    ConnectionsPerS,
    /// 99 % of rounds were set up in at most this time, in nanoseconds.
    #[serde(rename = "setup_p99_ns")]
    SetupP99Ns,
}

impl Metric {
    /// All, in the order in which they are shown.
    pub const ALL: [Metric; 9] = [
        Metric::GbitPerS,
        Metric::MmsgPerS,
        Metric::P50Ns,
        Metric::P99Ns,
        Metric::P99_9Ns,
        Metric::Fairness,
        Metric::CpuSecondsPerGb,
        Metric::ConnectionsPerS,
        Metric::SetupP99Ns,
    ];

    /// Its name in documents that programs read; ends in its unit.
    pub fn name(self) -> &'static str {
        match self {
            Metric::GbitPerS => "gbit_per_s",
            Metric::MmsgPerS => "mmsg_per_s",
            Metric::P50Ns => "latency_p50_ns",
            Metric::P99Ns => "latency_p99_ns",
            Metric::P99_9Ns => "latency_p99_9_ns",
            Metric::Fairness => "fairness_jain",
            Metric::CpuSecondsPerGb => "cpu_seconds_per_gb",
            Metric::ConnectionsPerS => "connections_per_s",
            Metric::SetupP99Ns => "setup_p99_ns",
        }
    }

    /// The metric of a name; also without `latency_` and the unit: `p99`, `fairness`, `cpu`,
    /// `connections`, `setup`.
    pub fn from_name(name: &str) -> Option<Metric> {
        Metric::ALL
            .into_iter()
            .find(|metric| metric.name() == name || metric.short_name() == name)
    }

    /// What a person types and reads: `bandwidth`, `rate`, `p50`, `p99`, `p99.9`, `fairness`, `cpu`.
    pub fn short_name(self) -> &'static str {
        match self {
            Metric::GbitPerS => "bandwidth",
            Metric::MmsgPerS => "rate",
            Metric::P50Ns => "p50",
            Metric::P99Ns => "p99",
            Metric::P99_9Ns => "p99.9",
            Metric::Fairness => "fairness",
            Metric::CpuSecondsPerGb => "cpu",
            Metric::ConnectionsPerS => "connections",
            Metric::SetupP99Ns => "setup",
        }
    }

    /// Its unit, as people write it; empty for a figure without one.
    pub fn unit(self) -> &'static str {
        match self {
            Metric::GbitPerS => "Gb/s",
            Metric::MmsgPerS => "Mmsg/s",
            Metric::P50Ns | Metric::P99Ns | Metric::P99_9Ns | Metric::SetupP99Ns => "ns",
            Metric::Fairness => "",
            Metric::CpuSecondsPerGb => "s/GB",
            Metric::ConnectionsPerS => "/s",
        }
    }

    /// How much of it does not matter unless a user says otherwise: 0.03 is 3 %. The tail of latency and CPU
    /// time scatter more than throughput, and fairness is close to 1.
    pub fn default_margin(self) -> f64 {
        match self {
            Metric::GbitPerS | Metric::P50Ns => 0.03,
            Metric::MmsgPerS | Metric::ConnectionsPerS => 0.05,
            Metric::P99Ns | Metric::CpuSecondsPerGb | Metric::SetupP99Ns => 0.10,
            Metric::P99_9Ns => 0.20,
            Metric::Fairness => 0.02,
        }
    }

    /// Whether more of it is better.
    pub fn higher_is_better(self) -> bool {
        matches!(
            self,
            Metric::GbitPerS | Metric::MmsgPerS | Metric::Fairness | Metric::ConnectionsPerS
        )
    }

    /// The run's figure; `None` when it was not measured.
    pub fn of(self, run: &Run) -> Option<f64> {
        let latency = run.forward.latency_ns.as_ref();
        match self {
            Metric::GbitPerS => run.forward.totals.gbit_per_s,
            Metric::MmsgPerS => run.forward.totals.mmsg_per_s,
            Metric::P50Ns => latency.map(|latency| latency.p50 as f64),
            Metric::P99Ns => latency?.p99.map(|ns| ns as f64),
            Metric::P99_9Ns => latency?.p99_9.map(|ns| ns as f64),
            Metric::Fairness => run.forward.fairness.as_ref().map(|fairness| fairness.jain),
            Metric::ConnectionsPerS => run.connect.as_ref()?.connections_per_second,
            Metric::SetupP99Ns => {
                let setup = run.connect.as_ref()?.setup_ns.as_ref()?;
                setup.p99.map(|ns| ns as f64)
            }
            Metric::CpuSecondsPerGb => {
                let bytes = run.forward.totals.bytes;
                let seconds = run.forward.cpu_seconds()?;
                (bytes > 0).then(|| seconds / (bytes as f64 / 1e9))
            }
        }
    }
    /// Whether the run has samples of which this would be told if they were enough.
    pub fn has_samples(self, run: &Run) -> bool {
        match self {
            Metric::P50Ns | Metric::P99Ns | Metric::P99_9Ns => run.forward.latency_ns.is_some(),
            Metric::SetupP99Ns => {
                let connect = run.connect.as_ref();
                connect.is_some_and(|connect| connect.setup_ns.is_some())
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;

    use super::*;
    use crate::results::model::Latency;

    #[test]
    fn a_percentile_of_few_samples_is_missing_and_not_zero() {
        let mut histogram = Histogram::new(3).unwrap();
        (1..=500).for_each(|ns| histogram.record(ns).unwrap());
        let mut run = Run::default();
        run.forward.latency_ns = Latency::from_histogram(&histogram, 0);
        let told = [Metric::P50Ns, Metric::P99Ns, Metric::P99_9Ns].map(|metric| metric.of(&run));
        assert_eq!(told, [Some(250.0), Some(495.0), None]);
    }
}
