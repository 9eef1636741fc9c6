//! Events of QPs, CQs, SRQs and the port, queued for the program.

use rdma_sys::{ibv_cq, ibv_event_type, ibv_qp, ibv_srq};

/// The object of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    Cq(*mut ibv_cq),
    Qp(*mut ibv_qp),
    Srq(*mut ibv_srq),
    Port,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Occurrence {
    pub(super) kind: ibv_event_type,
    pub(super) source: Source,
}

// SAFETY: the pointers are only carried, never followed, on the way to the program.
unsafe impl Send for Source {}
// SAFETY: as above.
unsafe impl Sync for Source {}
