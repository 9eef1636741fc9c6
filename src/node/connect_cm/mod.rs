//! `--connect cm`: the QPs of both ends meet through rdma_cm. The server's end listens and tells where
//! ([`CmListening`](crate::protocol::message::CmListening)); the client's asks for one connection a QP, several at a time, and
//! each request says in its private data which run and which QP it is for. What a QP's transitions are followed by
//! is the caller's; addresses of memory and all else stay with the control connection.

mod dialer;
mod listener;
mod private_data;
mod terms;

use std::sync::Arc;
use std::time::{Duration, Instant};

use verbs::cm::{CmChannel, CmError, CmId, CmTransitionError};

use crate::protocol::failure::RunFailure;

pub(crate) use dialer::{Caller, CmTimes};
pub(crate) use listener::Listener;
pub(crate) use terms::{Terms, check_port};

/// The ids of established connections. Dropped, it ends them.
pub(crate) struct Connections {
    /// In QP order; `None` is over.
    ids: Vec<Option<CmId>>,
    /// Whether this end says that they are over; the other's ids are told.
    says_goodbye: bool,
    /// Their events are not looked at while they are in use: the control connection knows when a peer has gone.
    _channel: Arc<CmChannel>,
}

impl Connections {
    /// Ends the connection of a QP.
    pub(crate) fn end(&mut self, index: usize) {
        if let Some(id) = self.ids.get_mut(index).and_then(Option::take)
            && self.says_goodbye
        {
            id.disconnect();
        }
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        if self.says_goodbye {
            for id in self.ids.iter().flatten() {
                id.disconnect();
            }
        }
    }
}

impl From<CmError> for RunFailure {
    fn from(error: CmError) -> Self {
        RunFailure {
            bad_input: error.is_bad_input(),
            ..RunFailure::new(error.to_string(), Some(error.hint()))
        }
    }
}

impl From<CmTransitionError> for RunFailure {
    fn from(error: CmTransitionError) -> Self {
        match error {
            CmTransitionError::Cm(error) => error.into(),
            CmTransitionError::Verbs(error) => error.into(),
        }
    }
}

/// How soon the control connection tells why the other end gave a connection up.
const REASON_LIMIT: Duration = Duration::from_millis(500);

/// The failure behind a failed step: an end that gives up or dies takes its ids with it, and rdma_cm may tell so
/// before the control connection tells why.
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
