//! A child process under the preloaded library: started, awaited, and always killed in the end.

use std::cell::RefCell;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{env, fmt};

use testing::embedded_device::library;
use testing::wait::wait_or_tell;

/// More than any of these programs takes on an idle machine.
pub const SOON: Duration = Duration::from_secs(12);

/// Held while programs run, so that only one test at a time uses the machine's cores.
pub fn machine() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    library();
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub struct Running {
    command: String,
    child: Child,
    /// Of stdout and stderr.
    readers: Vec<JoinHandle<String>>,
}

#[derive(Debug)]
pub struct Ended {
    pub command: String,
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    pub fn succeeded(&self) -> bool {
        self.status.success()
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "--- {}: {}", self.command, self.status)?;
        write!(f, "{}{}", self.stdout, self.stderr)
    }
}

/// Starts a program; `arguments` are separated by blanks, and variables of its environment (`NAME=VALUE`) may precede
/// its name, as in a shell.
pub fn start(program: &str, arguments: &str) -> Running {
    let words: Vec<&str> = program.split_whitespace().collect();
    let (executable, variables) = words.split_last().unwrap();
    let mut command = Command::new(executable);
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
    let started = command.spawn();
    let mut child = started.unwrap_or_else(|error| {
        let package = package(executable);
        panic!("{executable}: {error}; it is in the package {package}, which scripts/setup --tests installs")
    });
    let stdout = collect(child.stdout.take().unwrap());
    let stderr = collect(child.stderr.take().unwrap());
    Running { command: format!("{executable} {arguments}"), child, readers: vec![stdout, stderr] }
}

pub fn run_alone(program: &str, arguments: &str) -> Ended {
    let _machine = machine();
    start(program, arguments).end()
}

pub fn succeed_alone(program: &str, arguments: &str) -> Ended {
    let ended = run_alone(program, arguments);
    assert!(ended.succeeded(), "{ended}");
    ended
}

fn package(program: &str) -> &'static str {
    match program.split('_').next() {
        Some("ibv") => "ibverbs-utils",
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
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    #[track_caller]
    pub fn end(mut self) -> Ended {
        let running = RefCell::new(&mut self);
        let status = wait_or_tell(
            SOON,
            || running.borrow_mut().child.try_wait().unwrap(),
            || format!("the end of {}", running.borrow_mut().kill_it()),
        );
        self.ended(status)
    }

    pub fn kill(mut self) -> Ended {
        self.kill_it()
    }

    fn kill_it(&mut self) -> Ended {
        self.child.kill().unwrap();
        let status = self.child.wait().unwrap();
        self.ended(status)
    }

    fn ended(&mut self, status: ExitStatus) -> Ended {
        let [stdout, stderr] = self
            .readers
            .drain(..)
            .map(|it| it.join().unwrap())
            .collect::<Vec<_>>()
            .try_into()
            .unwrap();
        Ended { command: self.command.clone(), status, stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails if it has ended, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
