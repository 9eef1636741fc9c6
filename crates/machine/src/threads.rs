//! Threads and the cores that they run on: starting them, their CPU time, pinning them, lists of cores such as `2,4-7`, and
//! which cores the workers of all processes on this host have.
//!
//! So that no worker takes another's core, one that has a core locks a file that stands for it, in a folder that all
//! processes see. The kernel unlocks it when the process ends, however it does. A core has a file for each worker on it:
//! the first locks `rocebench-core-3.0`, one that must share the core `rocebench-core-3.1`. Files are only locked, never
//! written or removed.

use std::collections::HashSet;
use std::error::Error;
use std::fmt;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use core_affinity::CoreId;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use rustix::process::getpid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// What helps where a thread cannot be started.
pub const REMEDY: &str = "raise the limit of threads (`ulimit -u`; of a container pids.max or --pids-limit) or of memory \
                          (`ulimit -v`), or lower --workers";

/// A thread could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start the thread {name}: {source}")]
pub struct ThreadError {
    name: String,
    source: io::Error,
}

impl From<ThreadError> for io::Error {
    fn from(error: ThreadError) -> io::Error {
        io::Error::other(error)
    }
}

pub fn spawn<T: Send + 'static>(
    thread_name: impl Into<String>,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, ThreadError> {
    let name = thread_name.into();
    let spawned = Builder::new().name(name.clone()).spawn(body);
    spawned.map_err(|source| ThreadError { name, source })
}

/// As [`spawn`], of a scope.
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    thread_name: impl Into<String>,
    body: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, ThreadError> {
    let name = thread_name.into();
    let spawned = Builder::new().name(name.clone()).spawn_scoped(scope, body);
    spawned.map_err(|source| ThreadError { name, source })
}

/// [`REMEDY`], if the error is that of a thread or came of one.
pub fn remedy(error: &(dyn Error + 'static)) -> Option<&'static str> {
    let mut next = Some(error);
    while let Some(cause) = next {
        if cause.is::<ThreadError>() {
            return Some(REMEDY);
        }
        // An I/O error passes over the error that it is made of.
        next = match cause.downcast_ref().and_then(io::Error::get_ref) {
            Some(within) => Some(within),
            None => cause.source(),
        };
    }
    None
}

/// Cores are numbered below this; Linux' fixed-size CPU mask holds no more.
const MAX_CORES: usize = CpuSet::MAX_CPU;

/// CPU seconds, user and system, that the calling thread has used.
pub fn thread_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// The kernel's number of the calling thread.
pub fn thread_number() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// How long a thread of this process has been ready to run without a core, in seconds (proc-schedstat); `None` where the kernel
/// does not say, or there is no such thread.
pub fn waiting_seconds(thread: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    let ns: f64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(ns * 1e-9)
}

/// Clock of a core in MHz now; `None` where it is not told, as in most virtual machines.
pub fn core_megahertz(root: &Path, core: usize) -> Option<f64> {
    let file = format!("sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq");
    let khz: f64 = fs::read_to_string(root.join(file)).ok()?.trim().parse().ok()?;
    Some(khz / 1e3)
}

/// CPU seconds of this machine since it started.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineTimes {
    /// Of programs, the kernel's threads and interrupts.
    pub busy_seconds: f64,
    /// Of soft interrupts among them.
    pub soft_interrupt_seconds: f64,
    /// That other virtual machines had.
    pub stolen_seconds: f64,
}

/// What everything on this machine has used since it started; `None` where the kernel does not say.
pub fn machine_times() -> Option<MachineTimes> {
    MachineTimes::parse(&fs::read_to_string("/proc/stat").ok()?)
}

/// CPU seconds that everything on this machine has used since it started: programs, the kernel's threads and interrupts;
/// `None` where the kernel does not say.
pub fn machine_seconds() -> Option<f64> {
    Some(machine_times()?.busy_seconds)
}

impl MachineTimes {
    /// All CPUs' line of `/proc/stat`. Busy is all but idle and iowait, and steal; guests are part of user (proc_stat(5)).
    fn parse(stat: &str) -> Option<MachineTimes> {
        /// `USER_HZ` of all architectures that Linux still has, but for Alpha.
        const TICKS_PER_SECOND: f64 = 100.0;
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Option<Vec<u64>> =
            line.split_whitespace().map(|word| word.parse().ok()).collect();
        let [user, nice, system, _idle, _iowait, irq, softirq, ref rest @ ..] = ticks?[..] else {
            return None;
        };
        let seconds = |count: u64| count as f64 / TICKS_PER_SECOND;
        Some(MachineTimes {
            busy_seconds: seconds(user + nice + system + irq + softirq),
            soft_interrupt_seconds: seconds(softirq),
            stolen_seconds: seconds(rest.first().copied().unwrap_or(0)),
        })
    }
}

/// A thread could not be placed, or the places could not be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum CoreError {
    #[error(
        "cannot pin a thread to core {core}: it is offline, or this process may not use it; \
         choose others with --cores (this process may use {allowed})"
    )]
    Pin {
        core: usize,
        /// The cores that would do, as a list such as `0-3,8`.
        allowed: String,
    },
    #[error(
        "cannot read which cores this process may use (sched_getaffinity): {source}; name them with --cores"
    )]
    Affinity { source: io::Error },
    #[error(
        "cannot read the cores of NUMA node {node} from {path}: {source}; name them with --cores"
    )]
    Node { node: u32, path: PathBuf, source: io::Error },
}

