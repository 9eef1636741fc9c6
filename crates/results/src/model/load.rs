//! What an open loop offered, what became of it, and whether it kept its schedule.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::names;

use crate::rates;

/// The load of a flow whose messages have planned times (`--rate`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Load {
    /// Requested messages a second.
    pub asked_per_second: f64,
    /// Messages a second of the closed loop with the same settings; `null` if the requested rate is not a share of it.
    pub maximum_per_second: Option<f64>,
    /// Messages whose planned time is in the window.
    pub offered: u64,
    /// `offered` over the window's length.
    pub offered_per_second: f64,
    /// Messages that completed in the window, a second.
    pub achieved_per_second: f64,
    /// Messages of `offered` that were still not posted 1 s after the window. Only `latency_ns` has their wait until
    /// then.
    pub never_sent: u64,
    /// Messages of `offered` that had to wait because their QP's send queue was full. This wait is part of their
    /// latency.
    pub queue_full_messages: u64,
    /// Time in the window when messages waited for a full send queue, summed over the QPs.
    pub queue_full_seconds: f64,
    /// Latency, service and lateness are recorded for one message in so many, chosen at random; 1 records all.
    pub recorded_one_in: u64,
    /// The test of the times of posting; `null` if there were too few, and with `--arrivals fixed`.
    pub gaps: Option<Gaps>,
    /// Whether the schedule was kept.
    pub verdict: LoadVerdict,
    /// Why it was not kept; `null` if it was.
    pub not_kept_by: Option<NotKeptBy>,
}

/// The part of what was planned that may be missing.
const MISSING: f64 = 0.01;

/// Standard deviations of a Poisson count that may be missing.
const DEVIATIONS: f64 = 4.0;

impl Load {
    /// Whether a flow is overloaded: of its `planned` messages, `missing` did not complete in the window, so its backlog grew
    /// by so many. If a server just keeps up with Poisson arrivals (load 1, fixed service times), its backlog is a random
    /// walk, and grows by more than four times the square root of its steps once in 15,000 windows; at any lower load less
    /// often.
    pub fn is_overload(planned: f64, missing: f64) -> bool {
        missing > (MISSING * planned).max(DEVIATIONS * planned.sqrt())
    }

    /// Of all flows together, with the worst verdict; `None` without a flow.
    pub(super) fn sum(loads: &[&Load]) -> Option<Load> {
        let first = loads.first()?;
        let sum = |of: fn(&Load) -> f64| loads.iter().map(|load| of(load)).sum::<f64>();
        let count = |of: fn(&Load) -> u64| rates::sum(loads.iter().map(|load| of(load)));
        let has = |verdict| loads.iter().any(|load| load.verdict == verdict);
        let not_kept_by = loads.iter().filter_map(|load| load.not_kept_by);
        let verdicts = [LoadVerdict::NotKept, LoadVerdict::Overloaded];
        Some(Load {
            asked_per_second: sum(|load| load.asked_per_second),
            maximum_per_second: loads.iter().map(|load| load.maximum_per_second).sum(),
            offered: count(|load| load.offered),
            offered_per_second: sum(|load| load.offered_per_second),
            achieved_per_second: sum(|load| load.achieved_per_second),
            never_sent: count(|load| load.never_sent),
            queue_full_messages: count(|load| load.queue_full_messages),
            queue_full_seconds: sum(|load| load.queue_full_seconds),
            recorded_one_in: first.recorded_one_in,
            gaps: None,
            verdict: verdicts.into_iter().find(|it| has(*it)).unwrap_or_default(),
            not_kept_by: not_kept_by.min(),
        })
    }
}

/// Anderson-Darling test of the gaps between posts. `messages` exponential gaps add up to a gap, so gaps should
/// have a gamma distribution.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gaps {
    /// Messages in a gap; more than 1 if single gaps are too short to measure.
    pub messages_of_gap: u64,
    /// Tested gaps.
    pub samples: u64,
    /// Probability that gaps of the requested distribution deviate this much from it.
    pub p_value: f64,
}

names! {
    /// Outcome of a schedule.
    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    LoadVerdict {
        /// Messages were posted in time whenever their send queues had room.
        #[default]
        Kept = "kept",
        /// Messages were posted in time too, but too many did not complete in the window: more than 1 % of the planned ones,
        /// and more than four standard deviations of a Poisson count.
        Overloaded = "overloaded",
        /// The workers did not post in time: the figures are not those of the requested load.
        NotKept = "schedule not kept",
    }
}

names! {
    /// Why a schedule was not kept: the first that applies.
    #[derive(PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    NotKeptBy {
        /// Its workers did not have their cores for as large a part of the window as the flow fell short.
        Away = "workers away",
        /// More than 1 % of the messages were not posted in the window, though their send queues had room.
        NotPosted = "not posted",
        /// The times between posts do not have the requested distribution.
        Gaps = "gaps",
        /// Messages were posted so late that this would decide the median, p99 or p99.9 of latency, which are then `null`.
        Lateness = "lateness",
    }
}
