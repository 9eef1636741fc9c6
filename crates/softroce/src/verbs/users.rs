//! Counts the users of an object, so that PDs, CQs, SRQs and channels in use are not destroyed.

use std::os::raw::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the users of one object.
#[derive(Default)]
pub(crate) struct Users(Arc<AtomicUsize>);

/// One use; it ends when this is dropped.
pub(crate) struct Use(Arc<AtomicUsize>);

impl Users {
    /// Adds a user.
    pub(crate) fn begin(&self) -> Use {
        self.0.fetch_add(1, Ordering::Relaxed);
        Use(self.0.clone())
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }

    /// EBUSY while there are users.
    pub(crate) fn none(&self) -> Result<(), c_int> {
        match self.count() {
            0 => Ok(()),
            _ => Err(libc::EBUSY),
        }
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}
