//! rocebench: a multi-QP throughput and latency harness for RoCEv2.
//!
//! Arrows between the modules go one way: `cli` uses `plan`, `control` and `results`; `control` uses
//! `datapath`, `verbs`, `metrics`, `plan` and `results`; `datapath` uses `verbs`, `metrics` and `plan`.

pub mod cli;
pub mod control;
pub mod datapath;
pub mod metrics;
pub mod plan;
pub mod results;
pub mod verbs;
