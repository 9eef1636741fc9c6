//! An event on its way to the program.

use std::os::raw::{c_int, c_void};
use std::sync::Arc;

use rdma_sys::{
    ibv_ah_attr, param_t, rdma_cm_event_type, rdma_cm_id, rdma_conn_param, rdma_ud_param,
};

use crate::verbs::context::Acks;
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

/// What the other end has said.
pub(super) struct Parameters {
    /// In the form in which the program gets it.
    pub(super) param: param_t,
    pub(super) private_data: Box<[u8]>,
}

/// Where private data are, and their length.
fn place(private_data: &[u8]) -> (*const c_void, u8) {
    let place =
        if private_data.is_empty() { std::ptr::null() } else { private_data.as_ptr().cast() };
    (place, u8::try_from(private_data.len()).unwrap_or(u8::MAX))
}

impl Parameters {
    fn of_connection(private_data: Box<[u8]>, tell: impl FnOnce(&mut rdma_conn_param)) -> Self {
        // SAFETY: a pointer and integers: zero is a value of each.
        let mut conn: rdma_conn_param = unsafe { std::mem::zeroed() };
        (conn.private_data, conn.private_data_len) = place(&private_data);
        tell(&mut conn);
        let param = param_t { conn };
        Parameters { param, private_data }
    }

    fn of_datagrams(private_data: &[u8], tell: impl FnOnce(&mut rdma_ud_param)) -> Self {
        // SAFETY: a pointer, integers and arrays of them: zero is a value of each.
        let mut ud: rdma_ud_param = unsafe { std::mem::zeroed() };
        let private_data = Box::from(private_data);
        (ud.private_data, ud.private_data_len) = place(&private_data);
        tell(&mut ud);
        let param = param_t { ud };
        Parameters { param, private_data }
    }

    /// Of a request. What the other end can serve is what this end may ask for, and the other way round.
    pub(super) fn of_request(req: &Req, program_data: &[u8]) -> Parameters {
        Parameters::of_connection(program_data.into(), |conn| {
            conn.responder_resources = req.initiator_depth;
            conn.initiator_depth = req.responder_resources;
            conn.flow_control = req.flow_control.into();
            conn.retry_count = req.retry_count;
            conn.rnr_retry_count = req.rnr_retry_count;
            conn.srq = req.srq.into();
            conn.qp_num = req.qpn;
        })
    }

    pub(super) fn of_reply(rep: &Rep) -> Parameters {
        Parameters::of_connection((&*rep.private_data).into(), |conn| {
            conn.responder_resources = rep.initiator_depth;
            conn.initiator_depth = rep.responder_resources;
            conn.flow_control = rep.flow_control.into();
            conn.rnr_retry_count = rep.rnr_retry_count;
            conn.srq = rep.srq.into();
            conn.qp_num = rep.qpn;
        })
    }

    /// Of a rejection; without data of an event that tells nothing.
    pub(super) fn of_data(private_data: Box<[u8]>) -> Parameters {
        Parameters::of_connection(private_data, |_| {})
    }

    /// Of a look-up, or of a reply without a QP: only private data are told.
    pub(super) fn of_look_up(private_data: &[u8]) -> Parameters {
        Parameters::of_datagrams(private_data, |_| {})
    }

    /// Of the QP that was looked up.
    pub(super) fn of_found(rep: &SidrRep, path: ibv_ah_attr) -> Parameters {
        Parameters::of_datagrams(&rep.private_data, |ud| {
            (ud.ah_attr, ud.qp_num, ud.qkey) = (path, rep.qpn, rep.qkey);
        })
    }
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters::of_data(Box::default())
    }
}
