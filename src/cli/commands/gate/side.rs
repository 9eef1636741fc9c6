//! A side of a gate: what is switched on it, and one launch of it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use perftest::{Child, Ended, Launch};
use results::text;

use crate::cli::args::Switch;
use crate::cli::terminal::errors::Failure;
use crate::cli::token::TOKEN_VARIABLE;

/// How often it is looked whether a process has ended.
const LOOK: Duration = Duration::from_millis(20);

/// What a sweep takes at most to end when it is asked to.
const END: Duration = Duration::from_secs(10);

/// Lines and columns of what a failed process printed last that are shown.
const TOLD: (usize, usize) = (3, 300);

/// Where libraries are looked for first.
const LIBRARIES: &str = "LD_LIBRARY_PATH";

pub(super) struct Side<'a> {
    /// `base` or `new`: its name, and its folder's.
    pub(super) name: &'static str,
    pub(super) switches: &'a [Switch],
}

impl<'a> Side<'a> {
    pub(super) fn title(&self) -> String {
        let words: Vec<_> =
            self.switches.iter().map(|it| format!("{}={}", it.key, it.value)).collect();
        if words.is_empty() { "this program".to_owned() } else { words.join(" ") }
    }

    fn values(&self, key: &str) -> impl Iterator<Item = &'a str> {
        self.switches.iter().filter(move |it| it.key == key).map(|it| it.value.as_str())
    }

    fn environment(&self) -> Vec<(String, Option<OsString>)> {
        let mut variables: Vec<_> = self
            .values("env")
            .filter_map(|it| it.split_once('='))
            .map(|(name, value)| (name.to_owned(), Some(value.into())))
            .collect();
        // Taken from processes of others; a sweep needs it as we do.
        let secret = env::var_os(TOKEN_VARIABLE);
        variables.extend(secret.map(|secret| (TOKEN_VARIABLE.to_owned(), Some(secret))));
        let mut folders: Vec<OsString> = self.values("lib").map(OsString::from).collect();
        if !folders.is_empty() {
            folders.extend(env::var_os(LIBRARIES).filter(|it| !it.is_empty()));
            variables.push((LIBRARIES.to_owned(), Some(folders.join(OsStr::new(":")))));
        }
        variables
    }

    /// Runs its commands, and then the sweep, whose results go to the side's folder in `out`.
    ///
    /// # Errors
    /// One of them failed, or the user stopped it.
    pub(super) fn launch(
        &self,
        sweep: &[String],
        out: &Path,
        stop: &AtomicBool,
    ) -> Result<(), Failure> {
        for command in self.values("run") {
            let words = vec!["-c".to_owned(), command.to_owned()];
            self.run("/bin/sh".into(), words, command, stop)?;
        }
        let program = self
            .values("program")
            .last()
            .map_or_else(|| env::current_exe().map_err(Failure::undone), |path| Ok(path.into()))?;
        let mut words = sweep.to_vec();
        let folder = out.join(self.name).display().to_string();
        words.extend(["--quiet".to_owned(), "--out".to_owned(), folder]);
        let command = format!("{} {}", program.display(), words.join(" "));
        self.run(program, words, &command, stop)
    }

    fn run(
        &self,
        path: PathBuf,
        arguments: Vec<String>,
        command: &str,
        stop: &AtomicBool,
    ) -> Result<(), Failure> {
        let launch = Launch { path, arguments, environment: self.environment(), cores: Vec::new() };
        let name = self.name;
        let reason = match ended(&launch, stop) {
            _ if stop.load(Ordering::Relaxed) => {
                return Err(Failure::undone(format!("interrupted while {name} ran")));
            }
            Ok(ended) if ended.success => return Ok(()),
            Ok(ended) => format!("{}: {}", ended.status, last_lines(&ended)),
            Err(error) => format!("cannot be started: {error}"),
        };
        let hint = format!("try it by itself: {command}");
        Err(Failure::undone(format!("a launch of {name} failed: {reason}")).with_hint(hint))
    }
}

/// Waits for a process' end; a wish to stop is passed on.
fn ended(launch: &Launch, stop: &AtomicBool) -> std::io::Result<Ended> {
    let mut child = Child::start(launch)?;
    let mut interrupted_at: Option<Instant> = None;
    while !child.has_ended() && interrupted_at.is_none_or(|at| at.elapsed() < END) {
        if interrupted_at.is_none() && stop.load(Ordering::Relaxed) {
            child.interrupt();
            interrupted_at = Some(Instant::now());
        }
        thread::sleep(LOOK);
    }
    Ok(child.finish())
}

/// What a process said last, without hints: of its errors, else of what it printed.
fn last_lines(ended: &Ended) -> String {
    let streams = [&ended.stderr, &ended.stdout];
    let text = streams.into_iter().find(|it| !it.trim().is_empty());
    let lines: Vec<&str> = text
        .map_or("", |it| it.trim())
        .lines()
        .filter(|line| !line.trim_start().starts_with("hint: "))
        .collect();
    let first = lines.len().saturating_sub(TOLD.0);
    let last = lines[first..].join(" ");
    if last.is_empty() { "it said nothing".to_owned() } else { text::printable(&last, TOLD.1) }
}
