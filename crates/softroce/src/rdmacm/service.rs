//! The one state of the process, and the thread that serves it.

use std::os::raw::c_int;
use std::sync::OnceLock;

use super::inbox::Inbox;
use super::state::State;
use crate::lock::Lock;
use crate::net::{block_signals, now_ns};

static INBOX: Inbox = Inbox::new();
static STATE: Lock<State> = Lock::new(State::new(&INBOX));

/// Starts the thread, once.
///
/// # Errors
/// The system has no more threads or descriptors.
pub(super) fn start() -> Result<(), c_int> {
    static STARTED: OnceLock<Result<(), c_int>> = OnceLock::new();
    *STARTED.get_or_init(|| {
        let thread = std::thread::Builder::new().name("softroce-cm".into());
        let started = INBOX.begin().and_then(|()| thread.spawn(run));
        started.map(drop).map_err(|error| error.raw_os_error().unwrap_or(libc::EAGAIN))
    })
}

fn run() {
    // Signals are for the program's threads.
    block_signals();
    let mut arrived = Vec::new();
    let mut sockets = Vec::new();
    loop {
        INBOX.wait(&mut arrived, &sockets);
        let mut state = STATE.lock();
        let now = now_ns();
        for datagram in arrived.drain(..) {
            state.take(now, &datagram);
        }
        state.take_requests(now);
        let next = state.wake(now);
        state.devices.close_unused();
        sockets.clear();
        sockets.extend(state.sockets());
        state.devices.sockets_changed = false;
        drop(state);
        INBOX.wake_at(next);
    }
}

/// Works on the state, with the time.
pub(super) fn with<R>(step: impl FnOnce(&mut State, u64) -> R) -> R {
    let mut state = STATE.lock();
    let result = step(&mut state, now_ns());
    let next = state.next_timer_ns();
    let sockets_changed = state.devices.sockets_changed;
    drop(state);
    INBOX.wake_at(next);
    if sockets_changed {
        INBOX.wake();
    }
    result
}
