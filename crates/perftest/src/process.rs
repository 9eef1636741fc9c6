//! A process of perftest's, or of a gate: pinned, in a process group of its own, and never left behind; what it prints,
//! and whether it listens.
//!
//! The group's leader is a guard, a shell that waits at a pipe which this process holds: should this process be killed,
//! the pipe closes, and the guard ends the group.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{self, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use machine::threads::keep_to;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};

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
    /// What it reads; nothing where it is empty.
    pub input: Vec<u8>,
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
        .stdin(input(&launch.input)?)
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

/// In memory, not in a pipe: nobody waits for a process that does not read.
fn input(bytes: &[u8]) -> io::Result<Stdio> {
    if bytes.is_empty() {
        return Ok(Stdio::null());
    }
    let mut file = File::from(memfd_create("input", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}

/// Bytes that are kept of one stream. Results come last.
const KEPT_BYTES: usize = 32 << 10;

/// How long the rest of a stream is waited for once its process is gone.
const REST_LIMIT: Duration = Duration::from_millis(500);

/// The end of what a process prints, read aside so that it never waits for room in its pipe.
struct Tail {
    kept: Arc<Mutex<Vec<u8>>>,
    reader: Option<thread::JoinHandle<()>>,
}

impl Tail {
    /// Reads a stream to its end, on a thread of its own.
    fn new(mut stream: impl Read + Send + 'static) -> Tail {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&kept);
        let reader = thread::Builder::new().name("perftest-output".into()).spawn(move || {
            let mut block = vec![0; 4096];
            while let Ok(bytes @ 1..) = stream.read(&mut block) {
                let mut end = shared.lock().unwrap_or_else(PoisonError::into_inner);
                end.extend_from_slice(&block[..bytes]);
                let excess = end.len().saturating_sub(KEPT_BYTES);
                end.drain(..excess);
            }
        });
        Tail { kept, reader: reader.ok() }
    }

    /// What was kept. A stream that another process still holds open is not waited for.
    fn text(self) -> String {
        let deadline = Instant::now() + REST_LIMIT;
        while let Some(reader) = &self.reader
            && !reader.is_finished()
            && Instant::now() < deadline
        {
            thread::sleep(Duration::from_millis(1));
        }
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).into_owned()
    }
}

/// A TCP port that nobody listens on.
pub fn free_port() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    Ok(listener.local_addr()?.port())
}

/// Whether somebody listens on a TCP port, in the network namespace of process `id`. A connection to try it would be taken
/// for that of perftest's client, so the system is asked.
pub fn listens(id: u32, port: u16) -> bool {
    ["tcp", "tcp6"].iter().any(|table| {
        std::fs::read_to_string(format!("/proc/{id}/net/{table}"))
            .is_ok_and(|table| has_listener(&table, port))
    })
}

/// In a table of `/proc/net/tcp`'s form; the state 0A is LISTEN.
fn has_listener(table: &str, port: u16) -> bool {
    let local = format!(":{port:04X}");
    table.lines().any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        fields.next().is_some_and(|address| address.ends_with(&local))
            && fields.nth(1) == Some("0A")
    })
}

#[cfg(test)]
mod tests {
    use results::sample::starts;
    use testing::wait::{wait_for, wait_until};

    use super::*;

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
    fn both_streams_and_the_status_are_kept_and_its_input_is_there() {
        let launch = Launch { input: b"out".into(), ..shell("cat; echo; echo err >&2; exit 3") };
        let ended = run(&launch);
        let streams = (&*ended.stdout, &*ended.stderr);
        assert_eq!(streams, ("out\n", "err\n"));
        assert!(!ended.success);
        assert_eq!(ended.status, "exit status: 3");
        assert!(run(&shell("true")).success);
        starts(ended.report("client"), "--- client: sh -c cat; echo");
    }

    #[test]
    fn a_hanging_process_goes_with_its_children() {
        let id_file = tempfile::NamedTempFile::new().unwrap();
        let script = format!("sleep 1000 & echo $! >{}; wait", id_file.path().display());
        let mut child = Child::start(&shell(&script)).unwrap();
        let grandchild = wait_for("the grandchild's id", SECOND, || {
            let text = std::fs::read_to_string(id_file.path()).unwrap();
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
        let expected = format!("Cpus_allowed_list:\t{core}\nset-unset\n");
        assert_eq!(ended.stdout, expected);
        assert_eq!(rustix::thread::sched_getaffinity(None).unwrap(), own);
    }

    #[test]
    fn what_cannot_be_started_is_an_error() {
        let launch = Launch { path: "/nowhere/ib_send_bw".into(), ..Launch::default() };
        let error = Child::start(&launch).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound, "{error}");
    }

    #[test]
    fn the_end_of_a_flood_is_kept() {
        let flood = io::repeat(b'x').take(1 << 20).chain(&b"end\n"[..]);
        let text = Tail::new(flood).text();
        assert_eq!(text.len(), KEPT_BYTES);
        assert!(text.ends_with("xend\n"));
    }

    #[test]
    fn a_listener_is_seen_and_a_free_port_is_free() {
        let own = process::id();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(listens(own, port));
        drop(listener);
        // A process that another test starts has it too until it runs its program.
        wait_until("the end of the listener", SECOND, || !listens(own, port));
        let unused = free_port().unwrap();
        wait_until("a free port", SECOND, || !listens(own, unused));
    }

    #[test]
    fn only_a_listeners_own_port_counts() {
        let table = "  sl  local_address rem_address   st\n   0: 0100007F:4853 0100007F:4854 01 x\n   1: 00000000:4855 \
                     00000000:0000 0A x\n";
        assert!(has_listener(table, 0x4855));
        assert!(!has_listener(table, 0x4853), "connected, not listening");
        assert!(!has_listener(table, 0x4854));
    }
}
