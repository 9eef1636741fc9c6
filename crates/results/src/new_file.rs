//! Files that are whole or not there: without a name until they are done, and then given one at once. Everything goes
//! by the directory's descriptor.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{
    Access, AtFlags, CWD, Dir, FlockOperation, Mode, OFlags, RenameFlags, access, flock, fstat,
    fstatvfs, fsync, linkat, open, openat, renameat, renameat_with, unlinkat,
};
use rustix::io::Errno;

/// How the names of unfinished files begin, where they need one.
pub const TEMPORARY_PREFIX: &str = ".rocebench-unfinished-";

/// What others may do with a new file, before the umask.
const MODE: Mode = Mode::from_raw_mode(0o666);

/// A directory for new files.
#[derive(Debug)]
pub struct Directory {
    handle: OwnedFd,
    /// Its file system is taken for one that has no files without a name.
    names_all: bool,
}

/// A file on its way. Dropped, it leaves nothing.
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use super::*;
    use crate::sample::file_names as names;

    #[test]
    fn what_a_killed_process_left_is_swept_and_what_is_held_stays() {
        let home = tempfile::tempdir().unwrap();
        let directory = Directory::with(home.path(), true).unwrap();
        let held = directory.new_file().unwrap();
        let left = format!("{TEMPORARY_PREFIX}left");
        fs::write(home.path().join(&left), "half").unwrap();
        fs::write(home.path().join(".other"), "not ours").unwrap();
        Directory::open(home.path()).unwrap().sweep();
        let kept = held.temporary.clone().unwrap();
        assert_eq!(names(&home), [".other".to_owned(), kept]);
        drop(held);
        assert_eq!(names(&home), [".other"]);
    }

    #[test]
    fn sweepers_take_no_file_that_is_being_finished() {
        let home = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            let sweeper = scope.spawn(|| {
                let directory = Directory::open(home.path()).unwrap();
                for _ in 0..2000 {
                    directory.sweep();
                }
            });
            for names_all in [false, true].into_iter().cycle() {
                let directory = Directory::with(home.path(), names_all).unwrap();
                let new = directory.new_file().unwrap();
                new.file().write_all(b"whole").unwrap();
                new.replace("a").unwrap();
                if sweeper.is_finished() {
                    break;
                }
            }
        });
        assert_eq!(fs::read(home.path().join("a")).unwrap(), b"whole");
        assert_eq!(names(&home), ["a"]);
    }
}
