//! What a person sees: failures, with their exit codes and hints; text and documents on stdout, text that is longer than
//! the terminal through a pager; notes on stderr, and diagnostics as loud as `-v` asks for; and what stands behind a
//! stream: a terminal of some width, which takes colours or not, or a file.

use std::{
    env,
    error::Error,
    fmt::Write as _,
    io::{self, IsTerminal, Write},
    os::fd::AsFd,
    process::{Command, ExitCode, Stdio},
};

use serde::Serialize;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::{filter::Targets, prelude::*};

use machine::threads;
use plan::{ConfigError, PlanError};
use protocol::failure::RunFailure;
use results::text::{Screen, printable_lines, wrapped};

/// Why a command does not end with exit status 0, the same for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitKind {
    /// A run failed, or could not begin; or what was judged is slower, or broken.
    Failed,
    /// What was asked for cannot be done, and would not be on a second try.
    BadInput,
    /// What was to be judged could not be measured.
    Undone,
}

/// The last line of each command's help.
pub const EXIT_STATUS: &str =
    "Exit status: 0 done, 1 failed or slower, 2 wrong use, 3 not measurable.";

impl ExitKind {
    pub const ALL: [ExitKind; 3] = [ExitKind::Failed, ExitKind::BadInput, ExitKind::Undone];

    pub fn status(self) -> u8 {
        match self {
            ExitKind::Failed => 1,
            ExitKind::BadInput => 2,
            ExitKind::Undone => 3,
        }
    }

    /// When commands end so, for docs/troubleshooting.md.
    pub fn meaning(self) -> &'static str {
        match self {
            ExitKind::Failed => {
                "something failed on the way: a run, a transfer, a full disk; or Ctrl-C, or nobody reads on, as after `\\| head`. \
                 Or what was judged is slower (`compare`, `gate`), beyond a limit (`--fail-if`, `--fail-below`, `--fail-victim`), not over at the end of a `soak`, or broken (`doctor`). \
                 Finished runs are in the files, the interrupted one is marked `complete: false`"
            }
            ExitKind::BadInput => {
                "the request cannot be met here: a wrong option or file, sides that were not measured alike or have no case in \
                 common, a limit of the device, a wrong token"
            }
            ExitKind::Undone => {
                "nothing can be said, since it could not be measured: too few launches, or not in turns; no run that counts, as on a \
                 busy machine; no message within the window; with `compare --strict` an unclear or missing case; a launch of `gate` \
                 that failed or was interrupted"
            }
        }
    }
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

    /// The same with another exit status.
    #[must_use]
    pub(super) fn with_kind(self, kind: ExitKind) -> Failure {
        Failure { kind, ..self }
    }

    /// The same in one line, which names whose failure it is.
    #[must_use]
    pub(super) fn without_hint(self, whose: &str) -> Failure {
        Failure {
            kind: self.kind,
            error: format!("{whose}: {}", chain(self.error.as_ref())).into(),
            hint: None,
        }
    }

    /// The same for the other end of a link.
    pub(super) fn to_run_failure(&self) -> RunFailure {
        RunFailure {
            bad_input: self.kind == ExitKind::BadInput,
            ..RunFailure::new(chain(self.error.as_ref()), self.hint.clone())
        }
    }

    pub fn kind(&self) -> ExitKind {
        self.kind
    }

    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.kind.status())
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

/// `error: source: source of that`, without a source that its error's text already ends with.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let reason = source.to_string();
        if !text.ends_with(&reason) {
            text.push_str(": ");
            text.push_str(&reason);
        }
        next = source.source();
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
        let hint = match error {
            ConfigError::Read { .. } => "give --config a TOML file that you may read",
            ConfigError::Content { .. } => {
                "keys and their values are those of long options, which `rocebench --help` lists"
            }
        };
        Failure::bad_input(error).with_hint(hint)
    }
}

/// Prints a document. A reader that closes the pipe early has seen enough.
pub(super) fn print_json(document: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(document).map_err(Failure::failed)?;
    print(&(text + "\n"))
}

