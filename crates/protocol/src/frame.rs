//! Frames: a `u32` little-endian length, then one message as JSON. Whatever the bytes, reading them ends in a message or a
//! typed error, memory grows only with bytes that have come, by a bounded factor, and every text in a message is printable.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use crate::error::FrameError;
use crate::message::Message;
use results::text;

/// The largest message, in bytes of JSON.
pub const MAX_FRAME_BYTES: usize = 48 << 20;

/// The largest message before the peer is known, in bytes of JSON.
pub const MAX_HANDSHAKE_BYTES: usize = 256 << 10;

/// A frame that has begun is over within this time. The largest takes 4 s at 100 Mb/s.
pub const FRAME_LIMIT: Duration = Duration::from_secs(10);

const HEADER_BYTES: usize = 4;
const READ_BYTES: usize = 64 << 10;

/// The bytes of one frame.
///
/// # Errors
/// [`FrameError::Oversized`] if the message does not fit, [`FrameError::NotMessage`] if it has no JSON form.
pub fn encode(message: &Message) -> Result<Vec<u8>, FrameError> {
    let mut bytes = vec![0; HEADER_BYTES];
    serde_json::to_writer(&mut bytes, message)
        .map_err(|error| FrameError::NotMessage { reason: short(&error) })?;
    let body_bytes = bytes.len() - HEADER_BYTES;
    let oversized =
        FrameError::Oversized { len_bytes: body_bytes as u64, limit_bytes: MAX_FRAME_BYTES };
    let header = match u32::try_from(body_bytes) {
        Ok(len) if body_bytes <= MAX_FRAME_BYTES => len.to_le_bytes(),
        _ => return Err(oversized),
    };
    bytes[..HEADER_BYTES].copy_from_slice(&header);
    Ok(bytes)
}

/// What a call of [`FrameReader::step`] brought.
#[derive(Debug)]
pub enum Step {
    /// A message whose last byte has come.
    Frame(Message),
    /// Bytes, but no whole message yet.
    Partial,
    /// Nothing: the read timed out or would block.
    Idle,
}

/// Reads frames from a stream, one `read` call a step, so that the caller can watch the time.
#[derive(Debug)]
pub struct FrameReader {
    limit_bytes: usize,
    header: [u8; HEADER_BYTES],
    header_got: usize,
    body_len: usize,
    body: Vec<u8>,
}

impl FrameReader {
    /// `limit_bytes` is the largest message that is taken, at most [`MAX_FRAME_BYTES`].
    pub fn new(limit_bytes: usize) -> Self {
        FrameReader {
            limit_bytes: limit_bytes.min(MAX_FRAME_BYTES),
            header: [0; HEADER_BYTES],
            header_got: 0,
            body_len: 0,
            body: Vec::new(),
        }
    }

    /// One `read` of the stream. It never takes bytes of the next frame.
    ///
    /// # Errors
    /// Any [`FrameError`]; after one, the stream cannot be read on.
    pub fn step(&mut self, stream: &mut impl Read) -> Result<Step, FrameError> {
        if self.header_got < HEADER_BYTES {
            let got = match read(stream, &mut self.header[self.header_got..])? {
                None => return Ok(Step::Idle),
                Some(0) if self.header_got == 0 => return Err(FrameError::Closed),
                Some(0) => return Err(truncated(self.header_got, HEADER_BYTES)),
                Some(got) => got,
            };
            self.header_got += got;
            if self.header_got == HEADER_BYTES {
                self.body_len = self.checked_len()?;
            }
            return Ok(Step::Partial);
        }
        let have = self.body.len();
        self.body.resize(self.body_len.min(have + READ_BYTES), 0);
        let outcome = read(stream, &mut self.body[have..]);
        let got = *outcome.as_ref().unwrap_or(&None);
        self.body.truncate(have + got.unwrap_or(0));
        match outcome? {
            None => Ok(Step::Idle),
            Some(0) => Err(truncated(have, self.body_len)),
            Some(_) if self.body.len() < self.body_len => Ok(Step::Partial),
            Some(_) => self.finish().map(Step::Frame),
        }
    }

