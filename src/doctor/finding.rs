//! What a check found.

use serde::Serialize;

/// How things stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// As it should be.
    Ok,
    /// It could not be seen, for want of root or of a program; the finding says of what.
    Unknown,
    /// It works, but worse than it could, or may fail.
    Warning,
    /// It does not work.
    Broken,
}

impl State {
    /// The word for it.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was checked, such as `locked memory`; the same words in every version.
    pub check: &'static str,
    /// Of what: a device, port, interface or operation; `null` for the machine.
    pub subject: Option<String>,
    /// How it stands.
    pub state: State,
    /// What was found.
    pub found: String,
    /// Why it matters.
    pub why: String,
    /// The command, or what else, mends it; `null` where nothing needs mending.
    pub remedy: Option<String>,
}

impl Finding {
    /// Of the whole machine.
    pub fn new(
        check: &'static str,
        state: State,
        found: impl Into<String>,
        why: impl Into<String>,
    ) -> Finding {
        Finding {
            check,
            subject: None,
            state,
            found: found.into(),
            why: why.into(),
            remedy: None,
        }
    }

    /// The same of one thing.
    #[must_use]
    pub fn of(mut self, subject: impl Into<String>) -> Finding {
        self.subject = Some(subject.into());
        self
    }

    /// The same with what mends it.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Finding {
        self.remedy = Some(remedy.into());
        self
    }

    /// What was checked and of what, in one.
    pub fn label(&self) -> String {
        match &self.subject {
            Some(subject) => format!("{} {subject}", self.check),
            None => self.check.to_owned(),
        }
    }
}
