//! The channel that delivers rdma_cm's events for its ids.

use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;

use rdma_sys::rdma_event_channel;

use super::error::{CmError, CmStep};
use super::library::CmLibrary;
use crate::VerbsLibrary;

/// An event channel, kept by the ids that were made on it.
pub struct CmChannel {
    pub(super) library: &'static CmLibrary,
    raw: NonNull<rdma_event_channel>,
}

// SAFETY: librdmacm's functions may be called from any thread; a channel is a file descriptor that never changes.
unsafe impl Send for CmChannel {}
// SAFETY: as above.
unsafe impl Sync for CmChannel {}

impl CmChannel {
    /// Opens a channel of the connection manager that goes with a verbs library; loads librdmacm if it is that.
    ///
    /// # Errors
    /// No library, no rdma_cm in the kernel, or no permission to use it.
    pub fn open(verbs: &VerbsLibrary) -> Result<Arc<Self>, CmError> {
        let library = CmLibrary::of(verbs)?;
        // SAFETY: the function takes nothing.
        let raw = unsafe { (library.create_event_channel)() };
        let failed = || CmError::last(CmStep::CreateEventChannel, "/dev/infiniband/rdma_cm");
        let channel = CmChannel { library, raw: NonNull::new(raw).ok_or_else(failed)? };
        // SAFETY: a descriptor that is open as long as the channel.
        let set = unsafe {
            let fd = channel.raw.as_ref().fd;
            let flags = libc::fcntl(fd, libc::F_GETFL);
            libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK)
        };
        if set < 0 {
            return Err(failed());
        }
        Ok(Arc::new(channel))
    }

    pub(super) fn raw(&self) -> *mut rdma_event_channel {
        self.raw.as_ptr()
    }

    /// Readable while an event waits.
    pub(super) fn file(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as the channel.
        unsafe { BorrowedFd::borrow_raw(self.raw.as_ref().fd) }
    }
}

impl Drop for CmChannel {
    fn drop(&mut self) {
        // SAFETY: opened by this library, and all ids held an `Arc` to it.
        unsafe { (self.library.destroy_event_channel)(self.raw()) };
    }
}
