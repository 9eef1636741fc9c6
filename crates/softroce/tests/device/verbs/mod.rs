//! The device through its C functions. Both ends are in this process: each opening of `soft0` takes its own address.

mod events;
mod objects;
mod transfers;
mod windows;

use crate::support::raw::{Qp, STATE, blank};

/// Moves a QP to SQD, which is told once it has no sends left.
fn drain(qp: &Qp) {
    let mut attr: rdma_sys::ibv_qp_attr = blank();
    attr.qp_state = rdma_sys::ibv_qp_state::IBV_QPS_SQD;
    attr.en_sqd_async_notify = 1;
    assert_eq!(qp.modify(&mut attr, STATE | 4), 0);
}