/// Pins the calling thread to one core.
///
/// # Errors
/// [`CoreError::Pin`] when there is no such core or this process may not use it.
pub fn pin_current_thread(core: usize) -> Result<(), CoreError> {
    // `get_core_ids` lists only what this thread may use now, so the id is made here; beyond its mask the crate panics.
    if core < MAX_CORES && core_affinity::set_for_current(CoreId { id: core }) {
        return Ok(());
    }
    Err(CoreError::Pin {
        core,
        allowed: allowed_cores()
            .map_or_else(|_| "none known".to_owned(), |cores| CoreList(cores).to_string()),
    })
}

/// Whether this process may pin its threads at all: sandboxes and some containers forbid `sched_setaffinity`, also of the
/// cores that the thread has already.
pub fn may_pin() -> bool {
    sched_getaffinity(None).and_then(|own| sched_setaffinity(None, &own)) != Err(Errno::PERM)
}

/// Sees that a thread could be pinned to each of these cores.
///
/// # Errors
/// [`CoreError::Pin`] of the first that is not there or that this process may not use.
pub fn check_cores(cores: &[usize]) -> Result<(), CoreError> {
    let allowed = allowed_cores()?;
    match cores.iter().find(|core| !allowed.contains(core)) {
        None => Ok(()),
        Some(core) => Err(CoreError::Pin { core: *core, allowed: CoreList(allowed).to_string() }),
    }
}

/// Lets the calling thread, and those that it starts, run on any of these cores: of several the kernel chooses.
///
/// # Errors
/// None of them is there or may be used.
pub fn keep_to(cores: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &core in cores.iter().filter(|core| **core < MAX_CORES) {
        set.set(core);
    }
    Ok(sched_setaffinity(None, &set)?)
}

/// The cores that this process may use (its cgroup and `taskset` considered), ascending. Asked of the
/// process' main thread, so the answer does not change when a worker is pinned.
///
/// # Errors
/// [`CoreError::Affinity`] when the kernel does not tell.
pub fn allowed_cores() -> Result<Vec<usize>, CoreError> {
    let set = sched_getaffinity(Some(getpid()))
        .map_err(|errno| CoreError::Affinity { source: errno.into() })?;
    Ok((0..MAX_CORES).filter(|&core| set.is_set(core)).collect())
}

/// The cores of a NUMA node that this process may use, ascending, by the files below `root`; empty when it may use none of them.
///
/// # Errors
/// [`CoreError::Node`] when there is no such node, [`CoreError::Affinity`] as [`allowed_cores`].
pub fn allowed_cores_of_node(root: &Path, node: u32) -> Result<Vec<usize>, CoreError> {
    let allowed = allowed_cores()?;
    let of_node = cores_of_node(root, node)?;
    Ok(of_node.into_iter().filter(|core| allowed.contains(core)).collect())
}

