//! A process of perftest's, or of a gate: pinned, in a process group of its own, and never left behind.
//!
//! The group's leader is a guard, a shell that waits at a pipe which this process holds: should this process be killed,
//! the pipe closes, and the guard ends the group.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{self, Command, Stdio};
use std::thread;

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};

use machine::threads::keep_to;

use super::tail::Tail;

/// Waits until the other end of its input is gone, then kills its group, itself included.
const GUARD: [&str; 2] = ["-c", "read _; kill -KILL 0"];

/// Our secrets are none of perftest's business.
const SECRETS: [&str; 1] = ["ROCEBENCH_TOKEN"];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    pub path: PathBuf,
    pub arguments: Vec<String>,
    /// Variables to set, or to take away, in its environment.
    pub environment: Vec<(String, Option<OsString>)>,
    /// Cores that it may run on; none leaves it where this process may run.
    pub cores: Vec<usize>,
}

/// A process that was started; killed with all its group when dropped, or when this process dies.
pub struct Child {
    process: process::Child,
    guard: process::Child,
    stdout: Option<Tail>,
    stderr: Option<Tail>,
    command: String,
    reaped: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub command: String,
    /// It ended by itself, with exit status 0.
    pub success: bool,
    /// Its exit status in words.
    pub status: String,
    /// What it printed, the end of it where it was long.
    pub stdout: String,
    /// The same of its errors.
    pub stderr: String,
}

impl Ended {
    /// What a person needs to see of it.
    pub fn report(&self, whose: &str) -> String {
        let mut text = format!("--- {whose}: {} ({})\n", self.command, self.status);
        for stream in [&self.stdout, &self.stderr] {
            text += stream;
            if !stream.is_empty() && !stream.ends_with('\n') {
                text.push('\n');
            }
        }
        text
    }
}

