//! The control groups of this process (cgroups(7)), of both versions: the memory that they leave, and the CPU time that they
//! allow. A group has no more than any of those that it is in.

use std::fs;
use std::path::{Path, PathBuf};

/// A group that this process is in.
struct Group {
    /// As the kernel names it: `/docker/7`.
    name: String,
    folder: PathBuf,
    is_v2: bool,
}

/// Where a hierarchy of groups is mounted, and which group is at that place.
struct Mount {
    point: PathBuf,
    root: PathBuf,
    is_v2: bool,
}

/// The groups of this process that a controller (`memory`, `cpu`) may limit, each before those around it; with the kernel's files
/// below `root`.
fn groups(root: &Path, controller: &str) -> Vec<Group> {
    let own = |file| fs::read_to_string(root.join("proc/self").join(file)).unwrap_or_default();
    let (mounts, memberships) = (own("mountinfo"), own("cgroup"));
    mounts
        .lines()
        .filter_map(|line| Mount::parse(line, controller))
        .filter_map(|mount| {
            let innermost =
                memberships.lines().find_map(|line| mount.group_of(line, controller))?;
            mount.upwards(root, &innermost)
        })
        .flatten()
        .collect()
}

impl Mount {
    /// A line of `mountinfo` (proc_pid_mountinfo(5)), if it is of a hierarchy that has the controller.
    fn parse(line: &str, controller: &str) -> Option<Mount> {
        let (place, kind) = line.split_once(" - ")?;
        let mut fields = place.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let mut words = kind.split(' ');
        let is_v2 = match words.next()? {
            "cgroup2" => true,
            "cgroup" if words.nth(1)?.split(',').any(|option| option == controller) => false,
            _ => return None,
        };
        Some(Mount { point: point.into(), root: root.into(), is_v2 })
    }

    /// The group that a line of `/proc/self/cgroup` names, if it is of this hierarchy.
    fn group_of(&self, line: &str, controller: &str) -> Option<PathBuf> {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, group) = (fields.next()?, fields.next()?);
        let is_mine = if self.is_v2 {
            controllers.is_empty()
        } else {
            controllers.split(',').any(|name| name == controller)
        };
        is_mine.then(|| group.into())
    }

    /// From `group` up to the one that is mounted.
    fn upwards(&self, root: &Path, group: &Path) -> Option<Vec<Group>> {
        // Of a group outside of what is mounted here only that can be asked.
        let within = group.strip_prefix(&self.root).unwrap_or(Path::new(""));
        let top = root.join(self.point.strip_prefix("/").ok()?);
        let groups = within.ancestors().map(|path| Group {
            // `join` with nothing would add a slash.
            name: self.root.iter().chain(path).collect::<PathBuf>().display().to_string(),
            folder: top.join(path),
            is_v2: self.is_v2,
        });
        Some(groups.collect())
    }
}

/// The group of this process, or around it, that leaves the least memory, and how much, in bytes; with the kernel's files below
/// `root`. `None` where no group has a limit.
pub(crate) fn memory_left(root: &Path) -> Option<(String, u64)> {
    groups(root, "memory")
        .into_iter()
        .filter_map(|group| group.memory_left().map(|bytes| (group.name, bytes)))
        .min_by_key(|(_, bytes)| *bytes)
}

/// A limit of CPU time.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuQuota {
    pub group: String,
    /// CPUs that may compute at once, in the mean over a period.
    pub cpus: f64,
}

/// The smallest quota of CPU time that this process has, with the kernel's files below `root`; `None` without one.
pub fn cpu_quota(root: &Path) -> Option<CpuQuota> {
    groups(root, "cpu")
        .into_iter()
        .filter_map(|group| Some(CpuQuota { cpus: group.cpus()?, group: group.name }))
        .min_by(|one, other| one.cpus.total_cmp(&other.cpus))
}

/// For how long quotas have kept threads of the groups of this process from CPUs, summed over the CPUs, since the groups were made;
/// with the kernel's files below `root`. `None` without a quota.
pub fn throttled_seconds(root: &Path) -> Option<f64> {
    groups(root, "cpu")
        .iter()
        .filter(|group| group.cpus().is_some())
        .filter_map(Group::throttled_seconds)
        .reduce(|one, other| one + other)
}

