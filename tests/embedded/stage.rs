//! Two folders and a server between them: where files are sent.

use std::fs;
use std::path::PathBuf;

use testing::process::{Call, Ended, Program, STEP};
use testing::program::{Server, call};
use testing::wait::wait_until;

/// Slow enough to be in the midst of it for a long time.
const SLOW: &str = "--faults drop=5%,seed=1";

/// A source folder, a folder to receive into, and a server for it.
pub struct Stage {
    pub source: tempfile::TempDir,
    pub target: tempfile::TempDir,
    pub server: Server,
}

impl Stage {
    pub fn new(words: &str) -> Stage {
        let target = tempfile::tempdir().unwrap();
        let folder = target.path().display();
        Stage {
            source: tempfile::tempdir().unwrap(),
            server: Server::embedded(&format!("-d soft0 --receive {folder} {words}")),
            target,
        }
    }

    /// A file of reproducible bytes.
    pub fn file(&self, name: &str, size: usize) -> PathBuf {
        let path = self.source.path().join(name);
        let mut random = fastrand::Rng::with_seed(size as u64);
        fs::write(&path, (0..size).map(|_| random.u8(..)).collect::<Vec<_>>()).unwrap();
        path
    }

    /// A file that takes no room here.
    pub fn hollow(&self, name: &str, size: u64) -> PathBuf {
        let path = self.source.path().join(name);
        fs::File::create(&path).unwrap().set_len(size).unwrap();
        path
    }

    /// A transfer.
    pub fn call(&self, files: &[&PathBuf], words: &str) -> Call {
        let timeout = if words.contains("--timeout") { "" } else { "--timeout 18" };
        let rest = format!("{} -d soft0 {timeout} {words}", self.server.name);
        let send = files.iter().fold(call("send"), Call::arg);
        rest.split_whitespace().fold(send, Call::arg)
    }

    pub fn send(&self, files: &[&PathBuf], words: &str) -> Ended {
        self.call(files, words).run()
    }

    /// Whether the server has a file open in its folder; it has no name before it is whole.
    fn holds_a_file(&self) -> bool {
        let open = fs::read_dir(format!("/proc/{}/fd", self.server.program.pid())).unwrap();
        // One may be closed meanwhile.
        let mut paths = open.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
        paths.any(|path| path.parent() == Some(self.target.path()))
    }

    /// A transfer that is under way.
    pub fn slow(&self) -> Program {
        let file = self.hollow("slow", 256 << 20);
        let program = self.call(&[&file], SLOW).start();
        wait_until("a file under way", STEP, || self.holds_a_file());
        program
    }

    pub fn received(&self) -> Vec<String> {
        names(&self.target)
    }

    #[track_caller]
    pub fn has(&self, path: &PathBuf) {
        let received = self.target.path().join(path.file_name().unwrap());
        assert!(fs::read(received).unwrap() == fs::read(path).unwrap(), "{path:?} differs");
    }
}

/// Names in a folder, in order.
pub fn names(folder: &tempfile::TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
