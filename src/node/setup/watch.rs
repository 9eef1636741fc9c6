//! The checks between any two QPs that an end sets up: of its peer, its user and its traffic. It must not know the
//! steps.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::node::running_node::{Broken, RunningNode, TICK};
use crate::protocol::link::Link;
use crate::protocol::message::Message;
use crate::protocol::time_limits::SETUP_LIMIT;

/// Checks the link, the user's wish to stop and the traffic during set-up.
pub(crate) struct Watch<'a> {
    link: &'a Link,
    stop: &'a AtomicBool,
    traffic: Option<&'a RunningNode>,
    /// Called about every [`TICK`] to show progress.
    show: Box<dyn FnMut() + 'a>,
    looked_at: Instant,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(
        link: &'a Link,
        stop: &'a AtomicBool,
        traffic: Option<&'a RunningNode>,
        show: impl FnMut() + 'a,
    ) -> Self {
        Watch {
            link,
            stop,
            traffic,
            show: Box::new(show),
            looked_at: Instant::now(),
        }
    }

    /// The connection to the other end.
    pub(crate) fn link(&self) -> &'a Link {
        self.link
    }

    /// Checks whether to go on. Usually takes two loads and a clock reading.
    ///
    /// # Errors
    /// The peer's death, the user's wish to stop, or an error of the traffic.
    pub(crate) fn look(&mut self) -> Result<(), Broken> {
        self.link.check()?;
        if self.stop.load(Ordering::Relaxed) {
            return Err(Broken::Interrupted);
        }
        if self.looked_at.elapsed() >= TICK {
            self.looked_at = Instant::now();
            self.traffic.map_or(Ok(()), RunningNode::check)?;
            (self.show)();
        }
        Ok(())
    }

    /// As [`Watch::look`], and also tells the peer, which may be waiting, that this end makes progress.
    ///
    /// # Errors
    /// As [`Watch::look`].
    pub(crate) fn step(&mut self) -> Result<(), Broken> {
        self.link.progressed();
        self.look()
    }

    /// The peer's next message and when it came.
    ///
    /// # Errors
    /// As [`Watch::look`], and `limit` without a message or movement at the peer.
    pub(crate) fn recv(&mut self, limit: Duration) -> Result<(Message, Instant), Broken> {
        let (link, stop) = (self.link, self.stop);
        link.recv_while_peer_moves(limit, TICK, stop, || self.look())
    }

    /// Waits until the peer says that its QPs are in RTS.
    ///
    /// # Errors
    /// As [`Watch::recv`]; another message.
    pub(crate) fn ready(&mut self) -> Result<(), Broken> {
        match self.recv(SETUP_LIMIT)?.0 {
            Message::Ready => Ok(()),
            other => Err(self.link.unexpected("ready", &other).into()),
        }
    }
}
