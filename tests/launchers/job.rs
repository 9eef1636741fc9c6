//! A job of a launcher, as a child process: its ranks, what it said, and what rank 0 left on the disk.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use testing::wait::wait_or_tell;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_rocebench");

/// The most that a step takes.
const EXPECTED: Duration = Duration::from_secs(10);

/// Few messages between any two nodes; workers sleep, as there are more of them than cores.
pub const SHORT: &str = "--iters 200 --warmup 0s --size 4K --tx-depth 4 --poll event";

/// Runs that go on until they are ended.
pub const LONG: &str =
    "--pattern ring --iters 2000 --runs 1000 --warmup 0s --size 4K --tx-depth 4 --poll event";

static JOBS: Mutex<()> = Mutex::new(());

/// One test's jobs at a time: ranks that starve each other for seconds take each other for dead, as they should.
pub fn one_at_a_time() -> MutexGuard<'static, ()> {
    JOBS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until `what` gives something.
#[track_caller]
pub fn wait_for<T>(what: impl FnMut() -> Option<T>, told: impl Fn() -> String) -> T {
    wait_or_tell(EXPECTED, what, told)
}

/// A launcher's command, without what a launcher around this test has set.
pub fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let starts = [
            "SLURM",
            "OMPI_",
            "PMI",
            "PRTE_",
            "JOB_COMPLETION_INDEX",
            "ROCEBENCH_",
            "SOFTROCE_",
        ];
        if starts.iter().any(|start| text.starts_with(start)) {
            command.env_remove(&name);
        }
    }
    command
}

/// A job that runs.
pub struct Job {
    child: Child,
    folder: TempDir,
}

/// A job that has ended.
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    folder: TempDir,
}

impl Job {
    /// Starts what `launcher` is about to start, with `words` after it; `OUT` among them is the folder for results.
    pub fn start(mut launcher: Command, words: &[&str]) -> Job {
        let folder = TempDir::new().unwrap();
        let out = folder.path().join("results").display().to_string();
        let file = |name: &str| File::create(folder.path().join(name)).unwrap();
        let words = words.iter().map(|word| word.replace("OUT", &out));
        let child = launcher
            .args(words)
            .stdin(Stdio::null())
            .stdout(file("stdout"))
            .stderr(file("stderr"))
            .current_dir(folder.path())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{launcher:?}: {error}; scripts/setup --tests installs it")
            });
        Job { child, folder }
    }

    /// Starts `rocebench mesh` with these options.
    pub fn mesh(launcher: Command, options: &str) -> Job {
        let words = [PROGRAM, "mesh", "--out", "OUT"].into_iter();
        let words: Vec<&str> = words.chain(options.split_whitespace()).collect();
        Job::start(launcher, &words)
    }

    /// Waits until it measures, with whole runs behind it; in which step of the third run it is, is left open.
    pub fn until_measuring(&mut self) {
        self.until_said("run 3 of");
    }

    /// Waits until it has said so on stderr.
    pub fn until_said(&mut self, words: &str) {
        let Job { child, folder } = self;
        let said = || read(folder.path(), "stderr");
        wait_for(
            || {
                if let Some(status) = child.try_wait().unwrap() {
                    panic!("it ended with {status}: {}", said());
                }
                said().contains(words).then_some(())
            },
            || format!("it did not say `{words}`: {}", said()),
        );
    }

    /// The ranks of this job that run, with their processes.
    pub fn ranks(&self) -> Vec<(u32, Pid)> {
        ranks_of(self.folder.path())
    }

    pub fn stderr(&self) -> String {
        read(self.folder.path(), "stderr")
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), signal).unwrap();
    }

    /// Ends a rank as nothing can be done about.
    #[track_caller]
    pub fn kill_rank(&self, rank: u32) {
        let ranks = self.ranks();
        let found = ranks.iter().find(|(number, _)| *number == rank);
        let (_, pid) = found.unwrap_or_else(|| panic!("no rank {rank} in {ranks:?}"));
        kill(*pid, Signal::SIGKILL).unwrap();
    }

    /// Waits until the launcher and all ranks have ended.
    #[track_caller]
    pub fn ended(self) -> Ended {
        self.ended_by(|_| ())
    }

    /// The same; calls `act` again and again until then.
    #[track_caller]
    pub fn ended_by(mut self, mut act: impl FnMut(&Job)) -> Ended {
        let status = wait_for(
            || {
                act(&self);
                self.child.try_wait().unwrap()
            },
            || "the launcher to end".to_owned(),
        );
        wait_for(
            || self.ranks().is_empty().then_some(()),
            || format!("ranks are left: {:?}", self.ranks()),
        );
        // The folder outlives this.
        let folder = std::mem::replace(&mut self.folder, TempDir::new().unwrap());
        Ended {
            code: status.code(),
            stdout: read(folder.path(), "stdout"),
            stderr: read(folder.path(), "stderr"),
            folder,
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for (_, pid) in self.ranks() {
            let _ = kill(pid, Signal::SIGKILL);
        }
    }
}

