//! Taking a lock that a thread may have held when it panicked: what it guards is whole after each statement.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) fn lock<T>(guarded: &Mutex<T>) -> MutexGuard<'_, T> {
    guarded.lock().unwrap_or_else(PoisonError::into_inner)
}
