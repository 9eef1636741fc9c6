//! Files are replaced whole, also where others sweep or read; what is no file is written to.

use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::sample::{file_names as names, has};

fn write_text(path: &Path, text: &str) -> Result<(), WriteError> {
    write_whole(path, |out| out.write_all(text.as_bytes()))
}

#[test]
fn a_file_is_replaced_and_nothing_is_left_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("result.json");
    write_text(&path, "first").unwrap();
    write_text(&path, "second").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "second");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o600, 0o600);
    assert_eq!(mode & 0o111, 0);
}

#[test]
fn what_was_there_survives_a_failure() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("result.json");
    write_text(&path, "whole").unwrap();
    let error = write_whole(&path, |out| {
        out.write_all(&[b'x'; 100_000])?;
        Err(Errno::NOSPC.into())
    });
    let text = error.unwrap_err().to_string();
    has(&text, ["result.json", "free some space"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn a_link_stays_a_link() {
    let directory = tempfile::tempdir().unwrap();
    let (file, link) = (directory.path().join("file"), directory.path().join("link"));
    write_text(&file, "old").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    write_text(&link, "new").unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&file).unwrap(), "new");
}

#[test]
fn a_device_is_written_to_and_not_replaced() {
    write_text(Path::new("/dev/null"), "text").unwrap();
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
    let error = write_text(Path::new("/dev/full"), "text").unwrap_err();
    has(error.to_string(), ["/dev/full", "free some space"]);
}

#[test]
fn errors_name_the_place_and_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    write_text(&file, "text").unwrap();
    for (path, remedy) in [
        (directory.path().to_owned(), "name a file"),
        (directory.path().join("none/r.json"), "create its directory"),
        (file.join("result.json"), "is a file, not a directory"),
        (directory.path().join("x".repeat(300)), "shorter name"),
    ] {
        // The long name is refused when the file is given it.
        let text = write_text(&path, "text").unwrap_err().to_string();
        has(&text, [remedy, &path.display().to_string()]);
    }
}

#[test]
fn what_a_killed_process_left_is_swept_and_what_is_held_stays() {
    let home = tempfile::tempdir().unwrap();
    let directory = Directory::with(home.path(), true).unwrap();
    let held = directory.new_file().unwrap();
    let left = format!("{TEMPORARY_PREFIX}left");
    fs::write(home.path().join(&left), "half").unwrap();
    fs::write(home.path().join(".other"), "not ours").unwrap();
    Directory::open(home.path()).unwrap().sweep();
    let kept = held.temporary.clone().unwrap();
    assert_eq!(names(&home), [".other".to_owned(), kept]);
    drop(held);
    assert_eq!(names(&home), [".other"]);
}

#[test]
fn sweepers_take_no_file_that_is_being_finished() {
    let home = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        let sweeper = scope.spawn(|| {
            let directory = Directory::open(home.path()).unwrap();
            for _ in 0..2000 {
                directory.sweep();
            }
        });
        for names_all in [false, true].into_iter().cycle() {
            let directory = Directory::with(home.path(), names_all).unwrap();
            let new = directory.new_file().unwrap();
            new.file().write_all(b"whole").unwrap();
            new.replace("a").unwrap();
            if sweeper.is_finished() {
                break;
            }
        }
    });
    assert_eq!(fs::read(home.path().join("a")).unwrap(), b"whole");
    assert_eq!(names(&home), ["a"]);
}

fn pipe() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    (folder, path)
}

#[test]
fn a_reader_that_comes_late_and_is_slow_gets_all() {
    let (_folder, path) = pipe();
    // More than a pipe holds.
    let text = vec![b'x'; 1 << 20];
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let (sender, receiver) = std::sync::mpsc::channel();
        let writer = scope.spawn(|| {
            let mut file =
                SpecialFile::open(&path, &stop, move || sender.send(()).unwrap()).unwrap();
            file.write_all(&text).unwrap();
        });
        receiver.recv().unwrap();
        let mut read = Vec::new();
        File::open(&path).unwrap().read_to_end(&mut read).unwrap();
        writer.join().unwrap();
        assert!(read == text);
    });
}

#[test]
fn a_wish_to_stop_ends_the_waiting() {
    let (_folder, path) = pipe();
    let stop = AtomicBool::new(false);
    let opened = SpecialFile::open(&path, &stop, || stop.store(true, Ordering::Relaxed));
    assert_eq!(opened.err().unwrap().to_string(), "no program reads it");
    // A reader that takes nothing.
    let _reader = File::options().read(true).write(true).open(&path).unwrap();
    let mut file = SpecialFile::open(&path, &stop, || ()).unwrap();
    let error = file.write_all(&[0; 1 << 20]).unwrap_err();
    assert_eq!(error.to_string(), "its reader takes nothing");
}
