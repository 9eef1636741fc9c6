//! Memory of the device's objects, for programs that count it in advance.

use super::completion::Completion;
use super::qp_context::QpContext;
use super::request::Sge;
use super::send_queue::Wqe;

/// Memory of a QP besides its queues here: its part of the verbs layer, and allocations that grow with use.
const QP_REST_BYTES: usize = 2048;

/// Memory of a CQ besides its ring.
const CQ_REST_BYTES: usize = 512;

/// Bytes of a QP with these queues and one element per work request.
pub fn queue_pair_bytes(send_wrs: u32, recv_wrs: u32, inline_bytes: u32) -> u64 {
    let send = size_of::<Wqe>() + size_of::<Sge>() + inline_bytes as usize;
    let recv = size_of::<(u64, usize)>() + size_of::<Sge>();
    let queues =
        send as u64 * u64::from(send_wrs).next_power_of_two() + recv as u64 * u64::from(recv_wrs);
    (size_of::<QpContext>() + QP_REST_BYTES) as u64 + queues
}

/// Bytes of a CQ for this many completions.
pub fn completion_queue_bytes(entries: u32) -> u64 {
    let ring = size_of::<Option<Completion>>() as u64 * u64::from(entries).next_power_of_two();
    CQ_REST_BYTES as u64 + ring
}
