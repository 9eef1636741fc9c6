//! Results that cannot be written: on file systems that only root can make.

use testing::program::{Program, sweep, words};

use crate::session::Disk;

#[test]
fn a_full_disk_does_not_stop_the_sweep() {
    let disk = Disk::with("size=4k");
    std::fs::write(disk.path().join("full"), [0; 4096]).unwrap();
    let line = format!("-n 20 --warmup 0 -q 1,2 -s 64 --out {}", disk.name());
    let ended = Program::bare(&words(&line)).wait().exits(1);
    let ended = ended.says(&["No space left on device", "measuring goes on"]);
    for row in ["  1 ", "  2 "] {
        let is_shown = ended.stdout.lines().any(|line| line.starts_with(row));
        assert!(is_shown, "the table is shown: {}", ended.stdout);
    }
    assert_eq!(disk.files(), ["full"], "no half of a file stays");
}

#[test]
fn a_folder_that_cannot_be_written_is_found_out_before() {
    let disk = Disk::with("ro");
    let ended = Program::bare(&["-D", "10m", "--out", disk.name()]).wait();
    let ended = ended.exits(2);
    let ended = ended.says(&["--out: cannot write", "that file system is read-only"]);
    assert!(ended.stdout.is_empty());
    let extra = format!("{}/x.json", disk.name());
    let ended = sweep(&["-D", "10m", "--json", &extra]).exits(2);
    ended.says(&[&extra]);
}

#[test]
fn inodes_that_are_used_up_are_told_as_such() {
    let disk = Disk::with("size=4m,nr_inodes=2");
    std::fs::write(disk.path().join("last"), "").unwrap();
    let ended = Program::bare(&["-D", "10m", "--out", disk.name()]).wait();
    let ended = ended.exits(1);
    ended.says(&["No space left on device", "no inode left (`df -i`)"]);
}
