//! What was measured: the model of a result, its JSON files and journal, histograms as they are stored, and text of
//! strangers made fit to be shown. What measures and what draws both build on it.

pub mod compact;
pub mod contradiction;
pub mod file;
mod flow_faults;
pub mod histogram;
pub mod journal;
pub mod json;
pub mod load;
#[warn(missing_docs)]
pub mod model;
pub mod new_file;
pub mod percentile;
pub mod rates;
pub mod schema;
mod special_file;
pub mod text;
mod utc;

pub use model::{ResultFile, SCHEMA_VERSION};
pub use utc::utc_now;

#[cfg(test)]
mod extreme_tests;
#[cfg(any(test, feature = "samples"))]
pub mod sample;
#[cfg(any(test, feature = "samples"))]
pub mod sample_mesh;
