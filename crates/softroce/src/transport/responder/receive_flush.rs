//! The receives of a QP that fails: the one in use, and the posted ones, which are flushed.

use crate::transport::completion_queue::{Completion, CompletionKind, Status};
use crate::transport::qp_state::{QpContext, QpEvent, ReplyWhat, Responder, State};

impl Responder {
    /// Moves the QP to ERR because of a request; the receive in use completes with `status`.
    pub(crate) fn fail(&mut self, qp: &QpContext, status: Status) {
        qp.set_state(State::Err);
        if std::mem::take(&mut self.has_receive) {
            self.end_receive(qp, status);
        }
    }

    /// Completes the receive with an error.
    fn end_receive(&self, qp: &QpContext, status: Status) {
        let (wr_id, kind) = (self.receive.wr_id, CompletionKind::Receive);
        qp.complete_receive(Completion::of(qp.number, wr_id, status, kind));
    }

    /// Flushes the receives. Keeps only a NAK that is due and the answers before it, which it acknowledges.
    pub(crate) fn flush(&mut self, qp: &QpContext) {
        if std::mem::take(&mut self.has_receive) {
            self.end_receive(qp, Status::FlushError);
        }
        self.message = None;
        let refusal =
            self.replies.iter().rposition(|reply| matches!(reply.what, ReplyWhat::Refuse(_)));
        self.replies.truncate(refusal.map_or(0, |at| at + 1));
        if qp.shares_receives {
            return;
        }
        while qp.receives.take(&mut self.receive) {
            self.end_receive(qp, Status::FlushError);
        }
    }
}

impl QpContext {
    pub(crate) fn flush_receives(&self) {
        let mut responder = self.responder.lock();
        responder.flush(self);
        if self.shares_receives && !std::mem::replace(&mut responder.told_last_wqe, true) {
            self.raise(QpEvent::LastWqeReached);
        }
    }

    /// Flushes all that is posted, because the QP failed while it handled a packet.
    pub(crate) fn flush_all(&self) {
        self.requester.lock().flush(self);
        self.flush_receives();
    }
}
