//! Waiting for the other end: its messages, whether it lives, and whether somebody wants this end to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::protocol::error::LinkError;
use crate::protocol::failure::RunFailure;
use crate::protocol::link::Link;
use crate::protocol::message::Message;

use super::channel::Side;

impl Side {
    /// The other end lives, and nobody wants this one to stop.
    pub(super) fn alive(self, link: &Link, stop: &AtomicBool) -> Result<(), RunFailure> {
        if stop.load(Ordering::Relaxed) {
            return Err(self.stopped());
        }
        Ok(link.check()?)
    }

    /// The next message; a wish to stop has words of its own.
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

    /// Somebody wants this end to stop.
    pub(super) fn stopped(self) -> RunFailure {
        match self {
            Side::Sender => RunFailure::interrupted(),
            Side::Receiver => RunFailure::server_stopped(),
        }
    }
}