/// The cores of a NUMA node, by the files below `root`.
///
/// # Errors
/// [`CoreError::Node`] when the node's list cannot be read or parsed.
pub fn cores_of_node(root: &Path, node: u32) -> Result<Vec<usize>, CoreError> {
    let path = root.join(format!("sys/devices/system/node/node{node}/cpulist"));
    let text = fs::read_to_string(&path);
    let cores = text.and_then(|text| {
        // A node of memory alone has an empty list.
        if text.trim().is_empty() {
            return Ok(Vec::new());
        }
        let list: Result<CoreList, _> = text.trim().parse();
        list.map(|list| list.0).map_err(io::Error::other)
    });
    cores.map_err(|source| CoreError::Node { node, path, source })
}

/// CPU cores, such as `2,4-7`, in the order they were given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreList(pub Vec<usize>);

/// The highest core number that is accepted; Linux is built for at most 8192.
const MAX_CORE: usize = 8191;

/// Why a text is no list of cores.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum CoreListError {
    #[error("`{0}` is not a core: write numbers and ranges, such as 2,4-7")]
    Syntax(String),
    #[error("the range {0}-{1} runs backwards")]
    Backwards(usize, usize),
    #[error("core {0} is above {MAX_CORE}")]
    TooHigh(usize),
    /// A core would be given two workers.
    #[error("core {0} is listed twice")]
    Duplicate(usize),
}

fn core_number(digits: &str, item: &str) -> Result<usize, CoreListError> {
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits
        .parse::<usize>()
        .ok()
        .filter(|_| is_number)
        .ok_or_else(|| CoreListError::Syntax(item.to_owned()))?;
    if number > MAX_CORE { Err(CoreListError::TooHigh(number)) } else { Ok(number) }
}

impl FromStr for CoreList {
    type Err = CoreListError;

    fn from_str(text: &str) -> Result<Self, CoreListError> {
        let mut cores = Vec::new();
        let mut seen = HashSet::new();
        for item in text.split(',') {
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            let (first, last) = (core_number(first, item)?, core_number(last, item)?);
            if first > last {
                return Err(CoreListError::Backwards(first, last));
            }
            for core in first..=last {
                if !seen.insert(core) {
                    return Err(CoreListError::Duplicate(core));
                }
                cores.push(core);
            }
        }
        Ok(CoreList(cores))
    }
}

impl fmt::Display for CoreList {
    /// Runs of neighbours as ranges: `2,4-7`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, run) in self.0.chunk_by(|a, b| a.checked_add(1) == Some(*b)).enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            match run {
                [first, .., last] => write!(f, "{first}-{last}")?,
                run => run.iter().try_for_each(|core| write!(f, "{core}"))?,
            }
        }
        Ok(())
    }
}

/// The variable that names another folder for the locks.
pub const FOLDER_VARIABLE: &str = "ROCEBENCH_CORE_LOCKS";

/// Folders for the locks that all users of a host may write to, the first that there is. Another of the same host
/// would not do: `TMPDIR` or `XDG_RUNTIME_DIR` differ from user to user.
const FOLDERS: [&str; 2] = ["/dev/shm", "/tmp"];

/// Workers that can be told apart on one core.
const MOST_ON_A_CORE: u32 = 64;

/// The locks of a host.
#[derive(Clone, Debug)]
pub struct CoreLocks {
    folder: PathBuf,
}

/// A core that a worker has, until dropped.
#[derive(Debug)]
pub struct HeldCore {
    core: usize,
    /// The file of the core that is locked.
    place: u32,
    /// `None` when it cannot be locked.
    lock: Option<File>,
    locks: CoreLocks,
}

/// What became of locking a file.
enum Attempt {
    Locked(File),
    Held,
    /// There is no such file, so nobody ever had it.
    Absent,
    Failed(io::Error),
}

impl CoreLocks {
    /// Those of this host, in the folder that [`FOLDER_VARIABLE`] names or else a usual one.
    pub fn of_host() -> CoreLocks {
        let named = std::env::var_os(FOLDER_VARIABLE).filter(|folder| !folder.is_empty());
        CoreLocks::within(match named {
            Some(folder) => folder.into(),
            None => FOLDERS
                .into_iter()
                .find(|folder| Path::new(folder).is_dir())
                .unwrap_or(FOLDERS[0])
                .into(),
        })
    }

