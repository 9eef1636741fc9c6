//! The folder for received files. Files have no name until they are complete. All calls use the folder's descriptor
//! and follow no links, so nothing outside of it is touched.

use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, FallocateFlags, FileType, fallocate, fstatvfs, statat};
use rustix::io::Errno;

pub use super::place_error::PlaceError;
use results::whole_file::{Directory, NewFile};

/// An open folder for received files.
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
            Err(error) => return Err(failed("looking for", name, error)),
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
                error => failed("giving its name to", name, error),
            },
        )?;
        (self.folder.directory.sync()).map_err(|error| failed("syncing the folder of", name, error))
    }
}

fn failed(operation: &'static str, name: &str, error: Errno) -> PlaceError {
    PlaceError::Call { operation, name: name.into(), source: error.into() }
}

#[cfg(test)]
#[path = "place_tests.rs"]
mod tests;