fn read(folder: &Path, name: &str) -> String {
    let bytes = std::fs::read(folder.join(name)).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The processes of rocebench that write below `folder`, by their ranks.
fn ranks_of(folder: &Path) -> Vec<(u32, Pid)> {
    let folder = folder.display().to_string();
    let of_process = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.ok()?.path();
        let pid: i32 = path.file_name()?.to_str()?.parse().ok()?;
        let program = std::fs::read_link(path.join("exe")).ok()?;
        let words = std::fs::read(path.join("cmdline")).ok()?;
        let is_of_job = String::from_utf8_lossy(&words).contains(&folder);
        if program != Path::new(PROGRAM) || !is_of_job {
            return None;
        }
        let variables = std::fs::read(path.join("environ")).ok()?;
        let variables = String::from_utf8_lossy(&variables).into_owned();
        let value = |name: &str| {
            let mut all = variables.split('\0');
            all.find_map(|it| it.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
        };
        let names = [
            "OMPI_COMM_WORLD_RANK",
            "PMI_RANK",
            "SLURM_PROCID",
            "JOB_COMPLETION_INDEX",
        ];
        let rank = names.into_iter().find_map(value)?;
        Some((rank, Pid::from_raw(pid)))
    };
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(of_process)
        .collect()
}

impl Ended {
    /// It ended with this status, and said all this on stderr.
    #[track_caller]
    pub fn refused(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{}", self.stderr);
        for words in words {
            assert!(self.stderr.contains(words), "{words}: {}", self.stderr);
        }
    }

    fn results(&self, ending: &str) -> Vec<PathBuf> {
        let Ok(files) = std::fs::read_dir(self.folder.path().join("results")) else {
            return Vec::new();
        };
        let paths = files.map(|file| file.unwrap().path());
        let has_ending = |path: &PathBuf| path.extension().is_some_and(|it| it == ending);
        paths.filter(has_ending).collect()
    }

    /// The one result file.
    #[track_caller]
    pub fn result(&self) -> Value {
        let files = self.results("json");
        let [file] = &files[..] else {
            panic!("not one result but {files:?}: {}", self.stderr);
        };
        serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
    }

    /// Rank 0 left a result with whole runs and the one that was ended, which is marked; the error names `node`.
    #[track_caller]
    pub fn kept_what_was_measured(&self, node: Option<&str>) {
        let result = self.result();
        let runs = result["cases"][0]["runs"].as_array().unwrap();
        assert!(runs.len() >= 2, "{runs:?}");
        assert!(runs.iter().any(|run| run["complete"] == true), "{runs:?}");
        let last = &runs[runs.len() - 1];
        assert!(runs.len() < 1000, "it was not ended");
        if let Some(node) = node {
            assert_eq!(last["complete"], false, "{last}");
            let message = last["failure"]["message"].as_str().unwrap();
            assert!(message.contains(node), "{message}");
        }
    }

    /// A launcher may kill rank 0 while it writes its result: then its journal has the whole runs.
    #[track_caller]
    pub fn kept_result_or_journal(&self, node: Option<&str>) {
        match self.results("json").is_empty() {
            false => self.kept_what_was_measured(node),
            true => self.kept_its_journal(),
        }
    }

    /// Rank 0 had no time for more than its journal, which has at least a whole run.
    #[track_caller]
    pub fn kept_its_journal(&self) {
        let files = self.results("jsonl");
        let [file] = &files[..] else {
            panic!("not one journal but {files:?}: {}", self.stderr);
        };
        let lines = std::fs::read_to_string(file).unwrap();
        assert!(lines.contains("\"complete\":true"), "{lines}");
    }

    /// It measured each of four nodes with each other, all together well, and each had an address of its own.
    #[track_caller]
    pub fn is_a_matrix_of_four(&self) {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        let result = self.result();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let nodes = result["nodes"].as_array().unwrap();
        let names: Vec<String> = nodes.iter().map(|it| text(&it["name"])).collect();
        let gids: BTreeSet<String> = nodes
            .iter()
            .map(|node| text(&node["devices"][0]["gid"]))
            .collect();
        assert_eq!((names.len(), gids.len()), (4, 4), "{names:?} {gids:?}");
        let mut measured = BTreeSet::new();
        for case in result["cases"].as_array().unwrap() {
            for run in case["runs"].as_array().unwrap() {
                assert_eq!(run["complete"], true, "{}", run["failure"]);
                for flow in run["flows"].as_array().unwrap() {
                    assert!(flow["totals"]["messages"].as_u64().unwrap() > 0, "{flow}");
                    measured.insert((text(&flow["from"]), text(&flow["to"])));
                }
            }
        }
        let others = |from: &String| {
            let from = from.clone();
            let others = names.clone().into_iter().filter(move |to| *to != from);
            others.map(|to| (names.iter().position(|it| *it == to), to))
        };
        for from in &names {
            for (_, to) in others(from) {
                assert!(
                    measured.contains(&(from.clone(), to.clone())),
                    "{from} {to}: {measured:?}"
                );
            }
        }
        assert_eq!(measured.len(), 12);
    }
}