/// Prints text, as [`print_json`] does.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    unless_closed(printed, Failure::failed)
}

/// What became of text for stdout, and the failure where it could not be written. A reader that closes the pipe early has
/// seen enough.
pub(super) fn unless_closed(
    printed: io::Result<()>,
    failure: fn(String) -> Failure,
) -> Result<(), Failure> {
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(failure(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// Exit status of a shell that cannot run a program, or does not find it (POSIX, 2.8.2).
const CANNOT_RUN: i32 = 126;
const NOT_FOUND: i32 = 127;

/// Size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terminal {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// The terminal that stdout is; `None` when it is none, or does not tell its size.
pub(super) fn terminal_size() -> Option<Terminal> {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&stdout).ok()?;
    let (columns, rows) = (size.ws_col.into(), size.ws_row.into());
    (columns > 0 && rows > 0).then_some(Terminal { columns, rows })
}

/// Writes text to stdout: at once where there is no pager, otherwise at the end, when it is known whether the rows of the
/// terminal hold it. Nobody else waits by then for the person who reads.
pub(super) struct Pager {
    out: Box<dyn Write>,
    /// The rows that need no pager, and the pager.
    paged: Option<(usize, Command)>,
    text: String,
}

impl Pager {
    /// For stdout; without a terminal there is no pager.
    pub(super) fn new(terminal: Option<Terminal>) -> Pager {
        let chosen = env::var("PAGER").ok();
        let paged = terminal.and_then(|it| Some((it.rows, pager_command(chosen.as_deref())?)));
        Pager { out: Box::new(io::stdout()), paged, text: String::new() }
    }

    /// Adds text. A reader that closes the pipe early has seen enough.
    pub(super) fn print(&mut self, more: &str) -> Result<(), Failure> {
        if self.paged.is_some() {
            self.text.push_str(more);
            return Ok(());
        }
        self.write(more)
    }

    /// Shows what is held, and waits for the pager.
    pub(super) fn end(mut self) -> Result<(), Failure> {
        let Some((rows, mut command)) = self.paged.take() else {
            return Ok(());
        };
        let text = std::mem::take(&mut self.text);
        // A line is left for the prompt.
        if text.lines().count() >= rows && page(&mut command, &text) {
            return Ok(());
        }
        self.write(&text)
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        let written = self.out.write_all(text.as_bytes());
        unless_closed(written.and_then(|()| self.out.flush()), Failure::failed)
    }
}

/// Has a pager show the text; false where there is no such program.
fn page(command: &mut Command, text: &str) -> bool {
    let Ok(mut child) = command.stdin(Stdio::piped()).spawn() else {
        return false;
    };
    if let Some(mut stdin) = child.stdin.take() {
        // Whoever leaves the pager early has seen enough.
        let _ = stdin.write_all(text.as_bytes());
    }
    // What the pager says of itself it has said on the terminal.
    let status = child.wait().ok().and_then(|status| status.code());
    !matches!(status, Some(CANNOT_RUN | NOT_FOUND))
}

/// The user's pager, or less; `None` where `$PAGER` is empty.
fn pager_command(chosen: Option<&str>) -> Option<Command> {
    match chosen.map(str::trim) {
        Some("") => None,
        Some(line) => {
            let mut command = Command::new("sh");
            command.args(["-c", line]);
            // less shows colours, and leaves short text alone, only if it is told to.
            if env::var_os("LESS").is_none() {
                command.env("LESS", "FRX");
            }
            Some(command)
        }
        None => {
            let mut command = Command::new("less");
            command.arg("-FRX");
            Some(command)
        }
    }
}

/// Writes a line to stderr, or several on a narrow terminal; when that is closed, nobody wants it.
pub(super) fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{}", fit_for_stderr(text));
}

/// The environment variable that sets a filter, such as `rocebench::coordinator=trace`, over `-v`.
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
    start_logging_with(errors.with_target("protocol::handshake", LevelFilter::WARN));
}

