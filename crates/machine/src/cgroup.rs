//! The memory that a process' control groups (cgroups(7)) leave it, of version 1 and 2. A group has no more than any of
//! those that it is in.

use std::fs;
use std::path::{Path, PathBuf};

/// The names of the files of one version.
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
pub(super) fn memory_left(root: &Path) -> Option<(String, u64)> {
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
            .filter_map(|within| {
                // `join` with nothing would add a slash.
                let group: PathBuf = self.root.iter().chain(within).collect();
                Some((group.display().to_string(), self.left(&top.join(within))?))
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
pub(crate) mod tests {
    use super::*;

    /// A machine with these files.
    pub(crate) fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = root.path().join(path);
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
        let left = left("0::/a/b/c\n", V2_MOUNT, &files);
        assert_eq!(left, Some(("/a".into(), 100)));
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
        let left = left("3:cpu:/x\n5:memory:/job\n0::/\n", V1_MOUNTS, &files);
        assert_eq!(left, Some(("/job".into(), 500)));
    }

    #[test]
    fn a_container_sees_its_own_group_at_the_mount() {
        let mount = "32 23 0:28 /docker/7 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        let files = [
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "10\n"),
        ];
        let left = left("5:memory:/docker/7\n", mount, &files);
        assert_eq!(left, Some(("/docker/7".into(), 990)));
    }

    #[test]
    fn without_limits_or_groups_nothing_is_limited() {
        assert_eq!(left("0::/\n", V2_MOUNT, &[]), None);
        assert_eq!(memory_left(machine(&[]).path()), None);
    }
}