impl Child {
    /// Starts a program.
    ///
    /// # Errors
    /// The system's, such as a core that this process may not use.
    pub fn start(launch: &Launch) -> io::Result<Child> {
        // A process inherits the affinity of the thread that starts it.
        let process = thread::scope(|scope| {
            let starter = thread::Builder::new()
                .name("perftest-start".into())
                .spawn_scoped(scope, || spawn(launch))?;
            starter.join().unwrap_or_else(|_| Err(io::Error::other("the starting thread panicked")))
        });
        let (guard, mut process) = process?;
        let name = launch.path.file_name().unwrap_or_default();
        let words: Vec<_> = std::iter::once(name.to_string_lossy().into_owned())
            .chain(launch.arguments.iter().cloned())
            .collect();
        Ok(Child {
            stdout: process.stdout.take().map(Tail::new),
            stderr: process.stderr.take().map(Tail::new),
            process,
            guard,
            command: words.join(" "),
            reaped: false,
        })
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Whether it has ended. It is left unreaped, so that its id stays its own until [`Child::finish`].
    pub fn has_ended(&mut self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match pid(&self.process) {
            Some(id) => !matches!(waitid(WaitId::Pid(id), options), Ok(None)),
            None => true,
        }
    }

    /// Asks it to end, as Ctrl-C does.
    pub fn interrupt(&self) {
        // Unreaped, it has its id still; if it has ended, all is well.
        let _ = pid(&self.process).map(|id| kill_process(id, Signal::INT));
    }

    /// Ends it, if it has not ended, with all that it started; and says how that was.
    pub fn finish(mut self) -> Ended {
        let by_itself = self.has_ended();
        let status = self.reap();
        let (success, status) = match status {
            Ok(status) if by_itself => (status.success(), status.to_string()),
            Ok(_) => (false, "did not end and was killed".to_owned()),
            Err(error) => (false, format!("its exit status is lost: {error}")),
        };
        Ended {
            command: std::mem::take(&mut self.command),
            success,
            status,
            stdout: text_of(self.stdout.take()),
            stderr: text_of(self.stderr.take()),
        }
    }

    fn reap(&mut self) -> io::Result<process::ExitStatus> {
        self.reaped = true;
        if let Some(group) = pid(&self.guard) {
            // Fails when nobody of it is left, which is what is wanted.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let status = self.process.wait();
        let _ = self.guard.wait();
        status
    }
}

fn text_of(tail: Option<Tail>) -> String {
    tail.map(Tail::text).unwrap_or_default()
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.reaped {
            let _ = self.reap();
        }
    }
}

fn pid(process: &process::Child) -> Option<Pid> {
    i32::try_from(process.id()).ok().and_then(Pid::from_raw)
}

/// The guard, and the program in its group.
fn spawn(launch: &Launch) -> io::Result<(process::Child, process::Child)> {
    let mut guard = Command::new("/bin/sh")
        .args(GUARD)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    let group = pid(&guard).map_or(0, Pid::as_raw_pid);
    match spawn_in(launch, group) {
        Ok(process) => Ok((guard, process)),
        Err(error) => {
            let _ = guard.kill();
            let _ = guard.wait();
            Err(error)
        }
    }
}

fn spawn_in(launch: &Launch, group: i32) -> io::Result<process::Child> {
    if !launch.cores.is_empty() {
        keep_to(&launch.cores)?;
    }
    let mut command = Command::new(&launch.path);
    command
        .args(&launch.arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(group);
    for name in SECRETS {
        command.env_remove(name);
    }
    for (name, value) in &launch.environment {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.spawn()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use testing::wait::{wait_for, wait_until};

    use super::*;
    use results::sample::starts;

    const SECOND: Duration = Duration::from_secs(1);

    fn shell(script: &str) -> Launch {
        Launch {
            path: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            ..Launch::default()
        }
    }

    fn run(launch: &Launch) -> Ended {
        let mut child = Child::start(launch).unwrap();
        wait_until("the process to end", SECOND, || child.has_ended());
        child.finish()
    }

    #[test]
    fn both_streams_and_the_status_are_kept() {
        let ended = run(&shell("echo out; echo err >&2; exit 3"));
        let streams = (&*ended.stdout, &*ended.stderr);
        assert_eq!(streams, ("out\n", "err\n"));
        assert!(!ended.success);
        assert_eq!(ended.status, "exit status: 3");
        assert!(run(&shell("true")).success);
        starts(ended.report("client"), "--- client: sh -c echo out");
    }

    #[test]
    fn a_hanging_process_goes_with_its_children() {
        let told = tempfile::NamedTempFile::new().unwrap();
        let script = format!("sleep 1000 & echo $! >{}; wait", told.path().display());
        let mut child = Child::start(&shell(&script)).unwrap();
        let grandchild = wait_for("the grandchild's id", SECOND, || {
            let text = std::fs::read_to_string(told.path()).unwrap();
            Some(format!("/proc/{}/stat", text.strip_suffix('\n')?))
        });
        assert!(!child.has_ended() && std::path::Path::new(&grandchild).exists());
        let ended = child.finish();
        assert!(!ended.success && ended.status.contains("killed"), "{ended:?}");
        // Killed, it may wait to be reaped by whoever adopted it.
        wait_until("the grandchild's end", SECOND, || {
            std::fs::read_to_string(&grandchild).is_ok_and(|stat| stat.contains(") Z "))
                || !std::path::Path::new(&grandchild).exists()
        });
    }

    #[test]
    fn dropping_kills() {
        let mut child = Child::start(&shell("echo on; exec sleep 1000")).unwrap();
        let id = child.id();
        assert!(!child.has_ended());
        drop(child);
        assert!(!std::path::Path::new(&format!("/proc/{id}")).exists());
    }

    #[test]
    fn it_runs_on_the_cores_given_and_without_our_secrets() {
        let own = rustix::thread::sched_getaffinity(None).unwrap();
        let mut cores = 0..rustix::thread::CpuSet::MAX_CPU;
        let core = cores.find(|&core| own.is_set(core)).unwrap();
        let mut launch = shell("grep Cpus_allowed_list /proc/self/status; echo \"$A-${B-unset}\"");
        launch.cores = vec![core];
        launch.environment = vec![("A".into(), Some("set".into())), ("B".into(), None)];
        let ended = run(&launch);
        let told = format!("Cpus_allowed_list:\t{core}\nset-unset\n");
        assert_eq!(ended.stdout, told);
        assert_eq!(rustix::thread::sched_getaffinity(None).unwrap(), own);
    }

    #[test]
    fn what_cannot_be_started_is_an_error() {
        let launch = Launch { path: "/nowhere/ib_send_bw".into(), ..Launch::default() };
        let error = Child::start(&launch).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound, "{error}");
    }
}
