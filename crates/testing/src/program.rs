//! `rocebench` as a child process whose output is read as it comes, each line with its time. A child never
//! outlives its handle.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use report::results::model::{ResultFile, Run};
use serde_json::Value;

/// No run of these tests takes nearly as long; what does hangs.
const HANGS: Duration = Duration::from_secs(150);

type Lines = Arc<Mutex<Vec<(Instant, String)>>>;

pub struct Program {
    child: Child,
    stderr: Lines,
    stdout: Option<JoinHandle<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
    status: Option<ExitStatus>,
    out: tempfile::TempDir,
    pub started: Instant,
}

/// A program that has ended.
pub struct Ended {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: String,
    pub lines: Vec<(Instant, String)>,
    pub at: Instant,
    pub took: Duration,
    out: tempfile::TempDir,
}

/// Signals by the names that `kill` has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Kill = 9,
    Stop = 19,
    Continue = 18,
    Interrupt = 2,
    Terminate = 15,
}

/// A dead or silent peer is noticed within this time.
pub const NOTICED: Duration = Duration::from_secs(2);

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

/// A file's copy in the guest's own memory.
pub fn copied(file: &Path) -> PathBuf {
    let copy = std::env::temp_dir().join(file.file_name().unwrap());
    std::fs::copy(file, &copy).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    copy
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

impl Program {
    /// Starts `rocebench` with these arguments, a results folder of its own and, unless they say otherwise,
    /// an ACK timeout of 1 s: in an emulated guest an ACK can take longer than the default of 67 ms, and what
    /// Soft-RoCE retransmits without need it may refuse as invalid.
    pub fn sweep(arguments: &[&str]) -> Program {
        Program::sweep_of(Command::new(program()), arguments)
    }

    /// As [`Program::sweep`], of a command that runs [`program`] somewhere else.
    pub fn sweep_of(command: Command, arguments: &[&str]) -> Program {
        let out = tempfile::tempdir().unwrap();
        let path = out.path().to_str().unwrap().to_owned();
        // Without acknowledgements there is no time-out.
        let has = |flag| arguments.contains(&flag);
        let patience: &[&str] = match has("--timeout") || has("--service") {
            true => &[],
            false => &["--timeout", "18"],
        };
        let all: Vec<&str> = [arguments, patience, &["--out", &path]].concat();
        Program::start(command, &all, out)
    }

    /// Starts `rocebench` with exactly these arguments.
    pub fn bare(arguments: &[&str]) -> Program {
        Program::bare_of(Command::new(program()), arguments)
    }

    /// As [`Program::bare`], of a command that runs [`program`] somewhere else.
    pub fn bare_of(command: Command, arguments: &[&str]) -> Program {
        Program::start(command, arguments, tempfile::tempdir().unwrap())
    }

    fn start(mut command: Command, arguments: &[&str], out: tempfile::TempDir) -> Program {
        let mut child = command
            .args(arguments)
            .env_remove("ROCEBENCH_TOKEN")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = Lines::default();
        let (for_reader, from) = (Arc::clone(&stderr), child.stderr.take().unwrap());
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(from).lines() {
                let Ok(line) = line else { return };
                for_reader.lock().unwrap().push((Instant::now(), line));
            }
        });
        let mut from = child.stdout.take().unwrap();
        let stdout = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = from.read_to_end(&mut bytes);
            bytes
        });
        Program {
            child,
            stderr,
            stdout: Some(stdout),
            reader: Some(reader),
            status: None,
            out,
            started: Instant::now(),
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        send_signal(self.pid(), signal);
    }

    /// All of stderr so far.
    pub fn lines(&self) -> Vec<(Instant, String)> {
        self.stderr.lock().unwrap().clone()
    }

    /// When a line with this text came, waiting for it; the search begins with line number `from`.
    pub fn await_line(&self, from: usize, text: &str, limit: Duration) -> Instant {
        let started = Instant::now();
        loop {
            let lines = self.lines();
            if let Some((at, _)) = lines
                .iter()
                .skip(from)
                .find(|(_, line)| line.contains(text))
            {
                return *at;
            }
            assert!(
                started.elapsed() < limit,
                "no line with {text:?} within {limit:?}; stderr: {}",
                joined(&lines)
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for its end.
    pub fn wait(self) -> Ended {
        self.wait_for(HANGS)
    }

    /// Waits for its end at most so long.
    pub fn wait_for(mut self, limit: Duration) -> Ended {
        let deadline = Instant::now() + limit;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(
                Instant::now() < deadline,
                "it hangs; stderr: {}",
                joined(&self.lines())
            );
            std::thread::sleep(Duration::from_millis(5));
        };
        let at = Instant::now();
        self.status = Some(status);
        let stdout = self.stdout.take().unwrap().join().unwrap();
        self.reader.take().unwrap().join().unwrap();
        Ended {
            code: status.code(),
            signal: status.signal(),
            stdout: String::from_utf8(stdout).unwrap(),
            lines: self.lines(),
            at,
            took: at - self.started,
            out: std::mem::replace(&mut self.out, tempfile::tempdir().unwrap()),
        }
    }

    /// Resident memory.
    pub fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Entries of a folder of /proc: `fd` or `task`.
    pub fn count(&self, folder: &str) -> usize {
        std::fs::read_dir(format!("/proc/{}/{folder}", self.pid()))
            .unwrap()
            .count()
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

fn joined(lines: &[(Instant, String)]) -> String {
    lines
        .iter()
        .map(|(_, line)| format!("\n    {line}"))
        .collect()
}

impl Ended {
    pub fn stderr(&self) -> String {
        joined(&self.lines)
    }

    /// Demands this exit code.
    #[track_caller]
    pub fn exits(self, code: i32) -> Ended {
        assert_eq!(
            (self.code, self.signal),
            (Some(code), None),
            "stderr: {}\nstdout: {}",
            self.stderr(),
            self.stdout
        );
        assert!(!self.stderr().contains("panicked"), "{}", self.stderr());
        self
    }

    /// Demands these words in what a person sees.
    #[track_caller]
    pub fn says(self, words: &[&str]) -> Ended {
        let text = self.stderr();
        for word in words {
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

    /// When the first line with this text came.
    #[track_caller]
    pub fn time_of(&self, text: &str) -> Instant {
        let found = self.lines.iter().find(|(_, line)| line.contains(text));
        found
            .unwrap_or_else(|| panic!("no {text:?} in stderr: {}", self.stderr()))
            .0
    }

    /// The text of the file in the results folder whose name has this after the time and the process: `.json`, `.csv`,
    /// `-qps.csv` or `-histograms.csv`.
    #[track_caller]
    pub fn file(&self, ending: &str) -> String {
        let mut files: Vec<_> = std::fs::read_dir(self.out.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| {
                let stem = path.to_str().and_then(|path| path.strip_suffix(ending));
                stem.is_some_and(|stem| stem.ends_with(|last: char| last.is_ascii_digit()))
            })
            .collect();
        assert_eq!(files.len(), 1, "{files:?}; stderr: {}", self.stderr());
        std::fs::read_to_string(files.remove(0)).unwrap()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.file(".json")).unwrap()
    }

    #[track_caller]
    pub fn result(&self) -> ResultFile {
        serde_json::from_str(&self.file(".json")).unwrap()
    }

    /// All runs of the sweep, in order.
    #[track_caller]
    pub fn runs(&self) -> Vec<Run> {
        let cases = self.result().cases;
        cases.into_iter().flat_map(|case| case.runs).collect()
    }
}

/// Runs a sweep to its end.
pub fn sweep(arguments: &[&str]) -> Ended {
    Program::sweep(arguments).wait()
}