impl Group {
    fn text(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.folder.join(file)).ok()
    }

    fn number<T: std::str::FromStr>(&self, file: &str) -> Option<T> {
        self.text(file)?.trim().parse().ok()
    }

    /// What it leaves; `None` where it has no limit.
    fn memory_left(&self) -> Option<u64> {
        let [limit, usage, file_pages @ ..] = if self.is_v2 {
            ["memory.max", "memory.current", "active_file", "inactive_file"]
        } else {
            [
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
                "total_active_file",
                "total_inactive_file",
            ]
        };
        // Version 2 says `max` for none, which is no number.
        let limit_bytes: u64 = self.number(limit)?;
        // What can be taken back.
        let reclaimable_bytes: u64 = self
            .text("memory.stat")
            .unwrap_or_default()
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter(|(name, _)| file_pages.contains(name))
            .filter_map(|(_, bytes)| bytes.parse::<u64>().ok())
            .sum();
        let used_bytes = self.number::<u64>(usage)?.saturating_sub(reclaimable_bytes);
        Some(limit_bytes.saturating_sub(used_bytes))
    }

    /// The CPUs of its quota; `None` without one, which version 2 writes as `max` and version 1 as -1.
    fn cpus(&self) -> Option<f64> {
        let [quota_us, period_us]: [f64; 2] = if self.is_v2 {
            let limit = self.text("cpu.max")?;
            let (quota, period) = limit.trim().split_once(' ')?;
            [quota.parse().ok()?, period.parse().ok()?]
        } else {
            [self.number("cpu.cfs_quota_us")?, self.number("cpu.cfs_period_us")?]
        };
        (quota_us > 0.0 && period_us > 0.0).then_some(quota_us / period_us)
    }

    fn throttled_seconds(&self) -> Option<f64> {
        let (name, unit) =
            if self.is_v2 { ("throttled_usec", 1e-6) } else { ("throttled_time", 1e-9) };
        let stat = self.text("cpu.stat")?;
        let value = stat.lines().find_map(|line| line.strip_prefix(name))?;
        Some(value.trim().parse::<f64>().ok()? * unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tests::machine;

    /// A machine where these are the groups of this process, and the mounts.
    fn with(memberships: &str, mounts: &str, files: &[(&str, &str)]) -> tempfile::TempDir {
        let own = [("proc/self/cgroup", memberships), ("proc/self/mountinfo", mounts)];
        machine(&[&own, files].concat())
    }

    fn left(memberships: &str, mounts: &str, files: &[(&str, &str)]) -> Option<(String, u64)> {
        memory_left(with(memberships, mounts, files).path())
    }

    const V2_MOUNT: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
    const V1_MOUNTS: &str = "31 23 0:27 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
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
        let memberships = "3:cpu:/x\n5:memory:/job\n0::/\n";
        assert_eq!(left(memberships, V1_MOUNTS, &files), Some(("/job".into(), 500)));
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
        let bare = machine(&[]);
        assert_eq!(memory_left(bare.path()), None);
        assert_eq!((cpu_quota(bare.path()), throttled_seconds(bare.path())), (None, None));
    }

    #[test]
    fn the_smallest_quota_of_cpu_time_and_all_waits_count_in_both_versions() {
        let v2 = [
            ("sys/fs/cgroup/a/cpu.max", "150000 100000\n"),
            ("sys/fs/cgroup/a/cpu.stat", "usage_usec 9\nnr_throttled 4\nthrottled_usec 250000\n"),
            ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/a/b/cpu.stat", "throttled_usec 7\n"),
        ];
        let v1 = [
            ("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "150000\n"),
            ("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu/a/cpu.stat", "nr_throttled 4\nthrottled_time 250000000\n"),
            ("sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n"),
        ];
        for (memberships, mounts, files) in
            [("0::/a/b\n", V2_MOUNT, &v2[..]), ("4:cpu,cpuacct:/a/b\n0::/\n", V1_MOUNTS, &v1)]
        {
            let machine = with(memberships, mounts, files);
            let quota = CpuQuota { group: "/a".into(), cpus: 1.5 };
            assert_eq!(cpu_quota(machine.path()), Some(quota), "{memberships}");
            assert_eq!(throttled_seconds(machine.path()), Some(0.25), "{memberships}");
        }
    }
}
