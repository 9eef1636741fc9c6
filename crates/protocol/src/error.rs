//! What can go wrong on a link, and why two ends did not become a pair, as types. Each text names the operation and the peer; each `hint` says what to do next.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::message::{BusyInfo, NodeFailure};
use crate::{PROGRAM_VERSION, PROTOCOL_VERSION};
use machine::threads::{self, ThreadError};
use results::numbers::for_people;

pub(crate) const SAME_VERSION: &str = "install the same version of rocebench on both ends";

/// A frame that could not be read or written.
#[derive(Clone, Debug, Error)]
pub enum FrameError {
    /// The stream ended between two frames.
    #[error("the connection was closed")]
    Closed,
    #[error("the connection ended inside a frame, after {got_bytes} of {expected_bytes} bytes")]
    Truncated {
        /// Bytes of the length or of the message that had come.
        got_bytes: usize,
        expected_bytes: usize,
    },
    #[error("a frame of {len_bytes} bytes is larger than the limit of {limit_bytes} bytes")]
    Oversized { len_bytes: u64, limit_bytes: usize },
    #[error("a frame is empty")]
    Empty,
    /// What it would become in memory is out of proportion.
    #[error("a frame has more than {limit} {what}, more than the protocol ever sends")]
    Excessive { what: &'static str, limit: u64 },
    #[error("a frame is not JSON: {reason}")]
    NotJson { reason: String },
    #[error("a frame is not a message of the protocol: {reason}")]
    NotMessage { reason: String },
    /// More frames came than are ever due at once.
    #[error(
        "{frames} frames ({bytes} bytes) wait unread, more than the protocol ever sends at once"
    )]
    Flood { frames: usize, bytes: usize },
    #[error("{0}")]
    Io(#[source] Arc<io::Error>),
}

/// Why an established link cannot go on, or why one wait on it ended.
#[derive(Clone, Debug, Error)]
pub enum LinkError {
    #[error("{peer} closed the connection")]
    PeerClosed { peer: SocketAddr },
    /// Nothing was heard, not even heart-beats, or nothing was taken by the other end.
    #[error("{peer} has been silent for {seconds:.1} s")]
    PeerSilent { peer: SocketAddr, seconds: f64 },
    /// A message was begun and does not come to its end.
    #[error(
        "{operation} {peer}: unfinished message, {got_bytes} of {expected_bytes} bytes after {seconds:.0} s"
    )]
    Unfinished {
        /// With its preposition, as in [`LinkError::Io`].
        operation: &'static str,
        peer: SocketAddr,
        got_bytes: usize,
        expected_bytes: usize,
        seconds: f64,
    },
    #[error("{peer} is alive but sent nothing for {seconds:.1} s")]
    Overdue { peer: SocketAddr, seconds: f64 },
    #[error("reading from {peer}: {source}")]
    Protocol { peer: SocketAddr, source: FrameError },
    /// What is to be sent cannot be framed; nothing was sent and the link still works.
    #[error("sending `{kind}` to {peer}: {source}")]
    Unsendable { peer: SocketAddr, kind: &'static str, source: FrameError },
    #[error("{peer} sent `{got}` instead of `{expected}`")]
    Unexpected { peer: SocketAddr, expected: &'static str, got: &'static str },
    #[error("{peer} gave up: {}", why.reason)]
    Aborted { peer: SocketAddr, why: NodeFailure },
    /// This end was stopped, or had no CPU, so that the other one took it for dead.
    #[error("this process did not run for {seconds:.1} s, and {end}")]
    Missed { seconds: f64, end: Box<LinkError> },
    #[error("interrupted while waiting for {peer}")]
    Interrupted { peer: SocketAddr },
    #[error("{operation} {peer}: {source}")]
    Io {
        /// The operation, with its preposition: `sending to`.
        operation: &'static str,
        peer: SocketAddr,
        source: Arc<io::Error>,
    },
}

/// The hint of an end that hears nothing, by which the other end knows why it was given up.
const OF_SILENCE: &str = "check that the program runs there, that the host is up and that the network between both works";

