use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use proptest::prelude::*;
use results::sample::{has, starts};

use super::*;

/// `names_all` of [`Folder::with`]: with and without unnamed files, on the file system of the temporary folder.
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
    let left = format!("{TEMPORARY_PREFIX}left");
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

#[test]
fn what_is_no_file_is_told_before_anything_is_sent() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    fs::write(path("a"), "a").unwrap();
    let error = |paths: &[PathBuf]| sources(paths, 4096).unwrap_err().to_string();
    let refused = |paths: &[PathBuf], words| has(error(paths), [words]);
    let folder = error(&[path("a"), home.path().into()]);
    assert!(folder.ends_with("is a folder, but only files are sent"));
    refused(&["/dev/null".into()], "is a device");
    refused(&["/proc/self/status".into()], "is longer than the 0 bytes");
    refused(&[path("absent")], "No such file");
    refused(&[path("a\nb")], "No such file");
    let mut mkfifo = std::process::Command::new("mkfifo");
    assert!(mkfifo.arg(path("pipe")).status().unwrap().success());
    refused(&[path("pipe")], "is a pipe");
    fs::write(path("a\nb"), "").unwrap();
    refused(&[path("a\nb")], "control character");
}

#[test]
fn two_of_one_name_are_refused() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("other")).unwrap();
    let paths = [home.path().join("a"), home.path().join("other/a")];
    for path in &paths {
        fs::write(path, "").unwrap();
    }
    assert_eq!(sources(&paths[..1], 4096).unwrap()[0].name, "a");
    let error = sources(&paths, 4096).unwrap_err().to_string();
    has(error, ["would both be received as \"a\""]);
}

#[test]
fn a_sparse_file_of_too_many_chunks_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len((1 << 32) * 10 + 1).unwrap();
    let paths = [file.path().to_owned()];
    let refused = sources(&paths, 10);
    assert!(matches!(refused, Err(SourceError::TooLarge { .. })));
    sources(&paths, 11).unwrap();
}

#[test]
fn writing_shows_although_the_time_is_put_back() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().write_all_at(b"before", 0).unwrap();
    let opened = open_source(file.path()).unwrap();
    assert!(!opened.has_changed().unwrap());
    let written = file.as_file().metadata().unwrap().modified().unwrap();
    // Waits for the next tick of the file system's clock.
    let changed = |metadata: &Metadata| (metadata.ctime(), metadata.ctime_nsec());
    let before = changed(&file.as_file().metadata().unwrap());
    testing::wait::wait_until("the next tick", Duration::from_secs(1), || {
        changed(&tempfile::tempfile().unwrap().metadata().unwrap()) != before
    });
    file.as_file().write_all_at(b"after!", 0).unwrap();
    file.as_file().set_modified(written).unwrap();
    assert!(opened.has_changed().unwrap());
}

#[test]
fn ways_out_are_no_names() {
    for (name, error) in [
        ("", NameError::Empty),
        (".", NameError::Folder),
        ("..", NameError::Folder),
        ("/", NameError::Separator),
        ("a/b", NameError::Separator),
        ("../a", NameError::Separator),
        ("/etc/passwd", NameError::Separator),
        ("a/", NameError::Separator),
        ("a\0b", NameError::Control),
        ("a\nb", NameError::Control),
        ("\u{1b}[31m", NameError::Control),
        ("\u{85}", NameError::Control),
        (".rocebench-unfinished-1", NameError::Temporary),
    ] {
        assert_eq!(check_name(name), Err(error), "{name:?}");
    }
    assert_eq!(check_name(&"x".repeat(256)), Err(NameError::TooLong));
    assert_eq!(check_name(&"é".repeat(128)), Err(NameError::TooLong));
}

#[test]
fn odd_names_are_names() {
    for name in ["a", "...", "..a", "-rf", ".hidden", "a b", "é", "a\\b", "~", "$HOME"] {
        assert_eq!(check_name(name), Ok(()), "{name:?}");
    }
    assert_eq!(check_name(&"x".repeat(255)), Ok(()));
}

#[test]
fn a_path_gives_its_last_component() {
    assert_eq!(name_in_path(Path::new("/tmp/x/a.bin")), Ok("a.bin"));
    assert_eq!(name_in_path(Path::new("a/")), Ok("a"));
    assert_eq!(name_in_path(Path::new("/")), Err(NameError::Folder));
    assert_eq!(name_in_path(Path::new("a/..")), Err(NameError::Folder));
    let odd = OsStr::from_bytes(b"a\xff");
    assert_eq!(name_in_path(Path::new(odd)), Err(NameError::NotUtf8));
}

proptest! {
    #[test]
    fn a_name_that_is_taken_is_one_component(name in ".{0,20}") {
        if check_name(&name).is_ok() {
            let path = Path::new("/folder").join(&name);
            prop_assert_eq!(path.parent(), Some(Path::new("/folder")));
            prop_assert_eq!(path.file_name(), Some(OsStr::new(&name)));
        }
    }
}

fn digest_of(chunks: &[(u64, &[u8])]) -> Digest {
    let mut digest = Digest::default();
    for (index, chunk) in chunks {
        digest.add(*index, chunk);
    }
    digest
}

#[test]
fn the_checksum_is_xxh3() {
    // XXH3-128 of no bytes, as `xxhsum -H2` prints it.
    let of_nothing = "99aa06d3014798d86001c324468d497f";
    assert_eq!(digest_of(&[(0, b"")]).to_string(), of_nothing);
}

#[test]
fn the_checksum_shows_what_can_go_wrong() {
    let right = digest_of(&[(0, b"aa"), (1, b"bb"), (2, b"aa")]);
    let shows = |wrong: &[(u64, &[u8])], what| assert_ne!(right, digest_of(wrong), "{what}");
    shows(&[(0, b"bb"), (1, b"aa"), (2, b"aa")], "exchanged");
    shows(&[(0, b"aa"), (1, b"bb")], "missing");
    shows(&[(0, b"aa"), (0, b"aa"), (1, b"bb")], "doubled");
    shows(&[(0, b"aa"), (1, b"bb"), (2, b"ab")], "spoilt");
}

proptest! {
    #[test]
    fn order_and_threads_do_not_change_the_checksum(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..20),
        split in 0_usize..20,
    ) {
        let numbered: Vec<(u64, &[u8])> = (0..).zip(chunks.iter().map(Vec::as_slice)).collect();
        let whole = digest_of(&numbered);
        let (first, second) = numbered.split_at(split.min(numbered.len()));
        let mut merged = digest_of(second);
        merged.merge(digest_of(&first.iter().rev().copied().collect::<Vec<_>>()));
        prop_assert_eq!(whole, merged);
        prop_assert_eq!(whole.to_string().parse(), Ok(whole));
    }
}
