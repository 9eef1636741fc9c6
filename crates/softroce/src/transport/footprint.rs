//! Memory of the device's objects, for programs that count it in advance.

use crate::transport::completion_queue::Completion;
use crate::transport::memory::Sge;
use crate::transport::qp_state::QpContext;
use crate::transport::work_queues::send_queue_bytes;

/// Memory of a QP besides its queues here: its part of the verbs layer, and allocations that grow with use.
const QP_REST_BYTES: usize = 768;

/// Memory of a CQ besides its ring.
const CQ_REST_BYTES: usize = 512;

/// Bytes of a connected QP with these queues, and work requests of so many elements.
pub fn queue_pair_bytes(send_wrs: u32, recv_wrs: u32, inline_bytes: u32, sges: u32) -> u64 {
    let send = send_queue_bytes(send_wrs as usize, sges as usize, inline_bytes as usize);
    let fixed = (size_of::<QpContext>() + QP_REST_BYTES + send) as u64;
    fixed + receive_queue_bytes(recv_wrs, sges)
}

/// Bytes of a queue of so many receives, a QP's own or an SRQ.
pub fn receive_queue_bytes(wrs: u32, sges: u32) -> u64 {
    let receive = size_of::<(u64, usize)>() + sges as usize * size_of::<Sge>();
    receive as u64 * u64::from(wrs)
}

/// Bytes of a CQ for this many completions, with their stamps or without.
pub fn completion_queue_bytes(entries: u32, has_stamps: bool) -> u64 {
    let stamp = if has_stamps { size_of::<u64>() } else { 0 };
    let entry = (size_of::<Completion>() + stamp) as u64;
    let ring = entry * u64::from(entries).next_power_of_two();
    CQ_REST_BYTES as u64 + ring
}
