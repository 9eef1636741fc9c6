//! The sources of facts: files below a root, and programs and the kernel's netlink for facts that no file has.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::Access;

use machine::device::Bridging;
use results::text::natural;

/// Runs a program and returns what it printed; `None` when it is not installed or failed.
type Tools = Box<dyn Fn(&str, &[&str]) -> Option<String> + Send + Sync>;

/// What the kernel tells of PFC and DSCP at an interface.
type Bridgings = Box<dyn Fn(&str) -> Option<Bridging> + Send + Sync>;

/// A machine to examine: this one, or a tree of files for tests.
pub struct Machine {
    root: PathBuf,
    tools: Tools,
    bridgings: Bridgings,
}

/// The result of reading a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Its text without surrounding white space.
    Text(String),
    /// The file does not exist.
    Absent,
    /// This user may not read it.
    Denied,
    /// Reading failed for another reason, as with some attributes that a device does not support.
    Failed,
}

impl Machine {
    pub fn this() -> Machine {
        Machine {
            root: PathBuf::from("/"),
            tools: Box::new(run),
            bridgings: Box::new(Bridging::read),
        }
    }

    /// A tree of files in place of a machine, without programs.
    pub fn below(root: impl Into<PathBuf>) -> Machine {
        Machine { root: root.into(), tools: Box::new(|_, _| None), bridgings: Box::new(|_| None) }
    }

    /// A tree of files, and `tools` in place of programs.
    #[must_use]
    pub fn with_tools(
        mut self,
        tools: impl Fn(&str, &[&str]) -> Option<String> + Send + Sync + 'static,
    ) -> Machine {
        self.tools = Box::new(tools);
        self
    }

    /// This instead of what the kernel tells of an interface.
    #[must_use]
    pub fn with_bridging(mut self, bridging: Bridging) -> Machine {
        self.bridgings = Box::new(move |_| Some(bridging.clone()));
        self
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A path of this machine, such as `sys/class/net`, without a slash before it.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join(path)
    }

    pub fn read(&self, path: impl AsRef<Path>) -> Reading {
        match fs::read(self.path(path)) {
            Ok(bytes) => Reading::Text(String::from_utf8_lossy(&bytes).trim().to_owned()),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Reading::Absent,
                io::ErrorKind::PermissionDenied => Reading::Denied,
                _ => Reading::Failed,
            },
        }
    }

    /// A file's bytes; `None` when it cannot be read.
    pub fn bytes(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        fs::read(self.path(path)).ok()
    }

    /// A file's text; `None` when it is empty or cannot be read.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        match self.read(path) {
            Reading::Text(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// The number in a file.
    pub fn number<T: std::str::FromStr>(&self, path: impl AsRef<Path>) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// Whether this process has a capability, by its number (capabilities(7), linux/capability.h).
    pub(super) fn has_capability(&self, number: u32) -> bool {
        self.text("proc/self/status")
            .and_then(|status| {
                let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
                u64::from_str_radix(line.trim(), 16).ok()
            })
            .is_some_and(|set| set >> number & 1 == 1)
    }

    /// Whether a file or folder exists.
    pub fn has(&self, path: impl AsRef<Path>) -> bool {
        self.path(path).exists()
    }

    /// The last component of a link's target.
    pub fn link_name(&self, path: impl AsRef<Path>) -> Option<String> {
        let target = fs::read_link(self.path(path)).ok()?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }

    /// Names in a folder, numbers in them counted as numbers: `mlx5_2` before `mlx5_10`.
    pub fn list(&self, path: impl AsRef<Path>) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.path(path))
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort_by(|one, other| natural(one).cmp(&natural(other)));
        names
    }

    /// Whether this user may read and write a file.
    pub fn may_use(&self, path: impl AsRef<Path>) -> bool {
        let both = Access::READ_OK | Access::WRITE_OK;
        rustix::fs::access(self.path(path), both).is_ok()
    }

    /// Numbers and names of the visible processes.
    pub fn processes(&self) -> Vec<(u32, String)> {
        self.list("proc")
            .iter()
            .filter_map(|name| name.parse().ok())
            .filter_map(|pid: u32| Some((pid, self.text(format!("proc/{pid}/comm"))?)))
            .collect()
    }

    /// PFC and DSCP of a network interface; `None` where its driver tells nothing of them.
    pub fn bridging(&self, netdev: &str) -> Option<Bridging> {
        (self.bridgings)(netdev)
    }

    /// Runs a program and returns its output.
    pub fn tool(&self, name: &str, arguments: &[&str]) -> Option<String> {
        (self.tools)(name, arguments)
    }
}

