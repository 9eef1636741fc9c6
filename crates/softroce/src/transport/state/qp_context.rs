//! The device's state of a QP. It must not know the device nor the operations on the QP; these are in the files that
//! send requests (`requester/transmit`), answer them and accept them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use super::completion::Completion;
use super::cq_context::CqContext;
use super::qp_attributes::{Kind, QpEvent, State};
use super::recv_queue::RecvQueue;
use super::requester::Requester;
use super::responder::Responder;
use crate::lock::Lock;
use crate::transport::memory::regions::{Access, PdId};

/// The device's state of a QP.
pub(crate) struct QpContext {
    pub(crate) number: u32,
    pub(crate) kind: Kind,
    pub(crate) pd: PdId,
    pub(crate) send_cq: Arc<CqContext>,
    pub(crate) recv_cq: Arc<CqContext>,
    pub(crate) receives: Arc<RecvQueue>,
    pub(crate) shares_receives: bool,
    /// Whether every send is signalled.
    pub(crate) signal_all: bool,
    pub(crate) on_event: Box<dyn Fn(QpEvent) + Send + Sync>,
    pub(crate) state: AtomicU32,
    pub(crate) access: AtomicU32,
    pub(crate) qkey: AtomicU32,
    pub(crate) min_rnr_timer: AtomicU8,
    /// When the requester's timer is due; `u64::MAX` for never.
    pub(crate) timer_ns: AtomicU64,
    /// Before this time it sends no CNP.
    pub(crate) next_cnp_ns: AtomicU64,
    /// Whether it is in the list of QPs with answers to send, in that of answered QPs, and in its peer's queue.
    pub(crate) owes: AtomicBool,
    pub(crate) was_answered: AtomicBool,
    pub(crate) waits: AtomicBool,
    /// Whether it is in the list of QPs whose posts wait for a poll.
    pub(crate) is_corked: AtomicBool,
    /// Whether it is in the list of QPs that wait for room in a socket.
    pub(crate) waits_for_room: AtomicBool,
    pub(crate) requester: Lock<Requester>,
    pub(crate) responder: Lock<Responder>,
}

impl QpContext {
    pub(crate) fn state(&self) -> State {
        State::from_number(self.state.load(Ordering::SeqCst)).unwrap_or(State::Err)
    }

    pub(crate) fn set_state(&self, state: State) {
        self.state.store(state as u32, Ordering::SeqCst);
    }

    pub(crate) fn access(&self) -> Access {
        Access(self.access.load(Ordering::Relaxed))
    }

    pub(crate) fn qkey(&self) -> u32 {
        self.qkey.load(Ordering::Relaxed)
    }

    pub(crate) fn min_rnr_timer(&self) -> u8 {
        self.min_rnr_timer.load(Ordering::Relaxed)
    }

    pub(crate) fn raise(&self, event: QpEvent) {
        (self.on_event)(event);
    }

    /// Completes a send. `false` if the CQ is broken.
    pub(crate) fn complete_send(&self, completion: Completion) -> bool {
        self.send_cq.push(completion) || self.lose_cq()
    }

    /// Completes a receive. `false` if the CQ is broken.
    pub(crate) fn complete_receive(&self, completion: Completion) -> bool {
        self.recv_cq.push(completion) || self.lose_cq()
    }

    fn lose_cq(&self) -> bool {
        if self.state() != State::Err {
            self.set_state(State::Err);
            self.raise(QpEvent::Fatal);
        }
        false
    }
}
