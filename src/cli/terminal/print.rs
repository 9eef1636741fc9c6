//! What goes to stdout: text and documents. It must not know what they say.

use std::io::{self, Write as _};

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
