//! What was measured, as rows: observations and which of them count (`standing`), what a metric is (`metric`), and how figures
//! and settings are written (`format`).

pub mod format;
pub mod metric;
pub mod standing;

pub use metric::Metric;
pub use standing::{Observation, Observed, Spread};
