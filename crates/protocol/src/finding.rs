//! The result of a check of `doctor`, as it is told and as a node sends it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// The state that a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// As it should be.
    Ok,
    /// It could not be checked, because root or a program is missing; the finding says which.
    Unknown,
    /// It works, but worse than it could, or may fail.
    Warning,
    /// It does not work.
    Broken,
}

impl State {
    /// The state's name.
    pub fn name(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Unknown => "unknown",
            State::Warning => "warning",
            State::Broken => "broken",
        }
    }
}

/// One check's result.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Finding {
    /// What was checked, such as `locked memory`; these words do not change between versions.
    pub check: Cow<'static, str>,
    /// The checked device, port, interface or operation; `null` for the machine.
    pub subject: Option<String>,
    /// Its state.
    pub state: State,
    /// What was found.
    pub found: String,
    /// Why it matters.
    pub why: String,
    /// The command or action that mends it; `null` if nothing needs mending.
    pub remedy: Option<String>,
}

impl Finding {
    /// A finding about the whole machine.
    pub fn new(
        check: &'static str,
        state: State,
        found: impl Into<String>,
        why: impl Into<String>,
    ) -> Finding {
        Finding {
            check: Cow::Borrowed(check),
            subject: None,
            state,
            found: found.into(),
            why: why.into(),
            remedy: None,
        }
    }

    /// Sets the subject.
    #[must_use]
    pub fn of(mut self, subject: impl Into<String>) -> Finding {
        self.subject = Some(subject.into());
        self
    }

    /// Sets the remedy.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Finding {
        self.remedy = Some(remedy.into());
        self
    }

    /// The check and its subject.
    pub fn label(&self) -> String {
        match &self.subject {
            Some(subject) => format!("{} {subject}", self.check),
            None => self.check.to_string(),
        }
    }
}
