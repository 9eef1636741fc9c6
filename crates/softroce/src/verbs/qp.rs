//! Queue pairs: their data, querying and destroying. [`super::qp_create`] creates them, [`super::qp_modify`] changes
//! their states.

use std::os::raw::c_int;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use rdma_sys::{ibv_qp, ibv_qp_attr, ibv_qp_cap, ibv_qp_ex, ibv_qp_init_attr};

use super::context::{Acks, Context, Source};
use super::errno::zero_or_error;
use super::object::{Behind, Use};
use super::wr_batch::Builder;
use crate::lock::Lock;
use crate::transport;
use crate::transport::{Kind, State};

/// The data of a QP.
pub(super) struct Qp {
    pub(super) transport: transport::Qp,
    pub(super) kind: Kind,
    pub(super) acks: Arc<Acks>,
    /// Requests being collected, if the QP was created with operations for `ibv_wr_*`.
    pub(super) builder: Option<Builder>,
    /// The attributes set by `modify_qp`. This lock comes before all of the transport, whose callbacks must not take it
    /// (see `transport/core.rs`).
    pub(super) attributes: Lock<ibv_qp_attr>,
    pub(super) cap: ibv_qp_cap,
    pub(super) signal_all: bool,
    pub(super) _uses: Vec<Use>,
}

/// The struct is the extended one, whose first member is the `ibv_qp`.
impl Behind<ibv_qp, ibv_qp_ex> for Qp {}

/// `ibv_qp_to_qp_ex(3)`: null for a QP created without operations for `ibv_wr_*`.
pub unsafe extern "C" fn qp_to_qp_ex(qp: *mut ibv_qp) -> *mut ibv_qp_ex {
    // SAFETY: a live QP.
    let builder = unsafe { &Qp::of(qp).builder };
    builder.as_ref().map_or(null_mut(), |_| qp.cast())
}

/// `mlx5dv_modify_qp_udp_sport(3)`: EOPNOTSUPP, since the ports are those of the device's sockets.
pub unsafe extern "C" fn modify_qp_udp_sport(_qp: *mut ibv_qp, _port: u16) -> c_int {
    libc::EOPNOTSUPP
}

/// The UDP source port of a connected QP's packets; `None` before RTR and for datagrams.
///
/// # Safety
/// A live QP.
pub unsafe fn udp_source_port(qp: NonNull<ibv_qp>) -> Option<u16> {
    // SAFETY: the caller's.
    unsafe { Qp::of(qp.as_ptr()) }.transport.udp_source_port()
}

/// `ibv_query_qp(3)`: all attributes, whatever the mask.
pub unsafe extern "C" fn query_qp(
    qp: *mut ibv_qp,
    attr: *mut ibv_qp_attr,
    _mask: c_int,
    init: *mut ibv_qp_init_attr,
) -> c_int {
    // SAFETY: a live QP of an open context.
    let (own, inner) = unsafe { (Context::own((*qp).context), Qp::of(qp)) };
    // SAFETY: two writable structs of plain data; a live QP, of which nothing changes but the state.
    zero_or_error(own.map(|_| unsafe {
        let kept = inner.attributes.lock();
        let state = inner.transport.state();
        attr.copy_from_nonoverlapping(&raw const *kept, 1);
        let attr = &mut *attr;
        attr.qp_state = state as u32;
        attr.cur_qp_state = state as u32;
        attr.cap = inner.cap;
        let (sq_psn, rq_psn) = inner.transport.psns();
        if !matches!(state, State::Reset | State::Init) {
            attr.rq_psn = rq_psn;
        }
        if !matches!(state, State::Reset | State::Init | State::Rtr) {
            attr.sq_psn = sq_psn;
        }
        let draining = state == State::Sqd && !inner.transport.send_queue_is_empty();
        attr.sq_draining = u8::from(draining);
        init.write(ibv_qp_init_attr {
            qp_context: (*qp).qp_context,
            send_cq: (*qp).send_cq,
            recv_cq: (*qp).recv_cq,
            srq: (*qp).srq,
            cap: inner.cap,
            qp_type: (*qp).qp_type,
            sq_sig_all: c_int::from(inner.signal_all),
        });
    }))
}

/// `ibv_destroy_qp(3)`: waits until the program has acknowledged all events that it took.
pub unsafe extern "C" fn destroy_qp(qp: *mut ibv_qp) -> c_int {
    // SAFETY: a live QP of an open context, to which nobody refers once its events have ended.
    zero_or_error(unsafe {
        Context::own((*qp).context).map(|context| {
            let inner = Qp::of(qp);
            inner.transport.destroy();
            context.end_events_of(Source::Qp(qp), &inner.acks);
            drop(Qp::take_back(qp));
        })
    })
}
