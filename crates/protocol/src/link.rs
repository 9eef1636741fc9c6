//! An established connection to the other end: messages in and out, heart-beats, and the news of the peer's death within
//! two seconds.
//!
//! One thread reads all the time, another sends [`SessionMessage::Heartbeat`]; so the link stays alive however
//! long its owner computes, and a peer's death is known without the owner reading.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, bounded};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::connection::{WRITE_TIMEOUT, WriteError, write_frame};
use crate::error::LinkError;
use crate::frame::{self};
pub use crate::link_threads::{HEARTBEAT_EVERY, SILENCE_LIMIT};
use crate::link_threads::{
    MAX_UNREAD_FRAMES, READ_TIMEOUT, STALL_LIMIT, Shared, TCP_USER_TIMEOUT, Unread, beat_until_end,
    io_error, read_until_end,
};
use crate::message::{Message, NodeFailure, SessionMessage};
use verbs::Route;

/// How often a wait looks at its stop flag.
const STOP_CHECK_EVERY: Duration = Duration::from_millis(20);

/// How long peers may take to end the session.
const PARTING: Duration = Duration::from_secs(2);

/// How long a closing link waits for the peer to have read the last frame.
const LINGER: Duration = Duration::from_millis(250);

/// A connection whose handshake is done. Usable from several threads. Dropping it sends what was
/// written, closes, and takes at most a quarter of a second.
#[derive(Debug)]
pub struct Link {
    shared: Arc<Shared>,
    incoming: Receiver<Unread>,
    reader_done: Receiver<()>,
    heartbeat_stop: Option<Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

impl Link {
    /// Takes over a connection to `peer` and starts the link's threads.
    ///
    /// # Errors
    /// [`LinkError::Io`] if the socket's options cannot be set or a thread cannot be started.
    pub fn new(stream: TcpStream, peer: SocketAddr) -> Result<Self, LinkError> {
        configure(&stream)
            .map_err(|error| io_error("configuring the connection to", peer, error))?;
        let shared = Arc::new(Shared {
            stream,
            peer,
            writing: Mutex::new(()),
            failure: OnceLock::new(),
            unread_bytes: AtomicUsize::new(0),
            heard: AtomicU64::new(0),
            is_parting: AtomicBool::new(false),
            progress: AtomicU64::new(0),
            peer_progress: AtomicU64::new(0),
        });
        let (deliver, incoming) = bounded(MAX_UNREAD_FRAMES);
        let (done, reader_done) = bounded(0);
        let (heartbeat_stop, stopped) = bounded(0);
        let mut link = Link {
            shared: Arc::clone(&shared),
            incoming,
            reader_done,
            heartbeat_stop: Some(heartbeat_stop),
            threads: Vec::new(),
        };
        let for_reader = Arc::clone(&shared);
        // Pushed one by one: should the second fail, dropping the link ends the first.
        let started = spawn("control-read", move || read_until_end(&for_reader, deliver, done))
            .and_then(|reader| {
                link.threads.push(reader);
                let heart = spawn("control-beat", move || beat_until_end(&shared, &stopped))?;
                link.threads.push(heart);
                Ok(())
            });
        if let Err(source) = started {
            let error = io_error("starting a thread for the connection to", peer, source);
            // The other end has a link by now, and would wonder.
            let why = NodeFailure::new(error.to_string(), error.hint());
            let _ = link.send(SessionMessage::Abort(why));
            return Err(error);
        }
        Ok(link)
    }

    /// The other end's address, as given to [`Link::new`].
    pub fn peer(&self) -> SocketAddr {
        self.shared.peer
    }

    /// What shows to others whether it lives.
    pub fn pulse(&self) -> Pulse {
        Pulse(Arc::clone(&self.shared))
    }

    /// Whether both ends are on one host, as far as addresses tell.
    pub fn is_within_host(&self) -> bool {
        let peer = self.peer().ip().to_canonical();
        let local = self.local().map(|local| local.ip().to_canonical());
        local.is_ok_and(|local| local == peer || local.is_loopback() && peer.is_loopback())
    }

    /// This end's address: the interface that the control connection uses.
    ///
    /// # Errors
    /// [`LinkError::Io`] if the operating system does not know it any more.
    pub fn local(&self) -> Result<SocketAddr, LinkError> {
        self.shared.stream.local_addr().map_err(|error| {
            io_error("reading the local address of the connection to", self.peer(), error)
        })
    }

