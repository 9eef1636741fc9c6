//! Results that cannot be written.

use std::process::Command;

use testing::program::words;
use testing::program::{Program, sweep};

struct Tmpfs(tempfile::TempDir);

impl Tmpfs {
    fn new(size: &str) -> Tmpfs {
        let folder = tempfile::tempdir().unwrap();
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", size, "tmpfs"])
            .arg(folder.path())
            .status();
        assert!(status.unwrap().success());
        Tmpfs(folder)
    }

    fn path(&self) -> &str {
        self.0.path().to_str().unwrap()
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_does_not_stop_the_sweep() {
    let disk = Tmpfs::new("size=4k");
    std::fs::write(disk.0.path().join("full"), [0; 4096]).unwrap();
    let all = format!("-n 20 --warmup 0 -q 1,2 -s 64 --out {}", disk.path());
    let ended = Program::bare(&words(&all))
        .wait()
        .exits(1)
        .says(&["No space left on device", "measuring goes on"]);
    for row in ["  1 ", "  2 "] {
        let is_shown = ended.stdout.lines().any(|line| line.starts_with(row));
        assert!(is_shown, "the table is shown: {}", ended.stdout);
    }
    let left: Vec<_> = std::fs::read_dir(disk.0.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "no half of a file stays: {left:?}");
}

#[test]
fn a_folder_that_cannot_be_written_is_found_out_before() {
    let disk = Tmpfs::new("ro");
    let ended = Program::bare(&["-D", "60s", "--out", disk.path()])
        .wait()
        .exits(2)
        .says(&["--out: cannot write", "that file system is read-only"]);
    assert!(ended.stdout.is_empty());
    let extra = format!("{}/x.json", disk.path());
    sweep(&["-D", "60s", "--json", &extra])
        .exits(2)
        .says(&[&extra]);
}

#[test]
fn inodes_that_are_used_up_are_told_as_such() {
    let disk = Tmpfs::new("size=4m,nr_inodes=2");
    std::fs::write(disk.0.path().join("last"), "").unwrap();
    Program::bare(&["-D", "60s", "--out", disk.path()])
        .wait()
        .exits(1)
        .says(&["No space left on device", "no inode left (`df -i`)"]);
}
