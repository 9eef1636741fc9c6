//! What becomes of open devices when the process forks and when it exits.
//!
//! A fork copies a device's memory but not its engine, and its locks as they are. So a device is the parent's alone, as
//! with libibverbs: in the child its sockets are let go, and calls fail instead of waiting for ever. The child may open
//! devices of its own.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};

use super::core::Core;
use super::generation::Generation;

/// The devices of this process, and of those that it was forked from.
static DEVICES: Mutex<Vec<Weak<Core>>> = Mutex::new(Vec::new());

/// The devices, locked.
pub(crate) type Devices = MutexGuard<'static, Vec<Weak<Core>>>;

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
    DEVICES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds a device.
pub(crate) fn add(devices: &mut Devices, core: &Arc<Core>) {
    devices.retain(|device| device.strong_count() > 0);
    devices.push(Arc::downgrade(core));
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
        for core in devices
            .iter()
            .flat_map(|all| all.iter())
            .filter_map(Weak::upgrade)
        {
            core.let_go_of_sockets();
        }
    });
}

/// Sends what was left for the next poll: posts, and answers, since the program has seen its completions and its peers must
/// see theirs. `_exit(2)` and signals that kill leave no time for it.
extern "C" fn at_exit() {
    let Ok(devices) = DEVICES.try_lock() else {
        return;
    };
    for core in devices.iter().filter_map(Weak::upgrade) {
        if core.is_of_this_process() {
            core.send_last();
        }
    }
}

/// After `main`, the functions of atexit(3) and static destructors, which may poll and post.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;
