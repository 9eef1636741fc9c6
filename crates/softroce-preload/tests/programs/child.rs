//! A child process under the preloaded library: started, awaited until a deadline, and always killed in the end.

use std::env;
use std::fs;
use std::io::{ErrorKind, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use crate::library::library;

/// Held while programs run, so that only one test at a time uses the machine's cores.
pub fn machine() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    library();
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A running program, killed when dropped.
pub struct Running {
    command: String,
    child: Child,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
}

/// How a program ended.
#[derive(Debug)]
pub struct Ended {
    pub command: String,
    pub status: ExitStatus,
    /// Whether it had to be killed.
    pub killed: bool,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    pub fn succeeded(&self) -> bool {
        self.status.success() && !self.killed
    }

    /// Its output, for a failed test.
    pub fn report(&self) -> String {
        let Ended {
            command,
            status,
            stdout,
            stderr,
            ..
        } = self;
        let killed = if self.killed {
            ", killed at its deadline"
        } else {
            ""
        };
        format!("--- {command}: {status}{killed}\n{stdout}{stderr}")
    }
}

/// Starts a program; `arguments` are separated by blanks, and variables of its environment (`NAME=VALUE`) may precede
/// its name, as in a shell.
pub fn start(program: &str, arguments: &str) -> Running {
    let words: Vec<&str> = program.split_whitespace().collect();
    let (program, variables) = words.split_last().unwrap();
    let mut command = Command::new(program);
    command
        .args(arguments.split_whitespace())
        .env("LD_PRELOAD", library())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("SOFTROCE_") {
            command.env_remove(name);
        }
    }
    for variable in variables {
        let (name, value) = variable.split_once('=').unwrap();
        command.env(name, value);
    }
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let package = package(program);
            panic!(
                "{program} is not installed: install the package {package}, or run scripts/setup --tests"
            )
        }
        Err(error) => panic!("cannot start {program}: {error}"),
    };
    let stdout = child.stdout.take().map(collect);
    let stderr = child.stderr.take().map(collect);
    Running {
        command: format!("{program} {arguments}"),
        child,
        stdout,
        stderr,
    }
}

/// Debian's package of a program.
fn package(program: &str) -> &'static str {
    match program.split('_').next() {
        Some("ibv") => "ibverbs-utils",
        Some("fi") => "libfabric-bin",
        Some("ucx") => "ucx-utils",
        Some("unshare") => "util-linux",
        Some("rping" | "ucmatose" | "udaddy" | "rdma" | "rstream") => "rdmacm-utils",
        _ => "perftest",
    }
}

/// Reads to the end on a thread of its own, so that the program never blocks on a full pipe.
fn collect(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // After an error, show what was read so far.
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

impl Running {
    /// Its process number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// CPU time that it has taken, in seconds; 0 of one that has been waited for.
    fn cpu_seconds(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id())).unwrap_or_default();
        // After the name, which is in brackets, `utime` and `stime` are the 12th and 13th, in hundredths of a second.
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let ticks = fields.split_whitespace().skip(11).take(2);
        ticks.map(|it| it.parse::<f64>().unwrap()).sum::<f64>() / 100.0
    }

    /// Waits until it has worked for so long, or has ended.
    pub fn works_for(&mut self, seconds: f64) {
        let deadline = Instant::now() + Duration::from_secs(60);
        let until = self.cpu_seconds() + seconds;
        while self.runs() && self.cpu_seconds() < until {
            assert!(Instant::now() < deadline, "{} stands still", self.command);
            sleep(Duration::from_millis(5));
        }
    }

    /// Sends SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    /// Waits for its end; kills it at the deadline.
    pub fn end(mut self, deadline: Instant) -> Ended {
        let mut killed = false;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() >= deadline {
                killed = true;
                self.kill();
                break self.child.wait().unwrap();
            }
            sleep(Duration::from_millis(5));
        };
        let text = |reader: Option<JoinHandle<String>>| reader.unwrap().join().unwrap();
        Ended {
            command: self.command.clone(),
            status,
            killed,
            stdout: text(self.stdout.take()),
            stderr: text(self.stderr.take()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails if it has ended, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
