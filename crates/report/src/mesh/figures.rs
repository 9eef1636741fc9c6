//! The figures of a flow that a matrix tells, and which runs count for them. It must not know nodes.

use crate::results::model::FlowResult;
use statistics::median;

/// A figure of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Quantity {
    /// Payload throughput, in 10^9 bits a second.
    Bandwidth,
    /// Messages, in 10^6 a second.
    Rate,
    /// Half of the messages take at most so long, in nanoseconds.
    P50,
    /// 99 % of the messages take at most so long, in nanoseconds.
    P99,
}

impl Quantity {
    /// All, in the order in which they are told.
    pub const ALL: [Quantity; 4] = [
        Quantity::Bandwidth,
        Quantity::Rate,
        Quantity::P50,
        Quantity::P99,
    ];

    /// Whether more of it is better.
    pub fn more_is_better(self) -> bool {
        matches!(self, Quantity::Bandwidth | Quantity::Rate)
    }
}

/// The figures of a flow; `None` for what was not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Payload throughput, in 10^9 bits a second.
    pub gbit_per_s: Option<f64>,
    /// Messages, in 10^6 a second.
    pub mmsg_per_s: Option<f64>,
    /// Median of the messages' latency, in nanoseconds.
    pub p50_ns: Option<f64>,
    /// 99th percentile of the messages' latency, in nanoseconds.
    pub p99_ns: Option<f64>,
}

impl Figures {
    /// One of them.
    pub fn of(&self, quantity: Quantity) -> Option<f64> {
        match quantity {
            Quantity::Bandwidth => self.gbit_per_s,
            Quantity::Rate => self.mmsg_per_s,
            Quantity::P50 => self.p50_ns,
            Quantity::P99 => self.p99_ns,
        }
    }

    /// A flow's.
    pub(super) fn of_flow(flow: &FlowResult) -> Figures {
        let latency = flow.latency_ns.as_ref();
        Figures {
            gbit_per_s: flow.gbit_per_s(),
            mmsg_per_s: flow.mmsg_per_s(),
            p50_ns: latency.and_then(|latency| latency.p50.map(|p50| p50 as f64)),
            p99_ns: latency.and_then(|latency| latency.p99.map(|p99| p99 as f64)),
        }
    }

    /// Those of two flows that ran at once between the same two nodes: what they move together, and the longer latency.
    pub(super) fn and(self, other: Figures) -> Figures {
        let both = |of: fn(&Figures) -> Option<f64>, join: fn(f64, f64) -> f64| {
            Some(join(of(&self)?, of(&other)?))
        };
        Figures {
            gbit_per_s: both(|it| it.gbit_per_s, |one, two| one + two),
            mmsg_per_s: both(|it| it.mmsg_per_s, |one, two| one + two),
            p50_ns: both(|it| it.p50_ns, f64::max),
            p99_ns: both(|it| it.p99_ns, f64::max),
        }
    }

    /// The median of each, over the runs that have it.
    pub(super) fn median(runs: &[Figures]) -> Figures {
        let of = |quantity| {
            let values: Vec<f64> = runs.iter().filter_map(|run| run.of(quantity)).collect();
            median(&values)
        };
        Figures {
            gbit_per_s: of(Quantity::Bandwidth),
            mmsg_per_s: of(Quantity::Rate),
            p50_ns: of(Quantity::P50),
            p99_ns: of(Quantity::P99),
        }
    }
}
