//! What a run of `connect` measured. It must not know how QPs are set up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::distribution::Latency;

/// Set-up itself, in rounds: each creates QPs at both ends, connects them and destroys them again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Connect {
    /// Whole rounds in the window.
    pub rounds: u64,
    /// QPs that were brought to RTS at both ends in them.
    pub connections: u64,
    /// From the first round's beginning to the last one's end, destroying included.
    pub seconds: f64,
    /// `connections` over `seconds`; `null` without a whole round.
    pub connections_per_second: Option<f64>,
    /// Of each round, from its beginning until both ends had said that all its QPs are in RTS.
    pub setup_ns: Option<Latency>,
    /// Times of each step, at the end that ran the sweep.
    pub steps: Vec<ConnectStep>,
    /// Times of each step at the other end; empty where it did not report them.
    pub peer_steps: Vec<ConnectStep>,
    /// Throughput of the traffic right before the first round; `null` without traffic or warm-up.
    pub traffic_alone_gbit_per_s: Option<f64>,
    /// Requests that rdma_cm rejected because it still had an earlier connection of their QP number, and that were made
    /// again: the waits are in `setup_ns` and `seconds`, not in `steps`. `null` where rdma_cm has no part in it.
    pub stale_rejections: Option<u64>,
}

/// A step of set-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectStep {
    /// `create`, `init`, `exchange`, `rtr`, `rts` or `destroy`. Where rdma_cm connects, `exchange` is absent, and the end
    /// that ran the sweep has `resolve`, `route` and `connect`, which contains `init`, `rtr` and `rts`.
    pub step: String,
    /// What was timed once: `connection`, or `round` for what all QPs of a round do together.
    pub per: String,
    /// The times, in nanoseconds.
    pub time_ns: Latency,
}
