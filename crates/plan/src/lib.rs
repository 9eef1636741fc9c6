//! What is to be run: flags or a TOML file become an ordered list of [`Case`]s, all of them checked before anything
//! runs.

pub mod beside;
pub mod case;
pub mod config;
pub mod error;
pub mod flow;
pub mod flow_table;
pub mod goal;
pub mod host;
mod matrix;
pub mod node_list;
pub mod nodes;
mod patterns;
pub mod quick;
pub mod rails;
#[cfg(any(test, feature = "samples"))]
pub mod sample;
pub mod searches;
mod sizes_table;
pub mod small_file;
pub mod sweep;
mod toml_value;

pub use case::Case;
pub use config::{ConfigError, ConfigFile};
pub use error::PlanError;
pub use flow::{Flow, FlowDevice, Side};
pub use flow_table::FlowTable;
pub use goal::{Factor, Goal, Slo};
pub use host::HostPort;
pub use nodes::{Nodes, ServerNode};
pub use rails::{Devices, RailsAsked};
pub use searches::Searches;
pub use sweep::Sweep;
