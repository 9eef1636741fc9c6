//! An event on its way to the program.

use std::os::raw::c_int;
use std::sync::Arc;

use rdma_sys::{rdma_cm_event_type, rdma_cm_id};

use crate::verbs::events::Acks;
use crate::wire::cm::{Rep, Req};

/// An event in a channel's queue.
pub(super) struct Notice {
    /// The id that it is about; of a request the new one.
    pub(super) id: *mut rdma_cm_id,
    /// The id that listened, of a request; otherwise null.
    pub(super) listener: *mut rdma_cm_id,
    pub(super) kind: rdma_cm_event_type::Type,
    pub(super) status: c_int,
    pub(super) parameters: Parameters,
    /// Of the id that cannot be destroyed before the event is acknowledged.
    pub(super) acks: Arc<Acks>,
}

// SAFETY: the pointers are only carried to the program's thread; both ids live until the event is taken or forgotten.
unsafe impl Send for Notice {}

/// What the other end has said, in the form of `rdma_conn_param`.
#[derive(Clone, Default)]
pub(super) struct Parameters {
    pub(super) private_data: Box<[u8]>,
    pub(super) responder_resources: u8,
    pub(super) initiator_depth: u8,
    pub(super) flow_control: bool,
    pub(super) retry_count: u8,
    pub(super) rnr_retry_count: u8,
    pub(super) srq: bool,
    pub(super) qpn: u32,
}

impl Parameters {
    /// Of a request. What the other end can serve is what this end may ask for, and the other way round.
    pub(super) fn of_request(req: &Req, program_data: &[u8]) -> Parameters {
        Parameters {
            private_data: program_data.into(),
            responder_resources: req.initiator_depth,
            initiator_depth: req.responder_resources,
            flow_control: req.flow_control,
            retry_count: req.retry_count,
            rnr_retry_count: req.rnr_retry_count,
            srq: req.srq,
            qpn: req.qpn,
        }
    }

    /// Of a reply.
    pub(super) fn of_reply(rep: &Rep) -> Parameters {
        Parameters {
            private_data: rep.private_data.into(),
            responder_resources: rep.initiator_depth,
            initiator_depth: rep.responder_resources,
            flow_control: rep.flow_control,
            retry_count: 0,
            rnr_retry_count: rep.rnr_retry_count,
            srq: rep.srq,
            qpn: rep.qpn,
        }
    }

    /// Of a rejection.
    pub(super) fn of_data(private_data: Box<[u8]>) -> Parameters {
        Parameters {
            private_data,
            ..Parameters::default()
        }
    }
}
