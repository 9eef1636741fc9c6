//! What a QP is made of, as the verbs layer says it.

use std::sync::Arc;

use super::cq::Cq;
use super::memory::PdId;
use super::qp_attributes::{Capacities, Kind, QpEvent};
use super::recv_queue::RecvQueue;

/// Where a QP's receives come from.
pub enum ReceiveSource {
    /// A queue of its own, of [`Capacities::recv_wrs`].
    Own,
    /// A shared one (SRQ).
    Shared(Arc<RecvQueue>),
}

/// What a QP is made of.
pub struct QpOptions {
    /// Service.
    pub kind: Kind,
    /// Domain.
    pub pd: PdId,
    /// Completions of sends.
    pub send_cq: Cq,
    /// Completions of receives.
    pub recv_cq: Cq,
    /// Receives.
    pub receives: ReceiveSource,
    /// Room.
    pub capacities: Capacities,
    /// Every send is signalled.
    pub signal_all: bool,
    /// Called on events; must not call back into the transport.
    pub on_event: Box<dyn Fn(QpEvent) + Send + Sync>,
}
