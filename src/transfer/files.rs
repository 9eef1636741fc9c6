//! Files at both ends: those to send, the folder for received ones and the names that they may have there, and checksums.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{File, Metadata, OpenOptions};
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use std::{fmt, io};

use protocol::failure::RunFailure;
use protocol::link::Link;
use protocol::message::{FileHello, FileMessage, Message};
use results::text::printable;
use results::whole_file::{Directory, NewFile, TEMPORARY_PREFIX};
use rustix::fs::{AtFlags, FallocateFlags, FileType, fallocate, fstatvfs, statat};
use rustix::io::Errno;
use twox_hash::XxHash3_128;

use super::channel::TransferEnd;

/// Longest name of a file, in bytes (NAME_MAX of Linux).
pub const MAX_NAME_BYTES: usize = 255;

/// Time limit for the sender's final message about a file.
const FIN_LIMIT: Duration = Duration::from_secs(60);

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

/// Checks the files at these paths before the first transfer; refuses all if one cannot be sent.
pub fn sources(paths: &[PathBuf], chunk_bytes: u32) -> Result<Vec<Source>, SourceError> {
    let mut names: HashMap<String, &Path> = HashMap::new();
    let mut sources = Vec::with_capacity(paths.len());
    for path in paths {
        let opened = open_source(path)?;
        let chunks = opened.size_bytes.div_ceil(u64::from(chunk_bytes).max(1));
        if chunks > 1 << 32 {
            return Err(SourceError::TooLarge {
                path: path.clone(),
                size_bytes: opened.size_bytes,
                chunk_bytes,
            });
        }
        let name = name_in_path(path)
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

/// Opens a file when its turn comes, without blocking on a pipe.
pub(super) fn open_source(path: &Path) -> Result<Opened, SourceError> {
    let failed = |source| SourceError::Io { path: path.to_owned(), source };
    let kind = std::fs::metadata(path).map_err(failed)?.file_type();
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

/// An open folder for received files. Files have no name until they are complete. All calls use the folder's descriptor and
/// follow no links, so nothing outside of it is touched.
#[derive(Debug)]
pub struct Folder {
    directory: Arc<Directory>,
    path: PathBuf,
}

impl Folder {
    /// Opens the folder, removes the files left by a killed receiver, and checks that files can be created.
    ///
    /// # Errors
    /// [`PlaceError::Folder`] or [`PlaceError::NotWritable`].
    pub fn open(path: &Path) -> Result<Arc<Folder>, PlaceError> {
        Folder::with(path, false)
    }

    /// As [`Folder::open`]; with `names_all` it behaves as on a file system without unnamed files.
    fn with(path: &Path, names_all: bool) -> Result<Arc<Folder>, PlaceError> {
        let directory = Directory::with(path, names_all)
            .map_err(|error| PlaceError::Folder { path: path.to_owned(), source: error.into() })?;
        directory.sweep();
        directory.new_file().map_err(|error| PlaceError::NotWritable {
            path: path.to_owned(),
            source: error.into(),
        })?;
        Ok(Arc::new(Folder { directory, path: path.to_owned() }))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that a file may be received under this name.
    pub fn admits(&self, name: &str, replace: bool) -> Result<(), PlaceError> {
        let found = match statat(&*self.directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => FileType::from_raw_mode(found.st_mode),
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(call_failed("looking for", name, error)),
        };
        let what = match found {
            FileType::RegularFile if replace => return Ok(()),
            FileType::RegularFile => return Err(PlaceError::Exists { name: name.into() }),
            FileType::Directory => "a folder",
            FileType::Symlink => "a symbolic link",
            _ => "a device, pipe or socket",
        };
        Err(PlaceError::Special { name: name.into(), what })
    }

    /// Creates an unnamed file with room for `size_bytes`, to be received as `name`.
    ///
    /// # Errors
    /// [`PlaceError::NoRoom`], before anything is written if the file system reports its space; or a failed call.
    pub fn incoming(self: &Arc<Self>, name: &str, size_bytes: u64) -> Result<Incoming, PlaceError> {
        if let Some(free_bytes) = self.free_bytes()
            && free_bytes < size_bytes
        {
            return Err(self.no_room(name, size_bytes, Errno::NOSPC));
        }
        let file = self.directory.new_file().map_err(|error| match error {
            Errno::NOSPC if self.directory.is_out_of_inodes() => {
                PlaceError::NoInode { name: name.into() }
            }
            error => self.call(error, "making a file for", name, size_bytes),
        })?;
        let incoming = Incoming { folder: Arc::clone(self), file };
        if size_bytes > 0 {
            match fallocate(incoming.file.file(), FallocateFlags::empty(), 0, size_bytes) {
                // A file system that cannot reserve space reports a full disk during writing.
                Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {}
                Err(error) => {
                    return Err(self.call(error, "reserving room for", name, size_bytes));
                }
            }
        }
        Ok(incoming)
    }

    fn free_bytes(&self) -> Option<u64> {
        let stat = fstatvfs(&*self.directory).ok()?;
        // Some network file systems report no space.
        (stat.f_blocks > 0).then(|| stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn no_room(&self, name: &str, needed_bytes: u64, error: Errno) -> PlaceError {
        PlaceError::NoRoom {
            name: name.into(),
            needed_bytes,
            free_bytes: self.free_bytes().unwrap_or(0),
            quota: match error {
                Errno::DQUOT => " on the disk, but not in this user's quota",
                Errno::FBIG => ", but the receiver may not write files so large (`ulimit -f`)",
                _ => "",
            },
        }
    }

    /// The error of a call on the file received as `name`.
    pub fn call(
        &self,
        error: impl Into<io::Error>,
        operation: &'static str,
        name: &str,
        size_bytes: u64,
    ) -> PlaceError {
        let source = error.into();
        match source.raw_os_error().map(Errno::from_raw_os_error) {
            Some(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => {
                self.no_room(name, size_bytes, errno)
            }
            _ => PlaceError::Call { operation, name: name.into(), source },
        }
    }
}

/// A file being received. Dropping it removes the file.
#[derive(Debug)]
pub struct Incoming {
    folder: Arc<Folder>,
    file: NewFile,
}

impl Incoming {
    /// Writes bytes at an offset; callable from any thread.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.file().write_all_at(bytes, offset)
    }

    /// Syncs what was written to disk.
    ///
    /// # Errors
    /// The operating system's: written data may be lost.
    pub fn sync(&self) -> io::Result<()> {
        self.file.file().sync_all()
    }

    /// Gives the file its name and syncs that to disk. `replace` replaces an existing file.
    ///
    /// # Errors
    /// [`PlaceError::Exists`] and [`PlaceError::Special`] if something was created there meanwhile; or a failed call.
    pub fn publish(self, name: &str, replace: bool) -> Result<(), PlaceError> {
        self.folder.admits(name, replace)?;
        if replace { self.file.replace(name) } else { self.file.publish(name) }.map_err(
            |error| match error {
                Errno::EXIST => PlaceError::Exists { name: name.into() },
                error => call_failed("giving its name to", name, error),
            },
        )?;
        (self.folder.directory.sync())
            .map_err(|error| call_failed("syncing the folder of", name, error))
    }
}

fn call_failed(operation: &'static str, name: &str, error: Errno) -> PlaceError {
    PlaceError::Call { operation, name: name.into(), source: error.into() }
}

/// Why a file cannot be received or stored.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum PlaceError {
    #[error("cannot open the folder {} for received files: {source}", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("cannot make files in the folder {}: {source}", path.display())]
    NotWritable { path: PathBuf, source: io::Error },
    #[error("{name:?} exists at the receiver")]
    Exists { name: String },
    #[error("{name:?} is {what} at the receiver, but only files are overwritten")]
    Special { name: String, what: &'static str },
    #[error(
        "no room for {name:?} at the receiver: it takes {needed_bytes} bytes, and {free_bytes} bytes are free{quota}"
    )]
    NoRoom {
        name: String,
        needed_bytes: u64,
        /// Space that the file system has left for this user.
        free_bytes: u64,
        /// Set if a quota is full, not the disk.
        quota: &'static str,
    },
    #[error("no file can be made for {name:?} at the receiver: its file system has no inode left")]
    NoInode { name: String },
    #[error("{operation} {name:?} at the receiver: {source}")]
    Call { operation: &'static str, name: String, source: io::Error },
}

impl PlaceError {
    pub fn hint(&self) -> String {
        match self {
            PlaceError::Folder { .. } => "make the folder, or name another with --receive",
            PlaceError::NotWritable { source, .. }
                if source.kind() == io::ErrorKind::StorageFull =>
            {
                "make room there (`df`) or remove files (`df -i`), or name another folder with --receive"
            }
            PlaceError::NotWritable { .. } => {
                "give this user the right to write there, or name another folder with --receive"
            }
            PlaceError::Exists { .. } => {
                "overwrite it with --force, or send it under another name"
            }
            PlaceError::Special { .. } => "send it under another name, or move that out of the way",
            PlaceError::NoRoom { .. } => {
                "make room at the receiver, or let `rocebench serve --receive` name a folder on a larger disk"
            }
            PlaceError::NoInode { .. } => {
                "remove files at the receiver (`df -i`), or let `rocebench serve --receive` name a folder on another disk"
            }
            PlaceError::Call { .. } => "look at the receiver's folder and at `dmesg` there",
        }
        .into()
    }

    /// Whether another attempt would fail the same way because the request is at fault.
    pub fn is_bad_input(&self) -> bool {
        match self {
            PlaceError::NoRoom { .. } | PlaceError::NoInode { .. } | PlaceError::Call { .. } => {
                false
            }
            PlaceError::NotWritable { source, .. } => source.kind() != io::ErrorKind::StorageFull,
            _ => true,
        }
    }
}

impl From<PlaceError> for RunFailure {
    fn from(error: PlaceError) -> RunFailure {
        RunFailure {
            bad_input: error.is_bad_input(),
            ..RunFailure::new(error.to_string(), Some(error.hint()))
        }
    }
}

/// Why a text is not valid as a file name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum NameError {
    #[error("it is empty")]
    Empty,
    /// `.` or `..`, or a path that ends so.
    #[error("it names a folder")]
    Folder,
    #[error("it has a separator in it, and only plain names are taken")]
    Separator,
    #[error("it has a control character in it")]
    Control,
    #[error("it is longer than {MAX_NAME_BYTES} bytes")]
    TooLong,
    #[error("it is not UTF-8, which the protocol needs")]
    NotUtf8,
    #[error("it begins with {TEMPORARY_PREFIX}, as the receiver's temporaries do")]
    Temporary,
}

/// Checks a name for a received file: one path component, which cannot lead out of the folder. Both ends check, but security
/// rests on the receiver's check.
pub fn check_name(name: &str) -> Result<(), NameError> {
    match name {
        "" => return Err(NameError::Empty),
        "." | ".." => return Err(NameError::Folder),
        _ => {}
    }
    if name.contains('/') {
        Err(NameError::Separator)
    } else if name.chars().any(char::is_control) {
        Err(NameError::Control)
    } else if name.len() > MAX_NAME_BYTES {
        Err(NameError::TooLong)
    } else if name.starts_with(TEMPORARY_PREFIX) {
        Err(NameError::Temporary)
    } else {
        Ok(())
    }
}

/// The name under which a file is sent: the last component of its path.
///
/// # Errors
/// Why no valid name results.
pub fn name_in_path(path: &Path) -> Result<&str, NameError> {
    let name = path.file_name().ok_or(if path == Path::new("") {
        NameError::Empty
    } else {
        NameError::Folder
    })?;
    let name = OsStr::to_str(name).ok_or(NameError::NotUtf8)?;
    check_name(name)?;
    Ok(name)
}

#[derive(Clone, Copy)]
pub(super) struct ReceivedFile<'a> {
    pub(super) name: &'a str,
    pub(super) size_bytes: u64,
}

impl<'a> From<&'a FileHello> for ReceivedFile<'a> {
    fn from(hello: &'a FileHello) -> Self {
        ReceivedFile { name: &hello.name, size_bytes: hello.size_bytes }
    }
}

/// Ends the receipt of a file, over RDMA or TCP: waits for the sender's checksum, compares it, and syncs the file to
/// disk; returns the time that the sync took, in seconds.
pub(super) fn finish_file(
    link: &Link,
    folder: &Folder,
    incoming: &Incoming,
    received_file: ReceivedFile<'_>,
    digest: Digest,
    stop: &AtomicBool,
) -> Result<f64, RunFailure> {
    let theirs = match TransferEnd::Receiver.recv(link, FIN_LIMIT, stop)? {
        Message::File(FileMessage::Fin(fin)) => fin.digest,
        other => return Err(link.unexpected("file_fin", &other).into()),
    };
    if theirs.parse() != Ok(digest) {
        let theirs = printable(&theirs, 40);
        return Err(RunFailure::new(
            format!(
                "the receiver discarded {:?}: it arrived with checksum {digest}, and was sent with {theirs}",
                received_file.name
            ),
            Some("send it again, and check memory, cables and firmware: the device or the network corrupts data".into()),
        ));
    }
    let began = Instant::now();
    incoming.sync().map_err(|error| {
        let ReceivedFile { name, size_bytes } = received_file;
        folder.call(error, "syncing", name, size_bytes)
    })?;
    Ok(began.elapsed().as_secs_f64())
}

pub(super) fn check_received_name(text: &str) -> Result<(), RunFailure> {
    check_name(text).map_err(|error| {
        RunFailure::refused(
            format!("the receiver does not take {:?} as a name: {error}", printable(text, 100)),
            "send it under another name",
        )
    })
}

/// The checksum of the chunks added so far; of the file once all are added: the sum, modulo 2^128, of the XXH3-128
/// hashes of its chunks, each seeded with the chunk's number. Chunks may be added in any order and by several threads,
/// without storing anything per chunk. It detects errors of networks, devices and this program; it does not protect
/// against deliberate forgery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest(u128);

impl Digest {
    pub fn add(&mut self, index: u64, chunk: &[u8]) {
        let hash = XxHash3_128::oneshot_with_seed(index, chunk);
        self.0 = self.0.wrapping_add(hash);
    }

    /// Adds the chunks of another digest.
    pub fn merge(&mut self, other: Digest) {
        self.0 = self.0.wrapping_add(other.0);
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for Digest {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u128::from_str_radix(text, 16).map(Digest)
    }
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
