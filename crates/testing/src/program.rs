//! `rocebench` as a child process whose output is read as it comes. A child never outlives its handle, and one that
//! hangs fails its test with what it said last; and a `rocebench serve` for one test, on a free port.

use std::cell::OnceCell;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use results::model::{ResultFile, Run};
use serde_json::Value;

use crate::wait::wait_or_tell;

/// The most that a program of these tests takes.
const ENDS: Duration = Duration::from_secs(15);

/// The most that a step takes.
pub const STEP: Duration = Duration::from_secs(3);

/// Has the program tell each phase and how many messages each node has completed, unless the command says otherwise.
const TELLS: (&str, &str) =
    ("ROCEBENCH_LOG", "warn,rocebench::cli::sweep::output=debug,rocebench::coordinator::run=trace");

/// A command line of the program, and the folder that it runs in or writes to.
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
    json: OnceCell<Value>,
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

/// The program under test, which cargo builds before a test of its package runs.
pub fn rocebench() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| built_beside("rocebench"))
}

/// What was built where the test programs were: they are in `deps` below that folder.
pub fn built_beside(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built = test.parent().and_then(Path::parent).unwrap();
    built.join(name)
}

/// The program, copied into the guest's own memory: pages that come from the host's files while a test runs
/// take seconds on a busy machine.
pub fn program() -> &'static Path {
    static COPY: OnceLock<PathBuf> = OnceLock::new();
    COPY.get_or_init(|| copied(rocebench()))
}

/// A file's copy in the guest's own memory. Another process writes it: a child that another test starts meanwhile would
/// hold a descriptor of this process that is open for writing, and a program that is open for writing cannot be run.
pub fn copied(file: &Path) -> PathBuf {
    let copy = std::env::temp_dir().join(file.file_name().unwrap());
    // One that runs could not be written to.
    let _ = std::fs::remove_file(&copy);
    let done = Command::new("cp").arg(file).arg(&copy).status().unwrap();
    assert!(done.success(), "{}", file.display());
    copy
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
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|text| text.strip_prefix(line))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// The program with exactly these words, where it is in the guest's own memory.
pub fn bare(line: &str) -> Call {
    Call::new(Command::new(program()), line)
}

pub fn sweep(line: &str) -> Call {
    bare(&patient(line))
}

