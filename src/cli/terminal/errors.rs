//! What goes to stderr: failures, with their exit codes and hints, notes, and diagnostics as loud as `-v` asks for.

use std::error::Error;
use std::fmt::Write as _;
use std::process::ExitCode;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;

use crate::cli::terminal::fit_for_stderr;
use crate::cli::token::TokenError;
use machine::threads;
use plan::{ConfigError, PlanError};
use protocol::failure::RunFailure;

/// Whose fault it was, as the exit code tells scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitKind {
    /// A run failed: 1.
    Failed,
    /// What was asked for cannot be done, and would not be on a second try: 2.
    BadInput,
    /// What was to be judged could not be measured: 3.
    Undone,
}

/// An error on its way to the person.
#[derive(Debug)]
pub struct Failure {
    kind: ExitKind,
    error: Box<dyn Error + Send + Sync>,
    hint: Option<String>,
}

impl Failure {
    pub fn failed(error: impl Into<Box<dyn Error + Send + Sync>>) -> Failure {
        Failure { kind: ExitKind::Failed, error: error.into(), hint: None }
    }

    pub fn bad_input(error: impl Into<Box<dyn Error + Send + Sync>>) -> Failure {
        Failure { kind: ExitKind::BadInput, error: error.into(), hint: None }
    }

    /// What was to be judged could not be measured.
    pub fn undone(error: impl Into<Box<dyn Error + Send + Sync>>) -> Failure {
        Failure { kind: ExitKind::Undone, ..Failure::failed(error) }
    }

    /// Bad input or a failed run, with what to do about it.
    pub fn new(
        error: impl Into<Box<dyn Error + Send + Sync>>,
        is_bad_input: bool,
        hint: Option<String>,
    ) -> Failure {
        let failure = if is_bad_input { Failure::bad_input(error) } else { Failure::failed(error) };
        Failure { hint, ..failure }
    }

    /// The same with what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }

    /// The same in one line, which names whose failure it is.
    #[must_use]
    pub(in crate::cli) fn without_hint(self, whose: &str) -> Failure {
        Failure {
            kind: self.kind,
            error: format!("{whose}: {}", chain(self.error.as_ref())).into(),
            hint: None,
        }
    }

    /// The same for the other end of a link.
    pub(in crate::cli) fn to_run_failure(&self) -> RunFailure {
        RunFailure {
            bad_input: self.kind == ExitKind::BadInput,
            ..RunFailure::new(chain(self.error.as_ref()), self.hint.clone())
        }
    }

    pub fn kind(&self) -> ExitKind {
        self.kind
    }

    pub fn exit_code(&self) -> ExitCode {
        match self.kind {
            ExitKind::Failed => ExitCode::from(1),
            ExitKind::BadInput => ExitCode::from(2),
            ExitKind::Undone => ExitCode::from(3),
        }
    }

    /// The message: the error and its sources in one line, then the hint.
    pub fn text(&self) -> String {
        let mut text = format!("rocebench: error: {}", chain(self.error.as_ref()));
        if let Some(hint) =
            self.hint.clone().or_else(|| threads::remedy(self.error.as_ref()).map(str::to_owned))
        {
            // Writing to a String cannot fail.
            let _ = write!(text, "\n  hint: {}", hint.replace('\n', " "));
        }
        text
    }

    /// Prints the message to stderr; when that is closed, nobody wants it.
    pub fn print(&self) {
        say(&self.text());
    }
}

/// Writes a line to stderr, or several on a narrow terminal; when that is closed, nobody wants it.
pub(in crate::cli) fn say(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{}", fit_for_stderr(text));
}

/// `error: source: source of that`, without a source that its error's text already ends with.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let next = error.to_string();
        if !text.ends_with(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        source = error.source();
    }
    text.replace('\n', " ")
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Failure {
        let hint = error.hint();
        Failure::bad_input(error).with_hint(hint)
    }
}

impl From<RunFailure> for Failure {
    fn from(failure: RunFailure) -> Failure {
        Failure::new(failure.message, failure.bad_input, failure.hint)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        Failure::bad_input(error)
    }
}

impl From<TokenError> for Failure {
    fn from(error: TokenError) -> Failure {
        Failure::bad_input(error).with_hint("generate one with: openssl rand -hex 32")
    }
}

/// The environment variable that sets a filter, such as `rocebench::control=trace`, over `-v`.
pub const LOG_VARIABLE: &str = "ROCEBENCH_LOG";

/// Starts diagnostics: warnings, with `-v` what is done, with `-vv` every step; errors only when quiet.
/// Colours and time stamps are left out: lines are few, and often end in a file.
pub fn start_logging(verbose: u8, quiet: bool) {
    let level = match (quiet, verbose) {
        (true, _) => LevelFilter::ERROR,
        (false, 0) => LevelFilter::WARN,
        (false, 1) => LevelFilter::INFO,
        (false, 2) => LevelFilter::DEBUG,
        (false, _) => LevelFilter::TRACE,
    };
    start_logging_with(Targets::new().with_default(level));
}

/// For a command whose findings say what is wrong: without `-v` only what it waits for is logged.
pub fn start_logging_beside_findings(verbose: u8) {
    if verbose > 0 {
        return start_logging(verbose, false);
    }
    let errors = Targets::new().with_default(LevelFilter::ERROR);
    start_logging_with(errors.with_target("rocebench::protocol::handshake", LevelFilter::WARN));
}

fn start_logging_with(usual: Targets) {
    let given = std::env::var(LOG_VARIABLE).ok();
    let filter: Option<Targets> = given.and_then(|text| text.parse().ok());
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .without_time()
        .with_target(false)
        .with_filter(filter.unwrap_or(usual));
    // A second start (in tests) keeps the first.
    let _ = tracing_subscriber::registry().with(lines).try_init();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        source: std::io::Error,
    }

    #[test]
    fn a_chain_is_one_line_without_repetition() {
        let failed = |text| {
            let source = std::io::Error::other("no route");
            Failure::failed(Layer { text, source })
        };
        let told = "rocebench: error: cannot connect: no route";
        assert_eq!(failed("cannot connect").text(), told);
        let repeating = failed("cannot connect:\nno route").with_hint("try again");
        assert_eq!(repeating.text(), format!("{told}\n  hint: try again"));
    }
}
