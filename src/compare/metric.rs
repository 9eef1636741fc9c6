//! The figures of a run that are compared and drawn over time, and what is known of each.

use crate::results::model::Run;

/// One figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Metric {
    /// Payload throughput, in 10^9 bits a second.
    GbitPerS,
    /// Message rate, in 10^6 a second.
    MmsgPerS,
    /// Median latency, in nanoseconds.
    P50Ns,
    /// 99 % of latencies are at most this, in nanoseconds.
    P99Ns,
    /// 99.9 % of latencies are at most this, in nanoseconds.
    P99_9Ns,
    /// Jain's index over the QPs.
    Fairness,
    /// Workers' CPU time for 10^9 payload bytes.
    CpuSecondsPerGb,
}

impl Metric {
    /// All, in the order in which they are shown.
    pub const ALL: [Metric; 7] = [
        Metric::GbitPerS,
        Metric::MmsgPerS,
        Metric::P50Ns,
        Metric::P99Ns,
        Metric::P99_9Ns,
        Metric::Fairness,
        Metric::CpuSecondsPerGb,
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
        }
    }

    /// Whether more of it is better.
    pub fn higher_is_better(self) -> bool {
        matches!(self, Metric::GbitPerS | Metric::MmsgPerS | Metric::Fairness)
    }

    /// The run's figure; `None` when it was not measured.
    pub fn of(self, run: &Run) -> Option<f64> {
        let latency = run.forward.latency_ns.as_ref();
        match self {
            Metric::GbitPerS => run.forward.totals.gbit_per_s,
            Metric::MmsgPerS => run.forward.totals.mmsg_per_s,
            Metric::P50Ns => latency.map(|latency| latency.p50 as f64),
            Metric::P99Ns => latency.map(|latency| latency.p99 as f64),
            Metric::P99_9Ns => latency.map(|latency| latency.p99_9 as f64),
            Metric::Fairness => run.forward.fairness.as_ref().map(|fairness| fairness.jain),
            Metric::CpuSecondsPerGb => {
                let bytes = run.forward.totals.bytes;
                let seconds = run.forward.cpu_seconds()?;
                (bytes > 0).then(|| seconds / (bytes as f64 / 1e9))
            }
        }
    }
}
