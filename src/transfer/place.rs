//! Where files are received: a folder that is never left, files that have no name until they are whole, and their
//! way to one. Everything goes by the folder's descriptor, and no link is followed. It must not know the network.

use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, FallocateFlags, FileType, fallocate, fstatvfs, statat};
use rustix::io::Errno;

pub use super::place_error::PlaceError;
use report::new_file::{Directory, NewFile};

/// An open folder for received files.
#[derive(Debug)]
pub struct Folder {
    directory: Arc<Directory>,
    path: PathBuf,
}

impl Folder {
    /// Opens the folder, removes what a killed receiver has left there, and finds out whether files can be made.
    ///
    /// # Errors
    /// [`PlaceError::Folder`] or [`PlaceError::NotWritable`].
    pub fn open(path: &Path) -> Result<Arc<Folder>, PlaceError> {
        Folder::with(path, false)
    }

    /// The same; with `names_all` as on a file system that has no files without a name.
    fn with(path: &Path, names_all: bool) -> Result<Arc<Folder>, PlaceError> {
        let directory = Directory::with(path, names_all).map_err(|error| PlaceError::Folder {
            path: path.to_owned(),
            source: error.into(),
        })?;
        directory.sweep();
        directory
            .new_file()
            .map_err(|error| PlaceError::NotWritable {
                path: path.to_owned(),
                source: error.into(),
            })?;
        Ok(Arc::new(Folder {
            directory,
            path: path.to_owned(),
        }))
    }

    /// Its path, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a file may be received under this name.
    ///
    /// # Errors
    /// What is there already, in the way.
    pub fn admits(&self, name: &str, replace: bool) -> Result<(), PlaceError> {
        let found = match statat(&*self.directory, name, AtFlags::SYMLINK_NOFOLLOW) {
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
        let file = self.directory.new_file().map_err(|error| match error {
            Errno::NOSPC if self.directory.is_out_of_inodes() => {
                PlaceError::NoInode { name: name.into() }
            }
            error => self.call(error, "making a file for", name, size_bytes),
        })?;
        let incoming = Incoming {
            folder: Arc::clone(self),
            file,
        };
        if size_bytes > 0 {
            match fallocate(incoming.file.file(), FallocateFlags::empty(), 0, size_bytes) {
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
        let stat = fstatvfs(&*self.directory).ok()?;
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
    file: NewFile,
}

impl Incoming {
    /// Writes bytes at their place; from any thread.
    ///
    /// # Errors
    /// The operating system's.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.file().write_all_at(bytes, offset)
    }

    /// Makes what was written survive a power failure.
    ///
    /// # Errors
    /// The operating system's: what was written may be lost.
    pub fn sync(&self) -> io::Result<()> {
        self.file.file().sync_all()
    }

    /// Gives the file its name, and makes that survive too. `replace` takes the place of a file that is there.
    ///
    /// # Errors
    /// [`PlaceError::Exists`] and [`PlaceError::Special`] for what has come there meanwhile; or a failed call.
    pub fn publish(self, name: &str, replace: bool) -> Result<(), PlaceError> {
        self.folder.admits(name, replace)?;
        if replace {
            self.file.replace(name)
        } else {
            self.file.publish(name)
        }
        .map_err(|error| match error {
            Errno::EXIST => PlaceError::Exists { name: name.into() },
            error => failed("giving its name to", name, error),
        })?;
        (self.folder.directory.sync()).map_err(|error| failed("syncing the folder of", name, error))
    }
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
