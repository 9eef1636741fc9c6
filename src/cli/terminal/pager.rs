//! Text for stdout that may be longer than the terminal: it then goes through a pager. It must not know the text.

use std::env;
use std::io::{self, IsTerminal as _, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use crate::cli::terminal::errors::Failure;
use crate::cli::terminal::print::unless_closed;

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
pub(in crate::cli) fn terminal() -> Option<Terminal> {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&stdout).ok()?;
    let (columns, rows) = (size.ws_col.into(), size.ws_row.into());
    (columns > 0 && rows > 0).then_some(Terminal { columns, rows })
}

/// Writes text to stdout: at once where there is no pager, otherwise as soon as it is known whether a pager shows it.
pub(in crate::cli) struct Pager {
    out: Box<dyn Write>,
    shown: Shown,
}

enum Shown {
    /// At once.
    Plain,
    /// Not yet: it fits the rows of the terminal so far.
    Held { text: String, rows: usize, command: Command },
    /// By a pager, which a thread feeds: a person may read long, and the sender must not wait.
    Paged {
        /// All that the pager was given, for a shell that finds no such program.
        given: String,
        texts: Sender<String>,
        feeder: JoinHandle<()>,
        child: Child,
    },
}

impl Pager {
    /// For stdout; without a terminal there is no pager.
    pub(in crate::cli) fn new(terminal: Option<Terminal>) -> Pager {
        let chosen = env::var("PAGER").ok();
        let command = terminal.and_then(|it| Some((it.rows, command(chosen.as_deref())?)));
        Pager::to(Box::new(io::stdout()), command)
    }

    /// `paged` has the rows that need no pager, and the pager.
    fn to(out: Box<dyn Write>, paged: Option<(usize, Command)>) -> Pager {
        let shown = match paged {
            None => Shown::Plain,
            Some((rows, command)) => Shown::Held { text: String::new(), rows, command },
        };
        Pager { out, shown }
    }

    /// Adds text. A reader that closes pipe or pager early has seen enough.
    pub(in crate::cli) fn print(&mut self, more: &str) -> Result<(), Failure> {
        match &mut self.shown {
            Shown::Plain => return self.write(more),
            Shown::Paged { given, texts, .. } => {
                given.push_str(more);
                // The pager may have been left.
                let _ = texts.send(more.to_owned());
                return Ok(());
            }
            Shown::Held { text, rows, command } => {
                text.push_str(more);
                // A line is left for the prompt.
                if text.lines().count() < *rows {
                    return Ok(());
                }
                let text = std::mem::take(text);
                match paged(command, text) {
                    Ok(paged) => self.shown = paged,
                    Err(text) => {
                        self.shown = Shown::Plain;
                        return self.write(&text);
                    }
                }
            }
        }
        Ok(())
    }

    /// Shows what is held, and waits for the pager.
    pub(in crate::cli) fn end(mut self) -> Result<(), Failure> {
        match std::mem::replace(&mut self.shown, Shown::Plain) {
            Shown::Plain => Ok(()),
            Shown::Held { text, .. } => self.write(&text),
            Shown::Paged { given, texts, feeder, mut child } => {
                drop(texts);
                // What the pager says of itself it has said on the terminal.
                let _ = feeder.join();
                let status = child.wait().ok().and_then(|status| status.code());
                match status {
                    Some(CANNOT_RUN | NOT_FOUND) => self.write(&given),
                    _ => Ok(()),
                }
            }
        }
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        let written = self.out.write_all(text.as_bytes());
        unless_closed(written.and_then(|()| self.out.flush()), Failure::failed)
    }
}

/// A pager that has the first text; the text again where there is no such program.
fn paged(command: &mut Command, text: String) -> Result<Shown, String> {
    let Ok(mut child) = command.stdin(Stdio::piped()).spawn() else {
        return Err(text);
    };
    let Some(mut stdin) = child.stdin.take() else {
        return Err(text);
    };
    let (texts, received) = mpsc::channel::<String>();
    let feeder = thread::spawn(move || {
        for text in received {
            if stdin.write_all(text.as_bytes()).is_err() {
                break;
            }
        }
    });
    let _ = texts.send(text.clone());
    Ok(Shown::Paged { given: text, texts, feeder, child })
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
        let mut pager = Pager::to(Box::new(terminal), paged);
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
        let missing = paged(&mut Command::new("/no/such/pager"), "text".to_owned());
        assert_eq!(missing.err().as_deref(), Some("text"));
    }
}
