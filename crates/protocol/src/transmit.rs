//! Writing whole frames to a socket whose other end may have stopped taking them, and taking leave of it.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use crate::silence::Silence;

/// How long one `write` waits; the socket's write timeout.
pub(crate) const WRITE_TIMEOUT: Duration = Duration::from_millis(100);

/// Why a frame was not written; after either, part of it may be, and the stream is of no more use.
#[derive(Debug)]
pub(crate) enum WriteError {
    /// The other end took nothing for this long.
    Stalled(Duration),
    /// The operating system refused.
    Io(io::Error),
}

/// Writes all of `bytes`, and gives up when the other end takes none of them for `patience`. The
/// socket's write timeout must be [`WRITE_TIMEOUT`].
pub(crate) fn write_frame(
    mut stream: &TcpStream,
    mut bytes: &[u8],
    patience: Duration,
) -> Result<(), WriteError> {
    let mut silence = Silence::new(WRITE_TIMEOUT);
    while !bytes.is_empty() {
        let before = Instant::now();
        match stream.write(bytes) {
            Ok(0) => return Err(WriteError::Io(io::ErrorKind::WriteZero.into())),
            Ok(taken) => {
                bytes = &bytes[taken..];
                silence.heard();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let silent = silence.nothing_for(before.elapsed());
                if silent >= patience {
                    return Err(WriteError::Stalled(silent));
                }
            }
            Err(error) => return Err(WriteError::Io(error)),
        }
    }
    Ok(())
}

/// Ends the sending direction and waits at most `patience` for the other end to do the same. Without
/// the wait, bytes that are still unread here would turn the close into a reset, and the other end could lose
/// the last frame.
pub(crate) fn part(mut stream: &TcpStream, patience: Duration) {
    let deadline = Instant::now() + patience;
    if stream.shutdown(Shutdown::Write).is_err() || stream.set_read_timeout(Some(patience)).is_err()
    {
        return;
    }
    let mut scrap = [0; 4096];
    while Instant::now() < deadline && matches!(stream.read(&mut scrap), Ok(1..)) {}
}
