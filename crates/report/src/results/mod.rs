//! The versioned result model and its writers. It knows no verbs, no sockets and no threads.

pub mod against;
pub(crate) mod compact;
mod connect_text;
pub mod contradiction;
pub mod csv;
pub mod file;
mod flow_faults;
pub mod histogram;
pub mod journal;
pub mod json;
pub mod load;
pub mod model;
pub mod number;
pub mod percentile;
pub mod rates;
pub mod schema;
pub mod setting_words;
mod special_file;
pub mod table;
mod utc;

pub use model::{ResultFile, SCHEMA_VERSION};
pub use table::Table;
pub use utc::utc_now;

#[cfg(test)]
pub(crate) mod sample;
#[cfg(any(test, feature = "samples"))]
pub mod sample_mesh;
