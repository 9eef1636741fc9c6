//! What a node has of memory for a run, as it tells the coordinator.

use serde::{Deserialize, Serialize};
use verbs::Port;

/// Whose queues a QP has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// The embedded device's. Its memory that is only read takes none.
    Embedded,
    /// Those of a kernel driver.
    System,
}

impl DeviceKind {
    /// Whose queues the QPs of an open port have.
    pub fn new(port: &Port) -> DeviceKind {
        match port.embedded {
            Some(_) => DeviceKind::Embedded,
            None => DeviceKind::System,
        }
    }
}

/// What a node has of memory for a run, as it tells the coordinator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryOffer {
    /// By which its needs are counted.
    pub device: DeviceKind,
    /// In bytes; `None` where it does not know.
    pub bytes: Option<u64>,
    /// What leaves no more: `this machine`, a control group, `--memory`.
    pub by: String,
}
