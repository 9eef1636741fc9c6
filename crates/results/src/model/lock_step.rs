//! Steps and iterations of flows in lock-step.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::distribution::Latency;

/// How the steps of a run in lock-step went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LockStep {
    /// Steps of an iteration.
    pub steps_of_iteration: u32,
    /// Steps that began in the window, of all nodes, in nanoseconds: from when a node has what a step needs until it has what the
    /// next one needs. `null` where none ended.
    pub step_ns: Option<Latency>,
    /// Iterations, without pauses: an all-reduce, or an exchange.
    pub iteration_ns: Option<Latency>,
    /// Bus bandwidth by the mean iteration, in 10^9 bits a second: what a node's link carries in one direction, however many nodes
    /// there are. It is `size_bytes` over the time, times (n - 1)/n, of an all-reduce twice that (nccl-tests,
    /// doc/PERFORMANCE.md).
    pub bus_gbit_per_s: Option<f64>,
    /// The shortest time of an iteration that the slowest link allows, over the mean iteration, 0 to 1: of links whose speed is
    /// known. `null` without one, as on the embedded device without a rate in `--faults`.
    pub share_of_ideal: Option<f64>,
    /// Steps in which nodes are compared: the last ones that all flows have ended, 256 at most.
    pub compared_steps: u64,
    /// Each node in them.
    pub nodes: Vec<StepsOfNode>,
}

/// A node in the steps that are compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepsOfNode {
    /// Its name.
    pub name: String,
    /// Steps in which it was last: its flows, to it and from it, took longest together, from when their sender had what the
    /// step needs until the message was acknowledged.
    pub last_in: u64,
    /// Median of the mean time of its flows in a step, in nanoseconds; `null` without steps.
    pub median_ns: Option<f64>,
}
