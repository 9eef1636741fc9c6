//! What a run of `connect` measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::distribution::Latency;

/// Set-up of QPs in rounds: each round creates QPs at both ends, connects and destroys them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Connect {
    /// Whole rounds in the window.
    pub rounds: u64,
    /// QPs that reached RTS at both ends in these rounds.
    pub connections: u64,
    /// From the begin of the first round to the end of the last, destroying included.
    pub seconds: f64,
    /// `connections` over `seconds`; `null` without a whole round.
    pub connections_per_second: Option<f64>,
    /// Set-up time of a round: from its begin until both ends have all its QPs in RTS.
    pub setup_ns: Option<Latency>,
    /// Times of each step, at the end that ran the sweep.
    pub steps: Vec<ConnectStep>,
    /// Times of each step at the other end; empty if it did not report them.
    pub peer_steps: Vec<ConnectStep>,
    /// Throughput of the traffic right before the first round; `null` without traffic or warm-up.
    pub traffic_alone_gbit_per_s: Option<f64>,
    /// Requests that rdma_cm rejected because it still had an earlier connection of the same QP number. The client repeats
    /// them: these waits are in `setup_ns` and `seconds`, not in `steps`. `null` without rdma_cm.
    pub stale_rejections: Option<u64>,
}

/// A step of set-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectStep {
    /// `create`, `init`, `exchange`, `rtr`, `rts` or `destroy`. With rdma_cm `exchange` is absent, and the end that ran the
    /// sweep has `resolve`, `route` and `connect`; `connect` contains `init`, `rtr` and `rts`.
    pub step: String,
    /// Each time is of one `connection`, or of one `round` of all its QPs.
    pub per: String,
    /// The times, in nanoseconds.
    pub time_ns: Latency,
}
