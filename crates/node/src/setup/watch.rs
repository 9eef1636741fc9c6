//! The checks between any two QPs that a node sets up: of its link, the wish to stop and its traffic.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::run::{EarlyEnd, Run, TICK, unless_end};
use protocol::error::LinkError;
use protocol::link::Link;
use protocol::message::{Message, RunMessage};
use protocol::patience::Patience;
use protocol::time_limits::SETUP_LIMIT;

/// Checks the link, the user's wish to stop and the traffic during set-up.
pub(crate) struct Watch<'w, 'a> {
    run: &'w mut Run<'a>,
    /// A message that came between two QPs, and when.
    early: Option<(Message, Instant)>,
    /// Called about every [`TICK`] to show progress.
    show: Box<dyn FnMut(&mut Run<'a>) + 'w>,
    looked_at: Instant,
}

impl<'w, 'a> Watch<'w, 'a> {
    pub(crate) fn new(run: &'w mut Run<'a>, show: impl FnMut(&mut Run<'a>) + 'w) -> Self {
        Watch { run, early: None, show: Box::new(show), looked_at: Instant::now() }
    }

    /// The connection to the coordinator.
    pub(crate) fn link(&self) -> &'a Link {
        self.run.link
    }

    /// Checks whether to go on. Usually takes two loads and a clock reading.
    ///
    /// # Errors
    /// The link's end, the end of the run, the wish to stop, or an error of the traffic.
    pub(crate) fn look(&mut self) -> Result<(), EarlyEnd> {
        self.run.link.check()?;
        if self.run.stop.load(Ordering::Relaxed) {
            return Err(EarlyEnd::Interrupted);
        }
        if self.looked_at.elapsed() >= TICK {
            self.looked_at = Instant::now();
            if self.early.is_none() {
                self.early = self.come()?;
            }
            self.run.check()?;
            (self.show)(self.run);
        }
        Ok(())
    }

    /// A message that has come, and when.
    fn come(&self) -> Result<Option<(Message, Instant)>, EarlyEnd> {
        match self.run.link.recv_stamped(Duration::ZERO, self.run.stop) {
            Ok((message, arrived)) => Ok(Some((unless_end(message)?, arrived))),
            Err(LinkError::Overdue { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// As [`Watch::look`], and also tells the peer, which may be waiting, that this end makes progress.
    pub(crate) fn step(&mut self) -> Result<(), EarlyEnd> {
        self.run.link.progressed();
        self.look()
    }

    /// The next message and when it came.
    ///
    /// # Errors
    /// As [`Watch::look`], and `limit` without a message or movement at the other node.
    pub(crate) fn recv(&mut self, limit: Duration) -> Result<(Message, Instant), EarlyEnd> {
        let (link, stop) = (self.run.link, self.run.stop);
        let mut patience = Patience::new(link.peer_progress(), Instant::now());
        while !patience.is_over(link.peer_progress(), Instant::now(), limit) {
            self.look()?;
            if let Some(early) = self.early.take() {
                return Ok(early);
            }
            match link.recv_stamped(TICK, stop) {
                Ok((message, arrived)) => return Ok((unless_end(message)?, arrived)),
                Err(LinkError::Overdue { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let (peer, seconds) = (link.peer(), limit.as_secs_f64());
        Err(LinkError::Overdue { peer, seconds }.into())
    }

    /// Waits until the peer says that its QPs are in RTS.
    ///
    /// # Errors
    /// As [`Watch::recv`]; another message.
    pub(crate) fn ready(&mut self) -> Result<(), EarlyEnd> {
        match self.recv(SETUP_LIMIT)?.0 {
            Message::Run(RunMessage::Ready) => Ok(()),
            other => Err(self.run.link.unexpected("ready", &other).into()),
        }
    }
}
