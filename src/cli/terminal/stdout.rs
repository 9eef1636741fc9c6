//! What goes to stdout: text and documents, and text that may be longer than the terminal, which then goes through a pager.

use std::env;
use std::io::{self, IsTerminal as _, Write};
use std::process::{Command, Stdio};

use serde::Serialize;

use crate::cli::terminal::errors::Failure;

/// Prints a document. A reader that closes the pipe early has seen enough.
pub(in crate::cli) fn print_json(document: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(document).map_err(Failure::failed)?;
    print(&(text + "\n"))
}

/// Prints text, as [`print_json`] does.
pub(in crate::cli) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    unless_closed(printed, Failure::failed)
}

/// What became of text for stdout, and the failure where it could not be written. A reader that closes the pipe early has
/// seen enough.
pub(in crate::cli) fn unless_closed(
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
pub(in crate::cli) struct Terminal {
    pub(in crate::cli) columns: usize,
    pub(in crate::cli) rows: usize,
}

/// The terminal that stdout is; `None` when it is none, or does not tell its size.
pub(in crate::cli) fn terminal_size() -> Option<Terminal> {
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
pub(in crate::cli) struct Pager {
    out: Box<dyn Write>,
    /// The rows that need no pager, and the pager.
    paged: Option<(usize, Command)>,
    text: String,
}

impl Pager {
    /// For stdout; without a terminal there is no pager.
    pub(in crate::cli) fn new(terminal: Option<Terminal>) -> Pager {
        let chosen = env::var("PAGER").ok();
        let paged = terminal.and_then(|it| Some((it.rows, command(chosen.as_deref())?)));
        Pager { out: Box::new(io::stdout()), paged, text: String::new() }
    }

    /// Adds text. A reader that closes the pipe early has seen enough.
    pub(in crate::cli) fn print(&mut self, more: &str) -> Result<(), Failure> {
        if self.paged.is_some() {
            self.text.push_str(more);
            return Ok(());
        }
        self.write(more)
    }

    /// Shows what is held, and waits for the pager.
    pub(in crate::cli) fn end(mut self) -> Result<(), Failure> {
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
fn command(chosen: Option<&str>) -> Option<Command> {
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// What is on the screen, and what a pager got, of three lines on a terminal of so many rows.
    fn shown(rows: Option<usize>, pager: &str) -> (String, Option<String>) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("paged");
        let line = pager.replace("FILE", file.to_str().unwrap());
        let screen = folder.path().join("screen");
        let terminal = fs::File::create(&screen).unwrap();
        let paged = rows.and_then(|rows| Some((rows, command(Some(&line))?)));
        let mut pager = Pager { out: Box::new(terminal), paged, text: String::new() };
        for line in ["one\n", "two\n", "three\n"] {
            pager.print(line).unwrap();
        }
        pager.end().unwrap();
        let text = fs::read_to_string(screen).unwrap();
        (text, fs::read_to_string(file).ok())
    }

    #[test]
    fn only_what_is_longer_than_the_terminal_goes_through_the_pager() {
        let all = || "one\ntwo\nthree\n".to_owned();
        let pager = "cat > FILE";
        assert_eq!(shown(Some(4), pager), (all(), None));
        assert_eq!(shown(Some(3), pager), (String::new(), Some(all())));
        assert_eq!(shown(None, pager), (all(), None), "no terminal");
        assert_eq!(shown(Some(1), ""), (all(), None), "PAGER is empty");
        assert_eq!(shown(Some(1), "/no/such/pager"), (all(), None));
        // Whoever leaves the pager has seen enough.
        assert_eq!(shown(Some(1), "true"), (String::new(), None));
    }

    #[test]
    fn less_is_the_pager_of_those_who_chose_none() {
        let less = command(None).unwrap();
        assert_eq!(less.get_program(), "less");
        assert!(less.get_args().eq(["-FRX"]));
        assert!(!page(&mut Command::new("/no/such/pager"), "text"));
    }
}
