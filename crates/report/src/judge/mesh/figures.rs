//! The figures of a flow that a matrix has. It must not know nodes.

use crate::observe::Metric;
use crate::results::model::{FlowResult, Run};
use statistics::median;

/// The metrics of which they are, in the order in which they are told.
pub const OF_FLOWS: [Metric; 4] = [
    Metric::GbitPerS,
    Metric::MmsgPerS,
    Metric::P50Ns,
    Metric::P99Ns,
];

/// A figure for each of [`OF_FLOWS`]; `None` for what was not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures([Option<f64>; 4]);

impl Figures {
    /// What `of` says of each metric.
    pub fn new(of: impl Fn(Metric) -> Option<f64>) -> Figures {
        Figures(OF_FLOWS.map(of))
    }

    /// One of them.
    pub fn of(&self, metric: Metric) -> Option<f64> {
        let place = OF_FLOWS.iter().position(|it| *it == metric)?;
        self.0.get(place).copied().flatten()
    }

    /// A flow's.
    pub(super) fn of_flow(run: &Run, flow: &FlowResult) -> Figures {
        Figures::new(|metric| metric.of(run, Some(flow)))
    }

    /// Those of two flows that ran at once between the same two nodes: what they move together, and the longer latency.
    pub(super) fn and(self, other: Figures) -> Figures {
        Figures::new(|metric| {
            let (one, two) = (self.of(metric)?, other.of(metric)?);
            Some(match metric.higher_is_better() {
                true => one + two,
                false => one.max(two),
            })
        })
    }

    /// The median of each, over the runs that have it.
    pub fn median(runs: &[Figures]) -> Figures {
        Figures::new(|metric| {
            let values: Vec<f64> = runs.iter().filter_map(|run| run.of(metric)).collect();
            median(&values)
        })
    }
}
