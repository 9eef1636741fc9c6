//! Events that the program has taken and not acknowledged.

use std::os::raw::{c_int, c_void};
use std::sync::Arc;

use rdma_sys::{rdma_cm_event, rdma_cm_event_type as kind, rdma_conn_param, rdma_ud_param};

use super::notice::{Notice, Parameters};
use crate::verbs::errno::minus_one_or_zero;
use crate::verbs::events::Acks;

/// An event that the program has; the struct comes first, so a pointer to one is a pointer to the other.
#[repr(C)]
struct Object {
    verbs: rdma_cm_event,
    /// What `private_data` points to.
    _private_data: Box<[u8]>,
    acks: Arc<Acks>,
}

/// Where they are, and their length.
fn private_data(parameters: &Parameters) -> (*const c_void, u8) {
    let data = &parameters.private_data;
    let place = match data.is_empty() {
        true => std::ptr::null(),
        false => data.as_ptr().cast::<c_void>(),
    };
    (place, u8::try_from(data.len()).unwrap_or(u8::MAX))
}

fn of_connection(parameters: &Parameters) -> rdma_conn_param {
    let (private_data, private_data_len) = private_data(parameters);
    rdma_conn_param {
        private_data,
        private_data_len,
        responder_resources: parameters.responder_resources,
        initiator_depth: parameters.initiator_depth,
        flow_control: parameters.flow_control.into(),
        retry_count: parameters.retry_count,
        rnr_retry_count: parameters.rnr_retry_count,
        srq: parameters.srq.into(),
        qp_num: parameters.qpn,
    }
}

/// The event as the program gets it.
pub(super) fn give(notice: Notice, event: kind::Type, status: c_int) -> *mut rdma_cm_event {
    // SAFETY: pointers and integers, for which zero is a value.
    let mut verbs: rdma_cm_event = unsafe { std::mem::zeroed() };
    verbs.id = notice.id;
    verbs.listen_id = notice.listener;
    verbs.event = event;
    verbs.status = status;
    match notice.parameters.datagrams {
        None => verbs.param.conn = of_connection(&notice.parameters),
        Some((ah_attr, qkey)) => {
            let (private_data, private_data_len) = private_data(&notice.parameters);
            verbs.param.ud = rdma_ud_param {
                private_data,
                private_data_len,
                ah_attr,
                qp_num: notice.parameters.qpn,
                qkey,
            };
        }
    }
    let object = Object {
        verbs,
        _private_data: notice.parameters.private_data,
        acks: notice.acks,
    };
    Box::into_raw(Box::new(object)).cast()
}

/// `rdma_ack_cm_event(3)`.
///
/// # Safety
/// As for librdmacm.
pub unsafe extern "C" fn ack_cm_event(event: *mut rdma_cm_event) -> c_int {
    if event.is_null() {
        return minus_one_or_zero(Err(libc::EINVAL));
    }
    // SAFETY: made by `give` from such a box.
    let object = unsafe { Box::from_raw(event.cast::<Object>()) };
    object.acks.acknowledge(1);
    0
}
