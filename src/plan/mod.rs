//! What is to be run: flags or a TOML file become an ordered list of [`Case`]s, all of them checked
//! before anything runs. This module must not know devices, sockets or threads.

pub mod case;

pub use case::{Case, CqMode, Mtu, Op, Stop, Warmup};
