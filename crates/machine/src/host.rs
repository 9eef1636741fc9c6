//! The facts of this machine that a result file's head tells, from `/proc`, `/sys` and `/etc`, and what this process can
//! still have of it: memory and open files. What the system does not show (as in some containers) is left out, never
//! guessed.

use std::fs;
use std::path::Path;

use results::model::Host;
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::{control_groups, processors};

/// The facts of this machine; the device is left to who opened it ([`crate::device::read`]).
pub fn read() -> Host {
    read_below(Path::new("/"))
}

/// As [`read`], with `/proc`, `/sys` and `/etc` below `root`. Kernel, host name and page size are the running ones.
pub fn read_below(root: &Path) -> Host {
    let names = rustix::system::uname();
    let kinds = processors::core_kinds(root);
    let cores: usize = kinds.iter().map(|kind| kind.cores.0.len()).sum();
    Host {
        hostname: names.nodename().to_string_lossy().into_owned(),
        kernel: names.release().to_string_lossy().into_owned(),
        os: text(&root.join("etc/os-release"))
            .or_else(|| text(&root.join("usr/lib/os-release")))
            .and_then(|text| pretty_name(&text)),
        cpu_model: processors::models_text(&kinds),
        cores: u32::try_from(cores).ok().filter(|count| *count > 0),
        page_bytes: Some(rustix::param::page_size() as u64),
        numa_nodes: numa_nodes(&root.join("sys/devices/system/node")),
        governor: processors::governors_text(root, &kinds),
        rdma_core: text(&root.join("proc/self/maps")).and_then(|maps| rdma_core(&maps)),
    }
}

/// A file's text without white space around it; `None` when it is unreadable or empty.
pub(crate) fn text(path: &Path) -> Option<String> {
    let content = fs::read_to_string(path).ok()?;
    let trimmed = content.trim();
    (!trimmed.is_empty()).then(|| trimmed.to_owned())
}

/// `PRETTY_NAME` of an os-release file.
fn pretty_name(os_release: &str) -> Option<String> {
    let value = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim().trim_matches(['"', '\'']).to_owned())
}

fn numa_nodes(folder: &Path) -> Option<u32> {
    Some(
        fs::read_dir(folder)
            .ok()?
            .flatten()
            .filter(|entry| {
                entry.file_name().to_str().is_some_and(|name| {
                    name.strip_prefix("node").is_some_and(|number| number.parse::<u32>().is_ok())
                })
            })
            .count() as u32,
    )
}

/// rdma-core's version, from the name of the libibverbs that is mapped into this process: it ends in
/// `.so.1.14.44.0` for rdma-core 44.0.
fn rdma_core(maps: &str) -> Option<String> {
    maps.lines().find_map(|line| {
        let (_, name) = line.rsplit_once('/')?;
        let version = name.strip_prefix("libibverbs.so.")?;
        let (_abi, release) = version.split_once('.').and_then(|(_, rest)| rest.split_once('.'))?;
        release.chars().all(|c| c.is_ascii_digit() || c == '.').then(|| release.to_owned())
    })
}

/// Raises the limit of open files to what the system allows this process: many systems set 1,024, for programs that call
/// select(2), and allow more (systemd.exec(5), LimitNOFILE=). A node needs some 20.
pub fn allow_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Who has no file left is told so by the call that needs it.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// What can be had, and what limits it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Available {
    /// How much can be had without swapping, in bytes.
    pub bytes: u64,
    /// `this machine`, or the control group.
    pub by: String,
}

/// What can be had now; `None` where the kernel does not say.
pub fn available_memory() -> Option<Available> {
    let of_process = getrlimit(Resource::As).current.and_then(|limit| {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        Some(Available {
            bytes: limit.saturating_sub(kib(&status, "VmSize:")?),
            by: "the limit of this process (`ulimit -v`)".to_owned(),
        })
    });
    available_below(Path::new("/"))
        .into_iter()
        .chain(of_process)
        .min_by_key(|available| available.bytes)
}

/// The same with the kernel's files below `root`.
fn available_below(root: &Path) -> Option<Available> {
    let meminfo = fs::read_to_string(root.join("proc/meminfo")).ok();
    let machine = meminfo
        .as_deref()
        .and_then(|text| kib(text, "MemAvailable:"))
        .map(|bytes| Available { bytes, by: "this machine".to_owned() });
    let groups = control_groups::memory_left(root)
        .map(|(group, bytes)| Available { bytes, by: format!("the control group {group}") });
    machine.into_iter().chain(groups).min_by_key(|available| available.bytes)
}

