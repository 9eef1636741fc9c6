//! New results beside old ones: is a case valid and comparable, and has it regressed? It reads result files only.

mod build;
mod facts;
mod judge;
mod loads;
pub(crate) mod model;
pub(crate) mod options;
mod pairing;
mod searches;
mod side;
mod turns;

pub use build::compare;
pub use model::{
    CaseComparison, Comparison, MetricComparison, MissingMetric, Observation, OverAll, Reach,
    Settles, Side, Verdict,
};
pub use options::{Aspect, GATE_MARGIN, GATE_METRICS, Margins, Options, aspect_names};
