//! What travels between two ends, over real sockets on loopback. No device.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod handshake;
mod link;

use std::net::TcpStream;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use protocol::error::FrameError;
use protocol::frame::{FrameReader, MAX_FRAME_BYTES, Step};
use protocol::message::{Message, SessionMessage};

static GO_ON: AtomicBool = AtomicBool::new(false);
const SECOND: Duration = Duration::from_secs(1);

/// Nothing here takes this long: longer is a hang.
const WATCHDOG: Duration = Duration::from_secs(20);

/// The next message that is no heart-beat.
fn recv(mut stream: &TcpStream) -> Result<Message, FrameError> {
    let mut reader = FrameReader::new(MAX_FRAME_BYTES);
    loop {
        match reader.step(&mut stream)? {
            Step::Frame(Message::Session(SessionMessage::Heartbeat { .. }))
            | Step::Partial
            | Step::Idle => {}
            Step::Frame(message) => return Ok(message),
        }
    }
}
