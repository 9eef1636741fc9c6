//! What a node tells of itself where many are examined: facts that can be compared, and its own findings. It must not
//! know how they are found, nor what of them matters.

use serde::{Deserialize, Serialize};

use super::finding::Finding;
use report::results::model::Device;

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

/// What a network interface does so that no packet is lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lossless {
    /// Priorities with PFC (IEEE 802.1Qbb), in order.
    pub pfc_priorities: Option<Vec<u8>>,
    /// Pause frames (IEEE 802.3x) are on, in one direction at least.
    pub pause_frames: Option<bool>,
    /// Priorities on which the adapter both sends congestion notifications and obeys them.
    pub ecn_priorities: Option<Vec<u8>>,
    /// By which field a packet gets its priority: `dscp` or `pcp`.
    pub trust: Option<String>,
    /// DSCP with the priority that it stands for, in order of DSCP.
    pub dscp_priorities: Option<Vec<(u8, u8)>>,
    /// The traffic class of packets whose QP says none.
    pub traffic_class: Option<u8>,
}
