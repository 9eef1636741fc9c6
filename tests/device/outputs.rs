//! Results that cannot be written: on file systems that only root can make.

use testing::program::{bare, sweep};

use crate::session::Disk;

#[test]
fn a_full_disk_does_not_stop_the_sweep() {
    let disk = Disk::with("size=4k");
    std::fs::write(disk.path().join("full"), [0; 4096]).unwrap();
    let line = format!("-n 20 --warmup 0 -q 1,2 -s 64 --out {}", disk.name());
    let ended = bare(&line).fails(&["No space left on device", "measuring goes on"]);
    for row in ["  1 ", "  2 "] {
        let is_shown = ended.stdout.lines().any(|printed| printed.starts_with(row));
        assert!(is_shown, "the table is shown: {}", ended.stdout);
    }
    assert_eq!(disk.files(), ["full"], "no half of a file stays");
}

#[test]
fn a_folder_that_cannot_be_written_is_found_out_before() {
    let disk = Disk::with("ro");
    let call = bare(&format!("-D 10m --out {}", disk.name()));
    let ended = call.is_refused(&["--out: cannot write", "that file system is read-only"]);
    assert!(ended.stdout.is_empty());
    let extra = format!("{}/x.json", disk.name());
    sweep(&format!("-D 10m --json {extra}")).is_refused(&[&extra]);
}

#[test]
fn inodes_that_are_used_up_are_told_as_such() {
    let disk = Disk::with("size=4m,nr_inodes=2");
    std::fs::write(disk.path().join("last"), "").unwrap();
    let call = bare(&format!("-D 10m --out {}", disk.name()));
    call.fails(&["No space left on device", "no inode left (`df -i`)"]);
}