    /// The way from this end to the other, which data take as well.
    pub fn route(&self) -> Result<Route, LinkError> {
        Ok(Route::between(self.local()?.ip(), self.peer().ip()))
    }

    /// Sends one message. A peer that takes nothing blocks this for less than two seconds, one that takes little for
    /// [`FRAME_LIMIT`](frame::FRAME_LIMIT). After the peer has broken the protocol or has been silent sending still works,
    /// so that it can be told: of a path that drops what it sends the way back may be whole.
    ///
    /// # Errors
    /// Why the link ended, or [`LinkError::Unsendable`] if the message is too large.
    pub fn send(&self, content: impl Into<Message>) -> Result<(), LinkError> {
        let shared = &*self.shared;
        let message = content.into();
        let bytes = frame::encode(&message).map_err(|source| LinkError::Unsendable {
            peer: shared.peer,
            kind: message.kind(),
            source,
        })?;
        let guard = shared.lock();
        let patience = match shared.failure.get() {
            None | Some(LinkError::Protocol { .. } | LinkError::Unfinished { .. }) => STALL_LIMIT,
            Some(LinkError::PeerSilent { .. }) => WRITE_TIMEOUT,
            Some(failure) => return Err(failure.clone()),
        };
        let Err(error) = write_frame(&shared.stream, &bytes, patience) else {
            return Ok(());
        };
        drop(guard);
        if matches!(error, WriteError::Io(_)) {
            // The reader may be about to learn why, such as an `Abort` before the peer closed.
            let _ = self.reader_done.recv_timeout(LINGER);
        }
        Err(shared.write_failed(error, bytes.len()))
    }

    /// Ends the sessions of these links, and waits until their peers are free for the next, which they say by closing: 2 s
    /// at most. A peer ends the session by itself if the word does not arrive.
    pub fn part<'l>(links: impl IntoIterator<Item = &'l Link>, stop: &AtomicBool) {
        let parting: Vec<&Link> =
            links.into_iter().filter(|link| link.send(SessionMessage::Goodbye).is_ok()).collect();
        let began = Instant::now();
        for link in parting {
            let _ = link.recv(PARTING.saturating_sub(began.elapsed()), stop);
        }
    }

    /// Waits for the next message, at most `timeout`, and looks at `stop` meanwhile. Messages that came before
    /// the link ended are delivered first.
    ///
    /// # Errors
    /// Why the link ended; [`LinkError::Overdue`] after `timeout` with a living peer;
    /// [`LinkError::Interrupted`] when `stop` is set.
    pub fn recv(&self, timeout: Duration, stop: &AtomicBool) -> Result<Message, LinkError> {
        self.recv_stamped(timeout, stop).map(|(message, _)| message)
    }

