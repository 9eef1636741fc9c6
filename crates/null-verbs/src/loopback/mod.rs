//! `loop0`: a loopback device that really moves bytes between QPs of this process.
//!
//! It is simple and strict, not fast: one lock, and the calls of the data path drive it. What a real
//! device refuses, it refuses: transitions, keys, bounds, access, queue depths (a slot of the send
//! queue is free when a completion at or behind it was polled), CQ overflow. A failed WR moves its
//! QP to ERR and flushes it; a bad access does so to the peer too, as does a receive that is too
//! small. In a completion with an error only `wr_id`, `status` and `qp_num` mean something.
//!
//! Each WR waits a random time, so that completions of different QPs come in an order that changes
//! with the seed; those of one QP never pass one another. Time only passes in calls of the data path, and while
//! a CQ is armed.
//!
//! All contexts of the process share the device, and so all tests of a process share its hooks:
//! serialise tests that use them, and end them with [`reset_hooks`].

mod clockwork;
mod datapath;
mod engine;
mod fabric;
mod memory;
mod objects;
#[cfg(test)]
mod tests;

use std::time::Duration;

use rdma_sys::{ibv_context_ops, ibv_wc_status};

pub(crate) use objects::{
    create_cq, create_qp, destroy_cq, destroy_qp, forget_mr, modify_qp, pd_in_use, query_qp, reg_mr,
};

use fabric::fabric;

/// Starts the random delays anew.
pub fn set_seed(seed: u64) {
    fabric().seed(seed);
}

/// The longest random delay of a WR; zero completes each WR in the next call of the data path.
/// At first 5 us.
pub fn set_max_delay(delay: Duration) {
    fabric().hooks.max_delay = delay;
}

/// Inverts byte `byte` of the next message that `qp_num` (any QP if `None`) posted and that is long
/// enough: of what the receiver gets for a send or write, of what comes back for a read.
pub fn corrupt_next_message(qp_num: Option<u32>, byte: usize) {
    fabric().hooks.corrupt = Some((qp_num, byte));
}

/// Makes the next WR that any QP carries out fail with `status`, moving its QP to ERR.
pub fn fail_next(status: ibv_wc_status::Type) {
    fabric().hooks.fail = Some(status);
}

/// Takes back [`corrupt_next_message`] and [`fail_next`] where they have not struck yet, and sets
/// the delay to what it was at first.
pub fn reset_hooks() {
    fabric().hooks = fabric::Hooks::default();
}

/// Fills the data path of a context.
pub(crate) fn fill_ops(ops: &mut ibv_context_ops) {
    ops.post_send = Some(datapath::post_send);
    ops.post_recv = Some(datapath::post_recv);
    ops.poll_cq = Some(datapath::poll_cq);
    ops.req_notify_cq = Some(clockwork::req_notify_cq);
}
