//! Sends the same file over one TCP connection for comparison, as a plain copy program would: the sender reads and
//! writes, the receiver reads and stores. The receiver stores it in the same folder in an unnamed file, syncs it to
//! disk, checks the same checksum, and discards it. One thread at each end.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use node::server::{ServerEvent, ServerLog};
use protocol::failure::RunFailure;
use protocol::link::{Link, Patience};
use protocol::message::{FileAck, FileMessage, Message, TcpAccept, TcpHello};
use protocol::token::{self, NONCE_BYTES, Nonce};

use super::channel::{CHUNK_BYTES, TransferEnd};
use super::chunks::{peers_reason, unreadable};
use super::files::{
    Digest, Folder, Incoming, Opened, ReceivedFile, Source, check_received_name, finish_file,
};

/// Time limit for the sender to connect and send the key.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Longest time without a byte, also where the other end still sends heart-beats: its disk may be slow, and write much at
/// once.
const STILL_LIMIT: Duration = Duration::from_secs(60);

/// How long one read or write may block between two checks of the link.
const TICK: Duration = Duration::from_millis(50);

/// Reads a file once, to bring it into the page cache if there is room.
pub(super) fn warm(file: &File, source: &Source, stop: &AtomicBool) -> Result<(), RunFailure> {
    let mut buffer = vec![0; 1 << 20];
    let mut offset = 0;
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(TransferEnd::Sender.stopped());
        }
        match file.read_at(&mut buffer, offset) {
            Ok(0) => return Ok(()),
            Ok(count) => offset += count as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(unreadable(&source.name, &error)),
        }
    }
}

/// Asks the receiver to listen, and connects to it.
pub(super) fn open(
    link: &Link,
    name: &str,
    size_bytes: u64,
    chunk_bytes: u32,
    stop: &AtomicBool,
) -> Result<TcpStream, RunFailure> {
    link.send(FileMessage::TcpHello(TcpHello { name: name.to_owned(), size_bytes, chunk_bytes }))?;
    let TcpAccept { port, key } =
        match TransferEnd::Sender.recv(link, Duration::from_secs(120), stop)? {
            Message::File(FileMessage::TcpAccept(accept)) => accept,
            other => return Err(link.unexpected("file_tcp_accept", &other).into()),
        };
    let key: Nonce = token::from_hex(&key).ok_or_else(|| {
        RunFailure::new("the receiver sent a bad key for the TCP connection", None)
    })?;
    let address = SocketAddr::new(link.peer().ip(), port);
    connect(&address, &key).map_err(|error| {
        RunFailure::new(
            format!("connecting to {address} for the comparison with TCP: {error}"),
            Some(
                "open the receiver's firewall for other ports than the control port, or leave --against out"
                    .into(),
            ),
        )
    })
}

fn connect(address: &SocketAddr, key: &[u8]) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(address, CONNECT_LIMIT)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(TICK))?;
    stream.write_all(key)?;
    Ok(stream)
}

/// Sends the whole file; returns its checksum.
pub(super) fn send(
    stream: &mut TcpStream,
    opened: &Opened,
    name: &str,
    chunk_bytes: u32,
    mut tell: impl FnMut(u64) -> Result<(), RunFailure>,
) -> Result<Digest, RunFailure> {
    let mut digest = Digest::default();
    let mut chunk = vec![0; chunk_bytes as usize];
    let mut reported = Instant::now();
    let mut patience = Patience::new(0, reported);
    let mut offset = 0;
    for index in 0.. {
        let length = opened.size_bytes.saturating_sub(offset).min(u64::from(chunk_bytes));
        if length == 0 {
            break;
        }
        let chunk = &mut chunk[..length as usize];
        opened.file.read_exact_at(chunk, offset).map_err(|error| unreadable(name, &error))?;
        digest.add(index, chunk);
        let mut unsent: &[u8] = chunk;
        while !unsent.is_empty() {
            match stream.write(unsent) {
                Ok(0) => return Err(broken(&io::ErrorKind::WriteZero.into())),
                Ok(count) => unsent = &unsent[count..],
                Err(error) if is_pause(&error) => {
                    tell(offset)?;
                    let moved_bytes = offset + length - unsent.len() as u64;
                    moves(&mut patience, moved_bytes, Instant::now())?;
                }
                Err(error) => return Err(broken(&error)),
            }
        }
        offset += length;
        if reported.elapsed() >= TICK {
            reported = Instant::now();
            tell(offset)?;
        }
    }
    Ok(digest)
}

