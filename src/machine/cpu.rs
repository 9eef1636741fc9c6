//! CPU time, and which cores a thread may and should run on. It must not know what the threads do.

use std::io;
use std::num::ParseIntError;
use std::path::{Path, PathBuf};

use rustix::thread::CpuSet;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Cores are numbered below this; Linux' fixed-size CPU mask holds no more.
pub const MAX_CORES: usize = CpuSet::MAX_CPU;

/// CPU seconds, user and system, that the calling thread has used.
pub fn thread_seconds() -> f64 {
    seconds(clock_gettime(ClockId::ThreadCPUTime))
}

/// CPU seconds, user and system, that all threads of this process have used.
pub fn process_seconds() -> f64 {
    seconds(clock_gettime(ClockId::ProcessCPUTime))
}

fn seconds(time: Timespec) -> f64 {
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// A thread could not be placed, or the places could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CoreError {
    /// The kernel refused the core.
    #[error(
        "cannot pin a thread to core {core}: it is offline, or this process may not use it; \
         choose others with --cores (this process may use {allowed})"
    )]
    Pin {
        /// The core.
        core: usize,
        /// The cores that would do, as a list such as `0-3,8`.
        allowed: String,
    },
    /// The affinity mask could not be read.
    #[error(
        "cannot read which cores this process may use (sched_getaffinity): {source}; name them with --cores"
    )]
    Affinity {
        /// The kernel's reason.
        source: io::Error,
    },
    /// A NUMA node's cores could not be read.
    #[error(
        "cannot read the cores of NUMA node {node} from {path}: {source}; name them with --cores"
    )]
    Node {
        /// The node.
        node: u32,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Pins the calling thread to one core.
///
/// # Errors
/// [`CoreError::Pin`] when there is no such core or this process may not use it.
pub fn pin_current_thread(core: usize) -> Result<(), CoreError> {
    // The crate indexes a fixed-size mask with the number.
    if core < MAX_CORES && core_affinity::set_for_current(core_affinity::CoreId { id: core }) {
        return Ok(());
    }
    let allowed =
        allowed_cores().map_or_else(|_| "none known".to_owned(), |cores| format_cpu_list(&cores));
    Err(CoreError::Pin { core, allowed })
}

/// The cores that this process may use (its cgroup and `taskset` considered), ascending. Asked of the
/// process' main thread, so the answer does not change when a worker is pinned.
///
/// # Errors
/// [`CoreError::Affinity`] when the kernel does not tell.
pub fn allowed_cores() -> Result<Vec<usize>, CoreError> {
    let set =
        rustix::thread::sched_getaffinity(Some(rustix::process::getpid())).map_err(|errno| {
            CoreError::Affinity {
                source: errno.into(),
            }
        })?;
    Ok((0..MAX_CORES).filter(|&core| set.is_set(core)).collect())
}

/// The cores of a NUMA node that this process may use, ascending; empty when it may use none of them.
///
/// # Errors
/// [`CoreError::Node`] when there is no such node, [`CoreError::Affinity`] as [`allowed_cores`].
pub fn allowed_cores_of_node(node: u32) -> Result<Vec<usize>, CoreError> {
    let allowed = allowed_cores()?;
    let of_node = cores_of_node(Path::new("/sys"), node)?;
    Ok(of_node
        .into_iter()
        .filter(|core| allowed.contains(core))
        .collect())
}

/// The cores of a NUMA node, as sysfs mounted at `sysfs` tells.
///
/// # Errors
/// [`CoreError::Node`] when the node's list cannot be read or parsed.
pub fn cores_of_node(sysfs: &Path, node: u32) -> Result<Vec<usize>, CoreError> {
    let path = sysfs.join(format!("devices/system/node/node{node}/cpulist"));
    let text = std::fs::read_to_string(&path);
    let cores = text.and_then(|text| {
        // A node of memory alone has an empty list.
        if text.trim().is_empty() {
            return Ok(Vec::new());
        }
        parse_cpu_list(text.trim())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    });
    cores.map_err(|source| CoreError::Node { node, path, source })
}

/// What is wrong with a list of cores.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CpuListError {
    /// Two commas in a row, one at an end, or no text at all.
    #[error("an entry is empty; write a list such as 2,4-7")]
    Empty,
    /// Not a number.
    #[error("`{entry}` is not a core ({source}); write a list such as 2,4-7")]
    Number {
        /// The entry.
        entry: String,
        /// Why.
        source: ParseIntError,
    },
    /// A range that runs backwards.
    #[error("the range `{entry}` runs backwards; write the smaller core first")]
    Backwards {
        /// The entry.
        entry: String,
    },
    /// A core that no mask can hold.
    #[error("core {core} is beyond the last that can be used, {}", MAX_CORES - 1)]
    TooLarge {
        /// The core.
        core: usize,
    },
}