impl LinkError {
    /// What to do next, if there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            LinkError::PeerClosed { .. } => Some(
                "read the other end's output for the cause, start it again and repeat the run"
                    .into(),
            ),
            LinkError::PeerSilent { .. } | LinkError::Unfinished { .. } => Some(OF_SILENCE.into()),
            LinkError::Missed { .. } => Some(
                "repeat the run, and let this process run: it was stopped (Ctrl-Z, a debugger, a virtual machine that \
                 pauses), or had no CPU"
                    .into(),
            ),
            LinkError::Overdue { .. } => Some("look at the other end: it may lack CPU time".into()),
            LinkError::Protocol { .. } | LinkError::Unexpected { .. } => Some(SAME_VERSION.into()),
            LinkError::Unsendable { .. } => Some("run fewer QPs, or smaller cases".into()),
            LinkError::Aborted { why, .. } => why.hint.clone(),
            LinkError::Io { source, .. } => threads::remedy(&**source).map(str::to_owned),
            LinkError::Interrupted { .. } => None,
        }
    }

    /// Whether the peer gave up because it heard nothing from this end.
    pub(super) fn is_of_silence(&self) -> bool {
        matches!(self, LinkError::Aborted { why, .. } if why.hint.as_deref() == Some(OF_SILENCE))
    }

    /// Whether the fault is in what was asked for (exit code 2), not in the run (1).
    pub fn bad_input(&self) -> bool {
        matches!(self, LinkError::Aborted { why, .. } if why.bad_input)
    }

    /// Whether the peer is gone or can no longer be understood, so that nothing more can come from it.
    pub fn is_final(&self) -> bool {
        !matches!(
            self,
            LinkError::Overdue { .. }
                | LinkError::Interrupted { .. }
                | LinkError::Unsendable { .. }
        )
    }
}

/// Why one step of a handshake failed, on either end.
#[derive(Clone, Debug, Error)]
pub enum ExchangeError {
    #[error("the other end closed the connection")]
    Closed,
    #[error("the handshake was not complete after {seconds:.1} s")]
    TimedOut { seconds: f64 },
    #[error("interrupted")]
    Interrupted,
    #[error("the other end does not speak rocebench's protocol: {0}")]
    Frame(#[source] FrameError),
    #[error("the other end sent `{got}` instead of `{expected}`")]
    Unexpected { expected: &'static str, got: &'static str },
    /// A nonce is not 32 bytes of hex, or is this end's own.
    #[error("the other end sent a bad nonce")]
    BadNonce,
    #[error("{operation}: {source}")]
    Io { operation: &'static str, source: Arc<io::Error> },
    #[error(
        "this end speaks protocol {PROTOCOL_VERSION} (rocebench {PROGRAM_VERSION}), \
         the peer {protocol} ({version})"
    )]
    Version { protocol: u32, version: String },
}

/// Why no session with a server came to be.
#[derive(Clone, Debug, Error)]
pub enum ConnectError {
    #[error("resolving {host}: {source}")]
    Resolve { host: String, source: Arc<io::Error> },
    #[error("connecting to {address}: {source}")]
    Unreachable {
        /// The address tried, the most telling one of several.
        address: SocketAddr,
        /// The address of this end that was asked for.
        from: Option<IpAddr>,
        source: Arc<io::Error>,
    },
    /// Resolving and connecting took too long.
    #[error("connecting to {host} port {port}: no answer within {seconds:.0} s")]
    NoAnswer { host: String, port: u16, seconds: f64 },
    /// Nobody listened for as long as this end was to wait.
    #[error("waited {} for the server: {last}", for_people(*limit))]
    StillDown { limit: Duration, last: Box<ConnectError> },
    #[error("interrupted while connecting to {host}")]
    Interrupted { host: String },
    #[error("handshake with {server}: {source}")]
    Handshake { server: SocketAddr, source: ExchangeError },
    #[error("{server} requires a token")]
    TokenRequired { server: SocketAddr },
    /// A token was given, but the server did not prove that it knows it.
    #[error("{server} does not know the token")]
    ServerUnproven { server: SocketAddr },
    #[error("{server} is busy: it has served {} for {} s", busy.client, busy.since_seconds)]
    Busy { server: SocketAddr, busy: BusyInfo },
    #[error(transparent)]
    Thread(Arc<ThreadError>),
    #[error("{missing} {} within {seconds:.0} s", if *.is_first { "did not join" } else { "did not come back" })]
    NotJoined {
        missing: String,
        /// One that came and did not prove the token, as it called itself.
        unproven: Option<String>,
        /// They have never been there.
        is_first: bool,
        seconds: f64,
        /// TCP port at which rank 0 listens.
        port: u16,
    },
    #[error("{server} refused: {}", why.reason)]
    Refused { server: SocketAddr, why: NodeFailure },
    #[error("{} of {nodes} nodes are not available: {}", errors.len(), first_of(errors))]
    Several { errors: Vec<ConnectError>, nodes: usize },
}

