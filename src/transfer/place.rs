//! Where files are received: a folder that is never left, files that have no name until they are whole, and their
//! way to one. Everything goes by the folder's descriptor, and no link is followed. It must not know the network.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{
    Access, AtFlags, CWD, Dir, FallocateFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags,
    access, fallocate, flock, fstatvfs, fsync, linkat, open, openat, renameat, renameat_with,
    statat, unlinkat,
};
use rustix::io::Errno;

use super::name::TEMPORARY_PREFIX;
pub use super::place_error::PlaceError;

/// What others may do with a received file, before the umask.
const MODE: Mode = Mode::from_raw_mode(0o666);

/// How files without a name are had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// `O_TMPFILE`: gone with its last descriptor, however the process ends.
    Unnamed,
    /// A name of ours; removed when given up, and swept when the folder is opened again.
    Named,
}

/// An open folder for received files.
#[derive(Debug)]
pub struct Folder {
    directory: OwnedFd,
    path: PathBuf,
    method: Method,
}

impl Folder {
    /// Opens the folder, removes what a killed receiver has left there, and finds out whether files can be made.
    ///
    /// # Errors
    /// [`PlaceError::Folder`] or [`PlaceError::NotWritable`].
    pub fn open(path: &Path) -> Result<Arc<Folder>, PlaceError> {
        Folder::with(path, Method::Unnamed)
    }

