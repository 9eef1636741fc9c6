//! The facts of this machine that a result file's head tells, from `/proc`, `/sys` and `/etc`. What the system does not
//! show (as in some containers) is left out, never guessed.

use std::fs;
use std::path::Path;

use results::model::Host;

/// The facts of this machine; the device is left to who opened it ([`super::device::read`]).
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
pub(super) fn text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let trimmed = text.trim();
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

fn cores(cpuinfo: &str) -> u32 {
    cpuinfo
        .lines()
        .filter(|line| line.split_once(':').is_some_and(|(key, _)| key.trim() == "processor"))
        .count() as u32
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::tests::machine;

    #[test]
    fn this_machine_has_a_kernel_and_a_core() {
        let host = read();
        assert!(!host.kernel.is_empty() && !host.hostname.is_empty());
        assert!(host.cores >= 1);
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
        assert_eq!((host.cores, host.numa_nodes), (2, Some(2)));
        assert_eq!(host.governor.as_deref(), Some("performance"));
        assert_eq!(host.rdma_core.as_deref(), Some("44.0"));
    }

    #[test]
    fn what_is_not_shown_is_left_out() {
        let host = read_below(machine(&[]).path());
        assert_eq!((host.os, host.cpu_model, host.numa_nodes), (None, None, None));
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
}
