//! TCP connections before there is a link: dialling a host, listening, and messages turn by turn under one deadline, which
//! a handshake is made of. All of it can be interrupted.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{RecvTimeoutError, bounded};
use socket2::{Domain, Protocol, Socket, Type};

use crate::error::{ConnectError, ExchangeError, FrameError, LinkError};
use crate::frame::{self, FRAME_LIMIT, FrameReader, MAX_HANDSHAKE_BYTES, Step};
use crate::link::{Link, has_hung_up};
use crate::link_threads::Waited;
use crate::message::{Message, NodeFailure, SessionMessage};
use machine::threads;

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
        configure(&stream).map_err(|error| io_error("configuring the connection", error))?;
        let reader = FrameReader::new(MAX_HANDSHAKE_BYTES);
        Ok(Exchange { stream, reader, started: Instant::now(), limit, stop })
    }

    pub(crate) fn send(&mut self, message: impl Into<Message>) -> Result<(), ExchangeError> {
        let bytes = frame::encode(&message.into()).map_err(ExchangeError::Frame)?;
        let left = self.limit.saturating_sub(self.started.elapsed());
        write_frame(&self.stream, &bytes, left.max(WRITE_TIMEOUT)).map_err(|error| match error {
            WriteError::Stalled(_) | WriteError::Unfinished { .. } => self.timed_out(),
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

fn configure(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    stream.set_write_timeout(Some(WRITE_TIMEOUT))
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

const STOP_CHECK_EVERY: Duration = Duration::from_millis(20);

/// Connects to the first address of `host` that answers. The work is done on a thread of its own, because neither the
/// resolver nor `connect` can be interrupted; given up, that thread ends when they return.
pub(crate) fn dial(
    host: &str,
    port: u16,
    from: Option<IpAddr>,
    limit: Duration,
    stop: &AtomicBool,
) -> Result<(TcpStream, SocketAddr), ConnectError> {
    let deadline = Instant::now() + limit;
    let (tell, outcome) = bounded(1);
    // `[::1]` is how an IPv6 address is written next to a port.
    let name =
        host.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(host).to_owned();
    threads::spawn("control-dial", move || {
        // Nobody listens any more if this end has given up.
        let _ = tell.send(try_addresses(&name, port, from, deadline));
    })
    .map_err(|error| ConnectError::Thread(Arc::new(error)))?;
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(ConnectError::Interrupted { host: host.into() });
        }
        match outcome.recv_timeout(STOP_CHECK_EVERY) {
            Ok(outcome) => return outcome,
            Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
            Err(_) => {
                let seconds = limit.as_secs_f64();
                return Err(ConnectError::NoAnswer { host: host.into(), port, seconds });
            }
        }
    }
}

fn try_addresses(
    host: &str,
    port: u16,
    from: Option<IpAddr>,
    deadline: Instant,
) -> Result<(TcpStream, SocketAddr), ConnectError> {
    let resolved = (host, port).to_socket_addrs().map_err(|source| resolve_error(host, source))?;
    let is_of_family =
        |address: &SocketAddr| from.is_none_or(|it| it.is_ipv4() == address.is_ipv4());
    let addresses: Vec<SocketAddr> = resolved.filter(is_of_family).collect();
    let mut failure: Option<(SocketAddr, io::Error)> = None;
    for (tried, &address) in (0u32..).zip(&addresses) {
        let untried = u32::try_from(addresses.len()).unwrap_or(u32::MAX).saturating_sub(tried);
        let share = deadline.saturating_duration_since(Instant::now()) / untried.max(1);
        match connect(&address, from, share.max(Duration::from_millis(1))) {
            Ok(stream) => return Ok((stream, address)),
            // A host that refuses is there: that says more than one that does not answer.
            Err(error) => match &failure {
                Some((_, first)) if first.kind() == io::ErrorKind::ConnectionRefused => {}
                Some(_) if error.kind() != io::ErrorKind::ConnectionRefused => {}
                _ => failure = Some((address, error)),
            },
        }
    }
    Err(match failure {
        Some((address, error)) => {
            ConnectError::Unreachable { address, from, source: Arc::new(error) }
        }
        None => {
            let kind = from.map_or("", |it| if it.is_ipv4() { " of IPv4" } else { " of IPv6" });
            let text = format!("it has no address{kind}");
            resolve_error(host, io::Error::new(io::ErrorKind::AddrNotAvailable, text))
        }
    })
}

fn resolve_error(host: &str, source: io::Error) -> ConnectError {
    ConnectError::Resolve { host: host.into(), source: Arc::new(source) }
}

/// Payload bytes of a segment: a path that drops large frames, which is what a person wants to be told of, must not
/// stall the connection that tells. Every path of IPv6 carries it with its headers (1280 bytes, RFC 8200, section 5), and so do
/// those of IPv4 that matter.
const SEGMENT_BYTES: u32 = 1200;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// A connection whose segments are small, from this address or that of the route.
///
/// # Errors
/// No answer within `limit`, or what the system says.
pub(crate) fn connect(
    address: &SocketAddr,
    from: Option<IpAddr>,
    limit: Duration,
) -> io::Result<TcpStream> {
    let socket = made(address)?;
    if let Some(from) = from {
        socket.bind(&SocketAddr::new(from, 0).into())?;
    }
    socket.connect_timeout(&(*address).into(), limit)?;
    Ok(socket.into())
}

/// Binds to `address` and listens. Segments of accepted connections are small, as those of dialled ones are.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = made(&address)?;
    if address.is_ipv6() && address.ip().is_unspecified() {
        // All addresses are those of both families, also where net.ipv6.bindv6only makes that no default.
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Who is at the other end. A socket of both families shows an IPv4 client as `::ffff:192.0.2.1`; here it is the address
/// that people know.
pub(crate) fn client_of(stream: &TcpStream) -> io::Result<SocketAddr> {
    stream.peer_addr().map(canonical)
}

/// The same address, as IPv4's where it is one of these in IPv6's form.
pub fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// A socket before either, since ends agree on the size of segments when they connect.
fn made(address: &SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(*address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_tcp_mss(SEGMENT_BYTES)?;
    Ok(socket)
}

/// How long one `write` waits; the socket's write timeout.
pub(crate) const WRITE_TIMEOUT: Duration = Duration::from_millis(100);

/// Why a frame was not written; after either, part of it may be, and the stream is of no more use.
#[derive(Debug)]
pub(crate) enum WriteError {
    /// The other end took nothing for this long.
    Stalled(Duration),
    /// It took only so many bytes in [`FRAME_LIMIT`].
    Unfinished { taken_bytes: usize },
    /// A `write` failed with an error of the operating system, such as a reset connection.
    Io(io::Error),
}

/// Writes all of `bytes`, and gives up when the other end takes none of them for `patience`, or not all in
/// [`FRAME_LIMIT`]. The socket's write timeout must be [`WRITE_TIMEOUT`].
pub(crate) fn write_frame(
    mut stream: &TcpStream,
    bytes: &[u8],
    patience: Duration,
) -> Result<(), WriteError> {
    let mut taken_bytes = 0;
    let mut stalled = Waited::new(WRITE_TIMEOUT);
    let mut frame = Waited::new(WRITE_TIMEOUT);
    while taken_bytes < bytes.len() {
        let before = Instant::now();
        let written = stream.write(&bytes[taken_bytes..]);
        let elapsed = before.elapsed();
        match written {
            Ok(0) => return Err(WriteError::Io(io::ErrorKind::WriteZero.into())),
            Ok(taken) => {
                taken_bytes += taken;
                stalled.restart();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let silent = stalled.add(elapsed);
                if silent >= patience {
                    return Err(WriteError::Stalled(silent));
                }
            }
            Err(error) => return Err(WriteError::Io(error)),
        }
        if frame.add(elapsed) >= FRAME_LIMIT && taken_bytes < bytes.len() {
            return Err(WriteError::Unfinished { taken_bytes });
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

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::SockRef;

    #[test]
    fn segments_are_small_at_both_ends_also_where_only_one_asks() {
        let any = "127.0.0.1:0".parse().unwrap();
        for (own_listens, own_connects) in [(true, true), (true, false), (false, true)] {
            let listener =
                if own_listens { listen(any).unwrap() } else { TcpListener::bind(any).unwrap() };
            let address = listener.local_addr().unwrap();
            let client = if own_connects {
                connect(&address, None, Duration::from_secs(1)).unwrap()
            } else {
                TcpStream::connect(address).unwrap()
            };
            let (server, _) = listener.accept().unwrap();
            for end in [client, server] {
                let bytes = SockRef::from(&end).tcp_mss().unwrap();
                assert!(bytes <= SEGMENT_BYTES, "{bytes}");
            }
        }
    }
}
