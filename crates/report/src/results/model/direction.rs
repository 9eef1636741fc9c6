//! What moved in one direction: rates, QPs, workers, and the link's limits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::distribution::{Bandwidth, Latency};
use super::window::Window;

/// One direction's figures in the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Direction {
    /// The time that was measured, at the end that sent (or read).
    pub window: Window,
    /// All QPs together.
    pub totals: Totals,
    /// All QPs' latencies in one histogram, in nanoseconds from post to completion seen; `null` when off.
    pub latency_ns: Option<Latency>,
    /// Throughput over the intervals of `timeline`; `null` where there is none, as in `reverse`.
    pub bandwidth_gbit_per_s: Option<Bandwidth>,
    /// How evenly the QPs were served; `null` without traffic.
    pub fairness: Option<Fairness>,
    /// Each QP.
    pub qps: Vec<QpResult>,
    /// Each worker thread.
    pub workers: Vec<WorkerResult>,
    /// What the link would allow; `null` when its speed is unknown.
    pub limits: Option<Limits>,
}

impl Direction {
    /// CPU time of all workers; `None` when one of them has none, or there are none.
    pub fn cpu_seconds(&self) -> Option<f64> {
        if self.workers.is_empty() {
            return None;
        }
        self.workers.iter().map(|worker| worker.cpu_seconds).sum()
    }
}

/// What all QPs moved together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Messages completed.
    pub messages: u64,
    /// Payload bytes of them.
    pub bytes: u64,
    /// Payload throughput.
    pub gbit_per_s: Option<f64>,
    /// Message rate, in 10^6 a second.
    pub mmsg_per_s: Option<f64>,
    /// Completions with an error, and payloads that failed verification.
    pub errors: u64,
}

/// How evenly QPs shared what was moved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fairness {
    /// Jain's index: 1 is even, 1/n is one QP alone.
    pub jain: f64,
    /// The least served QP's bytes over an even share.
    pub min_share: f64,
    /// The best served QP's bytes over an even share.
    pub max_share: f64,
}

/// One QP in the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QpResult {
    /// Index within the case, from 0.
    pub index: u32,
    /// QP number that the device gave it.
    pub qpn: u32,
    /// Messages completed.
    pub messages: u64,
    /// Payload bytes of them.
    pub bytes: u64,
    /// Payload throughput.
    pub gbit_per_s: Option<f64>,
    /// Its latencies, in nanoseconds; `null` when off or without a sample.
    pub latency_ns: Option<Latency>,
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
    /// Messages whose completions it saw.
    pub messages: u64,
    /// CPU time that it used; `null` where the system does not tell.
    pub cpu_seconds: Option<f64>,
    /// Polls of a CQ.
    pub polls: u64,
    /// Polls that found nothing.
    pub empty_polls: u64,
}

/// What the other end received.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Receiver {
    /// Messages received.
    pub messages: u64,
    /// Payload bytes of them.
    pub bytes: u64,
    /// Length of the receiver's own window, which closes a message on the wire later than the sender's; `null`
    /// when messages were counted instead.
    pub window_seconds: Option<f64>,
    /// Its worker threads.
    pub workers: Vec<WorkerResult>,
}

impl Receiver {
    /// What was received over what was sent, 1 for all of it; by the rate where the windows differ in length.
    pub fn share_of(&self, sent: &Direction) -> f64 {
        let share = self.messages as f64 / sent.totals.messages as f64;
        match self.window_seconds {
            Some(seconds) => share * sent.window.seconds / seconds,
            None => share,
        }
    }
}

/// The most that the link allows, and how much of it was reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// Speed of the link, headers and gaps included.
    pub link_gbit_per_s: f64,
    /// Payload's part of what the messages take on the wire, 0 to 1.
    pub protocol_efficiency: f64,
    /// Payload throughput over `link_gbit_per_s` × `protocol_efficiency`; `null` without a throughput.
    pub share_of_limit: Option<f64>,
}