/// Whether an IPv6 address is of one link, and it is not said of which.
fn lacks_zone(address: &SocketAddr) -> bool {
    matches!(address, SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() && v6.scope_id() == 0)
}

const SEE_SERVER: &str = "read the output of `rocebench serve` on the other host";

/// Errors that are told where there are many.
const MOST_TOLD: usize = 8;

fn first_of(errors: &[ConnectError]) -> String {
    let first: Vec<String> = errors.iter().take(MOST_TOLD).map(ConnectError::to_string).collect();
    if errors.len() > MOST_TOLD { first.join("; ") + " …" } else { first.join("; ") }
}

impl ConnectError {
    /// The error of so many nodes; `None` where there are none, and a wish to stop before all others.
    pub fn of_many(mut errors: Vec<ConnectError>, nodes: usize) -> Option<ConnectError> {
        let interrupt = errors.iter().position(ConnectError::is_interrupt);
        match (errors.len(), interrupt) {
            (0, _) => None,
            (_, Some(at)) => Some(errors.swap_remove(at)),
            (1, None) => errors.pop(),
            (_, None) => Some(ConnectError::Several { errors, nodes }),
        }
    }

    /// What to do next, if there is something.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            ConnectError::Resolve { source, .. }
                if source.kind() == io::ErrorKind::AddrNotAvailable =>
            {
                "give an address of the family of --bind, or leave that out (perftest's --ipv6 is `--bind ::`)".into()
            }
            ConnectError::Resolve { host, .. } => {
                format!("check the spelling of {host}, or give its address")
            }
            ConnectError::Unreachable { address, from, source } => match source.kind() {
                io::ErrorKind::AddrNotAvailable if from.is_some() => {
                    "--bind takes an address of this machine (`ip addr` lists them)".into()
                }
                io::ErrorKind::ConnectionRefused => format!(
                    "start `rocebench serve` on {}, or name the port it listens on with --port",
                    address.ip()
                ),
                io::ErrorKind::TimedOut => no_answer_hint(address.port()),
                _ if lacks_zone(address) => format!(
                    "name the interface too, as in {}%eth0: an fe80 address belongs to one interface",
                    address.ip()
                ),
                _ => format!(
                    "check the address {} and this host's routes to it",
                    address.ip()
                ),
            },
            ConnectError::NoAnswer { port, .. } => no_answer_hint(*port),
            ConnectError::StillDown { last, .. } => return last.hint(),
            ConnectError::Interrupted { .. } => return None,
            ConnectError::Handshake { source, .. } => match source {
                ExchangeError::Interrupted => return None,
                ExchangeError::Closed => SEE_SERVER.into(),
                ExchangeError::Io { source, .. } => {
                    threads::remedy(&**source).unwrap_or(SEE_SERVER).into()
                }
                ExchangeError::TimedOut { .. } | ExchangeError::Frame(_) => {
                    "check that the program behind this port is `rocebench serve`".into()
                }
                _ => SAME_VERSION.into(),
            },
            ConnectError::TokenRequired { .. } => "give the server's token with --token".into(),
            ConnectError::ServerUnproven { .. } => {
                "check that it is the right host, and start `rocebench serve` there with the same --token"
                    .into()
            }
            ConnectError::Busy { .. } => "try again when that sweep has ended".into(),
            ConnectError::NotJoined {
                unproven: Some(who),
                ..
            } => format!("give all ranks the same --token: {who} came without the right one"),
            ConnectError::NotJoined {
                is_first: true,
                port,
                ..
            } => format!(
                "read these ranks' output, and check that they reach TCP port {port} of rank 0's host"
            ),
            ConnectError::NotJoined { .. } => {
                "read these ranks' output to see why they ended".into()
            }
            ConnectError::Thread(_) => threads::REMEDY.into(),
            ConnectError::Refused { why, .. } => return why.hint.clone(),
            ConnectError::Several { errors, .. } => return errors.first()?.hint(),
        })
    }

    /// Whether the fault is in what was asked for (exit code 2), not in the run (1).
    pub fn bad_input(&self) -> bool {
        match self {
            ConnectError::Several { errors, .. } => errors.iter().any(ConnectError::bad_input),
            ConnectError::Refused { why, .. } => why.bad_input,
            ConnectError::StillDown { last, .. } => last.bad_input(),
            ConnectError::Resolve { .. }
            | ConnectError::TokenRequired { .. }
            | ConnectError::ServerUnproven { .. } => true,
            _ => false,
        }
    }

    /// Whether it is over once somebody listens: the host, its name or the program there may still be on their way.
    pub(crate) fn nobody_listens(&self) -> bool {
        match self {
            ConnectError::Several { errors, .. } => errors.iter().all(ConnectError::nobody_listens),
            ConnectError::Unreachable { address, source, .. } => {
                !lacks_zone(address) && source.kind() != io::ErrorKind::AddrNotAvailable
            }
            ConnectError::Resolve { .. } | ConnectError::NoAnswer { .. } => true,
            _ => false,
        }
    }

    /// Whether this end was asked to stop.
    pub fn is_interrupt(&self) -> bool {
        matches!(
            self,
            ConnectError::Interrupted { .. }
                | ConnectError::Handshake { source: ExchangeError::Interrupted, .. }
        )
    }
}

