//! Waiting for the other end: receives its messages, and checks that it lives and that this end is not to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use protocol::error::LinkError;
use protocol::failure::RunFailure;
use protocol::link::Link;
use protocol::message::Message;

use super::channel::TransferEnd;

impl TransferEnd {
    /// Checks that the other end lives and that this end is not to stop.
    pub(super) fn alive(self, link: &Link, stop: &AtomicBool) -> Result<(), RunFailure> {
        if stop.load(Ordering::Relaxed) {
            return Err(self.stopped());
        }
        Ok(link.check()?)
    }

    /// The next message. A stop is reported with its own words.
    pub(super) fn recv(
        self,
        link: &Link,
        limit: Duration,
        stop: &AtomicBool,
    ) -> Result<Message, RunFailure> {
        link.recv(limit, stop).map_err(|error| match error {
            LinkError::Interrupted { .. } => self.stopped(),
            error => error.into(),
        })
    }

    /// The failure of a stop.
    pub(super) fn stopped(self) -> RunFailure {
        match self {
            TransferEnd::Sender => RunFailure::interrupted(),
            TransferEnd::Receiver => RunFailure::server_stopped(),
        }
    }
}
