//! Files that are whole or not there: written without a name, synced, and then given one at once. Everything goes by the
//! directory's descriptor. What is no file, such as `/dev/stdout` or a named pipe, is written to as it is.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{
    Access, AtFlags, CWD, Dir, FlockOperation, Mode, OFlags, RenameFlags, Timespec, access, flock,
    fstat, fstatvfs, fsync, linkat, open, openat, renameat, renameat_with, unlinkat,
};
use rustix::io::Errno;

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
    let (directory, target) = match Target::new(path)? {
        Target::File(directory, target) => (directory, target),
        Target::Special(target) => {
            let file = SpecialFile::open(&target, stop, waits)
                .map_err(|error| WriteError::new(path, "open", error))?;
            let mut buffered = BufWriter::new(file);
            return write(&mut buffered)
                .and_then(|()| buffered.flush())
                .map_err(|error| WriteError::new(path, "write", error));
        }
    };
    let new = new_file(&directory, path)?;
    let mut buffered = BufWriter::new(new.file());
    write(&mut buffered)
        .and_then(|()| buffered.flush())
        .map_err(|error| WriteError::new(path, "write", error))?;
    drop(buffered);
    new.file().sync_all().map_err(|error| WriteError::new(path, "sync", error))?;
    new.replace(target.file_name().unwrap_or(OsStr::new("")))
        .map_err(|error| WriteError::new(path, "give it its name", error))?;
    // The new name is safe only when the directory is. Some file systems cannot sync one.
    let _ = directory.sync();
    Ok(())
}

/// Makes a directory, where there is none, and sees that files can be made in it. What a killed rocebench left there is
/// removed.
///
/// # Errors
/// The step that failed, with the system's reason.
pub fn prepare_directory(path: &Path) -> Result<(), WriteError> {
    fs::create_dir_all(path)
        .map_err(|error| WriteError::new(path, "create the directory", error))?;
    let directory =
        Directory::open(path).map_err(|error| WriteError::new(path, "open it", error))?;
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
                return Err(WriteError::new(path, "open", Errno::ISDIR));
            }
            Ok(facts) if !facts.is_file() => return Ok(Target::Special(target)),
            _ => {}
        }
        let parent = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let directory = Directory::open(parent)
            .map_err(|error| WriteError::new(path, "open its directory", error))?;
        Ok(Target::File(directory, target))
    }
}

fn new_file(directory: &Arc<Directory>, path: &Path) -> Result<NewFile, WriteError> {
    directory.new_file().map_err(|error| WriteError {
        is_out_of_inodes: directory.is_out_of_inodes(),
        ..WriteError::new(path, "create a file there", error)
    })
}

/// A file could not be written, made or prepared.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {operation}: {reason}; {}", path.display(), self.remedy())]
pub struct WriteError {
    /// The file that was to be written.
    pub path: PathBuf,
    /// The step that failed, such as `create a file there`.
    pub operation: &'static str,
    /// The operating system's reason, on which the remedy depends.
    pub reason: io::Error,
    /// There is room, but for no more files.
    pub is_out_of_inodes: bool,
}