/// Parses a list of cores such as `2,4-7`, as the kernel writes it and `--cores` takes it. The order is
/// kept and a core named twice stays in its first place.
///
/// # Errors
/// What is wrong with the first entry that is.
pub fn parse_cpu_list(text: &str) -> Result<Vec<usize>, CpuListError> {
    let mut cores = Vec::new();
    for entry in text.split(',').map(str::trim) {
        if entry.is_empty() {
            return Err(CpuListError::Empty);
        }
        let number = |text: &str| {
            let core = text.trim().parse().map_err(|source| CpuListError::Number {
                entry: entry.to_owned(),
                source,
            })?;
            if core < MAX_CORES {
                Ok(core)
            } else {
                Err(CpuListError::TooLarge { core })
            }
        };
        let (first, last) = match entry.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(entry)?, number(entry)?),
        };
        if first > last {
            return Err(CpuListError::Backwards {
                entry: entry.to_owned(),
            });
        }
        for core in first..=last {
            if !cores.contains(&core) {
                cores.push(core);
            }
        }
    }
    Ok(cores)
}

/// Writes ascending cores as the kernel does, such as `2,4-7`.
pub fn format_cpu_list(cores: &[usize]) -> String {
    let ranges = cores.chunk_by(|a, b| a + 1 == *b).map(|range| match range {
        [first, .., last] => format!("{first}-{last}"),
        [core] => core.to_string(),
        [] => String::new(),
    });
    ranges.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cpu_time_grows_with_work_and_not_with_sleep() {
        let before = thread_seconds();
        std::thread::sleep(Duration::from_millis(60));
        let slept = thread_seconds() - before;
        assert!(slept < 0.03, "{slept} s while asleep");
        let (start, before) = (Instant::now(), thread_seconds());
        while thread_seconds() - before < 0.01 {
            assert!(
                start.elapsed() < Duration::from_secs(10),
                "CPU time stands still"
            );
        }
        assert!(process_seconds() >= 0.01);
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
        let allowed = format_cpu_list(&allowed_cores().unwrap());
        for core in [MAX_CORES - 1, MAX_CORES, usize::MAX] {
            let error = pin_current_thread(core).unwrap_err().to_string();
            assert!(error.contains(&format!("core {core}")), "{error}");
            assert!(error.contains(&allowed), "{error}");
        }
    }

    #[test]
    fn nodes_are_read_from_sysfs() {
        let root = tempfile::tempdir().unwrap();
        for (node, list) in [(0, "0-1,4\n"), (1, "\n"), (2, "x\n")] {
            let directory = root.path().join(format!("devices/system/node/node{node}"));
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.join("cpulist"), list).unwrap();
        }
        assert_eq!(cores_of_node(root.path(), 0).unwrap(), [0, 1, 4]);
        assert_eq!(cores_of_node(root.path(), 1).unwrap(), [0usize; 0]);
        assert!(
            cores_of_node(root.path(), 2)
                .unwrap_err()
                .to_string()
                .contains("`x` is not a core")
        );
        assert!(
            cores_of_node(root.path(), 3)
                .unwrap_err()
                .to_string()
                .contains("node3/cpulist")
        );
    }

    #[test]
    fn lists_are_parsed() {
        assert_eq!(parse_cpu_list("2,4-7").unwrap(), [2, 4, 5, 6, 7]);
        assert_eq!(parse_cpu_list(" 3 , 1 - 3 ").unwrap(), [3, 1, 2]);
        assert_eq!(parse_cpu_list(""), Err(CpuListError::Empty));
        assert_eq!(parse_cpu_list("1,"), Err(CpuListError::Empty));
        assert_eq!(
            parse_cpu_list("0-4294967295"),
            Err(CpuListError::TooLarge {
                core: 4_294_967_295
            })
        );
        assert!(matches!(
            parse_cpu_list("7-4"),
            Err(CpuListError::Backwards { .. })
        ));
        assert!(matches!(
            parse_cpu_list("1-"),
            Err(CpuListError::Number { .. })
        ));
        assert!(matches!(
            parse_cpu_list("-1"),
            Err(CpuListError::Number { .. })
        ));
        assert!(matches!(
            parse_cpu_list("one"),
            Err(CpuListError::Number { .. })
        ));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(cores in proptest::collection::btree_set(0..MAX_CORES, 1..60)) {
            let cores: Vec<_> = cores.into_iter().collect();
            prop_assert_eq!(parse_cpu_list(&format_cpu_list(&cores)).unwrap(), cores);
        }

        #[test]
        fn any_text_is_parsed_or_refused(text in "[0-9,\\- ]{0,12}|.{0,12}") {
            if let Ok(cores) = parse_cpu_list(&text) {
                prop_assert!(!cores.is_empty() && cores.iter().all(|&core| core < MAX_CORES));
            }
        }
    }
}
