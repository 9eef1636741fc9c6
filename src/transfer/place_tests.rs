//! Tests both with and without unnamed files, on the file system of the temporary folder.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use super::*;
use results::sample::{has, starts};

/// `names_all` of [`Folder::with`].
const BOTH: [bool; 2] = [false, true];

fn names(folder: &tempfile::TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Asserts that the folder has this file alone, and what is in it.
#[track_caller]
fn has_only_a(folder: &tempfile::TempDir, text: &str, names_all: bool) {
    let read = fs::read_to_string(folder.path().join("a"));
    assert_eq!(read.unwrap(), text, "{names_all}");
    assert_eq!(names(folder), ["a"], "{names_all}");
}

fn received(folder: &Arc<Folder>, name: &str, text: &str) -> Incoming {
    let incoming = folder.incoming(name, text.len() as u64).unwrap();
    incoming.write_at(text.as_bytes(), 0).unwrap();
    incoming.sync().unwrap();
    incoming
}

#[test]
fn a_file_appears_whole_or_not_at_all() {
    for names_all in BOTH {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::with(home.path(), names_all).unwrap();
        drop(received(&folder, "a", "given up"));
        assert_eq!(names(&home), [""; 0], "{names_all}");
        received(&folder, "a", "whole").publish("a", false).unwrap();
        has_only_a(&home, "whole", names_all);
        let path = home.path().join("a");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o111, 0, "not executable");
        assert_eq!(mode & 0o600, 0o600, "its owner's");
        assert_eq!(fs::metadata(&path).unwrap().nlink(), 1, "{names_all}");
    }
}

#[test]
fn nothing_is_overwritten_unless_asked() {
    for names_all in BOTH {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::with(home.path(), names_all).unwrap();
        let late = received(&folder, "a", "late");
        let later = received(&folder, "a", "later");
        fs::write(home.path().join("a"), "first").unwrap();
        for refused in [folder.admits("a", false), late.publish("a", false)] {
            let exists = matches!(refused, Err(PlaceError::Exists { .. }));
            assert!(exists, "{refused:?}");
        }
        assert_eq!(fs::read_to_string(home.path().join("a")).unwrap(), "first");
        folder.admits("a", true).unwrap();
        later.publish("a", true).unwrap();
        has_only_a(&home, "later", names_all);
    }
}

/// The check of names cannot see a file that is created after it.
#[test]
fn a_file_that_comes_at_the_last_moment_is_kept() {
    for names_all in BOTH {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::with(home.path(), names_all).unwrap();
        let late = received(&folder, "a", "late");
        fs::write(home.path().join("a"), "first").unwrap();
        assert_eq!(late.file.publish("a"), Err(Errno::EXIST), "{names_all}");
        has_only_a(&home, "first", names_all);
    }
}

#[test]
fn links_and_folders_are_never_written_to() {
    let home = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().join("target");
    fs::write(&target, "mine").unwrap();
    symlink(&target, home.path().join("link")).unwrap();
    symlink(outside.path().join("new"), home.path().join("dangling")).unwrap();
    fs::create_dir(home.path().join("folder")).unwrap();
    let folder = Folder::open(home.path()).unwrap();
    let link = "a symbolic link";
    for (name, says) in [("link", link), ("dangling", link), ("folder", "a folder")] {
        for replace in [false, true] {
            let error = folder.admits(name, replace).unwrap_err();
            has(error.to_string(), [says]);
            assert!(error.is_bad_input());
            let file = received(&folder, name, "theirs");
            assert!(file.publish(name, replace).is_err());
        }
    }
    assert_eq!(fs::read_to_string(&target).unwrap(), "mine");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    assert_eq!(names(&home), ["dangling", "folder", "link"]);
}

#[test]
fn a_link_that_comes_at_the_last_moment_is_replaced_and_not_followed() {
    let home = tempfile::tempdir().unwrap();
    let outside = tempfile::NamedTempFile::new().unwrap();
    let folder = Folder::open(home.path()).unwrap();
    let file = received(&folder, "a", "theirs");
    symlink(outside.path(), home.path().join("a")).unwrap();
    file.file.replace("a").unwrap();
    assert_eq!(fs::read_to_string(outside.path()).unwrap(), "");
    let found = fs::symlink_metadata(home.path().join("a")).unwrap();
    assert!(found.is_file());
}

#[test]
fn what_a_killed_receiver_left_is_swept() {
    let home = tempfile::tempdir().unwrap();
    let left = format!("{}left", results::whole_file::TEMPORARY_PREFIX);
    fs::write(home.path().join(&left), "half").unwrap();
    let folder = Folder::open(home.path()).unwrap();
    assert_eq!(folder.path(), home.path());
    assert_eq!(names(&home), [""; 0]);
}

#[test]
fn a_file_larger_than_the_disk_is_refused_before_it_comes() {
    let home = tempfile::tempdir().unwrap();
    let folder = Folder::open(home.path()).unwrap();
    let error = folder.incoming("huge", u64::MAX / 2).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, PlaceError::NoRoom { .. }), "{text}");
    has(&text, ["\"huge\"", &(u64::MAX / 2).to_string()]);
    assert!(!error.is_bad_input());
    assert_eq!(names(&home), [""; 0]);
}

#[test]
fn a_full_disk_has_its_own_words() {
    let home = tempfile::tempdir().unwrap();
    let folder = Folder::open(home.path()).unwrap();
    for (errno, says) in
        [(Errno::NOSPC, "bytes are free"), (Errno::DQUOT, "quota"), (Errno::FBIG, "ulimit -f")]
    {
        let error = folder.call(errno, "writing", "a", 77);
        let PlaceError::NoRoom { needed_bytes, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(needed_bytes, 77);
        has(error.to_string(), [says]);
    }
    let other = folder.call(Errno::IO, "writing", "a", 77);
    starts(other.to_string(), "writing \"a\" at the receiver");
}

#[test]
fn folders_that_cannot_take_files_are_found_out_at_once() {
    let home = tempfile::tempdir().unwrap();
    let absent = Folder::open(&home.path().join("absent")).unwrap_err();
    assert!(matches!(absent, PlaceError::Folder { .. }), "{absent}");
    let file = home.path().join("file");
    fs::write(&file, "").unwrap();
    let in_file = Folder::open(&file);
    assert!(matches!(in_file, Err(PlaceError::Folder { .. })));
    // Nobody can create files there, not even root.
    let error = Folder::open(Path::new("/proc/self")).unwrap_err();
    assert!(error.is_bad_input() && !error.hint().is_empty(), "{error}");
    assert!(matches!(error, PlaceError::NotWritable { .. }), "{error}");
}
