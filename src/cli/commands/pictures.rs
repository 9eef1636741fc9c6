//! Pictures in formats besides SVG, which librsvg's program makes.

use std::io::{self, Write as _};
use std::process::{Command, Output, Stdio};
use std::thread;

use report::show::page::folder::{Format, PNG_DPI};
use results::text;

use crate::cli::terminal::errors::Failure;

const PROGRAM: &str = "rsvg-convert";
const REMEDY: &str = "apt install librsvg2-bin, or dnf install librsvg2-tools";

/// Dots of a picture's SVG in an inch.
const SVG_DPI: u32 = 96;

/// Columns of what the program says that are shown.
const TOLD_COLUMNS: usize = 300;

/// Sees that the program is there, if it is needed.
pub(in crate::cli) fn check(formats: &[Format]) -> Result<(), Failure> {
    let Some(format) = formats.first() else {
        return Ok(());
    };
    let mut command = Command::new(PROGRAM);
    command.arg("--version").stdin(Stdio::null());
    let reason = match command.stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) => format!("{PROGRAM} --version failed ({status})"),
        Err(error) => unstarted(&error),
    };
    let name = format.extension().to_uppercase();
    Err(Failure::bad_input(format!("cannot write {name}: {reason}"))
        .with_hint(format!("{REMEDY}; or leave --format out")))
}

/// The SVG in that format.
///
/// # Errors
/// Why it could not be made, and what to do.
pub(in crate::cli) fn convert(svg: &str, format: Format) -> Result<Vec<u8>, String> {
    let mut command = Command::new(PROGRAM);
    command.args(["--format", format.extension()]);
    if format == Format::Png {
        let zoom = f64::from(PNG_DPI) / f64::from(SVG_DPI);
        command.args(["--zoom", &zoom.to_string()]);
    }
    let output = run(command, svg).map_err(|error| format!("{}; {REMEDY}", unstarted(&error)))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let reason = match text::printable(errors.trim(), TOLD_COLUMNS) {
        line if line.is_empty() => String::new(),
        line => format!(": {line}"),
    };
    if !output.status.success() {
        let status = output.status;
        return Err(format!(
            "{PROGRAM} failed ({status}){reason}; try the SVG file with it by hand, or leave --format out"
        ));
    }
    let name = format.extension().to_uppercase();
    format.marked(&output.stdout).ok_or_else(|| {
        format!("the output of {PROGRAM} is not a {name} file{reason}; install a newer librsvg")
    })
}

/// Runs the command with the text as its input.
fn run(mut command: Command, input: &str) -> io::Result<Output> {
    let mut child =
        (command.stdin(Stdio::piped()).stdout(Stdio::piped())).stderr(Stdio::piped()).spawn()?;
    let stdin = child.stdin.take();
    thread::scope(|scope| {
        // While it reads, its output is read: neither waits for the other.
        scope.spawn(move || {
            // A program that leaves early says why itself.
            stdin.map(|mut stdin| stdin.write_all(input.as_bytes()))
        });
        child.wait_with_output()
    })
}

fn unstarted(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("{PROGRAM} is not installed"),
        _ => format!("{PROGRAM} cannot be started: {error}"),
    }
}
