//! Which of perftest's programs does what a case does, and where it is installed.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::child::{Child, Launch};
use plan::Case;
use settings::{Op, Ordering, names};

/// How long a program may take to tell its version.
const VERSION_LIMIT: Duration = Duration::from_secs(2);

names! {
    /// A program of perftest that can be compared with; no other is ever started.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    #[allow(missing_docs)]
    Program {
        IbSendBw = "ib_send_bw",
        IbWriteBw = "ib_write_bw",
        IbReadBw = "ib_read_bw",
        IbSendLat = "ib_send_lat",
        IbWriteLat = "ib_write_lat",
        IbReadLat = "ib_read_lat",
        IbAtomicBw = "ib_atomic_bw",
        IbAtomicLat = "ib_atomic_lat",
    }
}

/// A program that is not installed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no {program} in PATH")]
pub struct MissingProgram {
    pub program: Program,
}

impl MissingProgram {
    pub fn hint(&self) -> String {
        "it is in the package perftest: apt-get install perftest (or dnf, zypper, pacman)".into()
    }
}

impl Program {
    /// The program for a case: `_lat` for a ping-pong, else `_bw`; `None` where none measures the operation.
    pub fn measuring(case: &Case) -> Option<Program> {
        Program::ALL.iter().copied().find(|program| {
            program.ops().contains(&case.op.transfer()) && program.is_latency() == case.ping_pong
        })
    }

    /// The program for a case that perftest can run; `ib_send_bw` for any other.
    pub fn for_case(case: &Case) -> Program {
        Program::measuring(case).unwrap_or(Program::IbSendBw)
    }

    /// The program with this name.
    pub fn named(name: &str) -> Option<Program> {
        Program::ALL.iter().copied().find(|it| it.name() == name)
    }

    /// The operation that it measures unless another is asked for.
    pub fn op(self) -> Op {
        self.ops()[0]
    }

    /// The operations that it measures.
    fn ops(self) -> &'static [Op] {
        match self {
            Program::IbSendBw | Program::IbSendLat => &[Op::Send],
            Program::IbWriteBw | Program::IbWriteLat => &[Op::Write],
            Program::IbReadBw | Program::IbReadLat => &[Op::Read],
            Program::IbAtomicBw | Program::IbAtomicLat => &[Op::FetchAdd, Op::CompareSwap],
        }
    }

    pub fn is_latency(self) -> bool {
        matches!(
            self,
            Program::IbSendLat | Program::IbWriteLat | Program::IbReadLat | Program::IbAtomicLat
        )
    }

    /// The order of the adapter's writes in its runs of a case: only the bandwidth programs have an option.
    pub(super) fn ordering(self, case: &Case) -> Ordering {
        match self {
            Program::IbWriteLat => Ordering::Strict,
            _ if self.is_latency() => Ordering::Relaxed,
            _ => case.ordering,
        }
    }

    /// Where it is, by `PATH`.
    pub fn find(self) -> Result<PathBuf, MissingProgram> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path)
            .map(|folder| folder.join(self.name()))
            .find(|file| is_executable(file))
            .ok_or(MissingProgram { program: self })
    }

    /// The version that the program at `path` tells, such as `6.06`; `None` when it does not.
    pub fn version(path: &Path) -> Option<String> {
        let mut child = Child::start(&Launch {
            path: path.to_owned(),
            arguments: vec!["--version".into()],
            ..Launch::default()
        })
        .ok()?;
        let deadline = Instant::now() + VERSION_LIMIT;
        while !child.has_ended() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        // Its exit status is an error's although it is none.
        version_in(&child.finish().stdout)
    }
}

fn version_in(text: &str) -> Option<String> {
    let version = text.lines().find_map(|line| line.trim().strip_prefix("Version:"))?.trim();
    let sound = version.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+'));
    (sound && (1..=20).contains(&version.len())).then(|| version.to_owned())
}

fn is_executable(file: &Path) -> bool {
    std::fs::metadata(file)
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::super::arguments::tests::case;
    use super::*;

    #[test]
    fn names_on_the_wire_are_the_files() {
        for &program in Program::ALL {
            let text = serde_json::to_value(program).unwrap();
            assert_eq!(text, program.name());
        }
        assert!(serde_json::from_str::<Program>("\"ib_send_xx\"").is_err());
        assert!(serde_json::from_str::<Program>("\"/bin/sh\"").is_err());
    }

    #[test]
    fn a_ping_pong_is_for_a_latency_program() {
        let mut case = case();
        case.tx_depth = 1;
        assert_eq!(Program::for_case(&case), Program::IbSendBw);
        case.ping_pong = true;
        assert_eq!(Program::for_case(&case), Program::IbSendLat);
        case.op = Op::Read.into();
        assert_eq!(Program::for_case(&case), Program::IbReadLat);
        case.op = Op::SendImm.into();
        assert_eq!(Program::measuring(&case), None);
    }

    #[test]
    fn only_what_looks_like_a_version_is_one() {
        assert_eq!(version_in("Version: 6.06\n").as_deref(), Some("6.06"));
        let text = "x\n Version: 26.01.5 \n";
        assert_eq!(version_in(text).as_deref(), Some("26.01.5"));
        let terminal = "Version: \u{1b}[31m";
        for text in ["", "6.06", "Version:", terminal, "Version: a b"] {
            assert_eq!(version_in(text), None, "{text:?}");
        }
    }
}
