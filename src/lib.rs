//! rocebench: a multi-QP throughput and latency harness for RoCEv2.
//!
//! docs/dev/architecture.md has the rooms, and the way of a case through them.

pub mod cli;
pub mod coordinator;
pub mod doctor;
pub mod explain;
pub mod launch;
mod soak;
pub mod transfer;
