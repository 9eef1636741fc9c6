//! Address handles: the way of datagrams to a port.

use std::ptr::NonNull;
use std::sync::Arc;

use rdma_sys::ibv_ah;

use super::qp::address_vector;
use super::{Operation, Path, ProtectionDomain, RemoteQp, VerbsError};

pub struct AddressHandle {
    pd: Arc<ProtectionDomain>,
    raw: NonNull<ibv_ah>,
}

// SAFETY: the handle is only passed to the library, which locks, and never changes.
unsafe impl Send for AddressHandle {}
// SAFETY: as above.
unsafe impl Sync for AddressHandle {}

impl AddressHandle {
    /// `ibv_create_ah(3)`: by `path` to the port of `remote`, whichever QP there is meant.
    pub fn new(
        pd: &Arc<ProtectionDomain>,
        path: &Path,
        remote: &RemoteQp,
    ) -> Result<Arc<Self>, VerbsError> {
        let mut attr = address_vector(path, remote);
        // SAFETY: the PD is alive and `attr` filled.
        let raw = unsafe { (pd.context().library().create_ah)(pd.raw(), &mut attr) };
        let raw = NonNull::new(raw).ok_or_else(|| {
            let object = format!("{} to GID {}", pd.context().name(), remote.gid);
            VerbsError::last(Operation::CreateAh, object)
        })?;
        Ok(Arc::new(AddressHandle { pd: Arc::clone(pd), raw }))
    }

    pub(super) fn raw(&self) -> *mut ibv_ah {
        self.raw.as_ptr()
    }
}

impl Drop for AddressHandle {
    fn drop(&mut self) {
        // SAFETY: rings that post with it held an `Arc` to it; it was not destroyed before.
        unsafe { (self.pd.context().library().destroy_ah)(self.raw()) };
    }
}
