//! The device's state of a QP. It must not know the device nor the operations on the QP; these are in the files that
//! send requests ([`super::transmit`]), answer them and accept them.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::completion::{Completion, CompletionKind, Status};
use super::cq_context::CqContext;
use super::memory::{Access, PdId};
use super::qp_attributes::{Kind, QpEvent, State};
use super::recv_queue::RecvQueue;
use super::requester::Requester;
use super::responder::Responder;

/// The device's state of a QP.
pub(super) struct QpContext {
    pub(super) number: u32,
    pub(super) kind: Kind,
    pub(super) pd: PdId,
    pub(super) send_cq: Arc<CqContext>,
    pub(super) recv_cq: Arc<CqContext>,
    pub(super) receives: Arc<RecvQueue>,
    pub(super) shares_receives: bool,
    /// Whether every send is signalled.
    pub(super) signal_all: bool,
    pub(super) on_event: Box<dyn Fn(QpEvent) + Send + Sync>,
    pub(super) state: AtomicU32,
    pub(super) access: AtomicU32,
    pub(super) qkey: AtomicU32,
    pub(super) min_rnr_timer: AtomicU8,
    /// When the requester's timer is due; `u64::MAX` for never.
    pub(super) timer_ns: AtomicU64,
    /// Before this time it sends no CNP.
    pub(super) next_cnp_ns: AtomicU64,
    /// Whether it is in the list of QPs with answers to send, in that of answered QPs, and in its peer's queue.
    pub(super) owes: AtomicBool,
    pub(super) was_answered: AtomicBool,
    pub(super) waits: AtomicBool,
    /// Whether it is in the list of QPs whose posts wait for a poll.
    pub(super) is_corked: AtomicBool,
    /// Whether it is in the list of QPs that wait for room in a socket.
    pub(super) waits_for_room: AtomicBool,
    pub(super) requester: Mutex<Requester>,
    pub(super) responder: Mutex<Responder>,
}

impl QpContext {
    pub(super) fn requester(&self) -> MutexGuard<'_, Requester> {
        self.requester
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn responder(&self) -> MutexGuard<'_, Responder> {
        self.responder
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the responder, unless another thread holds it.
    pub(super) fn try_responder(&self) -> Option<MutexGuard<'_, Responder>> {
        self.responder.try_lock().ok()
    }

    /// Its current state.
    pub(super) fn state(&self) -> State {
        State::from_number(self.state.load(Ordering::SeqCst)).unwrap_or(State::Err)
    }

    pub(super) fn set_state(&self, state: State) {
        self.state.store(state as u32, Ordering::SeqCst);
    }

    pub(super) fn access(&self) -> Access {
        Access(self.access.load(Ordering::Relaxed))
    }

    pub(super) fn qkey(&self) -> u32 {
        self.qkey.load(Ordering::Relaxed)
    }

    pub(super) fn min_rnr_timer(&self) -> u8 {
        self.min_rnr_timer.load(Ordering::Relaxed)
    }

    pub(super) fn raise(&self, event: QpEvent) {
        (self.on_event)(event);
    }

    /// Completes a send. `false` if the CQ is broken.
    pub(super) fn complete_send(&self, completion: Completion) -> bool {
        self.send_cq.push(completion) || self.lose_cq()
    }

    /// Completes a receive. `false` if the CQ is broken.
    pub(super) fn complete_receive(&self, completion: Completion) -> bool {
        self.recv_cq.push(completion) || self.lose_cq()
    }

    fn lose_cq(&self) -> bool {
        if self.state() != State::Err {
            self.set_state(State::Err);
            self.raise(QpEvent::Fatal);
        }
        false
    }

    /// A completion with an error.
    pub(super) fn failure(&self, wr_id: u64, status: Status, kind: CompletionKind) -> Completion {
        Completion {
            wr_id,
            status,
            kind,
            length_bytes: 0,
            immediate: None,
            qpn: self.number,
            source_qpn: 0,
            has_grh: false,
            solicited: false,
        }
    }
}
