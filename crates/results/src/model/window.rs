//! The time in which an end measured, what throughput did meanwhile, and what makes it doubtful.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::names;

/// Throughput over the window, sampled about every 10 ms by the thread that controls the run, and less often in
/// long windows, to limit the samples. A missed sample is part of the next one, so the sum is the total.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Timeline {
    /// Intended length of an interval.
    pub interval_seconds: f64,
    /// End of each interval, from the start of the window.
    #[serde(serialize_with = "crate::compact::in_one_line")]
    pub at_seconds: Vec<f64>,
    /// Messages whose completions were seen in each interval.
    #[serde(serialize_with = "crate::compact::in_one_line")]
    pub messages: Vec<u64>,
    /// Longest time without a completion, to the precision of an interval; 0 if every interval has one.
    pub longest_stall_seconds: Option<f64>,
}

/// Messages of each QP over the window, in intervals as long as those of `timeline` or longer. The sum of a QP is its
/// `messages` in `qps`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QpTimeline {
    /// Intended length of an interval: 10 ms, or a multiple of it.
    pub interval_seconds: f64,
    /// End of each interval, from the start of the window.
    #[serde(serialize_with = "crate::compact::in_one_line")]
    pub at_seconds: Vec<f64>,
    /// For each QP, by index: messages whose completions were seen in each interval.
    #[serde(serialize_with = "crate::compact::in_one_line")]
    pub messages: Vec<Vec<u64>>,
}

impl QpTimeline {
    /// QPs of which a node keeps this, in equal parts for the flows that it sends.
    pub const MOST_QPS: usize = 1024;

    /// Fewer intervals show nothing over time.
    pub const FEWEST_INTERVALS: usize = 8;
}

/// The time in which one end measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// Length of the measurement window. With several workers, whose windows may differ, it is the sum of their
    /// messages over the sum of their rates.
    pub seconds: f64,
    /// Length of the warm-up before it.
    pub warmup_seconds: f64,
    /// With `--warmup auto`: throughput was steady before the cap; `null` for a fixed warm-up.
    pub warmup_steady: Option<bool>,
    /// Reasons to doubt the figures of this window; empty if there are none.
    pub doubts: Vec<Doubt>,
}

impl Window {
    /// Whether it has a doubt of this kind.
    pub fn has_doubt(&self, kind: DoubtKind) -> bool {
        self.doubts.iter().any(|doubt| doubt.kind == kind)
    }
}

/// One reason to doubt the figures of a window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Doubt {
    /// What kind of reason it is.
    pub kind: DoubtKind,
    /// What was seen, with figures.
    pub message: String,
}

names! {
    /// Kinds of [`Doubt`].
    #[derive(PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    DoubtKind {
        /// The window was at least 2 % longer or shorter than requested.
        WindowLength = "window length",
        /// A worker did not look at its CQs when the window opened or closed.
        EdgeMissed = "edge missed",
        /// A worker of a closed loop was away for 2 % of the window or more, and posted nothing meanwhile.
        WorkerAway = "worker away",
        /// Throughput rose or fell through the window.
        Drift = "drift",
        /// The windows of the run's flows were not open at the same time.
        NotTogether = "not together",
        /// An open loop did not post its messages when they were planned.
        ScheduleNotKept = "schedule not kept",
    }
}

impl DoubtKind {
    /// Whether the run's rates may be wrong, so that no verdict stands on them. A drift is true of the run.
    pub fn spoils_rates(self) -> bool {
        !matches!(self, DoubtKind::Drift)
    }
}