pub(super) fn receive(
    link: &Link,
    folder: &Arc<Folder>,
    hello: &TcpHello,
    log: &ServerLog,
    stop: &AtomicBool,
) -> Result<(), RunFailure> {
    let started = Instant::now();
    check_received_name(&hello.name)?;
    if !CHUNK_BYTES.contains(&hello.chunk_bytes) {
        let text = format!("chunks of {} bytes", hello.chunk_bytes);
        return Err(RunFailure::new(text, None));
    }
    let incoming = folder.incoming(&hello.name, hello.size_bytes)?;
    let listener =
        TcpListener::bind((link.local()?.ip(), 0)).map_err(|error| not_listening(&error))?;
    let key = token::nonce().map_err(|error| not_listening(&error))?;
    link.send(FileMessage::TcpAccept(TcpAccept {
        port: listener.local_addr().map_err(|error| not_listening(&error))?.port(),
        key: token::to_hex(&key),
    }))?;
    let mut stream =
        accept(&listener, &key, link, stop).map_err(|found| peers_reason(link, found, stop))?;
    let digest = store(&mut stream, folder, &incoming, hello, link, stop)
        .map_err(|found| peers_reason(link, found, stop))?;
    let received_file = ReceivedFile { name: &hello.name, size_bytes: hello.size_bytes };
    let sync_seconds = finish_file(link, folder, &incoming, received_file, digest, stop)?;
    drop(incoming);
    link.send(FileMessage::Ack(FileAck { sync_seconds }))?;
    log(ServerEvent::File {
        name: &hello.name,
        bytes: hello.size_bytes,
        seconds: started.elapsed().as_secs_f64(),
        qps: 0,
    });
    Ok(())
}

/// Accepts the first connection that sends the key.
fn accept(
    listener: &TcpListener,
    key: &Nonce,
    link: &Link,
    stop: &AtomicBool,
) -> Result<TcpStream, RunFailure> {
    let deadline = Instant::now() + CONNECT_LIMIT;
    listener.set_nonblocking(true).map_err(|error| broken(&error))?;
    while Instant::now() < deadline {
        TransferEnd::Receiver.alive(link, stop)?;
        match listener.accept() {
            Ok((mut stream, _)) => {
                let mut shown = [0; NONCE_BYTES];
                let read = stream
                    .set_nonblocking(false)
                    .and_then(|()| stream.set_read_timeout(Some(Duration::from_secs(1))))
                    .and_then(|()| stream.read_exact(&mut shown));
                if read.is_ok() && shown == *key {
                    stream.set_read_timeout(Some(TICK)).map_err(|error| broken(&error))?;
                    return Ok(stream);
                }
            }
            Err(_) => thread::sleep(Duration::from_millis(2)),
        }
    }
    Err(RunFailure::new(
        "the sender did not connect for the comparison with TCP",
        Some("open the receiver's firewall for other ports than the control port, or leave --against out".into()),
    ))
}

fn store(
    stream: &mut TcpStream,
    folder: &Folder,
    incoming: &Incoming,
    hello: &TcpHello,
    link: &Link,
    stop: &AtomicBool,
) -> Result<Digest, RunFailure> {
    let TcpHello { name, size_bytes, chunk_bytes } = hello;
    let mut digest = Digest::default();
    let mut chunk = vec![0; *chunk_bytes as usize];
    let mut patience = Patience::new(0, Instant::now());
    let mut offset = 0;
    for index in 0.. {
        let length = (size_bytes - offset).min(u64::from(*chunk_bytes));
        if length == 0 {
            break;
        }
        let chunk = &mut chunk[..length as usize];
        let mut filled = 0;
        while filled < chunk.len() {
            match stream.read(&mut chunk[filled..]) {
                Ok(0) => return Err(broken(&io::ErrorKind::UnexpectedEof.into())),
                Ok(count) => filled += count,
                Err(error) if is_pause(&error) => {
                    TransferEnd::Receiver.alive(link, stop)?;
                    moves(&mut patience, offset + filled as u64, Instant::now())?;
                }
                Err(error) => return Err(broken(&error)),
            }
        }
        digest.add(index, chunk);
        incoming
            .write_at(chunk, offset)
            .map_err(|error| folder.call(error, "writing", name, *size_bytes))?;
        offset += length;
    }
    Ok(digest)
}

/// Looks, at a pause, whether bytes still move.
///
/// # Errors
/// Their number has not changed for [`STILL_LIMIT`].
fn moves(patience: &mut Patience, moved_bytes: u64, now: Instant) -> Result<(), RunFailure> {
    if !patience.is_over(moved_bytes, now, STILL_LIMIT) {
        return Ok(());
    }
    let seconds = STILL_LIMIT.as_secs();
    Err(RunFailure::new(
        format!("the comparison with TCP stood still for {seconds} s after {moved_bytes} bytes"),
        Some("look at the disk and the process of the other end, or leave --against out".into()),
    ))
}

fn is_pause(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

fn broken(error: &io::Error) -> RunFailure {
    RunFailure::new(
        format!("the TCP connection of the comparison broke: {error}"),
        Some("see what the other end printed".into()),
    )
}

fn not_listening(error: &io::Error) -> RunFailure {
    RunFailure::new(format!("listening for the comparison with TCP: {error}"), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_on_which_nothing_moves_is_given_up() {
        let begin = Instant::now();
        let mut patience = Patience::new(0, begin);
        for step in 1_u32..5 {
            moves(&mut patience, step.into(), begin + step * (STILL_LIMIT / 2)).unwrap();
        }
        moves(&mut patience, 4, begin + 3 * STILL_LIMIT - Duration::from_nanos(1)).unwrap();
        let failure = moves(&mut patience, 4, begin + 3 * STILL_LIMIT).unwrap_err();
        assert!(failure.message.contains("60 s after 4 bytes"), "{failure}");
    }
}
