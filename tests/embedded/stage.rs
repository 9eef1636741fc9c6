//! Two folders and a server between them: where files are sent.

use std::fs;
use std::path::PathBuf;
use std::process::Child;

use crate::program::{Ended, Program, Server, wait_for};

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
            server: Server::start(&format!("-d soft0 --receive {folder} {words}")),
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

    pub fn program(&self, files: &[&PathBuf], words: &str) -> Program {
        let mut program = Program::new("send");
        program.command.args(files);
        program
            .command
            .arg(format!("127.0.0.1:{}", self.server.port));
        program.command.args(["-d", "soft0"]);
        if !words.contains("--timeout") {
            program.command.args(["--timeout", "18"]);
        }
        program.command.args(words.split_whitespace());
        program
    }

    pub fn send(&self, files: &[&PathBuf], words: &str) -> Ended {
        self.program(files, words).run()
    }

    /// Whether the server has a file open in its folder; it has no name before it is whole.
    fn holds_a_file(&self) -> bool {
        let open = fs::read_dir(format!("/proc/{}/fd", self.server.pid())).unwrap();
        // One may be closed meanwhile.
        let mut paths = open.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
        paths.any(|path| path.parent() == Some(self.target.path()))
    }

    /// A transfer that is under way.
    pub fn slow(&self) -> (Child, Program) {
        let file = self.hollow("slow", 256 << 20);
        let sessions_before = self.server.times_said("session begins");
        let mut program = self.program(&[&file], SLOW);
        let child = program.spawn();
        self.server
            .has_said_times("session begins", sessions_before + 1);
        wait_for(
            || self.holds_a_file().then_some(()),
            || "nothing is received".to_owned(),
        );
        (child, program)
    }

    pub fn received(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(&self.target)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[track_caller]
    pub fn has(&self, path: &PathBuf) {
        let received = self.target.path().join(path.file_name().unwrap());
        assert!(
            fs::read(received).unwrap() == fs::read(path).unwrap(),
            "{path:?} differs"
        );
    }
}
