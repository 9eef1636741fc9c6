//! What these tests share: sweeps that must be whole, what the kernel holds for programs, and small file systems.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use results::model::ResultFile;
use testing::process::run;
use testing::program::Server;
use testing::sessions::Way;
use testing::wait::{wait_or_tell, wait_until};

/// What destroying hundreds of QPs takes on an emulated CPU.
const SOON: Duration = Duration::from_secs(5);

/// How clients reach a server by a proxy.
pub fn way(server: &Server) -> Way<'static> {
    Way { proxy: "192.0.2.1", server: server.name.parse().unwrap() }
}

/// The result of a sweep against the server, of which all cases are complete and right.
#[track_caller]
pub fn whole(server: &Server, line: &str, cases: usize) -> ResultFile {
    server.call(line).is_whole(cases).result()
}

/// What the kernel holds on a device, by kind: `pd`, `cq`, `qp`, `cm_id`, `mr`, `ctx`, `srq`.
pub fn held(device: &str) -> BTreeMap<String, u64> {
    let shown = run(&format!("rdma resource show {device}"));
    // Before the pairs are the device's number and name.
    let words: Vec<&str> = shown.split_whitespace().skip(2).collect();
    words.chunks_exact(2).map(|pair| (pair[0].to_owned(), pair[1].parse().unwrap())).collect()
}

/// Waits until it holds more of a kind than `before`, by this many.
pub fn await_more(before: &BTreeMap<String, u64>, device: &str, kind: &str, more: u64) {
    let what = format!("{more} more of {kind} on {device}");
    wait_until(&what, SOON, || held(device)[kind] >= before[kind] + more);
}

/// Waits until both devices hold what they held before.
pub fn await_freed(before: &[BTreeMap<String, u64>; 2]) {
    wait_or_tell(
        SOON,
        || (both_hold() == *before).then_some(()),
        || format!("{:?} to be {before:?} again", both_hold()),
    );
}

/// What it holds on both devices.
pub fn both_hold() -> [BTreeMap<String, u64>; 2] {
    ["rxe0", "rxe1"].map(held)
}

/// A small file system, until dropped.
pub struct Disk(tempfile::TempDir);

impl Disk {
    /// With these options of a tmpfs.
    pub fn with(options: &str) -> Disk {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().display();
        run(&format!("mount -t tmpfs -o {options} tmpfs {place}"));
        Disk(folder)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn name(&self) -> &str {
        self.path().to_str().unwrap()
    }

    pub fn files(&self) -> Vec<String> {
        names(self.path())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

/// The names of the files in a folder.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    entries.map(|entry| name(entry).into_string().unwrap()).collect()
}
