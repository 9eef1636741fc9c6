//! Counts the users of an object, so that PDs, CQs, SRQs and channels in use are not destroyed.

use std::os::raw::c_int;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

/// Counts the users of one object.
#[derive(Default)]
pub(crate) struct Users(Arc<()>);

/// One use; it ends when this is dropped.
pub(crate) struct Use {
    _counted: Arc<()>,
}

impl Users {
    pub(crate) fn begin(&self) -> Use {
        let _counted = Arc::clone(&self.0);
        Use { _counted }
    }

    pub(crate) fn count(&self) -> usize {
        let count = Arc::strong_count(&self.0) - 1;
        // What a user did before its use ended is done.
        fence(Ordering::Acquire);
        count
    }

    /// EBUSY while there are users.
    pub(crate) fn none(&self) -> Result<(), c_int> {
        match self.count() {
            0 => Ok(()),
            _ => Err(libc::EBUSY),
        }
    }
}
