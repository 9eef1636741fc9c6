//! A victim beside an attacker, and by how much that harms it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A victim alone and beside an attacker (`--beside`), in rounds. A round has the number of its two runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BesideAttacker {
    /// Name of the attacker.
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
    /// Median beside the attacker.
    pub beside: Option<f64>,
    /// How many times worse it is beside the attacker: throughput alone over throughput beside, or p99 beside over p99 alone.
    pub factor: Option<f64>,
    /// Lower end of the factor's 95 % interval, over all looks; `null` with few rounds.
    pub factor_low: Option<f64>,
    /// Upper end of it.
    pub factor_high: Option<f64>,
    /// Difference that does not matter, as a part: 0.05 is 5 %.
    pub margin: f64,
    /// `harmed`, `not harmed` or `unclear`.
    pub verdict: String,
}
