//! A victim beside an attacker, and by how much that harms it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A victim alone and beside an attacker, in rounds (`--beside`), which have the same number as the runs of the two cases.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BesideAttacker {
    /// Name of the attacker.
    pub attacker: String,
    /// Name of the case that is the victim alone.
    pub alone: String,
    /// Name of the case that has the attacker's flows behind the victim's.
    pub beside: String,
    /// Rounds that had a run of both.
    pub rounds: u32,
    /// Rounds of them that count.
    pub counted: u32,
    /// Payload throughput of all flows of the victim together, in 10^9 bits a second.
    pub gbit_per_s: HarmFactor,
    /// 99 % of the victim's latencies are at most this, in nanoseconds; of several flows the highest.
    pub p99_ns: HarmFactor,
    /// Payload throughput of the attacker, in 10^9 bits a second, the median of the rounds that count; `null` without one.
    pub attacker_gbit_per_s: Option<f64>,
    /// The victim is `harmed` if throughput or p99 is, `not harmed` if neither is, or it is `unclear`.
    pub verdict: String,
    /// What to know about the verdict, such as why it is unclear.
    pub note: Option<String>,
}

/// A figure of a victim alone and beside an attacker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HarmFactor {
    /// Median of the victim alone, of the rounds that count; `null` without one.
    pub alone: Option<f64>,
    /// Median beside the attacker.
    pub beside: Option<f64>,
    /// How many times worse it is beside the attacker: throughput alone over that beside it, or p99 beside it over that alone.
    pub factor: Option<f64>,
    /// Lower end of the factor's interval, which holds at all looks together in 95 %; `null` of few rounds.
    pub factor_low: Option<f64>,
    /// Upper end of it.
    pub factor_high: Option<f64>,
    /// Part that does not matter: 0.05 is 5 %.
    pub margin: f64,
    /// `harmed`, `not harmed` or `unclear`.
    pub verdict: String,
}
