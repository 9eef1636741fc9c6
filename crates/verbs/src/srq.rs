//! Shared receive queues: one queue of receives for many QPs.

use std::mem::zeroed;
use std::ptr::NonNull;
use std::sync::Arc;

use rdma_sys::{ibv_srq, ibv_srq_attr, ibv_srq_attr_mask, ibv_srq_init_attr};

use super::{Context, Operation, ProtectionDomain, VerbsError};

pub struct SharedReceiveQueue {
    pd: Arc<ProtectionDomain>,
    raw: NonNull<ibv_srq>,
}

// SAFETY: posting and modifying may be done from any thread (libibverbs locks), and the fields never change.
unsafe impl Send for SharedReceiveQueue {}
// SAFETY: as above.
unsafe impl Sync for SharedReceiveQueue {}

impl SharedReceiveQueue {
    /// `ibv_create_srq(3)` with room for `wrs` receives of at most `sges` elements.
    pub fn new(
        pd: &Arc<ProtectionDomain>,
        wrs: u32,
        sges: u32,
    ) -> Result<Arc<SharedReceiveQueue>, VerbsError> {
        // SAFETY: plain data, for which zero is valid.
        let mut init: ibv_srq_init_attr = unsafe { zeroed() };
        init.attr.max_wr = wrs;
        init.attr.max_sge = sges;
        // SAFETY: the PD is alive and `init` filled.
        let raw = unsafe { (pd.context().library().create_srq)(pd.raw(), &mut init) };
        let raw = NonNull::new(raw).ok_or_else(|| {
            let name = pd.context().name();
            VerbsError::last(Operation::CreateSrq, format!("{name} ({wrs} receives)"))
        })?;
        Ok(Arc::new(SharedReceiveQueue { pd: Arc::clone(pd), raw }))
    }

    /// Requests one asynchronous event for when fewer than `limit` receives are left (`ibv_modify_srq(3)`).
    pub fn arm(&self, limit: u32) -> Result<(), VerbsError> {
        let mut attr = ibv_srq_attr { max_wr: 0, max_sge: 0, srq_limit: limit };
        let mask = ibv_srq_attr_mask::IBV_SRQ_LIMIT.0.cast_signed();
        // SAFETY: the SRQ is alive and `attr` filled for the mask.
        match unsafe { (self.pd.context().library().modify_srq)(self.raw(), &mut attr, mask) } {
            0 => Ok(()),
            code => Err(VerbsError::returned(Operation::ModifySrq, self.context().name(), code)),
        }
    }

    pub(super) fn context(&self) -> &Context {
        self.pd.context()
    }

    pub(super) fn raw(&self) -> *mut ibv_srq {
        self.raw.as_ptr()
    }

    /// A number that identifies this SRQ while it lives; asynchronous events contain it.
    pub(super) fn identity(&self) -> usize {
        self.raw.as_ptr() as usize
    }
}

impl Drop for SharedReceiveQueue {
    fn drop(&mut self) {
        // SAFETY: its QPs and rings held an `Arc` to it, so they are gone; events that name it are acknowledged as soon
        // as they are read.
        unsafe { (self.pd.context().library().destroy_srq)(self.raw()) };
    }
}
