//! The table of the figures of a run that are compared and drawn: a new one is a row here.

use serde::{Deserialize, Serialize};

use crate::results::model::{Latency, Run};

/// What is known of a metric.
struct Row {
    /// Name in documents that programs read; ends in its unit.
    name: &'static str,
    /// What a person types and reads.
    short: &'static str,
    /// Its unit, as people write it; empty for a figure without one.
    unit: &'static str,
    /// Title of a figure of it.
    title: &'static str,
    /// What stands at its axis.
    axis: &'static str,
    /// Heading of its column in a table, digits after the point there, and what it is divided by.
    column: (&'static str, usize, f64),
    /// How much of it does not matter unless a user says otherwise: 0.03 is 3 %.
    margin: f64,
    higher_is_better: bool,
    /// It is of set-ups, which most runs have not.
    is_of_setup: bool,
    /// The run's figure; `None` when it was not measured.
    of: fn(&Run) -> Option<f64>,
    /// The samples that it is made of, where it is told of enough of them only.
    samples: fn(&Run) -> Option<&Latency>,
}

/// Makes the metrics from the rows.
macro_rules! metrics {
    ($($(#[$doc:meta])+ $metric:ident => { $($part:ident: $value:expr),* $(,)? })*) => {
        /// One figure of a run. In documents it is its name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub enum Metric {
            $($(#[$doc])+ $metric),*
        }

        impl Metric {
            /// All, in the order in which they are shown.
            pub const ALL: &[Metric] = &[$(Metric::$metric),*];

            fn row(self) -> &'static Row {
                match self {
                    $(Metric::$metric => &Row { $($part: $value),* }),*
                }
            }
        }
    };
}

fn latency(run: &Run) -> Option<&Latency> {
    run.forward.latency_ns.as_ref()
}

fn setup(run: &Run) -> Option<&Latency> {
    run.connect.as_ref()?.setup_ns.as_ref()
}

// The tail of latency and CPU time scatter more than throughput, and fairness is close to 1.
metrics! {
    /// Payload throughput, in 10^9 bits a second.
    GbitPerS => {
        name: "gbit_per_s", short: "bandwidth", unit: "Gb/s", title: "Bandwidth", axis: "Gb/s",
        column: ("Gb/s", 3, 1.0), margin: 0.03, higher_is_better: true, is_of_setup: false,
        of: |run| run.forward.totals.gbit_per_s, samples: |_| None,
    }
    /// Message rate, in 10^6 a second.
    MmsgPerS => {
        name: "mmsg_per_s", short: "rate", unit: "Mmsg/s", title: "Message rate", axis: "Mmsg/s",
        column: ("Mmsg/s", 4, 1.0), margin: 0.05, higher_is_better: true, is_of_setup: false,
        of: |run| run.forward.totals.mmsg_per_s, samples: |_| None,
    }
    /// Median latency, in nanoseconds.
    P50Ns => {
        name: "latency_p50_ns", short: "p50", unit: "ns", title: "Median latency", axis: "p50",
        column: ("p50 (µs)", 2, 1e3), margin: 0.03, higher_is_better: false, is_of_setup: false,
        of: |run| Some(latency(run)?.p50 as f64), samples: latency,
    }
    /// 99 % of latencies are at most this, in nanoseconds.
    P99Ns => {
        name: "latency_p99_ns", short: "p99", unit: "ns", title: "p99 latency", axis: "p99",
        column: ("p99 (µs)", 2, 1e3), margin: 0.10, higher_is_better: false, is_of_setup: false,
        of: |run| latency(run)?.p99.map(|ns| ns as f64), samples: latency,
    }
    /// 99.9 % of latencies are at most this, in nanoseconds.
    P99_9Ns => {
        name: "latency_p99_9_ns", short: "p99.9", unit: "ns", title: "p99.9 latency", axis: "p99.9",
        column: ("p99.9 (µs)", 2, 1e3), margin: 0.20, higher_is_better: false, is_of_setup: false,
        of: |run| latency(run)?.p99_9.map(|ns| ns as f64), samples: latency,
    }
    /// Jain's index over the QPs.
    Fairness => {
        name: "fairness_jain", short: "fairness", unit: "", title: "Fairness (Jain’s index)", axis: "Jain's index",
        column: ("Jain", 3, 1.0), margin: 0.02, higher_is_better: true, is_of_setup: false,
        of: |run| run.forward.fairness.as_ref().map(|fairness| fairness.jain), samples: |_| None,
    }
    /// Workers' CPU time for 10^9 payload bytes.
    CpuSecondsPerGb => {
        name: "cpu_seconds_per_gb", short: "cpu", unit: "s/GB", title: "CPU time a GB", axis: "CPU seconds a GB",
        column: ("CPU s/GB", 3, 1.0), margin: 0.10, higher_is_better: false, is_of_setup: false,
        of: |run| {
            let bytes = run.forward.totals.bytes;
            let seconds = run.forward.cpu_seconds()?;
            (bytes > 0).then(|| seconds / (bytes as f64 / 1e9))
        },
        samples: |_| None,
    }
    /// QPs that were set up, a second.
    ConnectionsPerS => {
        name: "connections_per_s", short: "connections", unit: "/s", title: "Connections a second",
        axis: "connections a second", column: ("connections/s", 1, 1.0), margin: 0.05, higher_is_better: true, is_of_setup: true,
        of: |run| run.connect.as_ref()?.connections_per_second, samples: |_| None,
    }
    /// 99 % of rounds were set up in at most this time, in nanoseconds.
    SetupP99Ns => {
        name: "setup_p99_ns", short: "setup", unit: "ns", title: "p99 set-up time", axis: "set-up p99",
        column: ("set-up p99 (ms)", 3, 1e6), margin: 0.10, higher_is_better: false, is_of_setup: true,
        of: |run| setup(run)?.p99.map(|ns| ns as f64), samples: setup,
    }
}

impl Metric {
    /// Its name in documents that programs read; ends in its unit.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The metric of a name; also of what a person types: `p99`, `fairness`, `cpu`, `connections`, `setup`.
    pub fn from_name(name: &str) -> Option<Metric> {
        let is_it = |metric: &Metric| metric.name() == name || metric.short_name() == name;
        Metric::ALL.iter().copied().find(is_it)
    }

    /// What a person types and reads: `bandwidth`, `rate`, `p50`, `p99`, `p99.9`, `fairness`, `cpu`.
    pub fn short_name(self) -> &'static str {
        self.row().short
    }

    /// What a person types, of all, with commas.
    pub fn short_names() -> String {
        let names: Vec<&str> = Metric::ALL.iter().map(|it| it.short_name()).collect();
        names.join(", ")
    }

    /// Its unit, as people write it; empty for a figure without one.
    pub fn unit(self) -> &'static str {
        self.row().unit
    }

    /// Title of a figure of it.
    pub fn title(self) -> &'static str {
        self.row().title
    }

    /// What stands at its axis.
    pub fn axis(self) -> &'static str {
        self.row().axis
    }

    /// Heading of its column in a table, digits after the point there, and what it is divided by.
    pub fn column(self) -> (&'static str, usize, f64) {
        self.row().column
    }

    /// How much of it does not matter unless a user says otherwise: 0.03 is 3 %.
    pub fn default_margin(self) -> f64 {
        self.row().margin
    }

    /// Whether more of it is better.
    pub fn higher_is_better(self) -> bool {
        self.row().higher_is_better
    }

    /// Whether it is of set-ups, which most runs have not.
    pub fn is_of_setup(self) -> bool {
        self.row().is_of_setup
    }

    /// The run's figure; `None` when it was not measured.
    pub fn of(self, run: &Run) -> Option<f64> {
        (self.row().of)(run)
    }

    /// Whether the run has samples of which this would be told if they were enough.
    pub fn has_samples(self, run: &Run) -> bool {
        (self.row().samples)(run).is_some()
    }
}

impl From<Metric> for String {
    fn from(metric: Metric) -> String {
        metric.name().to_owned()
    }
}

impl TryFrom<String> for Metric {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Metric::from_name(&name).ok_or_else(|| format!("no metric `{name}`"))
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
