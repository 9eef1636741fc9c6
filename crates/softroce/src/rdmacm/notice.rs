//! An event on its way to the program.

use std::os::raw::c_int;
use std::sync::Arc;

use rdma_sys::{ibv_ah_attr, rdma_cm_event_type, rdma_cm_id};

use crate::verbs::events::Acks;
use crate::wire::cm::{Rep, Req, SidrRep};

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
    /// Of datagrams, and then only it and the first and the last field above: the path to the other end, and its QP's key.
    pub(super) datagrams: Option<(ibv_ah_attr, u32)>,
}

fn blank_path() -> ibv_ah_attr {
    // SAFETY: integers and arrays of them: zero is a value of each.
    unsafe { std::mem::zeroed() }
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
            datagrams: None,
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
            datagrams: None,
        }
    }

    /// Of a look-up, or of a reply without a QP: only private data are told.
    pub(super) fn of_look_up(private_data: &[u8]) -> Parameters {
        Parameters::of_datagrams(private_data, 0, blank_path(), 0)
    }

    /// Of the QP that was looked up.
    pub(super) fn of_found(rep: &SidrRep, path: ibv_ah_attr) -> Parameters {
        Parameters::of_datagrams(&rep.private_data, rep.qpn, path, rep.qkey)
    }

    fn of_datagrams(private_data: &[u8], qpn: u32, path: ibv_ah_attr, qkey: u32) -> Parameters {
        Parameters {
            private_data: private_data.into(),
            qpn,
            datagrams: Some((path, qkey)),
            ..Parameters::default()
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