fn run(name: &str, arguments: &[&str]) -> Option<String> {
    // The folders of administrators' programs may be missing in a user's PATH.
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new(name)
        .args(arguments)
        .env("PATH", format!("{path}:/usr/sbin:/sbin"))
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then_some(text)
}

#[cfg(test)]
pub(crate) mod made_up {
    use super::*;

    /// A temporary tree of files.
    pub(crate) struct Tree {
        pub(crate) machine: Machine,
        folder: tempfile::TempDir,
    }

    impl Tree {
        pub(crate) fn new(files: &[(&str, &str)]) -> Tree {
            let folder = tempfile::tempdir().unwrap();
            let tree = Tree { machine: Machine::below(folder.path()), folder };
            tree.add("", files);
            tree
        }

        /// Adds files below a folder.
        pub(crate) fn add(&self, below: &str, files: &[(&str, &str)]) {
            for (path, text) in files {
                let path = self.folder.path().join(below).join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
        }

        /// Writes a file of these bytes.
        pub(crate) fn add_bytes(&self, path: &str, bytes: &[u8]) {
            let path = self.folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }

        /// Makes a link to a folder of the tree.
        pub(crate) fn link(&self, path: &str, target: &str) {
            let path = self.folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(self.folder.path().join(target), path).unwrap();
        }

        pub(crate) fn with_tools(
            mut self,
            tools: impl Fn(&str, &[&str]) -> Option<String> + Send + Sync + 'static,
        ) -> Tree {
            self.machine = Machine::below(self.folder.path()).with_tools(tools);
            self
        }

        pub(crate) fn with_bridging(mut self, bridging: Bridging) -> Tree {
            self.machine = self.machine.with_bridging(bridging);
            self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::made_up::Tree;
    use super::*;

    #[test]
    fn files_are_read_below_the_root() {
        let tree = Tree::new(&[
            ("sys/a", " 17\n"),
            ("sys/empty", "\n"),
            ("proc/7/comm", "irqbalance\n"),
            ("proc/self/limits", ""),
        ]);
        let machine = &tree.machine;
        assert_eq!(machine.read("sys/a"), Reading::Text("17".into()));
        assert_eq!(machine.number("sys/a"), Some(17));
        assert_eq!(machine.read("sys/b"), Reading::Absent);
        assert_eq!(machine.text("sys/empty"), None);
        assert_eq!(machine.read("sys"), Reading::Failed);
        assert_eq!(machine.processes(), [(7, "irqbalance".to_owned())]);
        assert_eq!(machine.tool("true", &[]), None);
        assert!(machine.may_use("sys/a") && !machine.may_use("sys/b"));
    }

    #[test]
    fn names_are_in_a_persons_order() {
        let tree = Tree::new(&[]);
        for file in ["mlx5_10", "mlx5_2", "mlx5_0", "bnxt_re0"] {
            tree.add("sys/class", &[(file, "")]);
        }
        let ordered = ["bnxt_re0", "mlx5_0", "mlx5_2", "mlx5_10"];
        assert_eq!(tree.machine.list("sys/class"), ordered);
    }

    #[test]
    fn a_tool_that_fails_tells_nothing() {
        let this = Machine::this();
        assert_eq!(this.tool("echo", &["x"]).as_deref(), Some("x\n"));
        assert_eq!(this.tool("false", &[]), None);
        assert_eq!(this.tool("there-is-no-such-program", &[]), None);
    }
}
