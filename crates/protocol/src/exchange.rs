//! Turn-by-turn messages under one deadline, before there is a link: what a handshake is made of.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::{ExchangeError, FrameError, LinkError};
use crate::frame::{self, FrameReader, MAX_HANDSHAKE_BYTES, Step};
use crate::link::{Link, has_hung_up};
use crate::message::{Message, NodeFailure, SessionMessage};
use crate::transmit::{WRITE_TIMEOUT, WriteError, part, write_frame};

/// How long one read waits: how soon the deadline and the stop flag are seen.
const READ_TIMEOUT: Duration = Duration::from_millis(50);

/// How long the other end has for reading the last word.
const PARTING: Duration = Duration::from_millis(200);

/// Turn-by-turn messages under one deadline, before there is a link.
pub(crate) struct Exchange<'a> {
    stream: TcpStream,
    reader: FrameReader,
    started: Instant,
    limit: Duration,
    stop: &'a AtomicBool,
}

impl<'a> Exchange<'a> {
    pub(crate) fn new(
        stream: TcpStream,
        limit: Duration,
        stop: &'a AtomicBool,
    ) -> Result<Self, ExchangeError> {
        let configure = || {
            stream.set_nonblocking(false)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(READ_TIMEOUT))?;
            stream.set_write_timeout(Some(WRITE_TIMEOUT))
        };
        configure().map_err(|error| io_error("configuring the connection", error))?;
        let reader = FrameReader::new(MAX_HANDSHAKE_BYTES);
        Ok(Exchange { stream, reader, started: Instant::now(), limit, stop })
    }

    pub(crate) fn send(&mut self, message: impl Into<Message>) -> Result<(), ExchangeError> {
        let bytes = frame::encode(&message.into()).map_err(ExchangeError::Frame)?;
        let left = self.limit.saturating_sub(self.started.elapsed());
        write_frame(&self.stream, &bytes, left.max(WRITE_TIMEOUT)).map_err(|error| match error {
            WriteError::Stalled(_) => self.timed_out(),
            WriteError::Io(error) => io_error("sending", error),
        })
    }

    pub(crate) fn recv(&mut self) -> Result<Message, ExchangeError> {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(ExchangeError::Interrupted);
            }
            if self.started.elapsed() >= self.limit {
                return Err(self.timed_out());
            }
            match self.reader.step(&mut self.stream) {
                Ok(Step::Frame(message)) => return Ok(message),
                Ok(Step::Partial | Step::Idle) => {}
                Err(FrameError::Closed) => return Err(ExchangeError::Closed),
                Err(FrameError::Io(source)) => {
                    return Err(ExchangeError::Io { operation: "reading", source });
                }
                Err(error) => return Err(ExchangeError::Frame(error)),
            }
        }
    }

    /// Whether there is somebody to go on with, while this end waits for something else than a message.
    pub(crate) fn check(&self) -> Result<(), ExchangeError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(ExchangeError::Interrupted);
        }
        if has_hung_up(&self.stream) { Err(ExchangeError::Closed) } else { Ok(()) }
    }

    /// Gives both ends so much more time.
    pub(crate) fn prolong(&mut self, time: Duration) {
        self.limit += time;
    }

    /// Ends the conversation, so that the other end reads the last word.
    pub(crate) fn part(self) {
        part(&self.stream, PARTING);
    }

    pub(crate) fn into_link(self, peer: SocketAddr) -> Result<Link, ExchangeError> {
        Link::new(self.stream, peer).map_err(|error| match error {
            LinkError::Io { operation, source, .. } => ExchangeError::Io { operation, source },
            _ => ExchangeError::Closed,
        })
    }

    fn timed_out(&self) -> ExchangeError {
        ExchangeError::TimedOut { seconds: self.limit.as_secs_f64() }
    }
}

/// Tells why there is nothing more to come on a connection, and ends it.
pub fn tell_last(stream: &TcpStream, reason: String, hint: Option<String>) {
    let word = Message::Session(SessionMessage::Abort(NodeFailure::new(reason, hint)));
    // One that is gone needs no word.
    let _ = frame::encode(&word).map(|bytes| write_frame(stream, &bytes, WRITE_TIMEOUT));
    part(stream, PARTING);
}

fn io_error(operation: &'static str, error: io::Error) -> ExchangeError {
    ExchangeError::Io { operation, source: Arc::new(error) }
}