/// Bytes of a line of proc_meminfo(5) or proc_pid_status(5); `MemAvailable` is what new allocations can have without swapping,
/// as the kernel estimates.
fn kib(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// An amount for people, in the largest binary unit of which there is one: `1.5 GiB`, `20 MiB`, `0 KiB`.
pub fn memory_text(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let (unit, name) =
        UNITS.into_iter().find(|(unit, _)| bytes >= *unit).unwrap_or((1 << 10, "KiB"));
    let amount = bytes as f64 / unit as f64;
    let decimals = usize::from(amount < 10.0 && !bytes.is_multiple_of(unit));
    format!("{amount:.decimals$} {name}")
}

#[cfg(test)]
pub mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_kernel_and_a_core() {
        let host = read();
        assert!(!host.kernel.is_empty() && !host.hostname.is_empty());
        assert!(host.cores >= Some(1));
    }

    #[test]
    fn files_are_read_below_the_root() {
        let root = machine(&[
            ("etc/os-release", "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"),
            (
                "proc/cpuinfo",
                "processor\t: 0\nmodel name\t: EPYC\n\nprocessor\t: 1\nmodel name\t: EPYC\n",
            ),
            ("proc/self/maps", "7f00-7f01 r--p 0 00:1f 1 /usr/lib/libibverbs.so.1.14.44.0\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
            ("sys/devices/system/node/node0/cpulist", "0\n"),
            ("sys/devices/system/node/node1/cpulist", "1\n"),
            ("sys/devices/system/node/online", "0-1\n"),
        ]);
        let host = read_below(root.path());
        assert_eq!(host.os.as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
        assert_eq!(host.cpu_model.as_deref(), Some("EPYC"));
        assert_eq!((host.cores, host.numa_nodes), (Some(2), Some(2)));
        assert_eq!(host.governor.as_deref(), Some("performance"));
        assert_eq!(host.rdma_core.as_deref(), Some("44.0"));
    }

    #[test]
    fn what_is_not_shown_is_left_out() {
        let host = read_below(machine(&[]).path());
        assert_eq!((host.os, host.cpu_model), (None, None));
        assert_eq!((host.cores, host.numa_nodes), (None, None));
        assert_eq!((host.governor, host.rdma_core), (None, None));
    }

    #[test]
    fn library_names_without_a_release_tell_nothing() {
        for name in [
            "libibverbs.so.1",
            "libibverbs.so",
            "libibverbs.so.1.14 (deleted)",
            "other.so.1.14.44.0",
        ] {
            assert_eq!(rdma_core(&format!("7f00 r--p /usr/lib/{name}")), None, "{name}");
        }
    }

    #[test]
    fn as_many_as_the_system_allows() {
        allow_open_files();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }

    #[test]
    fn the_kernels_estimate_is_read() {
        let text = "MemTotal:       24552456 kB\nMemFree: 1 kB\nMemAvailable:   23000000 kB\n";
        assert_eq!(kib(text, "MemAvailable:"), Some(23_000_000 * 1024));
        assert_eq!(kib("MemTotal: 1 kB\n", "MemAvailable:"), None);
        assert_eq!(kib("MemAvailable: lots kB\n", "MemAvailable:"), None);
        assert!(available_memory().is_some_and(|available| available.bytes > 1 << 20));
    }

    #[test]
    fn the_smaller_of_machine_and_group_counts() {
        let meminfo = ("proc/meminfo", "MemAvailable: 2048 kB\n");
        let group = |most| {
            machine(&[
                meminfo,
                ("proc/self/cgroup", "0::/job\n"),
                (
                    "proc/self/mountinfo",
                    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n",
                ),
                ("sys/fs/cgroup/job/memory.max", most),
                ("sys/fs/cgroup/job/memory.current", "48576\n"),
            ])
        };
        let below = |root: tempfile::TempDir| available_below(root.path()).unwrap();
        assert_eq!(below(machine(&[meminfo])).by, "this machine");
        let left = below(group("1048576\n"));
        assert_eq!(left.bytes, 1_000_000);
        assert_eq!(left.by, "the control group /job");
        assert_eq!(below(group("1000000000\n")).bytes, 2 << 20);
    }

    #[test]
    fn amounts_read_well() {
        for (bytes, says) in [
            (0, "0 KiB"),
            (1 << 10, "1 KiB"),
            (3 << 19, "1.5 MiB"),
            (20 << 20, "20 MiB"),
            ((33 << 30) + (1 << 29), "34 GiB"),
        ] {
            assert_eq!(memory_text(bytes), says);
        }
    }

    /// A machine with these files.
    pub(crate) fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (file, content) in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        root
    }
}
