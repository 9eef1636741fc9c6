//! Flushes the receives of a QP in ERR.

use super::completion::{CompletionKind, Status};
use super::qp_attributes::QpEvent;
use super::qp_context::QpContext;
use super::responder::{Reply, Responder};

impl Responder {
    /// Flushes the receives. Keeps only a NAK that is due and the answers before it, which it acknowledges.
    pub(super) fn flush(&mut self, qp: &QpContext) {
        let kind = CompletionKind::Receive;
        if std::mem::take(&mut self.has_receive) {
            qp.complete_receive(qp.failure(self.receive.wr_id, Status::FlushError, kind));
        }
        self.message = None;
        let refusal = self
            .replies
            .iter()
            .rposition(|reply| matches!(reply, Reply::Refuse { .. }));
        self.replies.truncate(refusal.map_or(0, |at| at + 1));
        if qp.shares_receives {
            return;
        }
        while qp.receives.take(&mut self.receive) {
            qp.complete_receive(qp.failure(self.receive.wr_id, Status::FlushError, kind));
        }
    }
}

impl QpContext {
    /// Flushes the posted receives.
    pub(super) fn flush_receives(&self) {
        self.responder().flush(self);
        if self.shares_receives {
            self.raise(QpEvent::LastWqeReached);
        }
    }
}
