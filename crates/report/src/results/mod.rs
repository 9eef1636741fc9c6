//! The versioned result model and its writers. It knows no verbs, no sockets and no threads.

pub(crate) mod compact;
pub mod contradiction;
pub mod file;
mod flow_faults;
pub(crate) mod histogram;
pub mod journal;
pub mod json;
pub mod load;
pub mod model;
pub mod percentile;
pub mod rates;
pub(crate) mod schema;
mod special_file;
mod utc;

pub use model::{ResultFile, SCHEMA_VERSION};
pub use utc::utc_now;

#[cfg(test)]
mod extreme_tests;
#[cfg(test)]
pub(crate) mod sample;
#[cfg(any(test, feature = "samples"))]
pub mod sample_mesh;