/// Why a server did not take a connection; it goes on with the next one.
#[derive(Clone, Debug, Error)]
pub enum AcceptError {
    #[error("handshake with {client}: {source}")]
    Handshake { client: SocketAddr, source: ExchangeError },
    #[error("{client} does not know the token")]
    Unproven { client: SocketAddr },
    #[error("{client} was refused: the server is busy with {}", busy.client)]
    Busy { client: SocketAddr, busy: BusyInfo },
    /// The client, to which this end had connected, refused and said why.
    #[error("{client} refused: {}", why.reason)]
    Refused { client: SocketAddr, why: NodeFailure },
    #[error("closed the connection of {client}: the oldest of too many unfinished handshakes")]
    Crowded { client: SocketAddr },
    #[error("no resources for the connection of {client}: {source}")]
    NoRoom { client: SocketAddr, source: Arc<io::Error> },
    /// The connection was gone before anything could be done with it.
    #[error("accepting a connection: {source}")]
    Lost { source: Arc<io::Error> },
}

impl AcceptError {
    /// What to do next, if there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            AcceptError::Handshake { source: ExchangeError::Version { .. }, .. } => {
                Some(SAME_VERSION.into())
            }
            AcceptError::Unproven { .. } => Some("give the client this server's --token".into()),
            AcceptError::Refused { why, .. } => why.hint.clone(),
            AcceptError::NoRoom { source, .. } => {
                let of_files = "raise the limit of open files (`ulimit -n`)";
                Some(threads::remedy(&**source).unwrap_or(of_files).into())
            }
            _ => None,
        }
    }
}

fn no_answer_hint(port: u16) -> String {
    format!("check the address, and that the firewall lets TCP port {port} through")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_one_link_wants_its_interface() {
        let hint = |address: &str| {
            let error = ConnectError::Unreachable {
                address: address.parse().unwrap(),
                from: None,
                source: Arc::new(io::Error::from_raw_os_error(libc::EINVAL)),
            };
            error.hint().unwrap()
        };
        assert!(hint("[fe80::1]:18515").contains("as in fe80::1%eth0"));
        for other in ["[fe80::1%2]:18515", "[2001:db8::1]:18515", "192.0.2.1:18515"] {
            assert!(hint(other).contains("routes"), "{other}");
        }
    }

    #[test]
    fn ranks_that_are_missing_are_told_by_what_is_known_of_them() {
        let hint = |unproven: Option<&str>, is_first| {
            let error = ConnectError::NotJoined {
                missing: "rank 1".to_owned(),
                unproven: unproven.map(str::to_owned),
                is_first,
                seconds: 60.0,
                port: 18515,
            };
            error.hint().unwrap()
        };
        let came = hint(Some("rank 1 (n1)"), true);
        assert!(came.contains("rank 1 (n1) came") && came.contains("--token"));
        assert!(hint(None, true).contains("TCP port 18515"));
        assert!(hint(None, false).contains("why they ended"));
    }
}
