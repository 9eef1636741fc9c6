//! What was measured: the model of a result, its JSON files and journal, histograms as they are stored, and text of
//! strangers made fit to be shown. What measures and what draws both build on it.

pub mod at_once;
pub mod history;
pub mod journal;
pub mod json;
pub mod load;
pub mod metric;
#[warn(missing_docs)]
pub mod model;
pub mod numbers;
pub mod text;
pub mod whole_file;

pub use metric::Metric;
pub use model::{ResultFile, SCHEMA_VERSION, utc_now};

#[cfg(test)]
mod extreme_tests;
#[cfg(any(test, feature = "samples"))]
pub mod sample;
