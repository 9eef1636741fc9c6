//! What the device of a node can do, as the node tells the coordinator. It must not know what a case takes.

use serde::{Deserialize, Serialize};

/// What the device and the port of a node can do; 0 is a limit that the device does not tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceLimits {
    /// Name of the device.
    pub device: String,
    /// QPs.
    pub qps: u64,
    /// CQs.
    pub cqs: u64,
    /// WRs outstanding on one queue of a QP.
    pub wrs_of_a_queue: u64,
    /// Entries of one CQ.
    pub entries_of_a_cq: u64,
    /// Bytes of one message.
    pub message_bytes: u64,
}
