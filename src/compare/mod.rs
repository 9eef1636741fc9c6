//! New results beside old ones: is a case valid and comparable, and has it regressed? It reads result
//! files only; it must not know verbs, sockets or how to run anything.

pub mod metric;
pub mod model;

pub use metric::Metric;
pub use model::{CaseComparison, Comparison, MetricComparison, Observation, Side, Verdict};
