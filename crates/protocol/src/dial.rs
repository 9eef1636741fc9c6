//! A TCP connection to a host by name: resolving and connecting under one deadline, interruptible.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{RecvTimeoutError, bounded};

use crate::control_socket;
use crate::error::ConnectError;
use machine::threads;

const STOP_CHECK_EVERY: Duration = Duration::from_millis(20);

/// Connects to the first address of `host` that answers. The work is done on a thread of its own, because neither the
/// resolver nor `connect` can be interrupted; given up, that thread ends when they return.
pub(crate) fn dial(
    host: &str,
    port: u16,
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
        let _ = tell.send(try_addresses(&name, port, deadline));
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
    deadline: Instant,
) -> Result<(TcpStream, SocketAddr), ConnectError> {
    let addresses: Vec<_> =
        (host, port).to_socket_addrs().map_err(|source| resolve_error(host, source))?.collect();
    let mut failure: Option<(SocketAddr, io::Error)> = None;
    for (tried, &address) in (0u32..).zip(&addresses) {
        let untried = u32::try_from(addresses.len()).unwrap_or(u32::MAX).saturating_sub(tried);
        let share = deadline.saturating_duration_since(Instant::now()) / untried.max(1);
        match control_socket::connect(&address, share.max(Duration::from_millis(1))) {
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
        Some((address, error)) => ConnectError::Unreachable { address, source: Arc::new(error) },
        None => resolve_error(host, io::Error::other("it has no address")),
    })
}

fn resolve_error(host: &str, source: io::Error) -> ConnectError {
    ConnectError::Resolve { host: host.into(), source: Arc::new(source) }
}
