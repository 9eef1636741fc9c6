//! Checks a request at the sender: its length and its memory (InfiniBand specification 9.9.2).

use crate::transport::completion_queue::Status;
use crate::transport::memory::{self, Access};
use crate::transport::outbox::QpWork;
use crate::transport::qp_state::Requester;
use crate::transport::work_queues::{Bytes, MAX_MESSAGE_BYTES, Operation, Wqe};

impl Requester {
    /// The error of a request at this end, if any.
    pub(crate) fn check(&self, work: QpWork<'_>, index: u64, wqe: &Wqe) -> Option<Status> {
        let atomic = wqe.is_fetch() && !matches!(wqe.operation, Operation::Read { .. });
        let least_bytes = if atomic { 8 } else { 0 };
        if !(least_bytes..=MAX_MESSAGE_BYTES).contains(&wqe.length_bytes) {
            return Some(Status::LocalLengthError);
        }
        let need = if wqe.is_fetch() { Access::LOCAL_WRITE } else { Access::NONE };
        match self.queue.bytes(index) {
            Bytes::Inline(_) => None,
            Bytes::Registered(sges) => {
                let allowed = memory::allowed(&work.tables.memories, work.qp.pd, sges, need);
                (!allowed).then_some(Status::LocalProtectionError)
            }
        }
    }
}
