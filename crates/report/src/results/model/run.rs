//! One run of a case.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::direction::{Direction, Receiver};
use super::path_event::PathEvent;
use super::set_up::Connect;
use super::window::Timeline;

/// One run of a case, with fresh QPs. Figures at its top level are those of the end that ran the sweep,
/// sending (or reading) towards the other end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Number of the run within its case, from 1.
    pub run: u32,
    /// When the run began, RFC 3339 in UTC.
    pub started_at: String,
    /// The window ended as it was asked to, and nothing failed.
    pub complete: bool,
    /// The user stopped the run.
    pub interrupted: bool,
    /// Why the run is not complete.
    pub failure: Option<Failure>,
    /// What the end that ran the sweep moved, and its window.
    #[serde(flatten)]
    pub forward: Direction,
    /// Bidirectional runs: what the other end moved at the same time, measured there.
    pub reverse: Option<Direction>,
    /// SEND in one direction: what the other end received in the window.
    pub receiver: Option<Receiver>,
    /// What the device's counters grew by over the window, at the end that ran the sweep. A counter is `null` whose
    /// growth is not known: it is at its largest value, was cleared, or was not there all the time.
    pub device_counters: Option<BTreeMap<String, Option<u64>>>,
    /// The same of the other end's device, over its own window; `null` also where both ends used one device.
    pub peer_device_counters: Option<BTreeMap<String, Option<u64>>>,
    /// What the counters of both ends say of the path, where their driver is known; empty when nothing happened.
    pub path_events: Vec<PathEvent>,
    /// How throughput went over the window, at the end that ran the sweep; `null` where it was not sampled.
    pub timeline: Option<Timeline>,
    /// `connect`: how fast QPs were set up; all else in the run is then of the traffic meanwhile. `null` of other
    /// operations.
    pub connect: Option<Connect>,
}

/// Why a run failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// What happened.
    pub message: String,
    /// What to try.
    pub hint: Option<String>,
}
