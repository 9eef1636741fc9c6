//! A program as a child process whose output is read as it comes. A child never outlives its handle, and one that hangs fails
//! its test with what it said last.

use std::cell::OnceCell;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use crate::wait::wait_or_tell;

/// The most that a program of these tests takes.
const ENDS: Duration = Duration::from_secs(15);

/// The most that a step takes.
pub const STEP: Duration = Duration::from_secs(3);

/// Has rocebench tell each phase and how many messages each node has completed, unless the command says otherwise.
const TELLS: (&str, &str) =
    ("ROCEBENCH_LOG", "warn,rocebench::cli::sweep::output=debug,rocebench::coordinator::run=trace");

/// A command line, and the folder that it runs in or writes to.
pub struct Call {
    pub command: Command,
    folder: tempfile::TempDir,
}

pub struct Program {
    child: Child,
    stderr: Arc<Mutex<Vec<String>>>,
    stdout: Option<JoinHandle<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
    status: Option<ExitStatus>,
    folder: Option<tempfile::TempDir>,
}

/// A program that has ended.
pub struct Ended {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: String,
    stderr: String,
    /// The result of rocebench, once it is read.
    pub(crate) json: OnceCell<Value>,
    folder: tempfile::TempDir,
}

/// Signals by the names that `kill` has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Kill = 9,
    Stop = 19,
    Continue = 18,
    HangUp = 1,
    Interrupt = 2,
    Terminate = 15,
}

/// The words of a command line.
pub fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// A file's copy in the guest's own memory. Another process writes it: a child that another test starts meanwhile would
/// hold a descriptor of this process that is open for writing, and a program that is open for writing cannot be run.
pub fn copied(file: &Path) -> PathBuf {
    let copy = std::env::temp_dir().join(file.file_name().unwrap());
    // One that runs could not be written to.
    let _ = fs::remove_file(&copy);
    let done = Command::new("cp").arg(file).arg(&copy).status().unwrap();
    assert!(done.success(), "{}", file.display());
    copy
}

/// Writes a script of `sh` that can be run. Another process writes it, for the reason that [`copied`] has.
pub fn script(file: &Path, text: &str) {
    let write = "printf '#!/bin/sh\n%s' \"$1\" >\"$2\" && chmod +x \"$2\"";
    let done = Command::new("sh").args(["-c", write, "sh", text]).arg(file).status().unwrap();
    assert!(done.success(), "{}", file.display());
}

/// A command without the variables of this process whose names start so.
pub fn without_variables(program: impl AsRef<std::ffi::OsStr>, starts: &[&str]) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if starts.iter().any(|start| text.starts_with(start)) {
            command.env_remove(&name);
        }
    }
    command
}

/// Whether a process listens on a TCP port. Asks the system, since a server would take a connection for its client.
pub fn listens(pid: u32, port: u16) -> bool {
    let tables = ["tcp", "tcp6"]
        .map(|table| fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default());
    let local = format!(":{port:04X}");
    tables.iter().flat_map(|table| table.lines()).any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        // The state 0A is LISTEN.
        fields.next().is_some_and(|it| it.ends_with(&local)) && fields.nth(1) == Some("0A")
    })
}

