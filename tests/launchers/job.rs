//! A job of a launcher, as a child process: its ranks, what it said, and what rank 0 left on the disk.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use testing::process::{Call, Ended, Program, Signal, send_signal, without_variables};
use testing::wait::wait_or_tell;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_rocebench");

/// The most that a step takes.
pub const EXPECTED: Duration = Duration::from_secs(10);

/// Few messages between any two nodes; workers sleep, as there are more of them than cores.
pub const SHORT: &str = "--iters 200 --warmup 0s --size 4K --tx-depth 4 --poll event --timeout 18";

/// Runs that go on until they are ended.
pub const LONG: &str = "--pattern ring --iters 2000 --runs 1000 --warmup 0s --size 4K --tx-depth 4 --poll event --timeout 18";

/// One test's jobs at a time: ranks that starve each other for seconds take each other for dead, as they should.
pub fn one_at_a_time() -> MutexGuard<'static, ()> {
    static JOBS: Mutex<()> = Mutex::new(());
    JOBS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A launcher's command, without what a launcher around this test has set.
pub fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let launchers = ["SLURM", "OMPI_", "PMI", "PRTE_", "JOB_COMPLETION_INDEX"];
    without_variables(program, &[&launchers[..], &["ROCEBENCH_", "SOFTROCE_"]].concat())
}

/// A job that runs. No rank outlives it.
pub struct Job {
    pub program: Program,
    ranks: Ranks,
}

impl Job {
    /// Starts what `launcher` is about to start, with `words` after it; `OUT` among them is the folder for results.
    pub fn start(launcher: Command, words: &[&str]) -> Job {
        let call = Call::new(launcher, "").env("ROCEBENCH_LOG", "warn");
        let ranks = Ranks(call.folder().to_owned());
        let out = ranks.0.join("results").display().to_string();
        // Two mpiruns that begin at once both make Open MPI's folder of this user, and one fails.
        let home = ranks.0.display().to_string();
        let apart =
            call.env("OMPI_MCA_orte_tmpdir_base", &home).env("PRTE_MCA_prte_tmpdir_base", &home);
        let program =
            words.iter().map(|word| word.replace("OUT", &out)).fold(apart, Call::arg).start();
        Job { program, ranks }
    }

    /// Starts `rocebench mesh` with these options.
    pub fn mesh(launcher: Command, options: &str) -> Job {
        let words: Vec<&str> = [PROGRAM, "mesh", "--out", "OUT"]
            .into_iter()
            .chain(options.split_whitespace())
            .collect();
        Job::start(launcher, &words)
    }

    /// One that measures, with whole runs behind it; in which step of the third run it is, is left open.
    #[track_caller]
    pub fn measuring(launcher: Command) -> Job {
        let job = Job::mesh(launcher, LONG);
        job.program.await_line(0, "run 3 of", EXPECTED);
        job
    }

    /// Ends a rank as nothing can be done about.
    #[track_caller]
    pub fn kill_rank(&self, rank: u32) {
        let ranks = self.ranks.running();
        let found = ranks.iter().find(|(number, _)| *number == rank);
        let (_, pid) = found.unwrap_or_else(|| panic!("no rank {rank} in {ranks:?}"));
        send_signal(*pid, Signal::Kill);
    }

    pub fn has_ranks(&self) -> bool {
        !self.ranks.running().is_empty()
    }

    /// Waits until the launcher and all ranks have ended.
    #[track_caller]
    pub fn ended(self) -> Ended {
        let ended = self.program.wait_for(EXPECTED);
        wait_or_tell(
            EXPECTED,
            || self.ranks.running().is_empty().then_some(()),
            || format!("ranks are left: {:?}", self.ranks.running()),
        );
        ended
    }

    /// The same, and that it has failed.
    #[track_caller]
    pub fn failed(self) -> Ended {
        let ended = self.ended();
        assert_ne!(ended.code, Some(0));
        ended
    }
}

/// The processes of rocebench that write below a folder, by their ranks.
struct Ranks(PathBuf);

impl Ranks {
    fn running(&self) -> Vec<(u32, u32)> {
        let folder = self.0.display().to_string();
        let processes = std::fs::read_dir("/proc").unwrap();
        processes
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let pid: u32 = path.file_name()?.to_str()?.parse().ok()?;
                let program = std::fs::read_link(path.join("exe")).ok()?;
                let words = std::fs::read(path.join("cmdline")).ok()?;
                let is_of_job = String::from_utf8_lossy(&words).contains(&folder);
                if program != Path::new(PROGRAM) || !is_of_job {
                    return None;
                }
                let variables = std::fs::read(path.join("environ")).ok()?;
                let variables = String::from_utf8_lossy(&variables).into_owned();
                let names =
                    ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "JOB_COMPLETION_INDEX"];
                Some((
                    names.into_iter().find_map(|name| {
                        variables.split('\0').find_map(|variable| {
                            variable.strip_prefix(name)?.strip_prefix('=')?.parse().ok()
                        })
                    })?,
                    pid,
                ))
            })
            .collect()
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        for (_, pid) in self.running() {
            send_signal(pid, Signal::Kill);
        }
    }
}

/// Rank 0 left a result with whole runs and the one that was ended, which is marked; the error names `node`.
#[track_caller]
pub fn kept_what_was_measured(ended: &Ended, node: Option<&str>) {
    let mut runs = ended.runs();
    assert!((2..1000).contains(&runs.len()), "{runs:?}");
    assert!(runs.iter().any(|run| run.complete), "{runs:?}");
    let last = runs.remove(runs.len() - 1);
    if let Some(node) = node {
        let message = last.failure.unwrap().message;
        assert!(!last.complete && message.contains(node), "{message}");
    }
}

/// A launcher may kill rank 0 while it writes its result: then its journal has the whole runs.
#[track_caller]
pub fn kept_result_or_journal(ended: &Ended, node: Option<&str>) {
    if ended.results().iter().any(|it| it.ends_with(".json")) {
        kept_what_was_measured(ended, node);
    } else {
        kept_its_journal(ended);
    }
}

/// Rank 0 had no time for more than its journal, which has at least a whole run.
#[track_caller]
pub fn kept_its_journal(ended: &Ended) {
    let lines = ended.file(".jsonl");
    assert!(lines.contains("\"complete\":true"), "{lines}");
}

/// It measured each of four nodes with each other, all together well, and each had an address of its own.
#[track_caller]
pub fn is_a_matrix_of_four(ended: Ended) -> Ended {
    let ended = ended.exits(0);
    let nodes = ended.result().nodes;
    let names: BTreeSet<String> = nodes.iter().map(|it| it.name.clone()).collect();
    let gids: BTreeSet<_> = nodes.iter().map(|it| &it.devices[0].gid).collect();
    assert_eq!((names.len(), gids.len()), (4, 4), "{names:?} {gids:?}");
    let mut measured = BTreeSet::new();
    for run in ended.runs() {
        assert!(run.complete, "{:?}", run.failure);
        for flow in run.flows {
            assert!(flow.totals.messages > 0, "{flow:?}");
            measured.insert((flow.from, flow.to));
        }
    }
    let pairs = names.iter().flat_map(|from| names.iter().map(|to| (from.clone(), to.clone())));
    assert_eq!(measured, pairs.filter(|(from, to)| from != to).collect());
    ended
}
