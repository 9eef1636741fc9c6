//! `loop0`: a loopback device that moves bytes between QPs of this process.
//!
//! It is simple and strict, not fast: it has one lock, and the calls of the data path run it. It refuses what a real
//! device refuses: transitions, keys, bounds, access, queue depths (a slot of the send queue is free when a
//! completion at or after it was polled), CQ overflow. A failed WR moves its QP to ERR and flushes it; a bad access
//! or a receive that is too small also moves the peer to ERR. In a completion with an error only `wr_id`, `status`
//! and `qp_num` are defined.
//!
//! Each WR waits for a random time, so the order of completions of different QPs changes with the seed; completions
//! of one QP stay in order. Time passes only in calls of the data path, and while a CQ is armed. Or a WR waits for a server
//! ([`Serving`]).
//!
//! All contexts of the process share the device, and so all tests of a process share its hooks: serialise tests that
//! use them, and call [`reset_hooks`] at their end. A thread may have a device of its own ([`own_device`]).

mod datapath;
mod engine;
mod fabric;
mod objects;
mod service;

use std::time::Duration;

use fabric::{Time, fabric};
use rdma_sys::ibv_wc_status;
use service::Service;

pub use fabric::Served;
pub(crate) use objects::Loopback;
pub use service::{ServiceTimes, Serving};

/// Gives this thread a device of its own, as new, whose time is what `now_ns` reads: what the thread makes is apart from
/// other threads' and completes by that time alone. CQs cannot be armed there.
pub fn own_device(now_ns: impl Fn() -> u64 + Send + 'static) {
    fabric::own_device();
    let mut fabric = fabric();
    fabric.hooks = fabric::Hooks::default();
    fabric.time = Time::Given(Box::new(now_ns));
    fabric.service = Service::default();
    fabric.log = Some(Vec::new());
    fabric.look_again_ns = 0;
}

/// Sets how the device takes its time, from the next WR on. What was set for single QPs is forgotten.
pub fn serve(serving: Serving) {
    fabric().service = Service::new(serving);
}

/// The WRs of one QP take these times, with [`Serving::Servers`].
pub fn serve_qp(qp_num: u32, times: ServiceTimes) {
    fabric().service.set_times_of(qp_num, times);
}

/// No server works for so long from an instant on that is still to come.
pub fn stand_still(from_ns: u64, length_ns: u64) {
    fabric().service.stand_still(from_ns, length_ns);
}

/// When the device does something next by itself; `None` if it never does. A WR that waits for its peer does nothing until its
/// patience ends.
pub fn next_due_ns() -> Option<u64> {
    fabric().next_event_ns()
}

/// How many WRs a device of a thread's own has executed since [`take_served`].
pub fn served_count() -> usize {
    fabric().log.as_ref().map_or(0, Vec::len)
}

/// Takes what a device of a thread's own has executed since the last call, in its order.
pub fn take_served() -> Vec<Served> {
    fabric().log.as_mut().map(std::mem::take).unwrap_or_default()
}

/// Restarts the random delays with `seed`.
pub fn set_seed(seed: u64) {
    fabric().seed(seed);
}

/// Sets the longest random delay of a WR, initially 5 us. Zero completes each WR in the next call of the data path.
pub fn set_max_delay(delay: Duration) {
    let most_ns = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
    serve(Serving::Delays { most_ns });
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
    let mut fabric = fabric();
    fabric.hooks = fabric::Hooks::default();
    fabric.service = Service::default();
}