    fn with(path: &Path, method: Method) -> Result<Arc<Folder>, PlaceError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = open(path, flags, Mode::empty()).map_err(|error| PlaceError::Folder {
            path: path.to_owned(),
            source: error.into(),
        })?;
        let mut folder = Folder {
            directory,
            path: path.to_owned(),
            method,
        };
        let not_writable = |error: Errno| PlaceError::NotWritable {
            path: path.to_owned(),
            source: error.into(),
        };
        if method == Method::Unnamed && !folder.has_unnamed_files().map_err(not_writable)? {
            folder.method = Method::Named;
        }
        folder.sweep();
        let folder = Arc::new(folder);
        drop(Incoming::new(&folder).map_err(not_writable)?);
        Ok(folder)
    }

    /// Its path, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there are files without a name here, and a way to give them one.
    fn has_unnamed_files(&self) -> Result<bool, Errno> {
        match self.unnamed() {
            Ok(file) => Ok(access(path_of(&file), Access::EXISTS).is_ok()),
            // What file systems and kernels say that have none.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn unnamed(&self) -> Result<OwnedFd, Errno> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        openat(&self.directory, ".", flags, MODE)
    }

    /// A new file under a name of ours, locked so that no other receiver sweeps it.
    fn named(&self) -> Result<(OwnedFd, String), Errno> {
        loop {
            let name = temporary_name();
            let flags =
                OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR | OFlags::CLOEXEC;
            match openat(&self.directory, &name, flags, MODE) {
                Ok(file) => {
                    // A file system without locks has one receiver a folder.
                    let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
                    return Ok((file, name));
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Removes the temporaries that nobody holds.
    fn sweep(&self) {
        let Ok(entries) = Dir::read_from(&self.directory) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if !name.to_bytes().starts_with(TEMPORARY_PREFIX.as_bytes()) {
                continue;
            }
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let Ok(file) = openat(&self.directory, name, flags, Mode::empty()) else {
                continue;
            };
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                let _ = unlinkat(&self.directory, name, AtFlags::empty());
            }
        }
    }

    /// Whether a file may be received under this name.
    ///
    /// # Errors
    /// What is there already, in the way.
    pub fn admits(&self, name: &str, replace: bool) -> Result<(), PlaceError> {
        let found = match statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => FileType::from_raw_mode(found.st_mode),
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(failed("looking for", name, error)),
        };
        let what = match found {
            FileType::RegularFile if replace => return Ok(()),
            FileType::RegularFile => return Err(PlaceError::Exists { name: name.into() }),
            FileType::Directory => "a folder",
            FileType::Symlink => "a symbolic link",
            _ => "a device, pipe or socket",
        };
        Err(PlaceError::Special {
            name: name.into(),
            what,
        })
    }

    /// A file without a name with room for `size_bytes`, to be received as `name`.
    ///
    /// # Errors
    /// [`PlaceError::NoRoom`], before anything is written where the file system can tell; or a failed call.
    pub fn incoming(self: &Arc<Self>, name: &str, size_bytes: u64) -> Result<Incoming, PlaceError> {
        if let Some(free_bytes) = self.free_bytes()
            && free_bytes < size_bytes
        {
            return Err(self.no_room(name, size_bytes, Errno::NOSPC));
        }
        let incoming = Incoming::new(self)
            .map_err(|error| self.call(error, "making a file for", name, size_bytes))?;
        if size_bytes > 0 {
            match fallocate(&incoming.file, FallocateFlags::empty(), 0, size_bytes) {
                // A file system that reserves nothing says so while the file is written.
                Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {}
                Err(error) => {
                    return Err(self.call(error, "reserving room for", name, size_bytes));
                }
            }
        }
        Ok(incoming)
    }

    fn free_bytes(&self) -> Option<u64> {
        let stat = fstatvfs(&self.directory).ok()?;
        // Some network file systems tell nothing.
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

    /// The error of a call on the file that is received as `name`.
    pub fn call(
        &self,
        error: impl Into<io::Error>,
        operation: &'static str,
        name: &str,
        size_bytes: u64,
    ) -> PlaceError {
        let error = error.into();
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => {
                self.no_room(name, size_bytes, error)
            }
            _ => PlaceError::Call {
                operation,
                name: name.into(),
                source: error,
            },
        }
    }
}

/// A file on its way in. Dropped, it leaves nothing.
#[derive(Debug)]
pub struct Incoming {
    folder: Arc<Folder>,
    file: File,
    /// Its name, where it cannot be without one.
    temporary: Option<String>,
}

impl Incoming {
    fn new(folder: &Arc<Folder>) -> Result<Incoming, Errno> {
        let (file, temporary) = match folder.method {
            Method::Unnamed => (folder.unnamed()?, None),
            Method::Named => {
                let (file, name) = folder.named()?;
                (file, Some(name))
            }
        };
        Ok(Incoming {
            folder: Arc::clone(folder),
            file: file.into(),
            temporary,
        })
    }

    /// Writes bytes at their place; from any thread.
    ///
    /// # Errors
    /// The operating system's.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    /// Makes what was written survive a power failure.
    ///
    /// # Errors
    /// The operating system's: what was written may be lost.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Gives the file its name, and makes that survive too. `replace` takes the place of a file that is there.
    ///
    /// # Errors
    /// [`PlaceError::Exists`] and [`PlaceError::Special`] for what has come there meanwhile; or a failed call.
    pub fn publish(mut self, name: &str, replace: bool) -> Result<(), PlaceError> {
        self.folder.admits(name, replace)?;
        if replace {
            self.replace(name)
        } else {
            self.add(name)
        }
        .map_err(|error| match error {
            Errno::EXIST => PlaceError::Exists { name: name.into() },
            error => failed("giving its name to", name, error),
        })?;
        fsync(&self.folder.directory).map_err(|error| failed("syncing the folder of", name, error))
    }

    /// Never takes another's place, whatever comes between.
    fn add(&mut self, name: &str) -> Result<(), Errno> {
        let directory = &self.folder.directory;
        let Some(temporary) = self.temporary.as_deref() else {
            return self.link(name);
        };
        match renameat_with(
            directory,
            temporary,
            directory,
            name,
            RenameFlags::NOREPLACE,
        ) {
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

    fn replace(&mut self, name: &str) -> Result<(), Errno> {
        let temporary = match self.temporary.take() {
            Some(temporary) => temporary,
            None => loop {
                let temporary = temporary_name();
                match self.link(&temporary) {
                    Ok(()) => break temporary,
                    Err(Errno::EXIST) => {}
                    Err(error) => return Err(error),
                }
            },
        };
        let directory = &self.folder.directory;
        let renamed = renameat(directory, &temporary, directory, name);
        if renamed.is_err() {
            self.temporary = Some(temporary);
        }
        renamed
    }

    /// Gives a file without a name one.
    fn link(&self, name: &str) -> Result<(), Errno> {
        let path = path_of(&self.file);
        linkat(
            CWD,
            path,
            &self.folder.directory,
            name,
            AtFlags::SYMLINK_FOLLOW,
        )
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if let Some(name) = self.temporary.take() {
            let _ = unlinkat(&self.folder.directory, name, AtFlags::empty());
        }
    }
}

/// How the kernel names an open file.
fn path_of(file: &impl std::os::fd::AsRawFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

fn temporary_name() -> String {
    format!("{TEMPORARY_PREFIX}{:016x}", fastrand::u64(..))
}

fn failed(operation: &'static str, name: &str, error: Errno) -> PlaceError {
    PlaceError::Call {
        operation,
        name: name.into(),
        source: error.into(),
    }
}

#[cfg(test)]
#[path = "place_tests.rs"]
mod tests;
