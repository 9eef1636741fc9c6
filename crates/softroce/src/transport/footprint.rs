//! What the device's objects take of memory, for programs that count before they make them.

use super::completion::Completion;
use super::qp_context::QpContext;
use super::request::Sge;
use super::send_queue::Wqe;

/// What a QP has besides its queues here: its half of the verbs layer, and what grows with its use.
const QP_REST_BYTES: usize = 2048;

/// What a CQ has besides its ring.
const CQ_REST_BYTES: usize = 512;

/// Bytes of a QP with such queues, of one element a work request.
pub fn queue_pair_bytes(send_wrs: u32, recv_wrs: u32, inline_bytes: u32) -> u64 {
    let send = size_of::<Wqe>() + size_of::<Sge>() + inline_bytes as usize;
    let recv = size_of::<(u64, usize)>() + size_of::<Sge>();
    let queues =
        send as u64 * u64::from(send_wrs).next_power_of_two() + recv as u64 * u64::from(recv_wrs);
    (size_of::<QpContext>() + QP_REST_BYTES) as u64 + queues
}

/// Bytes of a CQ with room for so many completions.
pub fn completion_queue_bytes(entries: u32) -> u64 {
    let ring = size_of::<Option<Completion>>() as u64 * u64::from(entries).next_power_of_two();
    CQ_REST_BYTES as u64 + ring
}
