//! Removes requests from the send queue: completed, failed, flushed, discarded or drained.

use std::sync::atomic::Ordering;

use crate::transport::completion_queue::{Completion, CompletionKind, Status};
use crate::transport::qp_state::{Kind, QpContext, QpEvent, Requester, State};
use crate::transport::work_queues::{Operation, Wqe};

impl Requester {
    /// Completes the oldest request; adds a completion if it is signalled.
    pub(crate) fn complete_head(&mut self, qp: &QpContext) {
        let Some(wqe) = self.queue.get(self.queue.head) else {
            return;
        };
        let whole = !wqe.signaled()
            || qp.complete_send(Completion {
                length_bytes: wqe.length_bytes,
                ..completion(qp, wqe, Status::Success)
            });
        self.queue.head += 1;
        if !whole {
            self.flush(qp);
            self.broke = true;
        }
    }

    /// Records that request `index` cannot be sent. Earlier requests complete first.
    pub(crate) fn refuse(&mut self, qp: &QpContext, index: u64, status: Status) {
        self.failed = Some((index, status));
        self.break_if_failed(qp);
    }

    /// Fails the QP if its oldest request cannot be sent.
    pub(crate) fn break_if_failed(&mut self, qp: &QpContext) {
        if let Some((index, status)) = self.failed
            && index == self.queue.head
        {
            self.break_at_head(qp, status);
        }
    }

    /// Completes the oldest request with the error `status` and moves the QP to ERR. An unreliable QP only stops
    /// sending (SQE).
    pub(crate) fn break_at_head(&mut self, qp: &QpContext, status: Status) {
        let reliable = qp.kind == Kind::Rc;
        // Who sees the completion finds the QP in this state.
        qp.set_state(if reliable { State::Err } else { State::Sqe });
        if let Some(wqe) = self.queue.get(self.queue.head) {
            qp.complete_send(completion(qp, wqe, status));
            self.queue.head += 1;
        }
        self.flush(qp);
        self.broke = reliable;
    }

    /// Completes all posted requests as flushed.
    pub(crate) fn flush(&mut self, qp: &QpContext) {
        self.let_go(qp);
        while let Some(wqe) = self.queue.get(self.queue.head) {
            qp.complete_send(completion(qp, wqe, Status::FlushError));
            self.queue.head += 1;
        }
        self.begin_anew();
    }

    /// Discards all posted requests.
    pub(crate) fn forget_all(&mut self, qp: &QpContext) {
        self.let_go(qp);
        self.queue.head = self.queue.tail;
        self.begin_anew();
        self.drains = None;
        self.path = None;
    }

    /// Drops all packets in flight, and stops the timer.
    fn let_go(&mut self, qp: &QpContext) {
        self.go_back();
        self.pauses = false;
        qp.timer_ns.store(u64::MAX, Ordering::Relaxed);
    }

    /// Sends requests already begun to their end, but no others.
    pub(crate) fn drain(&mut self, qp: &QpContext, notify: bool) {
        self.drains = Some((self.assigned, notify));
        self.tell_if_drained(qp);
    }

    pub(crate) fn tell_if_drained(&mut self, qp: &QpContext) {
        if let Some((end, true)) = self.drains
            && self.queue.head >= end
        {
            self.drains = Some((end, false));
            qp.raise(QpEvent::SendQueueDrained);
        }
    }
}

fn completion(qp: &QpContext, wqe: &Wqe, status: Status) -> Completion {
    let kind = match wqe.operation {
        Operation::Send => CompletionKind::Send,
        Operation::Write { .. } => CompletionKind::RdmaWrite,
        Operation::Read { .. } => CompletionKind::RdmaRead,
        Operation::FetchAdd { .. } => CompletionKind::FetchAdd,
        Operation::CompareSwap { .. } => CompletionKind::CompareSwap,
    };
    Completion::of(qp.number, wqe.wr_id, status, kind)
}
