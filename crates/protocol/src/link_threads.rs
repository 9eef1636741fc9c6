//! The two threads of a link, of which one reads and one sends heart-beats, and what they share with it: the connection,
//! the first failure, and how long each waits.

use std::io::{self, Read};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError};

use crate::connection::{WriteError, write_frame};
use crate::error::{FrameError, LinkError};
use crate::frame::{self, FRAME_LIMIT, FrameReader, MAX_FRAME_BYTES, Step};
use crate::message::{Message, RunMessage, SessionMessage};

/// Time between two heart-beats, which both ends send.
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
    pub(super) fn write_failed(&self, error: WriteError, expected_bytes: usize) -> LinkError {
        let failure = match error {
            WriteError::Stalled(silent) => self.silent(silent),
            WriteError::Unfinished { taken_bytes } => LinkError::Unfinished {
                operation: "sending to",
                peer: self.peer,
                got_bytes: taken_bytes,
                expected_bytes,
                seconds: FRAME_LIMIT.as_secs_f64(),
            },
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

pub(crate) fn read_until_end(shared: &Shared, deliver: Sender<Unread>, done: Sender<()>) {
    let mut attention = Attention::new(Instant::now());
    let end = read_messages(shared, &deliver, &mut attention);
    let peer_may_send_on = matches!(
        end,
        LinkError::Protocol { .. } | LinkError::Unfinished { .. } | LinkError::Aborted { .. }
    );
    // The owner may tell it why the link ends, and closes it then.
    let is_silent = matches!(end, LinkError::PeerSilent { .. });
    let is_given_up = end.is_of_silence();
    let failure = match attention.missed_before(Instant::now()).filter(|_| is_given_up) {
        Some(missed) => LinkError::Missed { seconds: missed.as_secs_f64(), end: Box::new(end) },
        None => end,
    };
    // A failed write may have been recorded first; it is as good a reason.
    let _ = shared.failure.set(failure);
    drop(deliver);
    if peer_may_send_on {
        discard_until_end(shared);
    }
    // Tells a peer that waits for this end to have read everything that it has.
    if !is_silent {
        let _ = shared.stream.shutdown(Shutdown::Write);
    }
    drop(done);
}

/// Delivers until something ends the link, and returns what.
fn read_messages(
    shared: &Shared,
    deliver: &Sender<Unread>,
    attention: &mut Attention,
) -> LinkError {
    let mut reader = FrameReader::new(MAX_FRAME_BYTES);
    let mut signs = SignsOfLife::new(shared.peer);
    loop {
        let before = Instant::now();
        let read = reader.step(&mut &shared.stream);
        attention.looks(Instant::now());
        let step = match read {
            Ok(step) => step,
            Err(error) => return shared.frame_failure(error),
        };
        if let Err(failure) = signs.look(&step, reader.unfinished(), before.elapsed()) {
            return failure;
        }
        if !matches!(step, Step::Idle) {
            shared.heard.fetch_add(1, Ordering::Relaxed);
        }
        match step {
            Step::Idle | Step::Partial => {}
            Step::Frame(Message::Session(SessionMessage::Heartbeat { progress })) => {
                shared.peer_progress.store(progress, Ordering::Relaxed);
            }
            Step::Frame(Message::Session(SessionMessage::Abort(why))) => {
                let peer = shared.peer;
                return LinkError::Aborted { peer, why };
            }
            Step::Frame(Message::Run(RunMessage::Progress(_)))
                if deliver.len() >= MOST_BEFORE_PROGRESS => {}
            Step::Frame(message) => {
                if matches!(message, Message::Session(SessionMessage::Goodbye)) {
                    shared.is_parting.store(true, Ordering::Relaxed);
                }
                let bytes = reader.message_bytes();
                let queued = shared.unread_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
                let full = queued > MAX_UNREAD_BYTES
                    || matches!(
                        deliver.try_send(Unread { message, bytes, arrived: Instant::now() }),
                        Err(TrySendError::Full(_))
                    );
                if full {
                    let flood = FrameError::Flood { frames: deliver.len(), bytes: queued };
                    return shared.frame_failure(flood);
                }
            }
        }
    }
}

/// Keeps the receive queue empty until the peer or the owner closes: closing a socket with unread bytes
/// resets it, and the peer would lose the `Abort` that tells it what it did wrong.
fn discard_until_end(shared: &Shared) {
    let mut scrap = vec![0; 16 << 10];
    loop {
        match (&shared.stream).read(&mut scrap) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

pub(crate) fn beat_until_end(shared: &Shared, stopped: &Receiver<()>) {
    while stopped.recv_timeout(HEARTBEAT_EVERY) == Err(RecvTimeoutError::Timeout) {
        let progress = shared.progress.load(Ordering::Relaxed);
        let Ok(bytes) = frame::encode(&Message::Session(SessionMessage::Heartbeat { progress }))
        else {
            return;
        };
        // A frame under way is a sign of life itself.
        let Ok(_guard) = shared.writing.try_lock() else {
            continue;
        };
        match write_frame(&shared.stream, &bytes, STALL_LIMIT) {
            Ok(()) => {}
            // The reader learns the reason; the peer's last words may still be unread.
            Err(WriteError::Io(_)) => return,
            Err(error) => {
                shared.write_failed(error, bytes.len());
                return;
            }
        }
    }
}

/// For so long this end does not look at its connection only if it does not run.
const MISSED: Duration = Duration::from_millis(SILENCE_LIMIT.as_millis() as u64 / 2);

/// When this end did not run. It must not read a clock.
#[derive(Debug)]
pub(crate) struct Attention {
    last_tick: Instant,
    /// The end of the last time that it did not, and how long that was.
    missed: Option<(Instant, Duration)>,
}

impl Attention {
    pub(crate) fn new(now: Instant) -> Attention {
        Attention { last_tick: now, missed: None }
    }

    pub(crate) fn looks(&mut self, now: Instant) {
        let gap = now.saturating_duration_since(self.last_tick);
        if gap >= MISSED {
            self.missed = Some((now, gap));
        }
        self.last_tick = now;
    }

    /// For how long it did not run, if that was so long and so shortly before that the peer may have given up.
    pub(crate) fn missed_before(&self, now: Instant) -> Option<Duration> {
        let (end, length) = self.missed?;
        (now.saturating_duration_since(end) < SILENCE_LIMIT).then_some(length)
    }
}

/// Whether the peer lives: something comes from it, and a message that it has begun comes to an end.
#[derive(Debug)]
struct SignsOfLife {
    peer: SocketAddr,
    silence: Waited,
    message: Waited,
}

impl SignsOfLife {
    fn new(peer: SocketAddr) -> SignsOfLife {
        let [silence, message] = [(); 2].map(|()| Waited::new(READ_TIMEOUT));
        SignsOfLife { peer, silence, message }
    }

    /// Looks at a read of this length, and at what it left of a message: the bytes that have come, and all of them.
    ///
    /// # Errors
    /// The peer counts as dead.
    fn look(
        &mut self,
        step: &Step,
        unfinished: Option<(usize, usize)>,
        elapsed: Duration,
    ) -> Result<(), LinkError> {
        let peer = self.peer;
        if !matches!(step, Step::Idle) {
            self.silence.restart();
        } else if self.silence.add(elapsed) >= SILENCE_LIMIT {
            return Err(LinkError::PeerSilent { peer, seconds: self.silence.total.as_secs_f64() });
        }
        let Some((got_bytes, expected_bytes)) = unfinished else {
            self.message.restart();
            return Ok(());
        };
        if self.message.add(elapsed) < FRAME_LIMIT {
            return Ok(());
        }
        let seconds = self.message.total.as_secs_f64();
        let operation = "reading from";
        Err(LinkError::Unfinished { operation, peer, got_bytes, expected_bytes, seconds })
    }
}

/// Adds up the time spent in reads, or in writes. One that was cut short by the scheduler, not by the peer, counts for
/// little: while this host is overloaded or suspended its clock runs on, but nobody listens, and a peer on the same host
/// cannot speak either.
#[derive(Debug)]
pub(crate) struct Waited {
    most_of_a_call: Duration,
    total: Duration,
}

impl Waited {
    /// `timeout` is what a call waits; one that took longer counts for at most twice as much.
    pub(crate) fn new(timeout: Duration) -> Self {
        Waited { most_of_a_call: timeout * 2, total: Duration::ZERO }
    }

    pub(crate) fn restart(&mut self) {
        self.total = Duration::ZERO;
    }

    /// A call took this time; returns the sum.
    pub(crate) fn add(&mut self, elapsed: Duration) -> Duration {
        self.total += elapsed.min(self.most_of_a_call);
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn signs() -> SignsOfLife {
        SignsOfLife::new(SocketAddr::from(([192, 0, 2, 1], 18515)))
    }

    #[test]
    fn the_dead_are_known_within_two_seconds_and_the_late_are_alive() {
        for read in [READ_TIMEOUT, READ_TIMEOUT * 3 / 2, READ_TIMEOUT * 2] {
            let mut signs = signs();
            let reads = (1..).find(|_| signs.look(&Step::Idle, None, read).is_err());
            let known = read * reads.unwrap();
            let expected = SECOND + HEARTBEAT_EVERY..2 * SECOND;
            assert!(expected.contains(&known), "{known:?}");
        }
    }

    #[test]
    fn who_speaks_within_a_message_that_does_not_end_is_dead_in_the_end() {
        let mut signs = signs();
        let reads = FRAME_LIMIT.div_duration_f64(READ_TIMEOUT) as u32;
        for _ in 0..3 {
            for _ in 1..reads {
                signs.look(&Step::Partial, Some((7, 9)), READ_TIMEOUT).unwrap();
            }
            signs.look(&Step::Partial, None, READ_TIMEOUT).unwrap();
        }
        for number in 1..reads {
            let step = if number % 2 == 0 { Step::Idle } else { Step::Partial };
            signs.look(&step, Some((7, 9)), READ_TIMEOUT).unwrap();
        }
        let dead = signs.look(&Step::Idle, Some((7, 9)), READ_TIMEOUT).unwrap_err();
        let says = "reading from 192.0.2.1:18515: unfinished message, 7 of 9 bytes after 10 s";
        assert_eq!(dead.to_string(), says);
    }

    const TICK: Duration = Duration::from_millis(100);

    #[test]
    fn an_end_that_did_not_run_knows_for_how_long() {
        let start = Instant::now();
        let mut attention = Attention::new(start);
        attention.looks(start + READ_TIMEOUT * 2);
        assert_eq!(attention.missed_before(start + READ_TIMEOUT * 2), None);
        let back = start + READ_TIMEOUT * 2 + SECOND * 4;
        attention.looks(back);
        attention.looks(back + TICK);
        assert_eq!(attention.missed_before(back + TICK), Some(SECOND * 4));
        // What ends the link later has another reason.
        assert_eq!(attention.missed_before(back + SILENCE_LIMIT), None);
    }

    #[test]
    fn calls_add_up_and_start_afresh() {
        let mut waited = Waited::new(TICK);
        waited.add(TICK);
        assert_eq!(waited.add(TICK), TICK * 2);
        waited.restart();
        assert_eq!(waited.add(TICK), TICK);
    }

    #[test]
    fn a_suspended_listener_is_no_silent_peer() {
        let mut waited = Waited::new(TICK);
        assert_eq!(waited.add(Duration::from_secs(60)), TICK * 2);
    }
}
