//! What was measured, as rows: observations (`table`), which of them count (`standing`), what a metric is (`metric`),
//! and how figures and settings are written (`format`, `setting_words`).

pub mod format;
pub mod metric;
pub mod setting_words;
pub mod standing;
pub mod table;

pub use metric::Metric;
pub use table::{Observation, Observed, Spread};
