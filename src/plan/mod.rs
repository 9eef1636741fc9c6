//! What is to be run: flags or a TOML file become an ordered list of [`Case`]s, all of them checked
//! before anything runs. This module must not know devices, sockets or threads.

pub mod case;
mod checked;
mod common;
pub mod config;
pub mod duration;
pub mod error;
pub mod limits;
pub mod list;
mod matrix;
mod nearest;
pub mod size;
pub mod spec;
pub mod sweep;
mod words;
pub mod workload;

pub use case::{Case, ConnectMode, CqMode, Mtu, Op, PollMode, SetUp, Stop, Transport, Warmup};
pub use config::{ConfigError, ConfigFile};
pub use duration::TimeSpan;
pub use error::PlanError;
pub use list::{CoreList, Count, List};
pub use size::{MemorySize, Size};
pub use spec::SweepSpec;
pub use sweep::Sweep;
pub use workload::Workload;
