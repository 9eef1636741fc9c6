//! The context in which both halves of a QP work.

use std::sync::atomic::Ordering;

use crate::transport::device::core::Core;
use crate::transport::device::outbox::Outbox;
use crate::transport::device::tables::Tables;
use crate::transport::memory::Access;
use crate::transport::qp_state::{QpContext, Requester};

/// The device, its tables locked for reading, and the QP.
#[derive(Clone, Copy)]
pub(crate) struct QpWork<'a> {
    pub(crate) core: &'a Core,
    pub(crate) tables: &'a Tables,
    pub(crate) qp: &'a QpContext,
    /// The current time, read shortly before.
    pub(crate) now_ns: u64,
}

impl QpWork<'_> {
    /// Runs `step` on the requester, then does the work that must not be done under its lock.
    pub(crate) fn with_requester(self, step: impl FnOnce(&mut Requester, QpWork<'_>)) {
        let mut requester = self.qp.requester.lock();
        step(&mut requester, self);
        let broke = requester.take_broke();
        drop(requester);
        if broke {
            self.qp.flush_receives();
            self.core.release_waiting();
        }
    }

    /// A pointer to registered memory, if it is of the QP's protection domain and allows this.
    pub(crate) fn resolve(
        self,
        key: u32,
        address: u64,
        length_bytes: u64,
        need: Access,
    ) -> Option<*mut u8> {
        let memories = &self.tables.memories;
        memories.resolve(key, self.qp.pd, address, length_bytes, need)
    }

    /// Adds an acknowledgement that the QP owes behind the requests that it has just added.
    pub(crate) fn append_acknowledgement(self, outbox: &mut Outbox<'_>) {
        if self.qp.owes.load(Ordering::Relaxed)
            && let Some(mut responder) = self.qp.responder.try_lock()
        {
            responder.append_acknowledgement(self, outbox);
        }
    }
}
