//! Files sent between Soft-RoCE devices: whole in spite of losses, and nothing half-made when an end dies.
//!
//! Chunks are as large as a packet here: Linux 6.1's driver loses its place in longer messages that are sent again
//! (docs/dev/lab.md).

use std::fs::File;
use std::io::{BufWriter, Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

use testing::network::Loss;
use testing::process::{Program, Signal};
use testing::program::{Server, bare};
use testing::sessions::Traffic;

use crate::session::{Disk, names};

/// The size of the file that goes through losses, in MiB, where another than the usual one is wanted.
const SIZE_VARIABLE: &str = "ROCEBENCH_SEND_MIB";

/// What CI has time for. 1 GiB takes four minutes, and `LAB_MEMORY=4500 scripts/device-tests send::a_file_through`.
const USUAL_MIB: usize = 4;

fn server(folder: &Path) -> Server {
    Server::with(&format!("--receive {}", folder.display()))
}

fn send(file: &Path, server: &Server) -> Program {
    let how = "-d rxe0 -q 16 --chunk 4K --window 64 --timeout 16";
    bare(&format!("send {} {} {how}", file.display(), server.name)).start()
}

/// A file of reproducible bytes.
fn source(path: &Path, mib: usize) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    let mut random = fastrand::Rng::with_seed(7);
    let mut block = vec![0; 1 << 20];
    for _ in 0..mib {
        random.fill(&mut block);
        file.write_all(&block).unwrap();
    }
    file.flush().unwrap();
}

/// Compares byte by byte, without the program's own checksum.
#[track_caller]
fn same(one: &Path, other: &Path) {
    let (mut a, mut b) = (File::open(one).unwrap(), File::open(other).unwrap());
    let length = a.metadata().unwrap().len();
    assert_eq!(length, b.metadata().unwrap().len());
    let (mut left, mut right) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    for _ in 0..length.div_ceil(1 << 20) {
        let count = a.read(&mut left).unwrap();
        b.read_exact(&mut right[..count]).unwrap();
        assert!(left[..count] == right[..count], "{other:?} differs");
    }
}

#[test]
fn a_file_through_losses_arrives_whole() {
    let mib = std::env::var(SIZE_VARIABLE).map_or(USUAL_MIB, |text| text.parse().unwrap());
    let home = tempfile::tempdir().unwrap();
    let target = tempfile::tempdir().unwrap();
    let file = home.path().join("large");
    source(&file, mib);
    let server = server(target.path());
    let loss = Loss::of_both("1%");
    let patience = Duration::from_secs(10 + 10 * mib as u64);
    let ended = send(&file, &server).wait_for(patience).exits(0);
    assert!(loss[0].dropped() > 0, "nothing was lost, so nothing was tested");
    drop(loss);
    writeln!(std::io::stdout(), "{}", ended.stdout.trim()).unwrap();
    same(&file, &target.path().join("large"));
    server.says(0, "\"large\" received");
    server.end();
}

/// A transfer of a file that takes no room at the sender, well under way.
fn slow(home: &Path, server: &Server) -> Program {
    let file = home.join("slow");
    // It fits into half of a guest's memory, which is what a tmpfs takes.
    File::create(&file).unwrap().set_len(256 << 20).unwrap();
    let traffic = Traffic::new("rxe0");
    let sender = send(&file, server);
    // Of 65,536 chunks, one a packet.
    traffic.await_packets(1_000);
    sender
}

#[test]
fn an_end_that_is_killed_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    // A tmpfs: files have no name there until they are whole.
    let target = tempfile::tempdir_in("/dev/shm").unwrap();
    let server = server(target.path());
    for (how, says) in
        [(Signal::Kill, "closed the connection"), (Signal::Interrupt, "the sender was stopped")]
    {
        let sender = slow(home.path(), &server);
        let lines = server.program.lines().len();
        sender.signal(how);
        server.says(lines, says);
        assert_eq!(names(target.path()), [""; 0], "{how:?}");
        drop(sender);
    }
    killed(&server, home.path());
    assert_eq!(names(target.path()), [""; 0]);
}

/// Kills a receiver in the midst of a file, and its sender notices.
fn killed(server: &Server, home: &Path) {
    let sender = slow(home, server);
    server.program.signal(Signal::Kill);
    let ended = sender.wait().exits(1);
    ended.says(&["closed the connection"]);
}

/// The guest's own file system, an overlay, has no files without a name.
#[test]
fn where_a_name_is_needed_the_next_start_sweeps() {
    let home = tempfile::tempdir().unwrap();
    let target = tempfile::tempdir_in("/var/tmp").unwrap();
    killed(&server(target.path()), home.path());
    let left = names(target.path());
    let unfinished = |name: &String| name.starts_with(".rocebench-unfinished-");
    assert!(left.iter().all(unfinished), "{left:?}");
    server(target.path()).end();
    assert_eq!(names(target.path()), [""; 0]);
}

/// What is told at both ends when a file of 2 MiB is sent to a disk with no room, or with room but no inode.
#[test]
fn a_disk_that_has_no_room() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("large");
    source(&file, 2);
    for (options, says, hint) in [
        ("size=1m", "no room for \"large\" at the receiver: it takes 2097152 bytes", "hint:"),
        (
            "size=4m,nr_inodes=2",
            "no file can be made for \"large\" at the receiver: its file system has no inode left",
            "df -i",
        ),
    ] {
        let disk = Disk::with(options);
        // It tries its folder when it starts.
        let server = server(disk.path());
        File::create(disk.path().join("last")).unwrap();
        let ended = send(&file, &server).wait().exits(1);
        ended.says(&[says, hint]);
        server.says(0, says);
        assert_eq!(disk.files(), ["last"]);
        server.end();
    }
}
