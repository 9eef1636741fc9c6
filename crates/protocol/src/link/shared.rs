//! What a link and its threads share: the connection, the first failure, and how long each waits.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{FrameError, LinkError};
use crate::frame::MAX_FRAME_BYTES;
use crate::message::Message;
use crate::transmit::WriteError;

/// Time between two heart-beats.
pub const HEARTBEAT_EVERY: Duration = Duration::from_millis(250);

/// A peer that has been silent for so long is taken for dead. With the grain of the reads and lateness of the
/// threads a person hears of it within 2 s; a peer whose heart-beat is a second late is still alive.
pub const SILENCE_LIMIT: Duration = Duration::from_millis(1250);

/// A peer that has taken no byte for so long is taken for dead. Shorter than the silence, because the
/// first write of a frame may take some bytes and still wait its full time.
pub(super) const STALL_LIMIT: Duration = Duration::from_millis(1150);

/// One read waits so long: the grain in which silence is measured.
pub(super) const READ_TIMEOUT: Duration = Duration::from_millis(100);

/// How long the kernel keeps trying to deliver to a host that does not answer. Silence is judged here, by
/// [`SILENCE_LIMIT`]; this only frees the kernel's socket long after that, also where this process waits for its CPU.
pub(super) const TCP_USER_TIMEOUT: Duration = Duration::from_secs(20);

/// The protocol is turn by turn, so few messages are ever unread; more is not a peer but a flood.
pub(super) const MAX_UNREAD_FRAMES: usize = 32;

/// With so many unread, [`RunMessage::Progress`] is dropped, because the next one says more: who has not read for seconds is
/// an owner that waits for its CPU, not a victim of a flood.
pub(super) const MOST_BEFORE_PROGRESS: usize = MAX_UNREAD_FRAMES / 2;

pub(super) const MAX_UNREAD_BYTES: usize = 3 * MAX_FRAME_BYTES;

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) stream: TcpStream,
    pub(super) peer: SocketAddr,
    /// Held while a frame is written, so that frames do not mix.
    pub(super) writing: Mutex<()>,
    /// The first thing that ended the link.
    pub(super) failure: OnceLock<LinkError>,
    pub(super) unread_bytes: AtomicUsize,
    /// How often something came from the peer.
    pub(super) heard: AtomicU64,
    /// The peer has said goodbye.
    pub(super) is_parting: AtomicBool,
    /// How often this end's work has moved.
    pub(super) progress: AtomicU64,
    /// How often the peer's has, as its last heart-beat told.
    pub(super) peer_progress: AtomicU64,
}

#[derive(Debug)]
pub(super) struct Unread {
    pub(super) message: Message,
    pub(super) bytes: usize,
    pub(super) arrived: Instant,
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn taken(&self, unread: Unread) -> Message {
        self.unread_bytes.fetch_sub(unread.bytes, Ordering::Relaxed);
        unread.message
    }

    pub(super) fn ended(&self) -> LinkError {
        self.failure.get().cloned().unwrap_or(LinkError::PeerClosed { peer: self.peer })
    }

    /// Half a frame may be out: nothing more can be sent, so the link ends. Returns why, which may be
    /// what the reader found before.
    pub(super) fn write_failed(&self, error: WriteError) -> LinkError {
        let failure = match error {
            WriteError::Stalled(silent) => self.silent(silent),
            WriteError::Io(error) => self.io_failure("sending to", error),
        };
        let failure = self.failure.get_or_init(|| failure).clone();
        let _ = self.stream.shutdown(Shutdown::Both);
        failure
    }

    pub(super) fn silent(&self, silent: Duration) -> LinkError {
        LinkError::PeerSilent { peer: self.peer, seconds: silent.as_secs_f64() }
    }

    pub(super) fn io_failure(&self, operation: &'static str, error: io::Error) -> LinkError {
        match error.kind() {
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::NotConnected => LinkError::PeerClosed { peer: self.peer },
            io::ErrorKind::TimedOut => self.silent(TCP_USER_TIMEOUT),
            _ => io_error(operation, self.peer, error),
        }
    }

    pub(super) fn frame_failure(&self, error: FrameError) -> LinkError {
        match error {
            FrameError::Closed => LinkError::PeerClosed { peer: self.peer },
            FrameError::Io(error) => {
                let error = Arc::try_unwrap(error).unwrap_or_else(|error| error.kind().into());
                self.io_failure("reading from", error)
            }
            source => LinkError::Protocol { peer: self.peer, source },
        }
    }
}

pub(super) fn io_error(operation: &'static str, peer: SocketAddr, error: io::Error) -> LinkError {
    LinkError::Io { operation, peer, source: Arc::new(error) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::silence::Silence;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_dead_are_known_within_two_seconds_and_the_late_are_alive() {
        for read in [READ_TIMEOUT, READ_TIMEOUT * 3 / 2, READ_TIMEOUT * 2] {
            let mut silence = Silence::new(READ_TIMEOUT);
            let reads = (1..).find(|_| silence.nothing_for(read) >= SILENCE_LIMIT);
            let known = read * reads.unwrap();
            let expected = SECOND + HEARTBEAT_EVERY..2 * SECOND;
            assert!(expected.contains(&known), "{known:?}");
        }
    }
}
