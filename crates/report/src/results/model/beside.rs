//! A victim beside an attacker, and by how much that harms it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A victim alone and beside an attacker, in rounds (`--beside`). The figures are in the runs of the two cases.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BesideAttacker {
    /// Name of the attacker.
    pub attacker: String,
    /// Name of the case that is the victim alone.
    pub alone: String,
    /// Name of the case that has the attacker's flows behind the victim's.
    pub beside: String,
    /// The rounds that had a run of both, in order.
    pub rounds: Vec<BesideRound>,
    /// Payload throughput of the victim, in 10^9 bits a second, of all its flows together.
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

/// A figure of a victim alone and beside an attacker. A factor above 1 is harm.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HarmFactor {
    /// Median of the victim alone, of the rounds that count; `null` without one.
    pub alone: Option<f64>,
    /// Median beside the attacker.
    pub beside: Option<f64>,
    /// By how much it is worse beside the attacker: throughput alone over that beside it, or p99 beside it over that alone.
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

/// A run of the victim alone and one beside the attacker, in one round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BesideRound {
    /// Number of the round, and of both runs within their cases.
    pub run: u32,
    /// Which went first: `alone` or `beside`.
    pub first: String,
    /// Why it does not count, in a few words.
    pub doubt: Option<String>,
}

impl BesideAttacker {
    /// Rounds that count.
    pub fn counted(&self) -> usize {
        let rounds = self.rounds.iter();
        rounds.filter(|round| round.doubt.is_none()).count()
    }

    /// Its factors, each with what it is of.
    pub fn factors(&self) -> [(&'static str, &HarmFactor); 2] {
        [("throughput", &self.gbit_per_s), ("p99", &self.p99_ns)]
    }
}
