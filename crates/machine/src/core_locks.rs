//! Which cores the workers of all processes on this host have, so that none takes another's: a worker that has a core
//! locks a file that stands for it, in a folder that all processes see. The kernel unlocks it when the process ends,
//! however it does.
//!
//! A core has a file for each worker on it: the first locks `rocebench-core-3.0`, one that must share the core
//! `rocebench-core-3.1`. Files are only locked, never written or removed.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;

/// The variable that names another folder for the locks.
pub const FOLDER_VARIABLE: &str = "ROCEBENCH_CORE_LOCKS";

/// Folders for the locks that all users of a host may write to, the first that there is. Another of the same host
/// would not do: `TMPDIR` or `XDG_RUNTIME_DIR` differ from user to user.
const FOLDERS: [&str; 2] = ["/dev/shm", "/tmp"];

/// Workers that can be told apart on one core.
const MOST_ON_A_CORE: u32 = 64;

/// The locks of a host.
#[derive(Clone, Debug)]
pub struct CoreLocks {
    folder: PathBuf,
}

/// A core that a worker has, until dropped.
#[derive(Debug)]
pub struct HeldCore {
    core: usize,
    /// The file of the core that is locked.
    place: u32,
    /// `None` when it cannot be locked.
    lock: Option<File>,
    locks: CoreLocks,
}

/// What became of locking a file.
enum Attempt {
    Locked(File),
    Held,
    /// There is no such file, so nobody ever had it.
    Absent,
    Failed(io::Error),
}

impl CoreLocks {
    /// Those of this host, in the folder that [`FOLDER_VARIABLE`] names or else a usual one.
    pub fn of_host() -> CoreLocks {
        let named = std::env::var_os(FOLDER_VARIABLE).filter(|folder| !folder.is_empty());
        CoreLocks::within(match named {
            Some(folder) => folder.into(),
            None => FOLDERS
                .into_iter()
                .find(|folder| Path::new(folder).is_dir())
                .unwrap_or(FOLDERS[0])
                .into(),
        })
    }

