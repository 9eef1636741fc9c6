//! `loop0`: a loopback device that moves bytes between QPs of this process.
//!
//! It is simple and strict, not fast: it has one lock, and the calls of the data path run it. It refuses what a real
//! device refuses: transitions, keys, bounds, access, queue depths (a slot of the send queue is free when a
//! completion at or after it was polled), CQ overflow. A failed WR moves its QP to ERR and flushes it; a bad access
//! or a receive that is too small also moves the peer to ERR. In a completion with an error only `wr_id`, `status`
//! and `qp_num` are defined.
//!
//! Each WR waits for a random time, so the order of completions of different QPs changes with the seed; completions
//! of one QP stay in order. Time passes only in calls of the data path, and while a CQ is armed.
//!
//! All contexts of the process share the device, and so all tests of a process share its hooks: serialise tests that
//! use them, and call [`reset_hooks`] at their end.

mod armed_thread;
mod datapath;
mod engine;
mod fabric;
mod memory;
mod objects;
mod srq;
#[cfg(test)]
mod tests;

use std::time::Duration;

use rdma_sys::{ibv_context_ops, ibv_wc_status};

pub(crate) use objects::{
    create_cq, create_qp, destroy_cq, destroy_qp, forget_mr, modify_qp, pd_in_use, query_qp, reg_mr,
};

pub(crate) use srq::{create_srq, destroy_srq, modify_srq};

use fabric::fabric;

/// Restarts the random delays with `seed`.
pub fn set_seed(seed: u64) {
    fabric().seed(seed);
}

/// Sets the longest random delay of a WR, initially 5 us. Zero completes each WR in the next call of the data path.
pub fn set_max_delay(delay: Duration) {
    fabric().hooks.max_delay = delay;
}

/// Inverts byte `byte` of the next long enough message posted on `qp_num` (any QP if `None`): in the receiver's data
/// of a send or write, in the returned data of a read.
pub fn corrupt_next_message(qp_num: Option<u32>, byte: usize) {
    fabric().hooks.corrupt = Some((qp_num, byte));
}

/// Makes the next executed WR of any QP fail with `status`, which moves its QP to ERR.
pub fn fail_next(status: ibv_wc_status::Type) {
    fabric().hooks.fail = Some(status);
}

/// Cancels [`corrupt_next_message`] and [`fail_next`] if they have not happened yet, and resets the delay.
pub fn reset_hooks() {
    fabric().hooks = fabric::Hooks::default();
}

/// Fills the data path of a context.
pub(crate) fn fill_ops(ops: &mut ibv_context_ops) {
    ops.post_send = Some(datapath::post_send);
    ops.post_recv = Some(datapath::post_recv);
    ops.post_srq_recv = Some(srq::post_srq_recv);
    ops.poll_cq = Some(datapath::poll_cq);
    ops.req_notify_cq = Some(armed_thread::req_notify_cq);
}
