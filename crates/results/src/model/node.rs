//! What the nodes did: their workers and their devices' counters.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One node in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeResult {
    /// Name of the node, as in the file's `nodes`.
    pub name: String,
    /// Difference of its clock from the coordinator's when its windows opened; `null` if they did not open, or the
    /// clock was not read.
    pub clock: Option<NodeClock>,
    /// Worker threads; each serves all flows of the node. Empty if the device alone works here.
    pub workers: Vec<WorkerResult>,
    /// CPU time of its embedded device's own thread over the window; this thread does part of the workers' work. `null` without
    /// such a device, or if another node reports the device.
    pub engine_cpu_seconds: Option<f64>,
    /// Cores on which that thread may run, such as `1,4-7`: those without a worker, if there are any. `null` if
    /// `engine_cpu_seconds` is.
    pub engine_cores: Option<String>,
    /// CPU time of its whole machine over the window (/proc/stat): workers, kernel threads, interrupts, other programs and
    /// other nodes there. `null` if unknown.
    pub machine_cpu_seconds: Option<f64>,
    /// Growth of its device's counters over its window; `null` if they were not read, or another node reports the
    /// device. One counter is `null` if its growth is unknown: it is at its largest value, was cleared, or was not
    /// there all the time.
    pub counters: Option<BTreeMap<String, Option<u64>>>,
}

/// A node's clock compared with the coordinator's. Both are monotonic: they count from a time of their own, usually the start of
/// their machine, and are never set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeClock {
    /// The node's clock minus the coordinator's, in nanoseconds: between machines about the difference of their uptimes, in one
    /// process 0 within `uncertainty_ns`.
    pub offset_ns: i64,
    /// Largest error of `offset_ns`: half of the shortest round trip of a clock request (F. Cristian, Probabilistic clock
    /// synchronization, 1989), and what reading the coordinator's own clock adds.
    pub uncertainty_ns: u64,
}

impl NodeResult {
    /// A node that has done nothing.
    pub fn named(name: &str) -> NodeResult {
        NodeResult { name: name.to_owned(), ..NodeResult::default() }
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
    /// Core to which it was pinned; `null` when it was not.
    pub core: Option<u32>,
    /// Other rocebench workers on that core when the run ended, of any process: more than 0 if there were too few
    /// cores. `null` when it was not pinned.
    pub core_shared_with: Option<u32>,
    /// Length of its own window; its rate is `messages` over this. `null` without a window.
    pub window_seconds: Option<f64>,
    /// Messages whose completions it saw; at a node that posts no flow, messages that it received.
    pub messages: u64,
    /// Time in the window without its core: intervals between two looks at its CQs that were longer than 0.5 ms (or
    /// 1/400 of the window) and in which the thread did not use the CPU. `null` without a window.
    pub away_seconds: Option<f64>,
    /// CPU time that it used; `null` if the system does not report it.
    pub cpu_seconds: Option<f64>,
    /// Polls of a CQ.
    pub polls: u64,
    /// Polls that found nothing.
    pub empty_polls: u64,
    /// Messages that waited because the send queue of the QP chosen by `spread` was full; 0 if each QP is its own
    /// source.
    pub blocked: u64,
}
