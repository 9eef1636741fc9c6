//! Thread domains: what one thread alone uses, the library does not lock (ibv_alloc_td(3)).

use std::ptr::NonNull;
use std::sync::Arc;

use rdma_sys::{ibv_pd, ibv_td};

use super::{Operation, ProtectionDomain, VerbsError, ffi};

/// A thread domain, with the parent domain that joins it to a PD: QPs are made in that.
pub struct ThreadDomain {
    pd: Arc<ProtectionDomain>,
    parent: NonNull<ibv_pd>,
    raw: NonNull<ibv_td>,
}

// SAFETY: a domain is only named when QPs are made in it, which the library locks, and never changes.
unsafe impl Send for ThreadDomain {}
// SAFETY: as above.
unsafe impl Sync for ThreadDomain {}

impl ThreadDomain {
    /// `ibv_alloc_td(3)` and `ibv_alloc_parent_domain(3)` of `pd`.
    ///
    /// # Errors
    /// The failed call: EOPNOTSUPP on a device without them.
    pub fn new(pd: &Arc<ProtectionDomain>) -> Result<Arc<Self>, VerbsError> {
        let context = pd.context();
        let failed = |operation| VerbsError::last(operation, context.name());
        // SAFETY: the context is open.
        let raw = NonNull::new(unsafe { ffi::alloc_td(context.raw()) })
            .ok_or_else(|| failed(Operation::AllocTd))?;
        // SAFETY: both are alive and of one context.
        let parent = NonNull::new(unsafe { ffi::alloc_parent_domain(pd.raw(), raw.as_ptr()) });
        let Some(parent) = parent else {
            let error = failed(Operation::AllocParentDomain);
            // SAFETY: made above, and nothing uses it.
            unsafe { ffi::dealloc_td(raw.as_ptr()) };
            return Err(error);
        };
        Ok(Arc::new(ThreadDomain { pd: Arc::clone(pd), parent, raw }))
    }

    pub(super) fn raw(&self) -> *mut ibv_pd {
        self.parent.as_ptr()
    }
}

impl Drop for ThreadDomain {
    fn drop(&mut self) {
        // SAFETY: QPs made in it held an `Arc` to it, so they are gone; neither was deallocated before.
        unsafe {
            (self.pd.context().library().dealloc_pd)(self.parent.as_ptr());
            ffi::dealloc_td(self.raw.as_ptr());
        }
    }
}
