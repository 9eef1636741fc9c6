//! A search for the highest load that keeps a limit of latency: its goal, its trials, and the bounds that it came to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::names;

/// The search for a load, over runs of one case at rates that it chose (`--slo`, `--knee`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadSearch {
    /// The requested limit: `p99<20us`, or `knee 3`.
    pub asked: String,
    /// The limits of latency that a load keeps or breaks.
    pub limits: Vec<LatencyLimit>,
    /// `--knee`: p99 at 10 % load, of which the limit is a multiple, in nanoseconds; `null` otherwise.
    pub reference_p99_ns: Option<u64>,
    /// Messages a second that the closed loop moved with the same settings; no load above it was tried.
    pub maximum_per_second: f64,
    /// The highest load that kept the limits for sure, in messages a second; `null` where no load did.
    pub lower_per_second: Option<f64>,
    /// The lowest load that broke them for sure, in messages a second; `null` where none up to the maximum did. Where the
    /// schedule was not kept, the lowest load at which it was not.
    pub upper_per_second: Option<f64>,
    /// How it ended.
    pub end: SearchEnd,
    /// Details of its end, and the remedy.
    pub note: Option<String>,
    /// Length of a trial's window; of the first ones, which only steer, it may be less.
    pub trial_seconds: f64,
    /// The trials, in the order in which they ran.
    pub trials: Vec<Trial>,
}

/// A limit of a percentile of latency.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyLimit {
    /// The percentile, 0 to 100.
    pub percentile: f64,
    /// What it must be below, in nanoseconds.
    pub below_ns: u64,
}

/// A run at one load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// Requested messages a second.
    pub asked_per_second: f64,
    /// Messages that completed in the window, a second.
    pub achieved_per_second: f64,
    /// Requested length of its window. A trial that is shorter than others of its search only steers.
    pub seconds: f64,
    /// Its verdict on its load.
    pub outcome: TrialOutcome,
    /// The share of messages above a limit, over the share that the limit allows; of several limits the largest. Not
    /// above 1 where it kept the limits; `null` where it says nothing.
    pub excess: Option<f64>,
    /// Median latency from the planned time, in nanoseconds.
    pub p50_ns: Option<u64>,
    /// 99 % of latencies are at most this, in nanoseconds.
    pub p99_ns: Option<u64>,
    /// 99.9 % of latencies are at most this, in nanoseconds.
    pub p99_9_ns: Option<u64>,
    /// 99 % of messages were posted at most so late, in nanoseconds.
    pub lateness_p99_ns: Option<u64>,
}

names! {
    /// What a trial says of its load.
    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    TrialOutcome {
        /// It kept all limits.
        #[default]
        Kept = "kept",
        /// It broke one.
        Broke = "broke",
        /// Nothing: it did not keep its schedule.
        NotKept = "schedule not kept",
        /// Nothing: the run failed.
        Failed = "failed",
    }
}

names! {
    /// How a search ended.
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
        /// rocebench did not keep its schedule from the upper bound on: the limit may be higher.
        ScheduleNotKept = "schedule not kept",
        /// Trials scattered so much that as many as there may be did not settle it; the bounds are those so far.
        TrialsSpent = "trials spent",
        /// At the loads in question a trial has too few messages for the percentile.
        TooFewMessages = "too few messages",
        /// It was stopped, or a run failed; the bounds are those so far.
        Stopped = "stopped",
    }
}
