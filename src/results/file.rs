//! Files that are whole or not there: written under a temporary name beside their place, synced, then
//! renamed. It must not know what is in them.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// A result could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {operation}: {source}; {}", path.display(), remedy(source))]
pub struct WriteError {
    /// The file that was to be written.
    pub path: PathBuf,
    /// The step that failed.
    pub operation: &'static str,
    /// The system's reason.
    pub source: io::Error,
}

fn remedy(error: &io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::NOSPC | Errno::DQUOT) => "free some space there, or name another place",
        Some(Errno::ACCESS | Errno::PERM) => {
            "allow this user to write in that directory, or name another place"
        }
        Some(Errno::ROFS) => "that file system is read-only: name another place",
        Some(Errno::NOENT) => "create its directory first, or name another place",
        Some(Errno::NOTDIR) => "a part of the path is a file, not a directory: name another place",
        Some(Errno::ISDIR) => "that is a directory: name a file",
        Some(Errno::NAMETOOLONG) => "choose a shorter name",
        _ => "name another place",
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
    let error = |operation| {
        move |source| WriteError {
            path: path.to_owned(),
            operation,
            source,
        }
    };
    // A link stays a link: the file that it leads to is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    match fs::metadata(&target) {
        Ok(facts) if facts.is_dir() => {
            return Err(error("open")(Errno::ISDIR.into()));
        }
        Ok(facts) if !facts.is_file() => {
            let file = File::options().write(true).open(&target);
            let mut buffered = BufWriter::new(file.map_err(error("open"))?);
            write(&mut buffered).map_err(error("write"))?;
            return buffered.flush().map_err(error("write"));
        }
        _ => {}
    }
    let directory = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // Opened and written through the file itself: the crate's own ways hide the system's error number.
    let temporary = tempfile::Builder::new()
        .prefix(".rocebench-")
        .make_in(directory, |path| {
            File::options().write(true).create_new(true).open(path)
        })
        .map_err(error("create a temporary file beside it"))?;
    let mut buffered = BufWriter::new(temporary.as_file());
    write(&mut buffered).map_err(error("write"))?;
    buffered
        .into_inner()
        .map_err(|failed| error("write")(failed.into_error()))?;
    temporary.as_file().sync_all().map_err(error("sync"))?;
    temporary
        .persist(&target)
        .map_err(|failed| error("rename into place")(failed.error))?;
    // The new name is safe only when the directory is. Some file systems cannot sync one.
    if let Ok(directory) = File::open(directory) {
        let _ = directory.sync_all();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
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
        assert!(
            text.contains("result.json") && text.contains("free some space"),
            "{text}"
        );
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
        let text = write_text(Path::new("/dev/full"), "text")
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("/dev/full") && text.contains("free some space"),
            "{text}"
        );
    }

    #[test]
    fn errors_name_the_place_and_what_to_do() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        write_text(&file, "text").unwrap();
        for (path, remedy) in [
            (directory.path().to_owned(), "name a file"),
            (
                directory.path().join("none/result.json"),
                "create its directory",
            ),
            (file.join("result.json"), "is a file, not a directory"),
            (directory.path().join("x".repeat(300)), "shorter name"),
        ] {
            // The temporary name is short, so the long one is refused when it is renamed.
            let text = write_text(&path, "text").unwrap_err().to_string();
            assert!(text.contains(remedy), "{text}");
            assert!(text.contains(&path.display().to_string()), "{text}");
        }
    }
}
