//! What a node tells of itself where many are examined: facts that can be compared, and its own findings.

use serde::{Deserialize, Serialize};

use super::finding::Finding;
use machine::device::Lossless;
use results::model::Device;

/// Facts of a node. What it cannot read, as without root or of another driver, is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeExamination {
    /// The device, port and GID that it would use.
    pub device: Option<Device>,
    /// Why it can use none.
    pub no_device: Option<String>,
    /// Cores that its process may use.
    pub usable_cores: Option<u32>,
    /// How much memory its process may lock.
    pub locked_memory: Option<LockedMemory>,
    /// Whether NTP or PTP keeps its clock.
    pub clock_is_kept: Option<bool>,
    /// Means against loss at the device's network interface.
    pub lossless: Lossless,
    /// What its own checks found that need no other node.
    pub findings: Vec<Finding>,
}

/// A limit of locked memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LockedMemory {
    /// None, or the process has CAP_IPC_LOCK.
    Unlimited,
    /// So many bytes.
    Bytes(u64),
}