/// Runs a command of the system, which must succeed; what it printed.
#[track_caller]
pub fn run(line: &str) -> String {
    let words = words(line);
    let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Sends a signal; a process that is gone is no error.
pub fn send_signal(pid: u32, signal: Signal) {
    let number = (signal as i32).to_string();
    Command::new("kill")
        .args([&format!("-{number}"), &pid.to_string()])
        .stderr(Stdio::null())
        .status()
        .unwrap();
}

/// A line of what the kernel tells of a process' memory in bytes, such as `VmHWM:`, the most that it had in RAM; `None`
/// of one that has ended.
pub fn memory_bytes(pid: u32, line: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|text| text.strip_prefix(line))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

impl Call {
    /// Runs `command` with these words, in a folder that goes away.
    pub fn new(mut command: Command, words: &str) -> Call {
        let folder = tempfile::tempdir().unwrap();
        command.args(words.split_whitespace()).current_dir(folder.path());
        Call { command, folder }
    }

    pub fn arg(mut self, word: impl AsRef<std::ffi::OsStr>) -> Call {
        self.command.arg(word);
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Call {
        self.command.env(name, value);
        self
    }

    pub fn args(mut self, words: &[&str]) -> Call {
        self.command.args(words);
        self
    }

    /// Runs in this folder instead.
    pub fn within(mut self, folder: impl AsRef<Path>) -> Call {
        self.command.current_dir(folder);
        self
    }

    /// Writes a file where it runs.
    pub fn with_file(self, name: &str, text: &str) -> Call {
        let file = self.folder.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
        self
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn start(self) -> Program {
        Program::start(self.command, Stdio::piped(), self.folder)
    }

    /// With what it prints there.
    pub fn start_to(self, stdout: impl Into<Stdio>) -> Program {
        Program::start(self.command, stdout.into(), self.folder)
    }

    pub fn run(self) -> Ended {
        self.start().wait()
    }

    #[track_caller]
    pub fn passes(self) -> Ended {
        self.run().exits(0)
    }

    #[track_caller]
    pub fn fails(self, says: &[&str]) -> Ended {
        self.run().exits(1).says(says)
    }

    /// Runs it; its input must be refused, with exit code 2.
    #[track_caller]
    pub fn is_refused(self, says: &[&str]) -> Ended {
        self.run().exits(2).says(says)
    }
}

impl Program {
    fn start(mut command: Command, stdout: Stdio, folder: tempfile::TempDir) -> Program {
        let mut set = command.get_envs().filter(|(_, value)| value.is_some());
        if !set.any(|(name, _)| name == TELLS.0) {
            command.env(TELLS.0, TELLS.1);
        }
        let mut child = command
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{command:?}: {error}; scripts/setup --tests installs what tests run")
            });
        let stderr: Arc<Mutex<Vec<String>>> = Arc::default();
        let (for_reader, errors) = (Arc::clone(&stderr), child.stderr.take().unwrap());
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(errors).split(b'\n') {
                let Ok(line) = line else { return };
                let line = String::from_utf8_lossy(&line).into_owned();
                for_reader.lock().unwrap().push(line);
            }
        });
        let printed = child.stdout.take().map(|mut pipe| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                let _ = pipe.read_to_end(&mut bytes);
                bytes
            })
        });
        Program {
            child,
            stderr,
            stdout: printed,
            reader: Some(reader),
            status: None,
            folder: Some(folder),
        }
    }

    pub fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        send_signal(self.pid(), signal);
    }

    /// Where it runs, or has its results.
    pub fn folder(&self) -> &Path {
        self.folder.as_ref().unwrap().path()
    }

    /// All of stderr so far.
    pub fn lines(&self) -> Vec<String> {
        self.stderr.lock().unwrap().clone()
    }

    /// Waits until what it has said so far is so. `expected` is the most that it takes on an idle machine.
    #[track_caller]
    pub fn await_lines(&self, expected: Duration, what: &str, is_so: impl Fn(&[String]) -> bool) {
        wait_or_tell(
            expected,
            || is_so(&self.stderr.lock().unwrap()).then_some(()),
            || format!("{what}; stderr: {}", joined(&self.lines())),
        );
    }

    /// Waits for a line with this text; the search begins with line number `from`.
    #[track_caller]
    pub fn await_line(&self, from: usize, text: &str, expected: Duration) {
        self.await_lines(expected, &format!("a line with {text:?}"), |lines| {
            lines.iter().skip(from).any(|line| line.contains(text))
        });
    }

    /// Waits until it has said this.
    #[track_caller]
    pub fn has_said(&self, text: &str) {
        self.await_line(0, text, STEP);
    }

    /// Waits until it has said this so many times.
    #[track_caller]
    pub fn has_said_times(&self, text: &str, times: usize) {
        self.await_lines(STEP, &format!("{text:?} {times} times"), |lines| {
            lines.iter().filter(|line| line.contains(text)).count() >= times
        });
    }

    /// In how many lines it has said this.
    pub fn times_said(&self, text: &str) -> usize {
        let lines = self.stderr.lock().unwrap();
        lines.iter().filter(|line| line.contains(text)).count()
    }

    /// Waits until this node, from 0, has completed messages in the phase that was entered last, of those that come
    /// after line number `from`.
    #[track_caller]
    pub fn has_moved(&self, from: usize, phase: &str, node: usize) {
        let (entered, moved) = (format!("phase {phase}"), format!("node {node} has completed "));
        self.await_lines(STEP, &format!("{moved:?} in {phase}"), |lines| {
            let mut later = lines.iter().skip(from);
            let has_entered = later.any(|line| line.contains(&entered));
            has_entered && later.any(|line| line.contains(&moved))
        });
    }

    pub fn kill(self) -> Ended {
        self.signal(Signal::Kill);
        self.wait()
    }

    #[track_caller]
    pub fn wait(self) -> Ended {
        self.wait_for(ENDS)
    }

    /// Waits for its end, which takes at most so long on an idle machine.
    #[track_caller]
    pub fn wait_for(mut self, expected: Duration) -> Ended {
        let stderr = Arc::clone(&self.stderr);
        let status = wait_or_tell(
            expected,
            || self.child.try_wait().unwrap(),
            || format!("the program's end; stderr: {}", joined(&stderr.lock().unwrap())),
        );
        self.status = Some(status);
        let stdout = self.stdout.take().map(|reader| reader.join().unwrap());
        self.reader.take().unwrap().join().unwrap();
        let lines = self.lines().into_iter().filter(|line| !is_only_for_tests(line));
        Ended {
            code: status.code(),
            signal: status.signal(),
            stdout: String::from_utf8(stdout.unwrap_or_default()).unwrap(),
            stderr: lines.map(|line| line + "\n").collect(),
            json: OnceCell::new(),
            folder: self.folder.take().unwrap(),
        }
    }

    /// Entries of a folder of /proc: `fd` or `task`.
    pub fn count(&self, folder: &str) -> usize {
        fs::read_dir(format!("/proc/{}/{folder}", self.pid())).unwrap().count()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.status.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn joined(lines: &[String]) -> String {
    lines.iter().map(|line| format!("\n    {line}")).collect()
}

/// What is only there because of [`TELLS`].
fn is_only_for_tests(line: &str) -> bool {
    line.starts_with("DEBUG phase ") || line.starts_with("TRACE node ")
}

impl Ended {
    pub fn stderr(&self) -> &str {
        &self.stderr
    }

    /// All that it printed.
    pub fn output(&self) -> String {
        format!("stderr: {}\nstdout: {}", self.stderr, self.stdout)
    }

    /// Demands that it ended with this code, and by no signal or panic.
    #[track_caller]
    pub fn exits(self, code: i32) -> Ended {
        let ended = (self.code, self.signal);
        let output = self.output();
        assert_eq!(ended, (Some(code), None), "{output}");
        assert!(!self.stderr.contains("panicked"), "{output}");
        self
    }

    /// Demands these words in what a person sees.
    #[track_caller]
    pub fn says(self, words: &[&str]) -> Ended {
        for word in words {
            let text = &self.stderr;
            assert!(text.contains(word), "no {word:?} in stderr: {text}");
        }
        self
    }

    /// Demands these words in what it printed.
    #[track_caller]
    pub fn shows(&self, words: &[&str]) {
        for word in words {
            assert!(self.stdout.contains(word), "no {word:?} in {}", self.stdout);
        }
    }

    /// The JSON that it printed.
    #[track_caller]
    pub fn document(&self) -> Value {
        let document = serde_json::from_str(&self.stdout);
        document.unwrap_or_else(|error| panic!("{error}: {} {}", self.stdout, self.stderr))
    }

    /// Where it ran, or had its results.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}
