//! `rocebench` as a child process on the embedded device, and what it leaves behind.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use serde_json::Value;

use testing::server::on_this_machine;
use testing::wait::wait_or_tell;

/// The most that a step takes.
const EXPECTED: Duration = Duration::from_secs(3);

static MACHINE: RwLock<()> = RwLock::new(());

/// The machine for one test: for those that measure, and for those that lose packets and repeat them soon. Workers
/// poll, so two sweeps at once would wait for each other's cores.
pub fn alone() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

/// The machine together with other tests that ask for no more: for those that mostly wait, or in which time does not
/// matter.
pub fn with_others() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until `what` gives something.
#[track_caller]
pub fn wait_for<T>(what: impl FnMut() -> Option<T>, told: impl Fn() -> String) -> T {
    wait_or_tell(EXPECTED, what, told)
}

/// Waits until a process has worked for so long, which shows that it is under way, however busy the machine is.
#[track_caller]
pub fn works_for(pid: u32, seconds: f64) {
    let cpu_seconds = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        // After the name, which is in brackets, `utime` and `stime` are the 12th and 13th, in hundredths of a second.
        let fields = stat.rsplit(')').next().unwrap().split_whitespace();
        let ticks = fields.skip(11).take(2);
        ticks.map(|it| it.parse::<f64>().unwrap()).sum::<f64>() / 100.0
    };
    let until = cpu_seconds() + seconds;
    wait_for(
        || (cpu_seconds() >= until).then_some(()),
        || "the process stands still".to_owned(),
    );
}

/// A count of a result.
#[track_caller]
pub fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

/// The exit code of a child that ends, and what it said on the stderr that was piped.
pub fn said(child: Child) -> (Option<i32>, String) {
    let ended = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&ended.stderr).into_owned();
    (ended.status.code(), text)
}

/// A line of what the kernel tells of a process' memory, such as `VmHWM`, the most that it had in RAM; `None` of one
/// that has ended.
pub fn memory_bytes(pid: u32, line: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|text| text.strip_prefix(line))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// Sends a signal to a program, and tells when.
pub fn signal(child: &Child, signal: Signal) -> Instant {
    nix::sys::signal::kill(Pid::from_raw(child.id().try_into().unwrap()), signal).unwrap();
    Instant::now()
}

/// The program with nothing of this machine's environment that it reads, in a folder that goes away.
pub struct Program {
    pub command: Command,
    folder: tempfile::TempDir,
}

impl Program {
    pub fn new(words: &str) -> Program {
        let folder = tempfile::tempdir().unwrap();
        let mut command = on_this_machine();
        command.args(words.split_whitespace()).current_dir(&folder);
        Program { command, folder }
    }

    pub fn env(mut self, name: &str, value: &str) -> Program {
        self.command.env(name, value);
        self
    }

    /// Where it runs.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn run(mut self) -> Ended {
        self.run_here()
    }

    /// The same; what it leaves stays until this is dropped.
    pub fn run_here(&mut self) -> Ended {
        let output = self.command.output().unwrap();
        Ended {
            status: output.status,
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            json: self.json(),
        }
    }

    /// Starts it; see [`said`] for what it says.
    pub fn spawn(&mut self) -> Child {
        let command = self.command.stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    pub fn json(&self) -> Value {
        let files = std::fs::read_dir(self.folder.path().join("results"))
            .into_iter()
            .flatten();
        let path = files
            .map(|file| file.unwrap().path())
            .find(|path| path.extension().is_some_and(|end| end == "json"));
        path.map_or(Value::Null, |path| {
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
        })
    }
}

/// What a program left behind.
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    pub json: Value,
}

impl Ended {
    pub fn exits(self, code: i32) -> Ended {
        assert_eq!(
            self.status.code(),
            Some(code),
            "{}{}",
            self.stdout,
            self.stderr
        );
        self
    }

    pub fn says(self, words: &[&str]) -> Ended {
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} in {}", self.stderr);
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

    pub fn cases(&self) -> &[Value] {
        self.json["cases"].as_array().unwrap()
    }

