//! A side of a gate: what is switched on it, and one launch of it. It must not know when it is launched, nor what is made
//! of the results.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::perftest::{Child, Ended, Launch};
use report::text;

use super::args::Switch;
use super::errors::Failure;

/// How often it is looked whether a process has ended.
const LOOK: Duration = Duration::from_millis(20);

/// What a sweep takes at most to end when it is asked to.
const END: Duration = Duration::from_secs(10);

/// Lines and columns of what a failed process printed last that are shown.
const TOLD: (usize, usize) = (3, 300);

/// Our secret, which a sweep needs as we do.
const SECRET: &str = "ROCEBENCH_TOKEN";

/// Where libraries are looked for first.
const LIBRARIES: &str = "LD_LIBRARY_PATH";

/// A side.
pub(super) struct Side {
    /// `base` or `new`: its name, and its folder's.
    pub(super) name: &'static str,
    /// The same with what is switched.
    pub(super) title: String,
    program: PathBuf,
    environment: Vec<(String, Option<OsString>)>,
    commands: Vec<String>,
}

impl Side {
    /// The side on which this is switched; `own` is this program.
    ///
    /// # Errors
    /// Two programs, or two folders of libraries.
    pub(super) fn new(
        name: &'static str,
        switches: &[Switch],
        own: PathBuf,
    ) -> Result<Side, Failure> {
        let secret = std::env::var_os(SECRET);
        let mut environment = vec![(SECRET.to_owned(), secret)];
        let (mut programs, mut libs, mut commands) = (Vec::new(), Vec::new(), Vec::new());
        let mut titles = Vec::new();
        for switch in switches {
            titles.push(match switch {
                Switch::Program(path) => {
                    programs.push(path.clone());
                    format!("program={}", text::path(path))
                }
                Switch::Lib(folder) => {
                    libs.push(folder);
                    format!("lib={folder}")
                }
                Switch::Env(variable, value) => {
                    environment.push((variable.clone(), Some(value.into())));
                    format!("env={variable}={value}")
                }
                Switch::Run(command) => {
                    commands.push(command.clone());
                    format!("run={command}")
                }
            });
        }
        for (count, key) in [(programs.len(), "program"), (libs.len(), "lib")] {
            if count > 1 {
                let told = format!("--{name} has {count} of {key}=");
                return Err(Failure::bad_input(told).with_hint("give one"));
            }
        }
        if let Some(folder) = libs.first() {
            let mut value = OsString::from(folder);
            if let Some(others) = std::env::var_os(LIBRARIES).filter(|it| !it.is_empty()) {
                value.push(":");
                value.push(others);
            }
            environment.push((LIBRARIES.to_owned(), Some(value)));
        }
        let title = std::iter::once(name.to_owned()).chain(titles);
        Ok(Side {
            name,
            title: title.collect::<Vec<_>>().join(" "),
            program: programs.into_iter().next().unwrap_or(own),
            environment,
            commands,
        })
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
        for command in &self.commands {
            let words = vec!["-c".to_owned(), command.clone()];
            self.run(("/bin/sh".into(), words), command, stop)?;
        }
        let folder = out.join(self.name).display().to_string();
        let own = ["--quiet".to_owned(), "--out".to_owned(), folder];
        let words: Vec<String> = sweep.iter().cloned().chain(own).collect();
        let command = format!("{} {}", self.program.display(), words.join(" "));
        self.run((self.program.clone(), words), &command, stop)
    }

    fn run(
        &self,
        (path, arguments): (PathBuf, Vec<String>),
        command: &str,
        stop: &AtomicBool,
    ) -> Result<(), Failure> {
        let launch = Launch {
            path,
            arguments,
            environment: self.environment.clone(),
            cores: Vec::new(),
        };
        let name = self.name;
        let told = match ended(&launch, stop) {
            _ if stop.load(Ordering::Relaxed) => {
                return Err(Failure::undone(format!("interrupted while {name} ran")));
            }
            Ok(ended) if ended.success => return Ok(()),
            Ok(ended) => format!("{}: {}", ended.status, last_lines(&ended)),
            Err(error) => format!("cannot be started: {error}"),
        };
        let hint = format!("try it by itself: {command}");
        Err(Failure::undone(format!("a launch of {name} failed: {told}")).with_hint(hint))
    }
}

/// Waits for a process' end; a wish to stop is passed on.
fn ended(launch: &Launch, stop: &AtomicBool) -> std::io::Result<Ended> {
    let mut child = Child::start(launch)?;
    let mut asked: Option<Instant> = None;
    while !child.has_ended() && asked.is_none_or(|at| at.elapsed() < END) {
        if asked.is_none() && stop.load(Ordering::Relaxed) {
            child.interrupt();
            asked = Some(Instant::now());
        }
        thread::sleep(LOOK);
    }
    Ok(child.finish())
}

/// What a process said last: of its errors, else of what it printed.
fn last_lines(ended: &Ended) -> String {
    let streams = [&ended.stderr, &ended.stdout];
    let said = streams.into_iter().find(|it| !it.trim().is_empty());
    let lines: Vec<&str> = said.map_or_else(Vec::new, |it| it.trim().lines().collect());
    let first = lines.len().saturating_sub(TOLD.0);
    match lines[first..].join(" ") {
        told if told.is_empty() => "it said nothing".to_owned(),
        told => text::printable(&told, TOLD.1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::has;

    #[test]
    fn a_side_is_what_is_switched_on_it() {
        let switches = ["lib=/opt/x", "env=A=1", "run=true"].map(|it| it.parse().unwrap());
        let side = Side::new("new", &switches, "own".into()).unwrap();
        assert_eq!(side.title, "new lib=/opt/x env=A=1 run=true");
        assert_eq!(
            (side.program, side.commands),
            ("own".into(), vec!["true".to_owned()])
        );
        let libraries = side
            .environment
            .into_iter()
            .find(|(name, _)| name == LIBRARIES);
        let folders = libraries.unwrap().1.unwrap().into_string().unwrap();
        assert_eq!(folders.split(':').next(), Some("/opt/x"));
        for key in ["lib", "program"] {
            let twice = ["a", "b"].map(|it| format!("{key}={it}").parse().unwrap());
            let refused = Side::new("base", &twice, PathBuf::new()).err().unwrap();
            has(refused.text(), [&*format!("--base has 2 of {key}=")]);
        }
    }
}