impl WriteError {
    pub(crate) fn new(
        path: &Path,
        operation: &'static str,
        reason: impl Into<io::Error>,
    ) -> WriteError {
        WriteError {
            path: path.to_owned(),
            operation,
            reason: reason.into(),
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

/// How the names of unfinished files begin, where they need one.
pub const TEMPORARY_PREFIX: &str = ".rocebench-unfinished-";

/// What others may do with a new file, before the umask.
const MODE: Mode = Mode::from_raw_mode(0o666);

/// A directory in which new files are made, by its descriptor.
#[derive(Debug)]
pub struct Directory {
    handle: OwnedFd,
    /// Its file system is taken for one that has no files without a name.
    names_all: bool,
}

/// A file that has no name of its own yet. Dropped, it leaves nothing.
#[derive(Debug)]
pub struct NewFile {
    directory: Arc<Directory>,
    file: File,
    /// Its name, where it cannot be without one.
    temporary: Option<String>,
}

impl Directory {
    /// Opens the directory.
    ///
    /// # Errors
    /// The operating system's.
    pub fn open(path: &Path) -> Result<Arc<Directory>, Errno> {
        Directory::with(path, false)
    }

    /// The same; with `names_all` as on a file system that has no files without a name.
    ///
    /// # Errors
    /// The operating system's.
    pub fn with(path: &Path, names_all: bool) -> Result<Arc<Directory>, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = open(path, flags, Mode::empty())?;
        Ok(Arc::new(Directory { handle, names_all }))
    }

    /// A new file, open for reading and writing, gone with this process however that ends. Where the file system has
    /// no files without a name, it has one that [`Directory::sweep`] knows.
    ///
    /// # Errors
    /// The operating system's.
    pub fn new_file(self: &Arc<Self>) -> Result<NewFile, Errno> {
        let (file, temporary) = match self.unnamed()? {
            Some(file) => (file, None),
            None => {
                let (file, name) = self.named()?;
                (file, Some(name))
            }
        };
        Ok(NewFile { directory: Arc::clone(self), file: file.into(), temporary })
    }

    /// A file without a name, if there are such files here and a way to give them one.
    fn unnamed(&self) -> Result<Option<OwnedFd>, Errno> {
        if self.names_all {
            return Ok(None);
        }
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match openat(&self.handle, ".", flags, MODE) {
            Ok(file) if access(path_of(&file), Access::EXISTS).is_ok() => {
                // Not to be swept in the moment in which `replace` gives it a temporary name.
                let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
                Ok(Some(file))
            }
            // What file systems and kernels say that have none.
            Ok(_) | Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A new file under a name of ours, locked so that nobody sweeps it.
    fn named(&self) -> Result<(OwnedFd, String), Errno> {
        loop {
            let name = temporary_name();
            let flags =
                OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR | OFlags::CLOEXEC;
            let file = match openat(&self.handle, &name, flags, MODE) {
                Ok(file) => file,
                Err(Errno::EXIST) => continue,
                Err(error) => return Err(error),
            };
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                // Somebody sweeps it before it could be locked.
                Err(Errno::WOULDBLOCK) => {}
                Ok(()) if fstat(&file).is_ok_and(|stat| stat.st_nlink == 0) => {}
                // A file system without locks has one user a directory.
                _ => return Ok((file, name)),
            }
        }
    }

    /// Removes the unfinished files that nobody holds: a killed process left them.
    pub fn sweep(&self) {
        let Ok(entries) = Dir::read_from(&self.handle) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if !name.to_bytes().starts_with(TEMPORARY_PREFIX.as_bytes()) {
                continue;
            }
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let Ok(file) = openat(&self.handle, name, flags, Mode::empty()) else {
                continue;
            };
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                let _ = unlinkat(&self.handle, name, AtFlags::empty());
            }
        }
    }

    /// Whether the file system says that it has no inode left, which is "no space" too, whatever room there is.
    pub fn is_out_of_inodes(&self) -> bool {
        // Some file systems count none.
        fstatvfs(&self.handle).is_ok_and(|stat| stat.f_files > 0 && stat.f_favail == 0)
    }

    /// Makes names given in the directory survive a power failure.
    ///
    /// # Errors
    /// The operating system's; some file systems cannot.
    pub fn sync(&self) -> Result<(), Errno> {
        fsync(&self.handle)
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

impl NewFile {
    /// What is to be filled.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its name. It never takes another's place, whatever comes between.
    ///
    /// # Errors
    /// [`Errno::EXIST`] where something has the name, or another of the operating system's.
    pub fn publish(mut self, name: impl AsRef<OsStr>) -> Result<(), Errno> {
        let (name, directory) = (name.as_ref(), &self.directory.handle);
        let Some(temporary) = self.temporary.as_deref() else {
            return self.link(name);
        };
        match renameat_with(directory, temporary, directory, name, RenameFlags::NOREPLACE) {
            Ok(()) => {
                self.temporary = None;
                Ok(())
            }
            // The temporary goes when this is dropped.
            Err(Errno::INVAL | Errno::NOSYS) => {
                linkat(directory, temporary, directory, name, AtFlags::empty())
            }
            Err(error) => Err(error),
        }
    }

    /// Gives the file its name, in the place of a file that may have it. It has a temporary one for the moment between
    /// two system calls.
    ///
    /// # Errors
    /// The operating system's; what had the name has it still.
    pub fn replace(mut self, name: impl AsRef<OsStr>) -> Result<(), Errno> {
        let temporary = match self.temporary.take() {
            Some(temporary) => temporary,
            None => loop {
                let temporary = temporary_name();
                match self.link(temporary.as_ref()) {
                    Ok(()) => break temporary,
                    Err(Errno::EXIST) => {}
                    Err(error) => return Err(error),
                }
            },
        };
        let directory = &self.directory.handle;
        let renamed = renameat(directory, &temporary, directory, name.as_ref());
        if renamed.is_err() {
            self.temporary = Some(temporary);
        }
        renamed
    }

    /// Gives a file without a name one.
    fn link(&self, name: &OsStr) -> Result<(), Errno> {
        linkat(CWD, path_of(&self.file), &self.directory.handle, name, AtFlags::SYMLINK_FOLLOW)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(name) = self.temporary.take() {
            let _ = unlinkat(&self.directory.handle, name, AtFlags::empty());
        }
    }
}

/// How the kernel names an open file.
fn path_of(file: &impl AsFd) -> String {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd())
}

fn temporary_name() -> String {
    format!("{TEMPORARY_PREFIX}{:016x}", fastrand::u64(..))
}

/// How often a waiting writer looks around.
const TICK: Duration = Duration::from_millis(50);

/// How long a reader that takes nothing is waited for after the wish to stop.
const STOPPED_PATIENCE: Duration = Duration::from_secs(1);

struct SpecialFile<'a> {
    file: File,
    stop: &'a AtomicBool,
}

impl SpecialFile<'_> {
    /// Opens it. A pipe that nobody reads is waited for, once `waits` has been called, until `stop` is set.
    ///
    /// # Errors
    /// The operating system's, or that no program reads it.
    fn open<'a>(
        path: &Path,
        stop: &'a AtomicBool,
        waits: impl FnOnce(),
    ) -> io::Result<SpecialFile<'a>> {
        let is_pipe = fs::metadata(path).is_ok_and(|facts| facts.file_type().is_fifo());
        let mut waits = Some(waits);
        loop {
            let mut options = File::options();
            options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
            match options.write(true).open(path) {
                Err(error) if is_pipe && Errno::from_io_error(&error) == Some(Errno::NXIO) => {}
                opened => return opened.map(|file| SpecialFile { file, stop }),
            }
            if stop.load(Ordering::Relaxed) {
                return Err(io::Error::other("no program reads it"));
            }
            if let Some(wait) = waits.take() {
                wait();
            }
            thread::sleep(TICK);
        }
    }
}

impl Write for SpecialFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut stopped: Option<Instant> = None;
        loop {
            match self.file.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
            if self.stop.load(Ordering::Relaxed)
                && stopped.get_or_insert_with(Instant::now).elapsed() > STOPPED_PATIENCE
            {
                return Err(io::Error::other("its reader takes nothing"));
            }
            let tick = Timespec::try_from(TICK).ok();
            poll(&mut [PollFd::new(&self.file, PollFlags::OUT)], tick.as_ref())?;
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
#[path = "whole_file_tests.rs"]
mod tests;
