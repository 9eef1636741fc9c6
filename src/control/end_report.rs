//! What the server tells of its end of a run. It must not know how that is measured.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::results::model::{ConnectStep, Device, Direction, PathEvent, Receiver};

/// One end's part of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EndReport {
    /// The device that it used.
    pub device: Device,
    /// What it sent, in a bidirectional case.
    pub direction: Option<Direction>,
    /// What it received, in a SEND case.
    pub receiver: Option<Receiver>,
    /// Messages received on each QP since it was made.
    pub received_in_all: Vec<u64>,
    /// What its device's counters grew by in its window.
    pub counters: Option<DeviceCounters>,
    /// Times of its steps, where set-up was measured.
    pub setup_steps: Vec<ConnectStep>,
}

/// What an end's device counted over a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceCounters {
    /// By how much each counter grew; `None` where that is not known.
    pub grown: BTreeMap<String, Option<u64>>,
    /// What that means, of the end that told it.
    pub events: Vec<PathEvent>,
}
