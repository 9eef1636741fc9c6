//! Compares results of open loops with what queueing theory says, and prints the tables of `docs/dev/open-loop-proof.md`.
//! `scripts/open-loop` makes the results.
//!
//! ```text
//! open_loop queue SERVICE_US IDLE RESULT...   waits at a server that takes SERVICE_US for each message
//! open_loop stall STOPPED_MS RESULT...        latencies where the other end stood still for so long
//! open_loop closed STOPPED_MS RESULT...       what closed loops tell of the same
//! open_loop search SERVICE_US IDLE RESULT...  searches for a load at that server
//! ```
//! RESULT is a result file or a folder of them. IDLE has messages at a fixed distance of two services, so that none waits. Exit status: 0 all is within the promise, 1 it
//! is not (stderr says what), 2 a word or a file that is of no use.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod queue;
mod search;
mod stall;

use std::process::ExitCode;

use results::model::{CaseResult, FlowResult, Latency, Load, LoadVerdict};

/// What was promised and did not hold; an error is what was of no use.
type Checked = Result<Vec<String>, String>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let checked = match words.as_slice() {
        ["queue", service_us, idle, files @ ..] => queue::table(service_us, idle, files),
        ["search", service_us, idle, files @ ..] => search::table(service_us, idle, files),
        ["stall", stopped_ms, files @ ..] => stall::table(stopped_ms, files),
        ["closed", stopped_ms, files @ ..] => stall::closed(stopped_ms, files),
        _ => Err("usage: open_loop queue|search SERVICE_US IDLE RESULT... | stall|closed STOPPED_MS RESULT...".into()),
    };
    match checked {
        Ok(broken) => {
            for text in &broken {
                eprintln!("not as promised: {text}");
            }
            ExitCode::from(u8::from(!broken.is_empty()))
        }
        Err(text) => {
            eprintln!("open_loop: {text}");
            ExitCode::from(2)
        }
    }
}

/// A flow of an open loop.
pub struct Measured {
    load: Load,
    latency: Latency,
    lateness_p99_us: f64,
    window_ms: f64,
}

impl Measured {
    /// "kept", or what it was.
    fn verdict(&self) -> &'static str {
        self.load.verdict.name()
    }

    fn is_kept(&self) -> bool {
        self.load.verdict == LoadVerdict::Kept
    }
}

/// All cases in these files, in their order.
fn cases(files: &[&str]) -> Result<impl Iterator<Item = CaseResult> + use<>, String> {
    let found = results::load::load(files);
    match found.refused.first() {
        Some(refused) => Err(refused.to_string()),
        None => Ok((found.results.into_iter()).flat_map(|file| file.result.cases)),
    }
}

/// All flows in these files, in their order.
fn flows(files: &[&str]) -> Result<impl Iterator<Item = FlowResult> + use<>, String> {
    Ok(cases(files)?.flat_map(|case| case.runs).flat_map(|run| run.flows))
}

/// All open loops in these files, in their order.
fn open_loops(files: &[&str]) -> Result<Vec<Measured>, String> {
    let measured = flows(files)?
        .filter_map(|flow| {
            Some(Measured {
                load: flow.load?,
                latency: flow.latency_ns?,
                lateness_p99_us: flow.lateness_ns?.p99? as f64 / 1e3,
                window_ms: flow.window.seconds * 1e3,
            })
        })
        .collect::<Vec<_>>();
    if measured.is_empty() {
        Err(format!("no open loop with 100 messages in {}", files.join(" ")))
    } else {
        Ok(measured)
    }
}

/// The open loop in this file.
fn only_open_loop(file: &str) -> Result<Measured, String> {
    let mut loops = open_loops(&[file])?;
    match (loops.pop(), loops.len()) {
        (Some(only), 0) => Ok(only),
        _ => Err(format!("{file} has more than one run")),
    }
}

/// A positive number.
fn number(text: &str, what: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|it: &f64| *it > 0.0 && it.is_finite())
        .ok_or_else(|| format!("{what} is a number above 0, not {text}"))
}

/// How far off it is, in percent.
fn percent_off(found: f64, exact: f64) -> f64 {
    (found / exact - 1.0) * 100.0
}
