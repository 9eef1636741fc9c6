//! The options with which the verbs layer creates a QP.

use std::sync::Arc;

use crate::transport::cq::Cq;
use crate::transport::memory::PdId;
use crate::transport::qp_state::{Kind, QpEvent};
use crate::transport::work_queues::{Capacities, RecvQueue};

/// The source of a QP's receives.
pub enum ReceiveSource {
    /// Its own queue of [`Capacities::recv_wrs`].
    Own,
    /// A shared one (SRQ).
    Shared(Arc<RecvQueue>),
}

/// The options of a new QP.
pub struct QpOptions {
    pub kind: Kind,
    pub pd: PdId,
    pub send_cq: Cq,
    pub recv_cq: Cq,
    pub receives: ReceiveSource,
    pub capacities: Capacities,
    /// Whether every send is signalled.
    pub signal_all: bool,
    /// Called on events; must not call the transport.
    pub on_event: Box<dyn Fn(QpEvent) + Send + Sync>,
}
