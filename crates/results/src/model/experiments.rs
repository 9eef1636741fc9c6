//! What many runs of a case were made for: a search for the highest load within a latency limit, pairs with perftest,
//! and rounds of a victim beside an attacker.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::names;

/// A search for a load (`--slo`, `--knee`): it runs one case at rates that it chooses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadSearch {
    /// The requested limit: `p99<20us`, or `knee 3`.
    pub asked: String,
    /// The limits of latency that a load keeps or breaks.
    pub limits: Vec<LatencyLimit>,
    /// `--knee`: p99 at 10 % load, in nanoseconds; the limit is a multiple of it. `null` otherwise.
    pub reference_p99_ns: Option<u64>,
    /// Messages a second of the closed loop with the same settings; the search tries no higher load.
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
    /// if the trial kept the limits; `null` if it has no verdict.
    pub excess: Option<f64>,
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
        /// The latencies of its load kept all limits.
        #[default]
        Kept = "kept",
        /// The latencies of its load broke at least one limit.
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

/// A case beside the perftest program that does the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PerftestComparison {
    /// Name of perftest's program, such as `ib_send_bw`.
    pub program: String,
    /// Its version, such as `6.06`; `null` when it did not report it.
    pub version: Option<String>,
    /// Arguments of its client, without the address and port at which its ends meet.
    pub arguments: Vec<String>,
    /// The compared figure: `gbit_per_s` or `mmsg_per_s`, both directions together, or `latency_ns`, the median of the
    /// messages.
    pub metric: String,
    /// Difference that does not matter, as a part of perftest's figure: 0.03 is 3 %.
    pub margin: Option<f64>,
    /// Every pair of runs, in order.
    pub pairs: Vec<PerftestPair>,
    /// Median of rocebench's figures in the pairs that count; `null` without one.
    pub rocebench_median: Option<f64>,
    /// Median of perftest's figures in the pairs that count; `null` without one.
    pub perftest_median: Option<f64>,
    /// rocebench's figure over perftest's: the middle between the medians of pairs that begin with one and the other.
    pub ratio: Option<f64>,
    /// Lower end of the ratio's 95 % interval, over all looks; `null` with few pairs.
    pub ratio_low: Option<f64>,
    /// Upper end of the ratio's 95 % interval, over all looks; `null` with few pairs.
    pub ratio_high: Option<f64>,
    /// rocebench is `faster`, `equal` or `slower`, or the comparison is `unclear`.
    pub verdict: String,
    /// What to know about the verdict, such as why it is unclear.
    pub note: Option<String>,
}

/// One run of rocebench and one of perftest, one right after the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PerftestPair {
    /// The program that ran first: `rocebench` or `perftest`.
    pub first: String,
    /// Number of rocebench's run within the case.
    pub run: u32,
    /// rocebench's figure, in the unit of `metric`; `null` when its run is not complete.
    pub rocebench: Option<f64>,
    /// perftest's figure, in the unit of `metric`; `null` when it failed.
    pub perftest: Option<f64>,
    /// Why the pair failed and does not count; `null` if it did not fail.
    pub failure: Option<String>,
    /// Why rocebench's figure is in doubt, in a few words: the pair does not count.
    pub doubt: Option<String>,
    /// Output of the failed perftest at both ends; only the end of long output.
    pub output: Option<String>,
}

impl PerftestPair {
    /// rocebench's figure and perftest's, where the pair counts.
    pub fn counted(&self) -> Option<(f64, f64)> {
        let counts = self.failure.is_none() && self.doubt.is_none();
        self.rocebench.zip(self.perftest).filter(|_| counts)
    }
}

/// A victim alone and beside an attacker (`--beside`), in rounds. A round has the number of its two runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BesideAttacker {
    /// Name of the attacker, as in the file that `--beside` names.
    pub attacker: String,
    /// Name of the case with the victim alone.
    pub alone: String,
    /// Name of the case with the victim's flows, then the attacker's.
    pub beside: String,
    /// Rounds with a run of each.
    pub rounds: u32,
    /// Rounds of them that count.
    pub counted: u32,
    /// Payload throughput of all flows of the victim together, in 10^9 bits a second.
    pub gbit_per_s: HarmFactor,
    /// 99 % of the victim's latencies are at most this, in nanoseconds; of several flows the highest.
    pub p99_ns: HarmFactor,
    /// Median payload throughput of the attacker over the rounds that count, in 10^9 bits a second; `null` without one.
    pub attacker_gbit_per_s: Option<f64>,
    /// The victim is `harmed` if its throughput or p99 is, `not harmed` if neither is, else `unclear`.
    pub verdict: String,
    /// What to know about the verdict, such as why it is unclear.
    pub note: Option<String>,
}

/// A figure of a victim alone and beside an attacker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HarmFactor {
    /// Median of the victim alone over the rounds that count; `null` without one.
    pub alone: Option<f64>,
    /// Median of the victim beside the attacker over the rounds that count; `null` without one.
    pub beside: Option<f64>,
    /// How many times worse it is beside the attacker: throughput alone over throughput beside, or p99 beside over p99 alone.
    pub factor: Option<f64>,
    /// Lower end of the factor's 95 % interval, over all looks; `null` with few rounds.
    pub factor_low: Option<f64>,
    /// Upper end of the factor's 95 % interval, over all looks; `null` with few rounds.
    pub factor_high: Option<f64>,
    /// Difference that does not matter, as a part: 0.05 is 5 %.
    pub margin: f64,
    /// What the factor's interval says beside the margin: `harmed`, `not harmed` or `unclear`.
    pub verdict: String,
}
