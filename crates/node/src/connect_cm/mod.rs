//! `--connect cm`: connects the QPs of a flow through rdma_cm. The target listens and tells where
//! ([`CmListening`](protocol::message::CmListening)). The initiator requests one connection per QP, several at a
//! time; the private data of each request names the run and the QP. Callers do the QPs' transitions; memory addresses
//! and all else go over the control connections.

mod dialer;
mod listener;
mod private_data;
mod terms;

use std::sync::Arc;
use std::time::{Duration, Instant};

use verbs::cm::{CmChannel, CmId};

use protocol::failure::RunFailure;

pub(crate) use dialer::{Caller, CmTimes};
pub(crate) use listener::Listener;
pub use terms::{Terms, check_port};

/// The ids of established connections. Dropping it ends them.
pub(crate) struct Connections {
    /// In QP order; `None` has ended.
    ids: Vec<Option<CmId>>,
    /// Whether this end disconnects; the other end's ids then receive an event.
    disconnects: bool,
    /// Its events are not read while the connections are in use: the control connection detects a lost peer.
    _channel: Arc<CmChannel>,
}

impl Connections {
    /// Ends the connection of a QP.
    pub(crate) fn end(&mut self, index: usize) {
        if let Some(id) = self.ids.get_mut(index).and_then(Option::take)
            && self.disconnects
        {
            id.disconnect();
        }
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        if self.disconnects {
            for id in self.ids.iter().flatten() {
                id.disconnect();
            }
        }
    }
}

/// Time to wait for the control connection to report why the other end gave a connection up.
const REASON_LIMIT: Duration = Duration::from_millis(500);

/// The failure that caused a failed step. The ids of an end that gives up or dies go with it, and rdma_cm may report
/// that before the control connection gives the reason.
fn behind(failure: RunFailure, alive: impl Fn() -> Result<(), RunFailure>) -> RunFailure {
    let seen = Instant::now();
    while seen.elapsed() < REASON_LIMIT {
        if let Err(cause) = alive() {
            return cause;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    failure
}

/// Nanoseconds since `start`.
fn ns_since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
