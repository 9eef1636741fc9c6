//! CPU time, and which cores a thread may and should run on.

use std::io;
use std::path::{Path, PathBuf};

use core_affinity::CoreId;
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use super::core_list::CoreList;

/// Cores are numbered below this; Linux' fixed-size CPU mask holds no more.
const MAX_CORES: usize = CpuSet::MAX_CPU;

/// CPU seconds, user and system, that the calling thread has used.
pub fn thread_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// CPU seconds that everything on this machine has used since it started: programs, the kernel's threads and interrupts;
/// `None` where the kernel does not say.
pub fn machine_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    busy_seconds(&stat)
}

/// Time of all CPUs but for idle and iowait, and for steal, which other machines had; guests are part of user
/// (proc_stat(5)).
fn busy_seconds(stat: &str) -> Option<f64> {
    /// `USER_HZ` of all architectures that Linux still has, but for Alpha.
    const TICKS_PER_SECOND: f64 = 100.0;
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Option<Vec<u64>> = line.split_whitespace().map(|it| it.parse().ok()).collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, ..] = ticks?[..] else {
        return None;
    };
    Some((user + nice + system + irq + softirq) as f64 / TICKS_PER_SECOND)
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
    let set = rustix::thread::sched_getaffinity(Some(rustix::process::getpid()))
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
    let text = std::fs::read_to_string(&path);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::tests::machine;

    #[test]
    fn cpu_time_is_that_of_the_calling_thread() {
        let before = thread_seconds();
        let of_another = std::thread::spawn(|| {
            let before = thread_seconds();
            while thread_seconds() - before < 0.03 {}
            thread_seconds() - before
        })
        .join()
        .unwrap();
        let of_this = thread_seconds() - before;
        assert!(of_this < of_another, "{of_this} {of_another}");
    }

    #[test]
    fn the_machines_time_is_that_in_which_its_cpus_worked() {
        let stat = "cpu  1000 20 300 70000 5 40 200 99 50 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(busy_seconds(stat), Some(15.6));
        for unknown in ["", "cpu  1 2 3\n", "cpu  1 2 x 4 5 6 7\n", "cpu0 1 2 3 4 5 6 7\n"] {
            assert_eq!(busy_seconds(unknown), None, "{unknown}");
        }
        let before = machine_seconds();
        assert!(machine_seconds() >= before && before.is_some());
    }

    #[test]
    fn a_thread_is_pinned_where_it_was_asked() {
        let core = *allowed_cores().unwrap().last().unwrap();
        let seen = std::thread::spawn(move || {
            pin_current_thread(core).unwrap();
            rustix::thread::sched_getcpu()
        });
        assert_eq!(seen.join().unwrap(), core);
    }

    #[test]
    fn a_core_that_is_not_there_is_an_error_that_names_those_that_are() {
        let allowed = CoreList(allowed_cores().unwrap()).to_string();
        for core in [MAX_CORES - 1, MAX_CORES, usize::MAX] {
            let error = pin_current_thread(core).unwrap_err().to_string();
            assert!(error.contains(&format!("core {core}")), "{error}");
            assert!(error.contains(&allowed), "{error}");
        }
    }

    #[test]
    fn nodes_are_read_from_sysfs() {
        let root = machine(&[
            ("sys/devices/system/node/node0/cpulist", "0-1,4\n"),
            ("sys/devices/system/node/node1/cpulist", "\n"),
            ("sys/devices/system/node/node2/cpulist", "x\n"),
        ]);
        let cores = |node| cores_of_node(root.path(), node);
        assert_eq!(cores(0).unwrap(), [0, 1, 4]);
        assert_eq!(cores(1).unwrap(), [0usize; 0]);
        for (node, says) in [(2, "`x` is not a core"), (3, "node3/cpulist")] {
            let error = cores(node).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
