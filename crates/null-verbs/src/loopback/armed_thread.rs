//! A thread that runs the device while a CQ is armed, because the program may sleep then.

use std::os::raw::c_int;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use rdma_sys::ibv_cq;

use super::fabric::fabric;

/// Pause between two rounds: about the default delay of a WR.
const TICK: Duration = Duration::from_micros(10);

/// `ibv_req_notify_cq(3)` for any completion. EINVAL for a CQ without a channel.
///
/// # Safety
/// As for libibverbs.
pub(super) unsafe extern "C" fn req_notify_cq(cq: *mut ibv_cq, _solicited_only: c_int) -> c_int {
    // SAFETY: a live CQ.
    if unsafe { (*cq).channel }.is_null() {
        return libc::EINVAL;
    }
    let thread = {
        let mut fabric = fabric();
        let Some(state) = fabric.cqs.get_mut(&cq) else {
            return libc::EINVAL;
        };
        state.armed = true;
        thread()
    };
    thread.unpark();
    0
}

fn thread() -> &'static thread::Thread {
    static STARTED: OnceLock<thread::Thread> = OnceLock::new();
    STARTED.get_or_init(|| {
        // It would have the name of the thread that arms first.
        let named = thread::Builder::new().name("loop0".into()).spawn(run);
        #[expect(clippy::expect_used, reason = "without a thread nobody would be woken")]
        named.expect("a thread of the device").thread().clone()
    })
}

fn run() {
    loop {
        let mut fabric = fabric();
        fabric.progress();
        let sleeps = fabric.cqs.values().any(|cq| cq.armed);
        drop(fabric);
        if sleeps {
            thread::sleep(TICK);
        } else {
            thread::park();
        }
    }
}
