//! `ibv_modify_qp_rate_limit(3)`: the most that a QP sends. It must not know how a rate is kept.

use std::os::raw::c_int;

use rdma_sys::{ibv_qp, ibv_qp_rate_limit_attr};

use super::context::Context;
use super::errno::zero_or_error;
use super::limits::{LEAST_KBIT_PER_S, MOST_KBIT_PER_S};
use super::object::Behind;
use super::qp::Qp;
use crate::transport::{Kind, State};

unsafe fn limit_rate(qp: *mut ibv_qp, attr: Option<&ibv_qp_rate_limit_attr>) -> Result<(), c_int> {
    // SAFETY: a live QP of an open context.
    let (inner, _) = unsafe { (Qp::of(qp), Context::own((*qp).context)?) };
    let kbit_per_s = attr.filter(|attr| attr.comp_mask == 0).ok_or(libc::EINVAL)?.rate_limit;
    if inner.kind == Kind::Ud {
        return Err(libc::EOPNOTSUPP);
    }
    let is_known = kbit_per_s == 0 || (LEAST_KBIT_PER_S..=MOST_KBIT_PER_S).contains(&kbit_per_s);
    if !is_known || inner.transport.state() != State::Rts {
        return Err(libc::EINVAL);
    }
    let bytes_per_ns = f64::from(kbit_per_s) * 1_000.0 / 8.0 / 1e9;
    let limit = (kbit_per_s > 0).then_some(bytes_per_ns);
    inner.transport.limit_rate(limit);
    Ok(())
}

/// `ibv_modify_qp_rate_limit(3)`, by the pointer in `verbs_context`; a rate of 0 ends a limit. Bursts and packets are as they
/// are. EINVAL for a QP that is not in RTS, and for a rate that [`super::limits::PACING_CAPS`] has not; EOPNOTSUPP for datagrams; EIO in a child of
/// the process that opened the device.
pub(super) unsafe extern "C" fn modify_qp_rate_limit(
    qp: *mut ibv_qp,
    attr: *mut ibv_qp_rate_limit_attr,
) -> c_int {
    // SAFETY: the caller's: a live QP, and a readable struct or null.
    zero_or_error(unsafe { limit_rate(qp, attr.as_ref()) })
}
