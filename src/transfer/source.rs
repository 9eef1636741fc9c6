//! Files to send: checks all before the first transfer, opens each when its turn comes, and checks afterwards that it
//! has not changed.

use std::collections::HashMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::name::{self, NameError};

/// Why a file cannot be sent.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum SourceError {
    #[error("{} cannot be sent under its name: {source}", path.display())]
    Name { path: PathBuf, source: NameError },
    #[error("{} is {what}, but only files are sent", path.display())]
    NotAFile { path: PathBuf, what: &'static str },
    #[error("{} and {} would both be received as {name:?}", first.display(), second.display())]
    SameName { first: PathBuf, second: PathBuf, name: String },
    #[error("{} has {size_bytes} bytes, which is more than 2^32 chunks of {chunk_bytes}", path.display())]
    TooLarge { path: PathBuf, size_bytes: u64, chunk_bytes: u32 },
    /// It goes on where the system says that it ends, as files of /proc do.
    #[error("{} is longer than the {size_bytes} bytes that its file system reports", path.display())]
    Unsized { path: PathBuf, size_bytes: u64 },
    #[error("cannot read {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl SourceError {
    pub fn hint(&self) -> &'static str {
        match self {
            SourceError::Name { .. } => "rename it, or send a link with another name (`ln -s`)",
            SourceError::NotAFile { .. } => "pack folders into one file first (`tar`)",
            SourceError::SameName { .. } => {
                "send them one after the other to different folders, or rename one"
            }
            SourceError::TooLarge { .. } => "raise --chunk",
            SourceError::Unsized { .. } => "send a copy of it (`cat FILE >COPY`)",
            SourceError::Io { .. } => "check the path and the right to read it",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub path: PathBuf,
    /// Its name at the receiver.
    pub name: String,
}

/// An open file, with its time stamps at that time.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) file: File,
    pub(super) size_bytes: u64,
    before: Stamp,
}

/// Attributes that change when a file is written to with system calls. Writes through a memory mapping may change
/// none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    size_bytes: u64,
    /// Time of the last write, in seconds and nanoseconds. A program can set it back.
    written: (i64, i64),
    /// Time of the last change of content or attributes. No program can set it.
    changed: (i64, i64),
}

impl Stamp {
    fn new(metadata: &Metadata) -> Stamp {
        Stamp {
            size_bytes: metadata.len(),
            written: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// Checks the files at these paths; refuses all if one cannot be sent.
pub fn sources(paths: &[PathBuf], chunk_bytes: u32) -> Result<Vec<Source>, SourceError> {
    let mut names: HashMap<String, &Path> = HashMap::new();
    let mut sources = Vec::with_capacity(paths.len());
    for path in paths {
        let opened = open(path)?;
        let chunks = opened.size_bytes.div_ceil(u64::from(chunk_bytes).max(1));
        if chunks > 1 << 32 {
            return Err(SourceError::TooLarge {
                path: path.clone(),
                size_bytes: opened.size_bytes,
                chunk_bytes,
            });
        }
        let name = name::of_path(path)
            .map_err(|source| SourceError::Name { path: path.clone(), source })?;
        if let Some(first) = names.insert(name.to_owned(), path) {
            return Err(SourceError::SameName {
                first: first.to_owned(),
                second: path.clone(),
                name: name.to_owned(),
            });
        }
        sources.push(Source { path: path.clone(), name: name.to_owned() });
    }
    Ok(sources)
}

/// Opens a file without blocking on a pipe.
pub(super) fn open(path: &Path) -> Result<Opened, SourceError> {
    let failed = |source| SourceError::Io { path: path.to_owned(), source };
    let looked_at = std::fs::metadata(path).map_err(failed)?;
    let kind = looked_at.file_type();
    if !kind.is_file() {
        let what = match kind {
            kind if kind.is_dir() => "a folder",
            kind if kind.is_fifo() => "a pipe",
            kind if kind.is_socket() => "a socket",
            _ => "a device",
        };
        return Err(SourceError::NotAFile { path: path.to_owned(), what });
    }
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
        .map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if file.read_at(&mut [0], metadata.len()).map_err(failed)? > 0 {
        return Err(SourceError::Unsized { path: path.to_owned(), size_bytes: metadata.len() });
    }
    Ok(Opened { size_bytes: metadata.len(), before: Stamp::new(&metadata), file })
}

impl Opened {
    /// Whether the file was written to or its attributes changed since it was opened.
    pub(super) fn has_changed(&self) -> io::Result<bool> {
        Ok(Stamp::new(&self.file.metadata()?) != self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::sample::has;

    #[test]
    fn what_is_no_file_is_told_before_anything_is_sent() {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        std::fs::write(path("a"), "a").unwrap();
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
        std::fs::write(path("a\nb"), "").unwrap();
        refused(&[path("a\nb")], "control character");
    }

    #[test]
    fn two_of_one_name_are_refused() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("other")).unwrap();
        let paths = [home.path().join("a"), home.path().join("other/a")];
        for path in &paths {
            std::fs::write(path, "").unwrap();
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
        let opened = open(file.path()).unwrap();
        assert!(!opened.has_changed().unwrap());
        let written = file.as_file().metadata().unwrap().modified().unwrap();
        // Waits for the next tick of the file system's clock.
        let changed = |metadata: &Metadata| (metadata.ctime(), metadata.ctime_nsec());
        let before = changed(&file.as_file().metadata().unwrap());
        testing::wait::wait_until("the next tick", std::time::Duration::from_secs(1), || {
            changed(&tempfile::tempfile().unwrap().metadata().unwrap()) != before
        });
        file.as_file().write_all_at(b"after!", 0).unwrap();
        file.as_file().set_modified(written).unwrap();
        assert!(opened.has_changed().unwrap());
    }
}