    pub fn within(folder: PathBuf) -> CoreLocks {
        CoreLocks { folder }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether cores can be locked.
    pub fn check(&self) -> io::Result<()> {
        match self.lock(0, 0, FlockOperation::NonBlockingLockShared, true) {
            Attempt::Failed(error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Takes one of `cores` for a worker: the first that no worker on this host has, or else the one that the fewest
    /// have. `own` are the cores that were taken before for the same end, which count where locking fails. `None` if
    /// there are no cores.
    pub fn take(&self, cores: &[usize], own: &[usize]) -> Option<HeldCore> {
        if let Some(alone) = cores.iter().find_map(|&core| self.take_alone(core)) {
            return Some(alone);
        }
        let fewest = cores.iter().min_by_key(|core| {
            (self.holders(**core, None), own.iter().filter(|other| other == core).count())
        });
        fewest.map(|&core| self.take_shared(core))
    }

    pub fn workers_on(&self, core: usize) -> u32 {
        self.holders(core, None)
    }

    fn take_alone(&self, core: usize) -> Option<HeldCore> {
        let held = self.take_place(core, 0)?;
        (held.others() == 0).then_some(held)
    }

    fn take_shared(&self, core: usize) -> HeldCore {
        let mut places = 0..MOST_ON_A_CORE;
        let locked = places.find_map(|place| self.take_place(core, place));
        locked.unwrap_or_else(|| HeldCore {
            core,
            place: MOST_ON_A_CORE,
            lock: None,
            locks: self.clone(),
        })
    }

    fn take_place(&self, core: usize, place: u32) -> Option<HeldCore> {
        match self.lock(core, place, FlockOperation::NonBlockingLockExclusive, true) {
            Attempt::Locked(lock) => {
                Some(HeldCore { core, place, lock: Some(lock), locks: self.clone() })
            }
            _ => None,
        }
    }

    /// Workers on a core but the one at `own_place`.
    fn holders(&self, core: usize, own_place: Option<u32>) -> u32 {
        let mut holders = 0;
        for place in (0..MOST_ON_A_CORE).filter(|place| Some(*place) != own_place) {
            // Shared, so that those who look do not see each other.
            match self.lock(core, place, FlockOperation::NonBlockingLockShared, false) {
                Attempt::Held => holders += 1,
                Attempt::Locked(_) => {}
                Attempt::Absent | Attempt::Failed(_) => break,
            }
        }
        holders
    }

    fn lock(&self, core: usize, place: u32, how: FlockOperation, create: bool) -> Attempt {
        let path = self.folder.join(format!("rocebench-core-{core}.{place}"));
        let file = match open_to_lock(&path) {
            Err(Errno::NOENT) if create => create_to_lock(&path),
            opened => opened,
        };
        let file = match file {
            Ok(file) => file,
            Err(Errno::NOENT) if !create => return Attempt::Absent,
            // Someone is just making it.
            Err(Errno::EXIST | Errno::ACCESS) if path.exists() => return Attempt::Held,
            Err(errno) => return Attempt::Failed(errno.into()),
        };
        match flock(&file, how) {
            Ok(()) => Attempt::Locked(file),
            Err(Errno::WOULDBLOCK) => Attempt::Held,
            Err(errno) => Attempt::Failed(errno.into()),
        }
    }
}

/// Whatever another user may have put there is neither followed nor waited for.
const OPEN: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK);

fn open_to_lock(path: &Path) -> Result<File, Errno> {
    open(path, OPEN, Mode::empty()).map(File::from)
}

fn create_to_lock(path: &Path) -> Result<File, Errno> {
    let create = OPEN | OFlags::CREATE | OFlags::EXCL;
    let file = File::from(open(path, create, Mode::from_raw_mode(0o444))?);
    // Whatever the umask, so that other users can lock it too.
    let _ = file.set_permissions(Permissions::from_mode(0o444));
    Ok(file)
}

impl HeldCore {
    pub fn core(&self) -> usize {
        self.core
    }

    /// Other workers that have it now.
    pub fn others(&self) -> u32 {
        let own_place = self.lock.as_ref().map(|_| self.place);
        self.locks.holders(self.core, own_place)
    }
}

#[cfg(test)]
#[path = "threads_tests.rs"]
mod tests;
