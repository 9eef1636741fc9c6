//! rocebench: a multi-QP throughput and latency harness for RoCEv2.
//!
//! Arrows between the modules go one way: `cli` uses `plan`, `control`, `doctor`, `explain`, `transfer`, `compare`,
//! `plot` and `results`; `doctor` uses `control`, `verbs`, `metrics`, `plan` and `results`; `explain` uses `control`,
//! `verbs` and `plan`; `transfer` (files) uses `control` and `verbs`;
//! `control` uses `datapath`, `verbs`, `metrics`, `perftest`, `statistics`, `plan` and `results`; `datapath` uses
//! `verbs`, `metrics` and `plan`; `perftest` uses `plan`; `plot` uses `compare`, and both use `results` and
//! `statistics`. `statistics` and `new_file` use none; `results` and `transfer` make their files with `new_file`. All may use
//! `text`.

pub mod cli;
pub mod control;
pub mod datapath;
pub mod doctor;
pub mod explain;
pub mod metrics;
pub mod perftest;
pub mod plan;
pub mod transfer;
