//! Files that are whole or not there: written without a name, synced, then given theirs.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::io::Errno;

use super::special_file::SpecialFile;
use crate::new_file::{Directory, NewFile};

/// A result could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {operation}: {reason}; {}", path.display(), self.remedy())]
pub struct WriteError {
    /// The file that was to be written.
    pub path: PathBuf,
    /// The step that failed.
    pub operation: &'static str,
    /// The system's reason.
    pub reason: io::Error,
    /// There is room, but for no more files.
    pub is_out_of_inodes: bool,
}

impl WriteError {
    pub(super) fn of(path: &Path, operation: &'static str) -> impl Fn(io::Error) -> WriteError {
        move |reason| WriteError {
            path: path.to_owned(),
            operation,
            reason,
            is_out_of_inodes: false,
        }
    }

    fn remedy(&self) -> &'static str {
        match Errno::from_io_error(&self.reason) {
            Some(Errno::NOSPC) if self.is_out_of_inodes => {
                "that file system has no inode left (`df -i`): remove files there, or name another place"
            }
            Some(Errno::NOSPC | Errno::DQUOT) => "free some space there, or name another place",
            Some(Errno::FBIG) => "raise the limit of a file's size (`ulimit -f`)",
            _ => self.remedy_of_path().unwrap_or("name another place"),
        }
    }

    /// Whether another try would end alike: the path is at fault, not the disk.
    pub fn is_bad_input(&self) -> bool {
        self.remedy_of_path().is_some()
    }

    fn remedy_of_path(&self) -> Option<&'static str> {
        Some(match Errno::from_io_error(&self.reason)? {
            Errno::ACCESS | Errno::PERM => {
                "allow this user to write in that directory, or name another place"
            }
            Errno::ROFS => "that file system is read-only: name another place",
            Errno::NOENT => "create its directory first, or name another place",
            Errno::NOTDIR => "a part of the path is a file, not a directory: name another place",
            Errno::EXIST => "a file is there, not a directory: name another place",
            Errno::ISDIR => "that is a directory: name a file",
            Errno::NAMETOOLONG => "choose a shorter name",
            _ => return None,
        })
    }
}

enum Target {
    /// A file, which is made or replaced: its directory, and its name there.
    File(Arc<Directory>, PathBuf),
    /// Something that is no file, such as `/dev/stdout` or a named pipe.
    Special(PathBuf),
}

impl Target {
    fn new(path: &Path) -> Result<Target, WriteError> {
        // A link stays a link: the file that it leads to is replaced.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        match fs::metadata(&target) {
            Ok(facts) if facts.is_dir() => {
                return Err(WriteError::of(path, "open")(Errno::ISDIR.into()));
            }
            Ok(facts) if !facts.is_file() => return Ok(Target::Special(target)),
            _ => {}
        }
        let directory = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let directory = Directory::open(directory)
            .map_err(|error| WriteError::of(path, "open its directory")(error.into()))?;
        Ok(Target::File(directory, target))
    }
}

fn new_file(directory: &Arc<Directory>, path: &Path) -> Result<NewFile, WriteError> {
    directory.new_file().map_err(|error| WriteError {
        is_out_of_inodes: directory.is_out_of_inodes(),
        ..WriteError::of(path, "create a file there")(error.into())
    })
}

/// Makes a directory, where there is none, and sees that files can be made in it. What a killed rocebench left there is
/// removed.
///
/// # Errors
/// The step that failed, with the system's reason.
pub fn prepare_directory(path: &Path) -> Result<(), WriteError> {
    fs::create_dir_all(path).map_err(WriteError::of(path, "create the directory"))?;
    let directory =
        Directory::open(path).map_err(|error| WriteError::of(path, "open it")(error.into()))?;
    directory.sweep();
    new_file(&directory, path).map(drop)
}

/// Sees that [`write_whole`] could make or replace the file at `path`, as far as can be known before. What a killed
/// rocebench left beside it is removed.
///
/// # Errors
/// The step that failed, with the system's reason.
pub fn prepare(path: &Path) -> Result<(), WriteError> {
    match Target::new(path)? {
        Target::Special(_) => Ok(()),
        Target::File(directory, _) => {
            directory.sweep();
            new_file(&directory, path).map(drop)
        }
    }
}

/// Writes a file whole: what `write` gives replaces the file at `path` at once, and when anything fails
/// what was there before is still there. Something that is no file, such as `/dev/stdout` or a named
/// pipe, is written to as it is.
///
/// # Errors
/// The step that failed, with the system's reason.
pub fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), WriteError> {
    write_whole_until(path, &AtomicBool::new(false), || (), write)
}

/// As [`write_whole`]. A pipe that nobody reads is waited for, once `waits` has been called, until `stop` is set.
///
/// # Errors
/// The step that failed, with the system's reason.
pub fn write_whole_until(
    path: &Path,
    stop: &AtomicBool,
    waits: impl FnOnce(),
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), WriteError> {
    let error = |operation| WriteError::of(path, operation);
    let (directory, target) = match Target::new(path)? {
        Target::File(directory, target) => (directory, target),
        Target::Special(target) => {
            let file = SpecialFile::open(&target, stop, waits).map_err(error("open"))?;
            let mut buffered = BufWriter::new(file);
            write(&mut buffered).map_err(error("write"))?;
            return buffered.flush().map_err(error("write"));
        }
    };
    let new = new_file(&directory, path)?;
    let mut buffered = BufWriter::new(new.file());
    write(&mut buffered).map_err(error("write"))?;
    buffered.into_inner().map_err(|failed| error("write")(failed.into_error()))?;
    new.file().sync_all().map_err(error("sync"))?;
    new.replace(target.file_name().unwrap_or(OsStr::new("")))
        .map_err(|failed| error("give it its name")(failed.into()))?;
    // The new name is safe only when the directory is. Some file systems cannot sync one.
    let _ = directory.sync();
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::sample::has;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

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
}