    /// As [`Link::recv`], and when the message had come.
    pub fn recv_stamped(
        &self,
        timeout: Duration,
        stop: &AtomicBool,
    ) -> Result<(Message, Instant), LinkError> {
        let started = Instant::now();
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(LinkError::Interrupted { peer: self.peer() });
            }
            let left = timeout.saturating_sub(started.elapsed());
            match self.incoming.recv_timeout(left.min(STOP_CHECK_EVERY)) {
                Ok(unread) => {
                    let arrived = unread.arrived;
                    return Ok((self.shared.taken(unread), arrived));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.shared.ended()),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                    let seconds = timeout.as_secs_f64();
                    return Err(LinkError::Overdue { peer: self.peer(), seconds });
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Waits for the next message as long as the peer's work moves, and asks `look` every `tick` whether to wait on;
    /// also tells when the message had come.
    ///
    /// # Errors
    /// As [`Link::recv`], with [`LinkError::Overdue`] once nothing has moved at the peer for `limit`; or what `look`
    /// says.
    pub fn recv_while_peer_moves<E: From<LinkError>>(
        &self,
        limit: Duration,
        tick: Duration,
        stop: &AtomicBool,
        mut look: impl FnMut() -> Result<(), E>,
    ) -> Result<(Message, Instant), E> {
        let mut patience = Patience::new(self.peer_progress(), Instant::now());
        loop {
            look()?;
            match self.recv_stamped(tick, stop) {
                Err(LinkError::Overdue { peer, .. }) => {
                    if patience.is_over(self.peer_progress(), Instant::now(), limit) {
                        let seconds = limit.as_secs_f64();
                        return Err(LinkError::Overdue { peer, seconds }.into());
                    }
                }
                other => return Ok(other?),
            }
        }
    }

    /// How often the peer's work has moved, as its last heart-beat told.
    pub fn peer_progress(&self) -> u64 {
        self.shared.peer_progress.load(Ordering::Relaxed)
    }

    /// Says that this end's work moves, for a peer that waits for it.
    pub fn progressed(&self) {
        self.shared.progress.fetch_add(1, Ordering::Relaxed);
    }

    /// The next message if one has come.
    ///
    /// # Errors
    /// Why the link ended, once all that came before has been taken.
    pub fn try_recv(&self) -> Result<Option<Message>, LinkError> {
        match self.incoming.try_recv() {
            Ok(unread) => Ok(Some(self.shared.taken(unread))),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(self.shared.ended()),
        }
    }

    /// Whether the peer lives. It costs one atomic load, and does not wait for unread messages to be taken.
    pub fn check(&self) -> Result<(), LinkError> {
        self.shared.failure.get().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    /// The error for a message that came where `expected` was due.
    pub fn unexpected(&self, expected: &'static str, got: &Message) -> LinkError {
        LinkError::Unexpected { peer: self.peer(), expected, got: got.kind() }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.heartbeat_stop = None;
        let stream = &self.shared.stream;
        if stream.shutdown(Shutdown::Write).is_ok() {
            let _ = self.reader_done.recv_timeout(LINGER);
        }
        // Fails if the peer has already closed; the threads end either way.
        let _ = stream.shutdown(Shutdown::Both);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn configure(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
    let user_timeout_ms = u32::try_from(TCP_USER_TIMEOUT.as_millis()).unwrap_or(u32::MAX);
    Ok(rustix::net::sockopt::set_tcp_user_timeout(stream, user_timeout_ms)?)
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Ok(machine::threads::spawn(name, body)?)
}

/// What shows whether a link lives. It keeps the socket open, so it goes with the link.
#[derive(Clone, Debug)]
pub struct Pulse(pub(super) Arc<Shared>);

/// What a [`Pulse`] shows at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Signs {
    /// The peer has said goodbye, or is gone, whether this end has read that yet or not.
    pub is_ending: bool,
    /// How often something came from the peer.
    pub heard: u64,
}

impl Pulse {
    pub fn signs(&self) -> Signs {
        let shared = &*self.0;
        let has_failed = shared.failure.get().is_some();
        Signs {
            is_ending: has_failed
                || shared.is_parting.load(Ordering::Relaxed)
                || has_hung_up(&shared.stream),
            heard: shared.heard.load(Ordering::Relaxed),
        }
    }
}

/// Whether the other end has closed the connection or is gone; what it sent before may be unread.
pub fn has_hung_up(stream: &TcpStream) -> bool {
    let mut sockets = [PollFd::new(stream, PollFlags::RDHUP)];
    // That the call was interrupted says nothing; whoever asks does so again.
    poll(&mut sockets, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// How long a peer that lives is waited for: as long as its work moves, which its heart-beats tell. It must not read a
/// clock.
pub struct Patience {
    progress: u64,
    since: Instant,
}

impl Patience {
    /// `progress` is what the peer tells `now`.
    pub fn new(progress: u64, now: Instant) -> Self {
        Patience { progress, since: now }
    }

    /// Whether nothing has moved for `limit`.
    pub fn is_over(&mut self, progress: u64, now: Instant, limit: Duration) -> bool {
        if progress != self.progress {
            *self = Patience::new(progress, now);
        }
        now.saturating_duration_since(self.since) >= limit
    }
}

/// Longest time for a node to create or connect its objects.
pub const SETUP_LIMIT: Duration = Duration::from_secs(120);

/// Longest time for a short answer.
pub const ANSWER_LIMIT: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(1);

    #[test]
    fn a_peer_that_moves_is_waited_for_beyond_the_limit() {
        let start = Instant::now();
        let mut patience = Patience::new(7, start);
        for step in 1..20 {
            let now = start + LIMIT * step * 9 / 10;
            assert!(!patience.is_over(7 + u64::from(step), now, LIMIT), "{step}");
        }
        let moved = start + LIMIT * 19 * 9 / 10;
        let almost = LIMIT - Duration::from_nanos(1);
        assert!(!patience.is_over(26, moved + almost, LIMIT));
        assert!(patience.is_over(26, moved + LIMIT, LIMIT));
    }
}
