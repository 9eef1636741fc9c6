//! The receives of a QP that fails: the one in use, and the posted ones, which are flushed.

use crate::transport::state::completion::{CompletionKind, Status};
use crate::transport::state::qp_attributes::{QpEvent, State};
use crate::transport::state::qp_context::QpContext;
use crate::transport::state::responder::{Reply, Responder};

impl Responder {
    /// Moves the QP to ERR because of a request; the receive in use completes with `status`.
    pub(crate) fn fail(&mut self, qp: &QpContext, status: Status) {
        qp.set_state(State::Err);
        if std::mem::take(&mut self.has_receive) {
            qp.complete_receive(qp.failure(self.receive.wr_id, status, CompletionKind::Receive));
        }
    }

    /// Flushes the receives. Keeps only a NAK that is due and the answers before it, which it acknowledges.
    pub(crate) fn flush(&mut self, qp: &QpContext) {
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
    pub(crate) fn flush_receives(&self) {
        let mut responder = self.responder();
        responder.flush(self);
        if self.shares_receives && !std::mem::replace(&mut responder.told_last_wqe, true) {
            self.raise(QpEvent::LastWqeReached);
        }
    }

    /// Flushes all that is posted, because the QP failed while it handled a packet.
    pub(crate) fn flush_all(&self) {
        self.requester().flush(self);
        self.flush_receives();
    }
}
