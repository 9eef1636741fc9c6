//! The two threads of a link: one reads, one sends heart-beats.

use std::io::{self, Read};
use std::net::Shutdown;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError};

use super::shared::{
    HEARTBEAT_EVERY, MAX_UNREAD_BYTES, MOST_BEFORE_PROGRESS, READ_TIMEOUT, SILENCE_LIMIT,
    STALL_LIMIT, Shared, Unread,
};
use crate::error::{FrameError, LinkError};
use crate::frame::{self, FrameReader, MAX_FRAME_BYTES, Step};
use crate::message::{Message, RunMessage, SessionMessage};
use crate::silence::Silence;
use crate::transmit::{WriteError, write_frame};

pub(crate) fn read_until_end(shared: &Shared, deliver: Sender<Unread>, done: Sender<()>) {
    let failure = read_messages(shared, &deliver);
    let peer_may_send_on =
        matches!(failure, LinkError::Protocol { .. } | LinkError::Aborted { .. });
    // The owner may tell it why the link ends, and closes it then.
    let is_silent = matches!(failure, LinkError::PeerSilent { .. });
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
fn read_messages(shared: &Shared, deliver: &Sender<Unread>) -> LinkError {
    let mut reader = FrameReader::new(MAX_FRAME_BYTES);
    let mut silence = Silence::new(READ_TIMEOUT);
    loop {
        let before = Instant::now();
        let message = match reader.step(&mut &shared.stream) {
            Ok(Step::Idle) => {
                let silent = silence.nothing_for(before.elapsed());
                if silent >= SILENCE_LIMIT {
                    return shared.silent(silent);
                }
                continue;
            }
            Ok(Step::Partial) => None,
            Ok(Step::Frame(message)) => Some(message),
            Err(error) => return shared.frame_failure(error),
        };
        silence.heard();
        shared.heard.fetch_add(1, Ordering::Relaxed);
        match message {
            None => {}
            Some(Message::Session(SessionMessage::Heartbeat { progress })) => {
                shared.peer_progress.store(progress, Ordering::Relaxed);
            }
            Some(Message::Session(SessionMessage::Abort(why))) => {
                let peer = shared.peer;
                return LinkError::Aborted { peer, why };
            }
            Some(Message::Run(RunMessage::Progress(_)))
                if deliver.len() >= MOST_BEFORE_PROGRESS => {}
            Some(message) => {
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
            Err(error @ WriteError::Stalled(_)) => {
                shared.write_failed(error);
                return;
            }
            // The reader learns the reason; the peer's last words may still be unread.
            Err(WriteError::Io(_)) => return,
        }
    }
}
