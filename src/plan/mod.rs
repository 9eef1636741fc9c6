//! What is to be run: flags or a TOML file become an ordered list of [`Case`]s, all of them checked
//! before anything runs. This module must not know devices, sockets or threads.

pub mod case;
pub mod config;
pub mod error;
mod matrix;
pub mod sweep;

pub use case::Case;
pub use config::{ConfigError, ConfigFile};
pub use error::PlanError;
pub use sweep::Sweep;
