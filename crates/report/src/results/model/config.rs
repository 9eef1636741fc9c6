//! The settings of a case.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The settings of a case, as both ends applied them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseConfig {
    /// Operation: `send`, `write` or `read`; `connect` where set-up was measured: what is said of messages, queues
    /// and workers is then of the traffic meanwhile, WRITEs on QPs of their own.
    pub op: String,
    /// Queue pairs; of `connect`, those that a round sets up.
    pub qps: u32,
    /// How completion queues are shared: `shared`, `per-worker` or `per-qp`.
    pub cq: String,
    /// Payload of one message, in bytes.
    pub size: u64,
    /// Send WRs in flight on each QP.
    pub tx_depth: u32,
    /// Receives posted on each QP.
    pub rx_depth: u32,
    /// One signalled WR in so many.
    pub signal_every: u32,
    /// WRs given to one `ibv_post_send`.
    pub post_list: u32,
    /// Messages up to this many bytes are sent inline; 0 is off.
    pub inline: u32,
    /// Worker threads at each end.
    pub workers: u32,
    /// Path MTU in use, in bytes; `null` when no connection was made.
    pub mtu: Option<u32>,
    /// Both ends sent at once.
    pub bidirectional: bool,
    /// Verbs name of the device at the end that ran the sweep.
    pub device: Option<String>,
    /// Verbs name of the device at the other end.
    pub peer_device: Option<String>,
    /// Payloads were filled with a pattern and checked.
    pub verify: bool,
    /// Length of the window that was asked for; `null` when messages were counted instead.
    pub duration_seconds: Option<f64>,
    /// Messages asked for on each QP, of `connect` rounds; `null` when time ended the window.
    pub iterations_per_qp: Option<u64>,
    /// Rule of the warm-up: `auto` or `fixed`.
    pub warmup: String,
    /// The fixed warm-up's length, or the automatic one's cap.
    pub warmup_limit_seconds: Option<f64>,
    /// Entries of each CQ; `null` when it followed from the depths.
    pub cq_depth: Option<u32>,
    /// Local ACK timeout exponent: 4.096 µs × 2^timeout.
    pub timeout: u8,
    /// Retries after a timeout or a sequence error.
    pub retry_cnt: u8,
    /// Retries after an RNR NAK; 7 is for ever.
    pub rnr_retry: u8,
    /// RNR NAK timer code.
    pub min_rnr_timer: u8,
    /// READs outstanding on one QP; `null` when it followed from the devices.
    pub max_rd_atomic: Option<u8>,
    /// Service level.
    pub service_level: u8,
    /// GRH traffic class.
    pub traffic_class: u8,
    /// GRH hop limit.
    pub hop_limit: u8,
    /// How workers learnt of completions: `busy`, `event` or `adaptive`.
    pub poll: String,
    /// How QPs were connected: `tcp` (told over the control connection) or `cm` (by rdma_cm).
    pub connect: String,
    /// `connect`: QPs that carried traffic meanwhile; `null` of other operations.
    pub traffic_qps: Option<u32>,
}

impl CaseConfig {
    /// Whether set-up was measured, and not a transfer.
    pub fn is_set_up(&self) -> bool {
        self.op == "connect"
    }
}