/// The words of a sweep with, unless they say otherwise, an ACK timeout of 1 s: in an emulated guest an ACK can take longer
/// than the default of 67 ms, and what Soft-RoCE retransmits without need it may refuse as invalid. Without acknowledgements
/// there is no time-out.
pub fn patient(line: &str) -> String {
    if words(line).iter().any(|word| ["--timeout", "--service"].contains(word)) {
        line.to_owned()
    } else {
        format!("{line} --timeout 18")
    }
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

    /// Writes a file where it runs.
    pub fn with_file(self, name: &str, text: &str) -> Call {
        let file = self.folder.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
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

    /// Passes, and all runs of so many cases are whole.
    #[track_caller]
    pub fn is_whole(self, cases: usize) -> Ended {
        self.passes().all_whole(cases)
    }
}

impl Program {
    fn start(mut command: Command, stdout: Stdio, folder: tempfile::TempDir) -> Program {
        let mut set = command.get_envs().filter(|(_, value)| value.is_some());
        if !set.any(|(name, _)| name == TELLS.0) {
            command.env(TELLS.0, TELLS.1);
        }
        let mut child = command
            .env_remove("ROCEBENCH_TOKEN")
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
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
        std::fs::read_dir(format!("/proc/{}/{folder}", self.pid())).unwrap().count()
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

/// Where a program in this folder has its results.
fn results(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("results")
}

impl Ended {
    pub fn stderr(&self) -> &str {
        &self.stderr
    }

    /// Demands that it ended with this code, and by no signal or panic.
    #[track_caller]
    pub fn exits(self, code: i32) -> Ended {
        let ended = (self.code, self.signal);
        let output = format!("stderr: {}\nstdout: {}", self.stderr, self.stdout);
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

    /// Names of the files in its results folder.
    pub fn results(&self) -> Vec<String> {
        std::fs::read_dir(results(&self.folder))
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    /// The text of the file in the results folder whose name has this after the time and the number: `.json`, `.csv`,
    /// `-qps.csv` or `-histograms.csv`.
    #[track_caller]
    pub fn file(&self, ending: &str) -> String {
        let files: Vec<String> = self
            .results()
            .into_iter()
            .filter(|name| {
                let stem = name.strip_suffix(ending);
                stem.is_some_and(|stem| {
                    stem.ends_with(|last: char| last == 'Z' || last.is_ascii_digit())
                })
            })
            .collect();
        assert_eq!(files.len(), 1, "{files:?}; stderr: {}", self.stderr);
        std::fs::read_to_string(results(&self.folder).join(&files[0])).unwrap()
    }

    /// Its result; null where nothing ran.
    #[track_caller]
    pub fn json(&self) -> &Value {
        self.json.get_or_init(|| {
            if self.results().is_empty() {
                Value::Null
            } else {
                serde_json::from_str(&self.file(".json")).unwrap()
            }
        })
    }

    #[track_caller]
    pub fn result(&self) -> ResultFile {
        serde_json::from_str(&self.file(".json")).unwrap()
    }

    /// The cases of its result.
    #[track_caller]
    pub fn cases(&self) -> &[Value] {
        let cases = self.json()["cases"].as_array();
        cases.unwrap_or_else(|| panic!("no result: {}", self.stderr))
    }

    /// The first run of the first case.
    #[track_caller]
    pub fn first_run(&self) -> &Value {
        &self.cases()[0]["runs"][0]
    }

    /// The first flow of that.
    #[track_caller]
    pub fn first_flow(&self) -> &Value {
        &self.first_run()["flows"][0]
    }

    /// All runs of the sweep, in order.
    #[track_caller]
    pub fn runs(&self) -> Vec<Run> {
        let cases = self.result().cases;
        cases.into_iter().flat_map(|case| case.runs).collect()
    }
}

/// Where it was built, with nothing of this machine's environment that it reads, and apart from others who take cores.
pub fn on_this_machine() -> Command {
    let mut command = Command::new(rocebench());
    for name in [
        "ROCEBENCH_TOKEN",
        "ROCEBENCH_LOG",
        "SOFTROCE_FAULTS",
        "SOFTROCE_ADDRESS",
        "SOFTROCE_LIBRARY",
        "SOFTROCE_PCAP",
    ] {
        command.env_remove(name);
    }
    let locks = built_beside("core-locks");
    std::fs::create_dir_all(&locks).unwrap();
    command.env("ROCEBENCH_CORE_LOCKS", locks);
    command
}

/// The program on this machine with these words.
pub fn call(words: &str) -> Call {
    Call::new(on_this_machine(), words)
}

/// The same, started by another program, such as `nohup` or `prlimit --fsize=0`.
pub fn call_by(other: &str, words: &str) -> Call {
    let own = on_this_machine();
    let mut parts = other.split_whitespace();
    let mut command = Command::new(parts.next().unwrap());
    command.args(parts).arg(own.get_program());
    for (name, value) in own.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Call::new(command, words)
}

/// Where servers of one-guest tests listen: the address of `rxe1`.
pub const SERVER_ADDRESS: &str = "192.0.2.2";

/// A `rocebench serve` for one test, on a free port.
pub struct Server {
    /// The device of clients, and how the program is run there.
    client: (&'static str, fn() -> Command),
    pub program: Program,
    pub port: u16,
    pub name: String,
}

impl Server {
    pub fn start() -> Server {
        Server::with("")
    }

    pub fn with(words: &str) -> Server {
        Server::on(SERVER_ADDRESS, "rxe1", words)
    }

    /// On a device of the kernel's.
    pub fn on(address: &str, device: &str, words: &str) -> Server {
        Server::on_rxe(bare(&format!("serve --bind {address} -p 0 -d {device} {words}")))
    }

    pub(crate) fn on_rxe(call: Call) -> Server {
        let client: (_, fn() -> Command) = ("rxe0", || Command::new(program()));
        Server::that_serves(client, call.start())
    }

    /// On this machine's embedded device, at all addresses.
    pub fn embedded(words: &str) -> Server {
        Server::embedded_by(call(&format!("serve -p 0 {words}")))
    }

    /// The same with a command line, and perhaps an environment, of its own.
    pub fn embedded_by(call: Call) -> Server {
        Server::that_serves(("soft0", on_this_machine), call.start())
    }

    fn that_serves(client: (&'static str, fn() -> Command), program: Program) -> Server {
        const SAYS: &str = "serving on ";
        program.await_line(0, SAYS, Duration::from_secs(10));
        let address: SocketAddr = program
            .lines()
            .iter()
            .find_map(|line| line.split_once(SAYS))
            .unwrap()
            .1
            .split(' ')
            .next()
            .unwrap()
            .parse()
            .unwrap();
        let name = if address.ip().is_unspecified() {
            format!("127.0.0.1:{}", address.port())
        } else {
            address.to_string()
        };
        Server { client, port: address.port(), name, program }
    }

    /// A client of it with these words, on the clients' device.
    pub fn call(&self, words: &str) -> Call {
        let (device, command) = self.client;
        let words = format!("{} -d {device} {words}", self.name);
        Call::new(command(), &patient(&words))
    }

    /// It serves a next client.
    #[track_caller]
    pub fn serves_the_next(&self) {
        let ended = self.call("-s 64 -n 50 --warmup 0").passes();
        assert_eq!(ended.runs()[0].flows[0].totals.messages, 50);
    }

    /// Waits for a line that was not there when `from` lines were.
    #[track_caller]
    pub fn says(&self, from: usize, text: &str) {
        self.program.await_line(from, text, STEP);
    }

    /// Waits until it has told the end of every session that it has told the beginning of.
    #[track_caller]
    pub fn is_idle(&self) {
        let what = "the end of all sessions";
        self.program.await_lines(STEP, what, |lines| {
            let begun = lines.iter().filter(|line| line.ends_with(": session begins"));
            let ended = lines.iter().filter(|line| line.contains(": session end"));
            begun.count() == ended.count()
        });
    }

    /// Ends it as a person would; it must end well. What it said.
    #[track_caller]
    pub fn end(self) -> String {
        self.program.signal(Signal::Interrupt);
        self.program.wait().exits(0).stderr().to_owned()
    }

    pub fn kill(self) {
        self.program.signal(Signal::Kill);
        self.program.wait();
    }
}