    /// Bytes of the message that came last or is under way.
    pub fn message_bytes(&self) -> usize {
        self.body_len
    }

    /// Bytes that have come of a frame that is not whole yet, and how many those are of which the reader knows.
    pub(crate) fn unfinished(&self) -> Option<(usize, usize)> {
        match self.header_got {
            0 => None,
            HEADER_BYTES => Some((self.body.len(), self.body_len)),
            got => Some((got, HEADER_BYTES)),
        }
    }

    fn checked_len(&self) -> Result<usize, FrameError> {
        let len = u32::from_le_bytes(self.header);
        match usize::try_from(len) {
            Ok(0) => Err(FrameError::Empty),
            Ok(len) if len <= self.limit_bytes => Ok(len),
            _ => Err(FrameError::Oversized {
                len_bytes: u64::from(len),
                limit_bytes: self.limit_bytes,
            }),
        }
    }

    fn finish(&mut self) -> Result<Message, FrameError> {
        // A large message must not hold its memory until the session ends.
        let body = std::mem::take(&mut self.body);
        self.header_got = 0;
        decode(&body)
    }
}

fn decode(body: &[u8]) -> Result<Message, FrameError> {
    check_bounds(body)
        .map_err(|excess| FrameError::Excessive { what: excess.what, limit: excess.limit })?;
    serde_json::from_slice(&text::cleaned_json(body)).map_err(|error| {
        let reason = short(&error);
        if error.is_data() {
            FrameError::NotMessage { reason }
        } else {
            FrameError::NotJson { reason }
        }
    })
}

/// `None` if there is nothing to read now; 0 at the end of the stream.
fn read(stream: &mut impl Read, into: &mut [u8]) -> Result<Option<usize>, FrameError> {
    loop {
        return match stream.read(into) {
            Ok(got) => Ok(Some(got)),
            Err(error) => match error.kind() {
                io::ErrorKind::Interrupted => continue,
                io::ErrorKind::WouldBlock => Ok(None),
                _ => Err(FrameError::Io(Arc::new(error))),
            },
        };
    }
}

fn truncated(got_bytes: usize, expected_bytes: usize) -> FrameError {
    FrameError::Truncated { got_bytes, expected_bytes }
}

/// serde's reason may quote what the peer sent: shortened.
fn short(error: &serde_json::Error) -> String {
    text::printable(&error.to_string(), 160)
}

/// Objects and arrays within each other; messages of the protocol have 9.
const MAX_DEPTH: u64 = 24;

/// Objects and arrays: some, and one for so many bytes. The smallest that comes in numbers, a QP in `endpoints`, has
/// 50.
const FREE_CONTAINERS: u64 = 1024;
const BYTES_PER_CONTAINER: u64 = 40;

/// Elements: two numbers for each of the most QPs that there are, and one for so many bytes.
const FREE_ELEMENTS: u64 = 256 << 10;
const BYTES_PER_ELEMENT: u64 = 8;

/// What a text has more of than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Excess {
    pub(crate) what: &'static str,
    pub(crate) limit: u64,
}

/// Bounds what a JSON text may become in memory before it is parsed: an object of 7 bytes can take a hundred times as
/// much. The text need not be JSON.
pub(crate) fn check_bounds(text: &[u8]) -> Result<(), Excess> {
    let len = text.len() as u64;
    let most_containers = FREE_CONTAINERS + len / BYTES_PER_CONTAINER;
    let most_elements = FREE_ELEMENTS + len / BYTES_PER_ELEMENT;
    let (mut depth, mut containers, mut elements) = (0_u64, 0, 0);
    let mut bytes = text.iter();
    let mut in_string = false;
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => in_string = !in_string,
            b'\\' if in_string => {
                bytes.next();
            }
            _ if in_string => {}
            b'{' | b'[' => {
                depth += 1;
                containers += 1;
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' => elements += 1,
            _ => {}
        }
        for (what, count, limit) in [
            ("levels of nesting", depth, MAX_DEPTH),
            ("objects and arrays", containers, most_containers),
            ("elements", elements, most_elements),
        ] {
            if count > limit {
                return Err(Excess { what, limit });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "frame_tests.rs"]
pub(super) mod tests;
