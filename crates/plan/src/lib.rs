//! What is to be run: flags or a TOML file become an ordered list of [`Case`]s, all of them checked before anything
//! runs.

pub mod beside;
pub mod check;
mod config;
mod flow;
mod matrix;
pub mod nodes;
pub mod quick;
pub mod recipes;
mod searches;
pub mod stages;
mod sweep;

pub use config::{ConfigError, ConfigFile, FlowTable};
pub use flow::{Devices, Flow, FlowDevice, NodeRails, RailsAsked, Side, over_rails};
pub use nodes::{HostPort, Nodes, ServerNode};
pub use searches::{Factor, Goal, Searches, Slo};
pub use sweep::{Case, PlanError, Sweep};