    pub fn within(folder: PathBuf) -> CoreLocks {
        CoreLocks { folder }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether cores can be locked.
    pub fn check(&self) -> io::Result<()> {
        match self.lock(0, 0, FlockOperation::NonBlockingLockShared, true) {
            Attempt::Failed(error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Takes one of `cores` for a worker: the first that no worker on this host has, or else the one that the fewest
    /// have. `own` are the cores that were taken before for the same end, which count where locking fails. `None` if
    /// there are no cores.
    pub fn take(&self, cores: &[usize], own: &[usize]) -> Option<HeldCore> {
        if let Some(alone) = cores.iter().find_map(|&core| self.take_alone(core)) {
            return Some(alone);
        }
        let fewest = cores.iter().min_by_key(|core| {
            (self.holders(**core, None), own.iter().filter(|other| other == core).count())
        });
        fewest.map(|&core| self.take_shared(core))
    }

    pub fn workers_on(&self, core: usize) -> u32 {
        self.holders(core, None)
    }

    fn take_alone(&self, core: usize) -> Option<HeldCore> {
        let held = self.take_place(core, 0)?;
        (held.others() == 0).then_some(held)
    }

    fn take_shared(&self, core: usize) -> HeldCore {
        let mut places = 0..MOST_ON_A_CORE;
        let locked = places.find_map(|place| self.take_place(core, place));
        locked.unwrap_or_else(|| HeldCore {
            core,
            place: MOST_ON_A_CORE,
            lock: None,
            locks: self.clone(),
        })
    }

    fn take_place(&self, core: usize, place: u32) -> Option<HeldCore> {
        match self.lock(core, place, FlockOperation::NonBlockingLockExclusive, true) {
            Attempt::Locked(lock) => {
                Some(HeldCore { core, place, lock: Some(lock), locks: self.clone() })
            }
            _ => None,
        }
    }

    /// Workers on a core but the one at `own_place`.
    fn holders(&self, core: usize, own_place: Option<u32>) -> u32 {
        let mut holders = 0;
        for place in (0..MOST_ON_A_CORE).filter(|place| Some(*place) != own_place) {
            // Shared, so that those who look do not see each other.
            match self.lock(core, place, FlockOperation::NonBlockingLockShared, false) {
                Attempt::Held => holders += 1,
                Attempt::Locked(_) => {}
                Attempt::Absent | Attempt::Failed(_) => break,
            }
        }
        holders
    }

    fn lock(&self, core: usize, place: u32, how: FlockOperation, create: bool) -> Attempt {
        let path = self.folder.join(format!("rocebench-core-{core}.{place}"));
        let file = match open_to_lock(&path) {
            Err(Errno::NOENT) if create => create_to_lock(&path),
            opened => opened,
        };
        let file = match file {
            Ok(file) => file,
            Err(Errno::NOENT) if !create => return Attempt::Absent,
            // Someone is just making it.
            Err(Errno::EXIST | Errno::ACCESS) if path.exists() => return Attempt::Held,
            Err(errno) => return Attempt::Failed(errno.into()),
        };
        match flock(&file, how) {
            Ok(()) => Attempt::Locked(file),
            Err(Errno::WOULDBLOCK) => Attempt::Held,
            Err(errno) => Attempt::Failed(errno.into()),
        }
    }
}

/// Whatever another user may have put there is neither followed nor waited for.
const OPEN: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK);

fn open_to_lock(path: &Path) -> Result<File, Errno> {
    open(path, OPEN, Mode::empty()).map(File::from)
}

fn create_to_lock(path: &Path) -> Result<File, Errno> {
    let create = OPEN | OFlags::CREATE | OFlags::EXCL;
    let file = File::from(open(path, create, Mode::from_raw_mode(0o444))?);
    // Whatever the umask, so that other users can lock it too.
    let _ = file.set_permissions(Permissions::from_mode(0o444));
    Ok(file)
}

impl HeldCore {
    pub fn core(&self) -> usize {
        self.core
    }

    /// Other workers that have it now.
    pub fn others(&self) -> u32 {
        let own_place = self.lock.as_ref().map(|_| self.place);
        self.locks.holders(self.core, own_place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locks() -> (tempfile::TempDir, CoreLocks) {
        let folder = tempfile::tempdir().unwrap();
        let locks = CoreLocks::within(folder.path().to_owned());
        (folder, locks)
    }

    fn taken(held: Option<&HeldCore>) -> Option<(usize, u32)> {
        held.map(|held| (held.core(), held.others()))
    }

    #[test]
    fn a_core_that_somebody_has_is_passed_over() {
        let (_folder, locks) = locks();
        assert!(locks.check().is_ok());
        let first = locks.take(&[4, 5, 6], &[]);
        let second = locks.take(&[4, 5, 6], &[]);
        assert_eq!(taken(first.as_ref()), Some((4, 0)));
        assert_eq!(taken(second.as_ref()), Some((5, 0)));
        drop(first);
        let third = locks.take(&[4, 5, 6], &[]);
        assert_eq!(taken(third.as_ref()), Some((4, 0)));
        assert_eq!(taken(locks.take(&[], &[]).as_ref()), None);
    }

    #[test]
    fn too_few_cores_are_shared_evenly_and_both_know() {
        let (_folder, locks) = locks();
        let held: Vec<_> = (0..5).map(|_| locks.take(&[0, 1], &[]).unwrap()).collect();
        let cores: Vec<_> = held.iter().map(HeldCore::core).collect();
        assert_eq!(cores, [0, 1, 0, 1, 0]);
        let others: Vec<_> = held.iter().map(HeldCore::others).collect();
        assert_eq!(others, [2, 1, 2, 1, 2]);
        assert_eq!((locks.workers_on(0), locks.workers_on(1)), (3, 2));
    }

    #[test]
    fn a_core_whose_first_worker_left_before_the_second_is_not_free() {
        let (_folder, locks) = locks();
        let first = locks.take(&[7], &[]);
        let second = locks.take(&[7], &[]).unwrap();
        drop(first);
        assert_eq!(second.others(), 0);
        let third = locks.take(&[7, 8], &[]);
        assert_eq!(taken(third.as_ref()), Some((8, 0)));
    }

    #[test]
    fn what_others_leave_in_the_folder_does_no_harm() {
        let (folder, locks) = locks();
        let path = |name: &str| folder.path().join(name);
        let fifo = path("rocebench-core-0.0");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, Mode::from_raw_mode(0o600)).unwrap();
        std::fs::write(path("target"), "kept").unwrap();
        std::os::unix::fs::symlink("target", path("rocebench-core-1.0")).unwrap();
        let first = locks.take(&[0, 1, 2], &[]);
        assert_eq!(taken(first.as_ref()), Some((0, 0)));
        // Through the link it would be the second.
        let second = locks.take(&[1, 2], &[]);
        assert_eq!(taken(second.as_ref()), Some((2, 0)));
        assert_eq!(std::fs::read_to_string(path("target")).unwrap(), "kept");
    }

    #[test]
    fn without_a_folder_the_cores_of_one_end_are_still_apart() {
        let locks = CoreLocks::within("/proc/there/is/none".into());
        assert!(locks.check().is_err());
        let first = locks.take(&[3, 4], &[]).unwrap().core();
        let second = locks.take(&[3, 4], &[first]).unwrap().core();
        assert_eq!((first, second), (3, 4));
    }
}