fn start_logging_with(usual: Targets) {
    let given = env::var(LOG_VARIABLE).ok();
    let filter: Option<Targets> = given.and_then(|text| text.parse().ok());
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(false)
        .without_time()
        .with_target(false)
        .with_filter(filter.unwrap_or(usual));
    // A second start (in tests) keeps the first.
    let _ = tracing_subscriber::registry().with(lines).try_init();
}

/// The width of a terminal that does not tell it.
const USUAL_COLUMNS: usize = 80;

/// The screen behind a stream. Where there is no terminal lines have any width, or that of the variable `COLUMNS`.
pub(super) fn screen(stream: &(impl AsFd + IsTerminal)) -> Screen {
    let columns = if stream.is_terminal() {
        rustix::termios::tcgetwinsize(stream)
            .ok()
            .map(|size| usize::from(size.ws_col))
            .filter(|columns| *columns > 0)
            .or_else(columns_of_variable)
            .unwrap_or(USUAL_COLUMNS)
    } else {
        columns_of_variable().unwrap_or(Screen::ENDLESS.columns)
    };
    Screen { columns, is_coloured: stream.is_terminal() && takes_colours() }
}

fn columns_of_variable() -> Option<usize> {
    env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0)
}

/// The text as a terminal may have it, whoever chose the names in it, and in lines that fit the one behind stderr.
pub(super) fn fit_for_stderr(text: &str) -> String {
    let text = &*printable_lines(text, usize::MAX);
    let stderr = io::stderr();
    if !stderr.is_terminal() {
        return text.to_owned();
    }
    let columns = screen(&stderr).columns.saturating_add(1);
    text.lines().flat_map(|line| wrapped(line, columns)).collect::<Vec<_>>().join("\n")
}

/// Whether nobody refuses colours (<https://no-color.org>).
fn takes_colours() -> bool {
    let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = env::var_os("TERM").is_none_or(|value| value == "dumb");
    !refused && !dumb
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        source: io::Error,
    }

    #[test]
    fn a_chain_is_one_line_without_repetition() {
        let failed = |text| {
            let source = io::Error::other("no route");
            Failure::failed(Layer { text, source })
        };
        let expected = "rocebench: error: cannot connect: no route";
        assert_eq!(failed("cannot connect").text(), expected);
        let repeating = failed("cannot connect:\nno route").with_hint("try again");
        assert_eq!(repeating.text(), format!("{expected}\n  hint: try again"));
    }

    /// What is on the screen, and what a pager got, of three lines on a terminal of so many rows.
    fn shown(rows: Option<usize>, command: &str) -> (String, Option<String>) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("paged");
        let line = command.replace("FILE", file.to_str().unwrap());
        let screen = folder.path().join("screen");
        let terminal = fs::File::create(&screen).unwrap();
        let paged = rows.and_then(|rows| Some((rows, pager_command(Some(&line))?)));
        let mut pager = Pager { out: Box::new(terminal), paged, text: String::new() };
        for more in ["one\n", "two\n", "three\n"] {
            pager.print(more).unwrap();
        }
        pager.end().unwrap();
        let text = fs::read_to_string(screen).unwrap();
        (text, fs::read_to_string(file).ok())
    }

    #[test]
    fn only_what_is_longer_than_the_terminal_goes_through_the_pager() {
        let text = || "one\ntwo\nthree\n".to_owned();
        let pager = "cat > FILE";
        assert_eq!(shown(Some(4), pager), (text(), None));
        assert_eq!(shown(Some(3), pager), (String::new(), Some(text())));
        assert_eq!(shown(None, pager), (text(), None), "no terminal");
        assert_eq!(shown(Some(1), ""), (text(), None), "PAGER is empty");
        assert_eq!(shown(Some(1), "/no/such/pager"), (text(), None));
        // Whoever leaves the pager has seen enough.
        assert_eq!(shown(Some(1), "true"), (String::new(), None));
    }

    #[test]
    fn less_is_the_pager_of_those_who_chose_none() {
        let less = pager_command(None).unwrap();
        assert_eq!(less.get_program(), "less");
        assert!(less.get_args().eq(["-FRX"]));
        assert!(!page(&mut Command::new("/no/such/pager"), "text"));
    }
}
