//! Which of perftest's programs does what a case does, where it is installed, and what it prints.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plan::Case;
use results::text::printable;
use serde::{Deserialize, Serialize};
use settings::{Op, Ordering, names};

use crate::job::Needed;
use crate::process::{Child, Launch};

/// How long a program may take to print its version or its help.
const TEXT_LIMIT: Duration = Duration::from_secs(2);

names! {
    /// A program of perftest that can be compared with; no other is ever started.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    #[allow(missing_docs)]
    Program {
        IbSendBw = "ib_send_bw",
        IbWriteBw = "ib_write_bw",
        IbReadBw = "ib_read_bw",
        IbSendLat = "ib_send_lat",
        IbWriteLat = "ib_write_lat",
        IbReadLat = "ib_read_lat",
        IbAtomicBw = "ib_atomic_bw",
        IbAtomicLat = "ib_atomic_lat",
    }
}

/// A program that is not installed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no {program} in PATH")]
pub struct MissingProgram {
    pub program: Program,
}

impl MissingProgram {
    pub fn hint(&self) -> String {
        "it is in the package perftest: apt-get install perftest (or dnf, zypper, pacman)".into()
    }
}

impl Program {
    /// The program for a case: `_lat` for a ping-pong, else `_bw`; `None` where none measures the operation.
    pub fn measuring(case: &Case) -> Option<Program> {
        Program::ALL.iter().copied().find(|program| {
            program.ops().contains(&case.op.transfer()) && program.is_latency() == case.ping_pong
        })
    }

    /// The program for a case that perftest can run; `ib_send_bw` for any other.
    pub fn for_case(case: &Case) -> Program {
        Program::measuring(case).unwrap_or(Program::IbSendBw)
    }

    /// The program with this name.
    pub fn named(name: &str) -> Option<Program> {
        Program::ALL.iter().copied().find(|it| it.name() == name)
    }

    /// The operation that it measures unless another is asked for.
    pub fn op(self) -> Op {
        self.ops()[0]
    }

    /// The operations that it measures.
    fn ops(self) -> &'static [Op] {
        match self {
            Program::IbSendBw | Program::IbSendLat => &[Op::Send],
            Program::IbWriteBw | Program::IbWriteLat => &[Op::Write],
            Program::IbReadBw | Program::IbReadLat => &[Op::Read],
            Program::IbAtomicBw | Program::IbAtomicLat => &[Op::FetchAdd, Op::CompareSwap],
        }
    }

    pub fn is_latency(self) -> bool {
        matches!(
            self,
            Program::IbSendLat | Program::IbWriteLat | Program::IbReadLat | Program::IbAtomicLat
        )
    }

    /// The order of the adapter's writes in its runs of a case: only the bandwidth programs have an option.
    pub(crate) fn ordering(self, case: &Case) -> Ordering {
        match self {
            Program::IbWriteLat => Ordering::Strict,
            _ if self.is_latency() => Ordering::Relaxed,
            _ => case.ordering,
        }
    }

    /// Where it is, by `PATH`.
    pub fn find(self) -> Result<PathBuf, MissingProgram> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path)
            .map(|folder| folder.join(self.name()))
            .find(|file| is_executable(file))
            .ok_or(MissingProgram { program: self })
    }

    /// The version that the program at `path` tells, such as `6.06`; `None` when it does not.
    pub fn version(path: &Path) -> Option<String> {
        version_in(&printed(path, "--version")?)
    }

    /// Options that a case needs and the help of the program at `path` does not have.
    pub fn lacks(path: &Path, needed: Needed) -> Vec<String> {
        let mut options = needed.options();
        if !options.is_empty() {
            let help = printed(path, "--help").unwrap_or_default();
            options.retain(|option| !has_option(&help, option));
        }
        options
    }
}

/// What the program at `path` prints for an option after which it ends.
fn printed(path: &Path, option: &str) -> Option<String> {
    let mut child = Child::start(&Launch {
        path: path.to_owned(),
        arguments: vec![option.to_owned()],
        ..Launch::default()
    })
    .ok()?;
    let deadline = Instant::now() + TEXT_LIMIT;
    while !child.has_ended() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(2));
    }
    // The exit status of --version is an error's although there is none.
    Some(child.finish().stdout)
}

