//! What limits a case, as `rocebench why` found it: the answer, the changes that were tried, and what else they ruled out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::names;

use crate::metric::Metric;

/// What limits a case, and how that is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnosis {
    /// The figure that is to be explained.
    pub metric: Metric,
    /// Its median over the runs of the case as it was requested.
    pub value: Option<f64>,
    /// How sure the answer is.
    pub certainty: Certainty,
    /// What limits it, and where: one cause, or several that could not be told apart; none if it is unknown.
    pub causes: Vec<FoundCause>,
    /// The answer as one sentence, for a person.
    pub answer: String,
    /// Each change that was tried, those that decided first.
    pub trials: Vec<ChangeTrial>,
    /// Causes that a trial contradicts.
    pub ruled_out: Vec<RuledOut>,
    /// Changes that were not tried, and why.
    pub left_out: Vec<LeftOut>,
    /// Changes that would tell the causes apart and were not tried, or are none of a case's settings.
    pub would_tell: Vec<String>,
    /// Why it ended before it was decided; `null` if it was decided, or nothing was left to try.
    pub ended_by: Option<String>,
    /// Time that all runs took, in seconds.
    pub seconds: f64,
}

names! {
    /// How sure a diagnosis is.
    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    Certainty {
        /// A trial came out as only this cause explains.
        Proven = "proven",
        /// Counters or states show it, and no trial contradicts it.
        Likely = "likely",
        /// Several causes explain all that was seen.
        OneOfSeveral = "one of several",
        /// The case moves what its link carries: nothing limits it below that.
        AtTheLink = "at the link's limit",
        /// No known cause explains what was seen.
        #[default]
        Unknown = "unknown",
        /// The case has no figure that counts.
        NotMeasured = "not measured",
    }
}

/// A cause that explains what was seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FoundCause {
    /// Its name, which does not change between versions.
    pub id: String,
    /// What limits, and where, as a sentence.
    pub sentence: String,
    /// What to do about it.
    pub remedy: String,
    /// Trials that came out as only it explains: names of changes.
    pub proven_by: Vec<String>,
}

/// A case with one thing changed, beside the case as it was requested.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeTrial {
    /// Name of the change, which does not change between versions.
    pub id: String,
    /// What was changed, for a person.
    pub changed: String,
    /// The options that make this case of the requested one; empty if none do.
    pub options: String,
    /// What was expected if `causes` is right, or if the likeliest cause were; `null` if it expects nothing.
    pub expected: Option<String>,
    /// The figure of the changed case over that of the case; `null` without rounds that count.
    pub ratio: Option<f64>,
    /// Lower bound of the ratio; `null` of too few rounds.
    pub low: Option<f64>,
    /// Upper bound of the ratio; `null` of too few rounds.
    pub high: Option<f64>,
    /// Lost packets of a million, before and with the change; `null` where the devices do not count them.
    pub lost_ppm: Option<[f64; 2]>,
    /// Whether it came out as expected; `null` if it is not clear, or nothing was expected.
    pub holds: Option<bool>,
    /// Rounds of it that count.
    pub rounds: usize,
    /// Why there is no figure; `null` if there is one.
    pub failure: Option<String>,
}

impl ChangeTrial {
    /// Whether it came out as expected, for a table; empty where nothing was expected.
    pub fn held(&self) -> &'static str {
        match (&self.expected, self.holds) {
            (None, _) => "",
            (_, Some(true)) => "yes",
            (_, Some(false)) => "no",
            (_, None) => "unclear",
        }
    }
}

/// A cause that is not the one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RuledOut {
    /// Its name, as in `causes`.
    pub id: String,
    /// The change whose result contradicts it.
    pub by: String,
}

/// A change that was not tried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// What would have been changed, for a person.
    pub change: String,
    /// Why it was not.
    pub why: String,
}
