//! The figures of a flow that a matrix has.

use crate::observe::Metric;
use results::model::{FlowResult, Run};
use statistics::median;

/// The metrics of which they are.
const OF_FLOWS: [Metric; 3] = [Metric::GbitPerS, Metric::P50Ns, Metric::P99Ns];

/// Throughput, p50 and p99 of a flow; `None` for what was not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures([Option<f64>; OF_FLOWS.len()]);

impl Figures {
    /// What `of` says of each metric.
    pub fn new(of: impl Fn(Metric) -> Option<f64>) -> Figures {
        Figures(OF_FLOWS.map(of))
    }

    pub fn of(&self, metric: Metric) -> Option<f64> {
        let place = OF_FLOWS.iter().position(|it| *it == metric)?;
        self.0[place]
    }

    pub(super) fn of_flow(run: &Run, flow: &FlowResult) -> Figures {
        Figures::new(|metric| metric.of(run, Some(flow)))
    }

    /// Those of two flows that ran at once between the same two nodes: what they move together, and the longer latency.
    pub(super) fn and(self, other: Figures) -> Figures {
        Figures::new(|metric| {
            let (one, two) = (self.of(metric)?, other.of(metric)?);
            Some(if metric.higher_is_better() { one + two } else { one.max(two) })
        })
    }

    /// The median of each, over the runs that have it.
    pub fn median(runs: &[Figures]) -> Figures {
        Figures::new(|metric| median_of(runs, metric))
    }
}

/// The median of one of them; `None` where none has it.
pub(super) fn median_of<'a>(
    figures: impl IntoIterator<Item = &'a Figures>,
    metric: Metric,
) -> Option<f64> {
    let values = figures.into_iter().filter_map(|it| it.of(metric));
    median(&values.collect::<Vec<f64>>())
}