    /// All runs are whole: every message counted in every flow, none failed.
    pub fn all_whole(self, cases: usize) -> Ended {
        assert_eq!(self.cases().len(), cases);
        for case in self.cases() {
            let config = &case["config"];
            let wanted =
                config["qps"].as_u64().unwrap() * config["iterations_per_qp"].as_u64().unwrap();
            for run in case["runs"].as_array().unwrap() {
                assert_eq!(run["complete"], true, "{case}");
                let flows = run["flows"].as_array().unwrap();
                let both_ways = config["bidirectional"] == true;
                assert_eq!(flows.len(), 1 + usize::from(both_ways), "{}", case["id"]);
                for flow in flows {
                    assert_eq!(flow["totals"]["messages"], wanted, "{}", case["id"]);
                    assert_eq!(flow["totals"]["errors"], 0, "{}", case["id"]);
                    let limits = &flow["limits"];
                    assert!(limits.is_null(), "there is no link: {limits}");
                }
            }
        }
        self
    }
}

/// `rocebench serve` on loopback, killed when dropped.
pub struct Server {
    child: Child,
    pub port: u16,
    said: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
    _program: Program,
}

impl Server {
    pub fn start(words: &str) -> Server {
        Server::with(words, &[])
    }

    /// With these variables in its environment.
    pub fn with(words: &str, environment: &[(&str, &str)]) -> Server {
        let mut program = Program::new(&format!("serve --port 0 {words}"));
        program.command.envs(environment.iter().copied());
        let mut child = program.command.stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let said = Arc::new(Mutex::new(String::new()));
        let hears = Arc::clone(&said);
        let reader = std::thread::spawn(move || {
            for line in stderr.lines() {
                *hears.lock().unwrap() += &(line.unwrap() + "\n");
            }
        });
        let mut server = Server {
            child,
            port: 0,
            said,
            reader: Some(reader),
            _program: program,
        };
        server.has_said(" ends\n");
        let said = server.said.lock().unwrap().clone();
        let address = said.split_once("serving on ").map(|(_, rest)| rest);
        let address: SocketAddr = address.unwrap().split(' ').next().unwrap().parse().unwrap();
        server.port = address.port();
        server
    }

    /// A client of it, on a device of its own.
    pub fn client(&self, words: &str) -> Program {
        Program::new(&format!("{} -d soft0 {words}", self.name()))
    }

    /// Waits until it has said this.
    #[track_caller]
    pub fn has_said(&self, words: &str) {
        self.has_said_times(words, 1);
    }

    /// Waits until it has said this so many times.
    #[track_caller]
    pub fn has_said_times(&self, words: &str, times: usize) {
        wait_for(
            || (self.times_said(words) >= times).then_some(()),
            || format!("no {words:?} in {}", self.said.lock().unwrap()),
        );
    }

    /// Where it is, and so its name as a node.
    pub fn name(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// How often it has said this.
    pub fn times_said(&self, words: &str) -> usize {
        self.said.lock().unwrap().matches(words).count()
    }

    /// Waits until a run is well under way, the next one after `runs` others.
    #[track_caller]
    pub fn is_in_a_run(&self, runs: usize) {
        self.has_said_times(", run 1", runs + 1);
        // What comes before its window takes a fraction of this; workers that poll work meanwhile.
        works_for(self.pid(), 1.0);
    }

    pub fn signal(&self, to_send: Signal) -> Instant {
        signal(&self.child, to_send)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// All of it stands still for at least so long; returns the time that it took.
    pub fn stop_for(&self, time: Duration) -> Duration {
        let began = Instant::now();
        self.signal(Signal::SIGSTOP);
        std::thread::sleep(time);
        self.signal(Signal::SIGCONT);
        began.elapsed()
    }

    /// The exit code of one that ends by itself.
    pub fn status(&mut self) -> Option<i32> {
        let status = wait_for(
            || self.child.try_wait().unwrap(),
            || "it serves on".to_owned(),
        );
        status.code()
    }

    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Ends it when it has told the end of every session; what it said.
    #[track_caller]
    pub fn end(mut self) -> String {
        let sessions_are_over = || {
            let said = self.said.lock().unwrap();
            let begun = said.lines().filter(|it| it.ends_with(": session begins"));
            let ended = said.lines().filter(|it| it.contains(": session end"));
            (begun.count() == ended.count()).then_some(())
        };
        wait_for(sessions_are_over, || {
            format!("a session goes on: {}", self.said.lock().unwrap())
        });
        self.kill();
        self.reader.take().unwrap().join().unwrap();
        let said = self.said.lock().unwrap();
        said.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
