//! Work on a QP: what its two halves need beside themselves.

use super::core::Core;
use super::qp_context::QpContext;
use super::requester::Requester;
use super::tables::Tables;

/// What a half needs to work: the device, its tables held for reading, and the QP.
#[derive(Clone, Copy)]
pub(super) struct QpWork<'a> {
    pub(super) core: &'a Core,
    pub(super) tables: &'a Tables,
    pub(super) qp: &'a QpContext,
    /// The time, of a moment ago.
    pub(super) now_ns: u64,
}

impl QpWork<'_> {
    /// Lets the requester work, then does what may not be done under its lock.
    pub(super) fn with_requester(self, step: impl FnOnce(&mut Requester, QpWork<'_>)) {
        let mut requester = self.qp.requester();
        step(&mut requester, self);
        let broke = requester.take_broke();
        drop(requester);
        if broke {
            self.qp.flush_receives();
        }
    }
}
