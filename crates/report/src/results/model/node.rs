//! What the nodes did: their workers and their devices' counters. It must not know flows.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One node in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeResult {
    /// Name of the node, as in the file's `nodes`.
    pub name: String,
    /// How far its clock was from the coordinator's when its windows opened; `null` where they did not open, or the
    /// clock was not read.
    pub clock: Option<NodeClock>,
    /// Each worker thread, which serves all flows of the node; empty where nothing but the device works.
    pub workers: Vec<WorkerResult>,
    /// CPU time of its embedded device's own thread over the window, which works in place of a worker at times; `null` without
    /// such a device, also of one that another node reported.
    pub engine_cpu_seconds: Option<f64>,
    /// The cores on which that thread could run, such as `1,4-7`: those without a worker, where there are such. `null` like
    /// `engine_cpu_seconds`.
    pub engine_cores: Option<String>,
    /// CPU time of everything on its machine over the window, by /proc/stat: the workers, the kernel's threads and interrupts,
    /// other programs and other nodes there. `null` where it is not known.
    pub machine_cpu_seconds: Option<f64>,
    /// What its device's counters grew by over its window; `null` where they were not read, also of a device that
    /// another node reported. A counter is `null` whose growth is not known: it is at its largest value, was cleared,
    /// or was not there all the time.
    pub counters: Option<BTreeMap<String, Option<u64>>>,
}

/// A node's clock beside the coordinator's. Both count from some time of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeClock {
    /// The node's clock minus the coordinator's, in nanoseconds.
    pub offset_ns: i64,
    /// The true difference is at most so far from it, in nanoseconds: half of the shortest round trip of a question (F.
    /// Cristian, Probabilistic clock synchronization, 1989).
    pub uncertainty_ns: u64,
}

impl NodeResult {
    /// A node that has done nothing.
    pub fn named(name: &str) -> NodeResult {
        NodeResult {
            name: name.to_owned(),
            ..NodeResult::default()
        }
    }

    /// CPU time of all workers, in seconds; `None` when one of them has none, or there are none.
    pub fn cpu_seconds(&self) -> Option<f64> {
        if self.workers.is_empty() {
            return None;
        }
        self.workers.iter().map(|worker| worker.cpu_seconds).sum()
    }
}

/// One worker thread in the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerResult {
    /// Core that it was pinned to; `null` when it was not.
    pub core: Option<u32>,
    /// Other workers of rocebench on that core when the run ended, whichever process they were of; not 0 where there
    /// were too few cores. `null` when it was not pinned.
    pub core_shared_with: Option<u32>,
    /// Length of its own window, by which its messages are divided; `null` when it had none.
    pub window_seconds: Option<f64>,
    /// Messages of its node's flows whose completions it saw; at a node that posts no flow, those that it received.
    pub messages: u64,
    /// For how long of it the worker was away: from one look at its CQs to the next, where that took longer than 0.5 ms (or
    /// 1/400 of the window) and the thread did not use the CPU meanwhile. `null` when it had no window.
    pub away_seconds: Option<f64>,
    /// CPU time that it used; `null` where the system does not report it.
    pub cpu_seconds: Option<f64>,
    /// Polls of a CQ.
    pub polls: u64,
    /// Polls that found nothing.
    pub empty_polls: u64,
    /// How often its next message waited for the QP that `spread` had chosen, whose send queue was full; 0 where each
    /// QP is its own source.
    pub blocked: u64,
}
