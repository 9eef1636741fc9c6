//! By which figure a case is compared with perftest, and how to find it at either.

use perftest::{Figure, Program};
use plan::Case;
use report::observe;
use results::model::Run;

/// Messages up to this size are compared by their rate, larger ones by their bandwidth: what the harness costs
/// is a cost of each message.
const SMALL_BYTES: u32 = 8 << 10;

/// What the two are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metric {
    Bandwidth,
    Rate,
    Latency,
}

impl Metric {
    /// Of a case that `program` runs too.
    pub(crate) fn new(case: &Case, program: Program) -> Metric {
        match (program.is_latency(), case.size_bytes) {
            (true, _) => Metric::Latency,
            (false, ..=SMALL_BYTES) => Metric::Rate,
            (false, _) => Metric::Bandwidth,
        }
    }

    /// The same figure where results are compared with results.
    fn of_results(self) -> observe::Metric {
        match self {
            Metric::Bandwidth => observe::Metric::GbitPerS,
            Metric::Rate => observe::Metric::MmsgPerS,
            Metric::Latency => observe::Metric::P50Ns,
        }
    }

    /// As a result file names it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            // Not of all messages: perftest has medians of its own.
            Metric::Latency => "latency_ns",
            other => other.of_results().name(),
        }
    }

    /// How much of a difference does not matter.
    pub(crate) fn margin(self) -> f64 {
        self.of_results().default_margin()
    }

    pub(crate) fn higher_is_better(self) -> bool {
        self.of_results().higher_is_better()
    }

    /// rocebench's: of both directions together, of what was sent, as perftest prints it.
    pub(crate) fn of_run(self, run: &Run) -> Option<f64> {
        if self == Metric::Latency {
            return Some(run.flows.first()?.latency_ns.as_ref()?.p50? as f64);
        }
        let totals = run.flows.iter().map(|flow| &flow.totals);
        let rate: Option<f64> = match self {
            Metric::Bandwidth => totals.map(|totals| totals.gbit_per_s).sum(),
            _ => totals.map(|totals| totals.mmsg_per_s).sum(),
        };
        rate.filter(|rate| *rate > 0.0)
    }

    /// perftest's.
    pub(crate) fn of_figure(self, figure: Figure) -> Option<f64> {
        match (self, figure) {
            (Metric::Bandwidth, Figure::Bandwidth { gbit_per_s, .. }) => Some(gbit_per_s),
            (Metric::Rate, Figure::Bandwidth { mmsg_per_s, .. }) => Some(mmsg_per_s),
            (Metric::Latency, Figure::Latency { median_ns }) => Some(median_ns),
            _ => None,
        }
    }
}
