//! How much memory this process can still have: what the machine can give, or less where a control group has a limit.

use std::path::Path;

use rustix::process::{Resource, getrlimit};

use super::cgroup;

/// What can be had, and what limits it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Available {
    /// Without swapping, in bytes.
    pub bytes: u64,
    /// `this machine`, or the control group.
    pub by: String,
}

/// What can be had now; `None` where the kernel does not say.
pub fn available() -> Option<Available> {
    let of_process = getrlimit(Resource::As).current.and_then(|limit| {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        Some(Available {
            bytes: limit.saturating_sub(kib(&status, "VmSize:")?),
            by: "the limit of this process (`ulimit -v`)".to_owned(),
        })
    });
    below(Path::new("/")).into_iter().chain(of_process).min_by_key(|it| it.bytes)
}

/// The same with the kernel's files below `root`.
fn below(root: &Path) -> Option<Available> {
    let meminfo = std::fs::read_to_string(root.join("proc/meminfo")).ok();
    let machine = meminfo
        .as_deref()
        .and_then(|it| kib(it, "MemAvailable:"))
        .map(|bytes| Available { bytes, by: "this machine".to_owned() });
    let groups = cgroup::memory_left(root)
        .map(|(group, bytes)| Available { bytes, by: format!("the control group {group}") });
    machine.into_iter().chain(groups).min_by_key(|it| it.bytes)
}

/// Bytes of a line of proc_meminfo(5) or proc_pid_status(5); `MemAvailable` is what new allocations can have without swapping,
/// as the kernel estimates.
fn kib(text: &str, line: &str) -> Option<u64> {
    let line = text.lines().find_map(|it| it.strip_prefix(line))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// An amount for people, in the largest binary unit of which there is one: `1.5 GiB`, `20 MiB`, `0 KiB`.
pub fn text(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let (unit, name) =
        UNITS.into_iter().find(|(unit, _)| bytes >= *unit).unwrap_or((1 << 10, "KiB"));
    let amount = bytes as f64 / unit as f64;
    let decimals = usize::from(amount < 10.0 && !bytes.is_multiple_of(unit));
    format!("{amount:.decimals$} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::tests::machine;

    #[test]
    fn the_kernels_estimate_is_read() {
        let text = "MemTotal:       24552456 kB\nMemFree: 1 kB\nMemAvailable:   23000000 kB\n";
        let parse = |text| kib(text, "MemAvailable:");
        assert_eq!(parse(text), Some(23_000_000 * 1024));
        assert_eq!(parse("MemTotal: 1 kB\n"), None);
        assert_eq!(parse("MemAvailable: lots kB\n"), None);
        assert!(available().is_some_and(|it| it.bytes > 1 << 20));
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
        let below = |root: tempfile::TempDir| below(root.path()).unwrap();
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
            assert_eq!(text(bytes), says);
        }
    }
}
