//! What many runs of a case were made for: a search for the highest load within a latency limit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::names;

/// A search for a load (`--slo`, `--knee`, `--loss-search`): it runs one case at rates that it chooses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadSearch {
    /// The requested limit: `p99<20us`, `knee 3` or `zero loss`.
    pub asked: String,
    /// The limits of latency that a load keeps or breaks; empty with `--loss-search`.
    pub limits: Vec<LatencyLimit>,
    /// `--knee`: p99 at 10 % load, in nanoseconds; the limit is a multiple of it. `null` otherwise.
    pub reference_p99_ns: Option<u64>,
    /// Messages a second of the closed loop with the same settings. The search tries no higher load, but with `--loss-search`
    /// where the closed loop lost something.
    pub maximum_per_second: f64,
    /// The highest load that certainly kept the limits, in messages a second; `null` if none did.
    pub lower_per_second: Option<f64>,
    /// The lowest load that certainly broke them, in messages a second; `null` if none up to the maximum did. If the search
    /// ended with `schedule_not_kept`, the lowest load without a kept schedule.
    pub upper_per_second: Option<f64>,
    /// Why the search ended, which says what its bounds mean.
    pub end: SearchEnd,
    /// Details of its end, and the remedy.
    pub note: Option<String>,
    /// Length of a trial's window, in seconds. The first trials, which only guide the search, may be shorter.
    pub trial_seconds: f64,
    /// The trials, in the order in which they ran.
    pub trials: Vec<Trial>,
}

/// A limit for a latency percentile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyLimit {
    /// The percentile, 0 to 100.
    pub percentile: f64,
    /// The percentile must be below this, in nanoseconds.
    pub below_ns: u64,
}

/// A run at one load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// Requested messages a second, of all QPs together.
    pub asked_per_second: f64,
    /// Messages that completed in the window, a second.
    pub achieved_per_second: f64,
    /// Requested length of its window, in seconds. A trial shorter than the others only guides the search.
    pub seconds: f64,
    /// Its verdict on its load.
    pub outcome: TrialOutcome,
    /// Share of messages above a limit, over the share that the limit allows; the largest of several limits. At most 1
    /// if the trial kept the limits; `null` if it has no verdict, and with
    /// `--loss-search`.
    pub excess: Option<f64>,
    /// `--loss-search`: messages that were lost, and what the devices counted of packets lost or sent again. Absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub losses: Option<u64>,
    /// Median latency from the planned time, in nanoseconds.
    pub p50_ns: Option<u64>,
    /// 99 % of latencies are at most this, in nanoseconds.
    pub p99_ns: Option<u64>,
    /// 99.9 % of latencies are at most this, in nanoseconds.
    pub p99_9_ns: Option<u64>,
    /// 99 % of messages were posted at most this late, in nanoseconds.
    pub lateness_p99_ns: Option<u64>,
}

names! {
    /// The verdict of a trial on its load.
    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    TrialOutcome {
        /// Its load kept all limits.
        #[default]
        Kept = "kept",
        /// Its load broke at least one limit.
        Broke = "broke",
        /// No verdict: it did not keep its schedule.
        NotKept = "schedule not kept",
        /// No verdict: the run failed.
        Failed = "failed",
    }
}

names! {
    /// Why a search ended: with an answer, or for want of one.
    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    SearchEnd {
        /// Its bounds are as close as trials can bring them.
        #[default]
        Found = "found",
        /// No load keeps the limits.
        NoneKeeps = "no load keeps it",
        /// All loads up to the closed loop's maximum keep them.
        AllKeep = "all loads keep it",
        /// rocebench did not keep its schedule at the upper bound: the true limit may be higher.
        ScheduleNotKept = "schedule not kept",
        /// Trials scattered too much: all that are allowed did not settle it. The bounds are those so far.
        TrialsSpent = "trials spent",
        /// At the loads in question a trial has too few messages for the percentile.
        TooFewMessages = "too few messages",
        /// It was stopped, or a run failed; the bounds are those so far.
        Stopped = "stopped",
    }
}
