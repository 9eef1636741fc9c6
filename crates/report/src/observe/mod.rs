//! What was measured, as rows: observations and which of them count (`standing`), and how figures
//! and settings are written (`format`).

pub mod format;
pub mod standing;

pub use results::Metric;
pub use standing::{Observation, Observed, Spread};
