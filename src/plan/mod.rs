//! What is to be run: flags or a TOML file become an ordered list of [`Case`]s, all of them checked
//! before anything runs. This module must not know devices, sockets or threads.

pub mod case;
pub mod config;
pub mod error;
pub mod flow;
pub mod flow_table;
pub mod host;
mod matrix;
pub mod nodes;
mod sizes_table;
pub mod sweep;
mod toml_value;

pub use case::Case;
pub use config::{ConfigError, ConfigFile};
pub use error::PlanError;
pub use flow::{Flow, FlowDevice, Side};
pub use flow_table::FlowTable;
pub use host::HostPort;
pub use nodes::Nodes;
pub use sweep::Sweep;
