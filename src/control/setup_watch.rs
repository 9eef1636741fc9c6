//! What an end that sets QPs up keeps an eye on between any two of them: its peer, its user, its traffic. It must
//! not know the steps.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::error::LinkError;
use super::link::Link;
use super::message::Message;
use super::rig::{Broken, Rig, TICK};
use super::run::SETUP_LIMIT;

/// The eye.
pub(super) struct Watch<'a> {
    link: &'a Link,
    stop: &'a AtomicBool,
    traffic: Option<&'a Rig>,
    /// Asked every [`TICK`] or so, to show how far it is.
    show: Box<dyn FnMut() + 'a>,
    looked_at: Instant,
}

impl<'a> Watch<'a> {
    pub(super) fn new(
        link: &'a Link,
        stop: &'a AtomicBool,
        traffic: Option<&'a Rig>,
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
    pub(super) fn link(&self) -> &'a Link {
        self.link
    }

    /// Whether to go on; two loads and a clock reading most times.
    ///
    /// # Errors
    /// The peer's death, the user's wish to stop, or trouble of the traffic.
    pub(super) fn look(&mut self) -> Result<(), Broken> {
        self.link.check()?;
        if self.stop.load(Ordering::Relaxed) {
            return Err(Broken::Interrupted);
        }
        if self.looked_at.elapsed() >= TICK {
            self.looked_at = Instant::now();
            self.traffic.map_or(Ok(()), Rig::check)?;
            (self.show)();
        }
        Ok(())
    }

    /// The peer's next message and when it came.
    ///
    /// # Errors
    /// As [`Watch::look`], and silence beyond `limit`.
    pub(super) fn recv(&mut self, limit: Duration) -> Result<(Message, Instant), Broken> {
        let started = Instant::now();
        loop {
            self.look()?;
            match self.link.recv_stamped(TICK, self.stop) {
                Err(LinkError::Overdue { .. }) if started.elapsed() < limit => {}
                Err(LinkError::Overdue { peer, .. }) => {
                    let seconds = limit.as_secs_f64();
                    return Err(LinkError::Overdue { peer, seconds }.into());
                }
                other => return Ok(other?),
            }
        }
    }

    /// Waits until the peer says that its QPs are in RTS.
    ///
    /// # Errors
    /// As [`Watch::recv`]; another message.
    pub(super) fn ready(&mut self) -> Result<(), Broken> {
        match self.recv(SETUP_LIMIT)?.0 {
            Message::Ready => Ok(()),
            other => Err(self.link.unexpected("ready", &other).into()),
        }
    }
}
