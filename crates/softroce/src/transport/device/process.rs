//! What becomes of open devices when the process forks and when it exits.
//!
//! A fork copies a device's memory but not its engine, and its locks as they are. So a device is the parent's alone, as
//! with libibverbs: in the child its sockets are let go, and calls fail instead of waiting for ever. The child may open
//! devices of its own.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::io;
use std::mem::ManuallyDrop;
use std::net::IpAddr;
use std::ops::Deref;
use std::os::fd::RawFd;
use std::sync::{Arc, MutexGuard, Once, Weak};

use super::core::Core;
use super::generation::Generation;
use crate::lock::Lock;
use crate::net::{Claim, let_go};

/// What is a process's alone.
pub(crate) struct Owned {
    devices: Vec<Weak<Core>>,
    /// Sockets whose names say that the process is there.
    claims: Vec<RawFd>,
}

/// The devices of this process, and of those that it was forked from.
static DEVICES: Lock<Owned> = Lock::new(Owned { devices: Vec::new(), claims: Vec::new() });

pub(crate) type Devices = MutexGuard<'static, Owned>;

thread_local! {
    /// Held by the thread that forks.
    static HELD: Cell<Option<Devices>> = const { Cell::new(None) };
}

/// Locks the devices. A process forks only before this or after the lock is given.
pub(crate) fn devices() -> Devices {
    static HOOKS: Once = Once::new();
    HOOKS.call_once(|| {
        // SAFETY: the functions may be called at any time; an error (no memory) leaves forks unnoticed.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child)) };
    });
    DEVICES.lock()
}

pub(crate) fn add(devices: &mut Devices, core: &Arc<Core>) {
    let devices = &mut devices.devices;
    devices.retain(|device| device.strong_count() > 0);
    devices.push(Arc::downgrade(core));
}

/// A service that this process alone offers at an address, until it is dropped; a child of the process does not.
pub struct OwnClaim(ManuallyDrop<Claim>);

impl OwnClaim {
    pub(crate) fn new(address: IpAddr, service: u64) -> io::Result<OwnClaim> {
        let mut devices = devices();
        let claim = Claim::new(address, service)?;
        devices.claims.push(claim.fd());
        Ok(OwnClaim(ManuallyDrop::new(claim)))
    }
}

impl Deref for OwnClaim {
    type Target = Claim;

    fn deref(&self) -> &Claim {
        &self.0
    }
}

impl Drop for OwnClaim {
    fn drop(&mut self) {
        // While it is held no fork copies a list with a number that may be another file's.
        let mut devices = devices();
        let own = self.0.fd();
        devices.claims.retain(|fd| *fd != own);
        // SAFETY: nobody has it any more.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}

unsafe extern "C" fn before_fork() {
    // A thread whose storage is gone forks without the lock.
    let _ = HELD.try_with(|held| held.set(Some(devices())));
}

unsafe extern "C" fn after_fork() {
    let _ = HELD.try_with(Cell::take);
}

/// Only async-signal-safe calls, and no lock that another thread may have had.
unsafe extern "C" fn in_child() {
    Generation::begin();
    let _ = HELD.try_with(|held| {
        let devices = held.take();
        let Some(owned) = &devices else { return };
        for core in owned.devices.iter().filter_map(Weak::upgrade) {
            core.let_go_of_sockets();
        }
        owned.claims.iter().for_each(|claim| let_go(*claim));
    });
}

/// Sends what was left for the next poll: posts, and answers, since the program has seen its completions and its peers must
/// see theirs. `_exit(2)` and signals that kill leave no time for it.
extern "C" fn at_exit() {
    let Some(devices) = DEVICES.try_lock() else {
        return;
    };
    for core in devices.devices.iter().filter_map(Weak::upgrade) {
        if core.is_of_this_process() {
            core.send_last();
        }
    }
}

/// After `main`, the functions of atexit(3) and static destructors, which may poll and post.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;