fn has_option(help: &str, option: &str) -> bool {
    help.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_'))
        .any(|word| word == option)
}

fn version_in(text: &str) -> Option<String> {
    let version = text.lines().find_map(|line| line.trim().strip_prefix("Version:"))?.trim();
    let sound = version.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+'));
    (sound && (1..=20).contains(&version.len())).then(|| version.to_owned())
}

fn is_executable(file: &Path) -> bool {
    std::fs::metadata(file)
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Resolutions with which it prints, as half the last digit: Gb/s with two decimals, or six below 0.1, and
/// 10^6 messages a second with six.
const GBIT_HALF_DIGIT: f64 = 0.005;
const SMALL_GBIT_HALF_DIGIT: f64 = 0.000_000_5;
const RATE_HALF_DIGIT: f64 = 0.000_000_5;

/// By how much rate times size may differ from the bandwidth of the same row, besides rounding.
const AGREEMENT: f64 = 0.01;

/// The most characters of what it printed that an error quotes.
const MAX_QUOTED_CHARS: usize = 100;

/// What a run of perftest measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// What a `_bw` program measured, both directions of a bidirectional run together.
    Bandwidth {
        /// Payload throughput, in 10^9 bits a second.
        gbit_per_s: f64,
        /// Message rate, in 10^6 a second.
        mmsg_per_s: f64,
    },
    /// What a `_lat` program measured.
    Latency {
        /// The median (`t_typical`), in nanoseconds.
        median_ns: f64,
    },
}

/// Text that no figure can be taken from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum TextError {
    #[error("it printed no table")]
    NoTable,
    #[error("its table has an unexpected heading: `{0}`")]
    Head(String),
    #[error("its table has no row")]
    NoRow,
    #[error("its table has {0} rows instead of one")]
    Rows(usize),
    #[error("its table says {what} {value}")]
    Nonsense { what: &'static str, value: String },
}

/// The figure in what `program` printed about messages of `size_bytes`, in both generations (4.5 of Debian 12, and 6.2x): a
/// head that begins with ` #bytes` and below it one row of figures between blanks. Of the row, peak, deviation and maximum
/// are never used: the first is not measured in a timed run, the other two are computed wrongly.
///
/// # Errors
/// There is none, or one that cannot be true.
pub fn figure(program: Program, size_bytes: u32, text: &str) -> Result<Figure, TextError> {
    let mut lines = text.lines().skip_while(|line| !line.trim_start().starts_with("#bytes"));
    let head = lines.next().ok_or(TextError::NoTable)?;
    let known = if program.is_latency() {
        head.contains("t_typical[usec]")
    } else {
        head.contains("average[Gb/sec]") && head.contains("MsgRate[Mpps]") && !head.contains("#sl")
    };
    if !known {
        return Err(TextError::Head(printable(head.trim(), MAX_QUOTED_CHARS)));
    }
    let least = if program.is_latency() { 6 } else { 5 };
    let rows: Vec<Vec<&str>> = lines
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|row| row.len() >= least && is_numeric(row))
        .collect();
    let row = match rows.as_slice() {
        [] => return Err(TextError::NoRow),
        [row] => row,
        rows => return Err(TextError::Rows(rows.len())),
    };
    if number(row, 0) != Some(f64::from(size_bytes)) {
        return Err(nonsense("a size of", row, 0));
    }
    positive(row, "iterations", 1)?;
    if program.is_latency() {
        let median_ns = positive(row, "a typical latency of", 4)? * 1e3;
        return Ok(Figure::Latency { median_ns });
    }
    let mmsg_per_s = positive(row, "a message rate of", 4)?;
    let gbit_per_s = number(row, 3)
        .filter(|value| value.is_finite() && *value >= 0.0)
        .ok_or_else(|| nonsense("a bandwidth of", row, 3))?;
    let by_rate = mmsg_per_s * f64::from(size_bytes) * 8.0 * 1e-3;
    let half_digit =
        if gbit_per_s < 0.1 && row[3].len() > 5 { SMALL_GBIT_HALF_DIGIT } else { GBIT_HALF_DIGIT };
    let by_rate_half_digit = RATE_HALF_DIGIT * by_rate / mmsg_per_s;
    let apart = (gbit_per_s - by_rate).abs();
    if apart > half_digit + by_rate_half_digit + AGREEMENT * by_rate {
        return Err(nonsense("with another rate a bandwidth of", row, 3));
    }
    // Whichever was printed with more digits that count.
    let finer = if half_digit < by_rate_half_digit { gbit_per_s } else { by_rate };
    Ok(Figure::Bandwidth { gbit_per_s: finer, mmsg_per_s })
}

