//! The facts of this machine that a result file's head tells, from `/proc`, `/sys` and `/etc`, and what this process can
//! still have of it: memory and open files. What the system does not show (as in some containers) is left out, never
//! guessed.

use std::fs;
use std::path::{Path, PathBuf};

use results::model::Host;
use rustix::process::{Resource, getrlimit, setrlimit};

/// The facts of this machine; the device is left to who opened it ([`crate::device::read`]).
pub fn read() -> Host {
    read_below(Path::new("/"))
}

/// As [`read`], with `/proc`, `/sys` and `/etc` below `root`. Kernel and host name are the running ones.
pub fn read_below(root: &Path) -> Host {
    let names = rustix::system::uname();
    let cpuinfo = text(&root.join("proc/cpuinfo")).unwrap_or_default();
    let sys = root.join("sys/devices/system");
    Host {
        hostname: names.nodename().to_string_lossy().into_owned(),
        kernel: names.release().to_string_lossy().into_owned(),
        os: text(&root.join("etc/os-release"))
            .or_else(|| text(&root.join("usr/lib/os-release")))
            .and_then(|text| pretty_name(&text)),
        cpu_model: cpu_model(&cpuinfo),
        cores: cores(&cpuinfo),
        numa_nodes: numa_nodes(&sys.join("node")),
        governor: text(&sys.join("cpu/cpu0/cpufreq/scaling_governor")),
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

fn cpu_model(cpuinfo: &str) -> Option<String> {
    // ARM has no name there, only the implementer's numbers.
    field(cpuinfo, "model name").or_else(|| {
        let (implementer, part) = (field(cpuinfo, "CPU implementer")?, field(cpuinfo, "CPU part")?);
        Some(format!("ARM implementer {implementer} part {part}"))
    })
}

fn field(cpuinfo: &str, name: &str) -> Option<String> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// Logical CPUs that are listed; `None` where none is, as in sandboxes that hide the file.
fn cores(cpuinfo: &str) -> Option<u32> {
    let count = cpuinfo
        .lines()
        .filter(|line| line.split_once(':').is_some_and(|(key, _)| key.trim() == "processor"))
        .count() as u32;
    (count > 0).then_some(count)
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
    let groups = memory_left(root)
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

/// The names of the files of one version of control groups (cgroups(7)). A group has no more memory than any of those that
/// it is in.
struct Files {
    is_v2: bool,
    limit: &'static str,
    usage: &'static str,
    /// Lines of `memory.stat` that tell what can be taken back: file pages.
    reclaimable: [&'static str; 2],
}

const V1: Files = Files {
    is_v2: false,
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    reclaimable: ["total_active_file", "total_inactive_file"],
};

const V2: Files = Files {
    is_v2: true,
    limit: "memory.max",
    usage: "memory.current",
    reclaimable: ["active_file", "inactive_file"],
};

/// Where a hierarchy of groups is mounted, and which group is at that place.
struct Mount {
    point: PathBuf,
    root: PathBuf,
    files: &'static Files,
}

/// The group of this process, or around it, that leaves the least, and how much, in bytes; with the kernel's files below
/// `root`. `None` where no group has a limit.
fn memory_left(root: &Path) -> Option<(String, u64)> {
    let mounts = fs::read_to_string(root.join("proc/self/mountinfo")).ok()?;
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    mounts
        .lines()
        .filter_map(Mount::parse)
        .filter_map(|mount| {
            let group = groups.lines().find_map(|line| mount.group_of(line))?;
            mount.least(root, &group)
        })
        .min_by_key(|(_, bytes)| *bytes)
}

impl Mount {
    /// A line of `mountinfo` (proc_pid_mountinfo(5)), if it is of a hierarchy that counts memory.
    fn parse(line: &str) -> Option<Mount> {
        let (place, kind) = line.split_once(" - ")?;
        let mut fields = place.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let mut words = kind.split(' ');
        let files = match words.next()? {
            "cgroup2" => &V2,
            "cgroup" if words.nth(1)?.split(',').any(|option| option == "memory") => &V1,
            _ => return None,
        };
        Some(Mount { point: point.into(), root: root.into(), files })
    }

    /// The group that a line of `/proc/self/cgroup` names, if it is of this hierarchy.
    fn group_of(&self, line: &str) -> Option<PathBuf> {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, group) = (fields.next()?, fields.next()?);
        let is_mine = if self.files.is_v2 {
            controllers.is_empty()
        } else {
            controllers.split(',').any(|name| name == "memory")
        };
        is_mine.then(|| group.into())
    }

    /// The group that leaves the least, from `group` up to the one that is mounted.
    fn least(&self, root: &Path, group: &Path) -> Option<(String, u64)> {
        // Of a group outside of what is mounted here only that can be asked.
        let within = group.strip_prefix(&self.root).unwrap_or(Path::new(""));
        let top = root.join(self.point.strip_prefix("/").ok()?);
        within
            .ancestors()
            .filter_map(|path| {
                // `join` with nothing would add a slash.
                let ancestor: PathBuf = self.root.iter().chain(path).collect();
                Some((ancestor.display().to_string(), self.left(&top.join(path))?))
            })
            .min_by_key(|(_, bytes)| *bytes)
    }

    /// What the group in `folder` leaves; `None` where it has no limit.
    fn left(&self, folder: &Path) -> Option<u64> {
        // Version 2 says `max` for none, which is no number.
        let limit = number(&folder.join(self.files.limit))?;
        let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
        let reclaimable: u64 = stat
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter(|(name, _)| self.files.reclaimable.contains(name))
            .filter_map(|(_, bytes)| bytes.parse::<u64>().ok())
            .sum();
        let used = number(&folder.join(self.files.usage))?.saturating_sub(reclaimable);
        Some(limit.saturating_sub(used))
    }
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
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
        assert_eq!(
            cpu_model("CPU implementer : 0x41\nCPU part : 0xd0c\n").unwrap(),
            "ARM implementer 0x41 part 0xd0c"
        );
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

    /// What is left where these are the groups of this process, and the mounts.
    fn left(groups: &str, mounts: &str, files: &[(&str, &str)]) -> Option<(String, u64)> {
        let own = [("proc/self/cgroup", groups), ("proc/self/mountinfo", mounts)];
        memory_left(machine(&[&own, files].concat()).path())
    }

    const V2_MOUNT: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
    const V1_MOUNTS: &str = "31 23 0:27 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu\n\
                             32 23 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

    #[test]
    fn the_ancestor_with_the_least_left_counts() {
        let files = [
            ("sys/fs/cgroup/a/memory.max", "1000\n"),
            ("sys/fs/cgroup/a/memory.current", "900\n"),
            ("sys/fs/cgroup/a/b/memory.max", "5000\n"),
            ("sys/fs/cgroup/a/b/memory.current", "800\n"),
            ("sys/fs/cgroup/a/b/c/memory.max", "max\n"),
            ("sys/fs/cgroup/a/b/c/memory.current", "700\n"),
        ];
        assert_eq!(left("0::/a/b/c\n", V2_MOUNT, &files), Some(("/a".into(), 100)));
    }

    #[test]
    fn file_pages_can_be_had_back() {
        let files = [
            ("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1000\n"),
            ("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "900\n"),
            (
                "sys/fs/cgroup/memory/job/memory.stat",
                "cache 1\nactive_file 1\ntotal_active_file 100\ntotal_inactive_file 300\n",
            ),
        ];
        let groups = "3:cpu:/x\n5:memory:/job\n0::/\n";
        assert_eq!(left(groups, V1_MOUNTS, &files), Some(("/job".into(), 500)));
    }

    #[test]
    fn a_container_sees_its_own_group_at_the_mount() {
        let mount = "32 23 0:28 /docker/7 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        let files = [
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "10\n"),
        ];
        assert_eq!(left("5:memory:/docker/7\n", mount, &files), Some(("/docker/7".into(), 990)));
    }

    #[test]
    fn without_limits_or_groups_nothing_is_limited() {
        assert_eq!(left("0::/\n", V2_MOUNT, &[]), None);
        assert_eq!(memory_left(machine(&[]).path()), None);
    }
}
