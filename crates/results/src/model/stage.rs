//! What became of the stages of `rocebench accept`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A stage: one question to a fabric, and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageResult {
    /// Its name, such as `mesh`.
    pub name: String,
    /// Whether it is well.
    pub verdict: StageVerdict,
    /// What was found, in a sentence.
    pub text: String,
    /// The nodes that it names.
    pub nodes: Vec<String>,
    /// Ids of its cases.
    pub cases: Vec<String>,
}

/// What became of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StageVerdict {
    /// Nothing is wrong.
    Ok,
    /// Something is wrong.
    Failed,
    /// It could not be measured, or was left out.
    NotJudged,
}

impl StageVerdict {
    /// The word in a table.
    pub fn word(self) -> &'static str {
        match self {
            StageVerdict::Ok => "ok",
            StageVerdict::Failed => "FAILED",
            StageVerdict::NotJudged => "not judged",
        }
    }
}

impl StageResult {
    /// Without nodes and cases.
    pub fn new(name: &str, verdict: StageVerdict, text: impl Into<String>) -> StageResult {
        let (name, text) = (name.to_owned(), text.into());
        StageResult { name, verdict, text, nodes: Vec::new(), cases: Vec::new() }
    }
}