fn positive(row: &[&str], what: &'static str, index: usize) -> Result<f64, TextError> {
    number(row, index)
        .filter(|value| value.is_finite() && *value > 0.0)
        .ok_or_else(|| nonsense(what, row, index))
}

/// Whether every word looks like a number, be it one that cannot be a figure, such as `nan` or `inf`.
fn is_numeric(row: &[&str]) -> bool {
    row.iter().all(|word| word.parse::<f64>().is_ok())
}

fn number(row: &[&str], index: usize) -> Option<f64> {
    row.get(index)?.parse().ok()
}

fn nonsense(what: &'static str, row: &[&str], index: usize) -> TextError {
    TextError::Nonsense { what, value: printable(row.get(index).unwrap_or(&""), MAX_QUOTED_CHARS) }
}

/// The variable that names the library by which perftest runs on the embedded device.
const LIBRARY_VARIABLE: &str = "SOFTROCE_LIBRARY";

const LIBRARY_FILE: &str = "libsoftroce_preload.so";

/// Where packages install the library, from the folder above the program's.
const LIBRARY_FOLDER: &str = "lib/rocebench";

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum LibraryError {
    #[error("{LIBRARY_VARIABLE}={}: no such file", .0.display())]
    NoSuchFile(PathBuf),
    #[error("perftest runs on the embedded device over {LIBRARY_FILE}, and there is none in {}", .0.display())]
    Missing(PathBuf),
    /// The dynamic linker takes blanks and colons for separators.
    #[error("{} cannot be preloaded: there is a blank or a colon in its path", .0.display())]
    Separator(PathBuf),
}

impl LibraryError {
    pub fn hint(&self) -> String {
        match self {
            LibraryError::Missing(folder) => {
                let release = match folder.file_name().and_then(|name| name.to_str()) {
                    Some("debug") => "",
                    _ => " --release",
                };
                format!(
                    "build it with `cargo build{release} -p softroce-preload`, or name it in the variable {LIBRARY_VARIABLE}"
                )
            }
            LibraryError::NoSuchFile(_) => format!("correct {LIBRARY_VARIABLE}, or leave it out"),
            LibraryError::Separator(_) => {
                format!("copy it to another folder and name it in the variable {LIBRARY_VARIABLE}")
            }
        }
    }
}

/// Where the library is: as `SOFTROCE_LIBRARY` says, or else beside this program, or where packages install it.
///
/// # Errors
/// It is not there, or cannot be preloaded.
pub fn find_library() -> Result<PathBuf, LibraryError> {
    let own = std::env::current_exe().unwrap_or_default();
    let folder = own.parent().unwrap_or(Path::new("."));
    find_in(std::env::var_os(LIBRARY_VARIABLE), folder)
}

fn find_in(named: Option<OsString>, folder: &Path) -> Result<PathBuf, LibraryError> {
    let library = match named.filter(|name| !name.is_empty()) {
        Some(name) => {
            let path = PathBuf::from(name);
            path.canonicalize().map_err(|_| LibraryError::NoSuchFile(path))?
        }
        None => {
            let installed = folder.parent().map(|above| above.join(LIBRARY_FOLDER));
            [Some(folder.to_owned()), installed]
                .into_iter()
                .flatten()
                .map(|place| place.join(LIBRARY_FILE))
                .find(|path| path.is_file())
                .ok_or_else(|| LibraryError::Missing(folder.to_owned()))?
        }
    };
    let text = library.to_string_lossy();
    if text.contains([' ', ':']) {
        return Err(LibraryError::Separator(library));
    }
    Ok(library)
}

#[cfg(test)]
#[path = "program_tests.rs"]
mod tests;
