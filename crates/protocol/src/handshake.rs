//! How two ends become a pair: versions, proof of the token, the session slot, facts about the hosts. All of it has one
//! deadline, and nothing is given to a peer before its proof but this end's version.
//!
//! Client `hello` → server `challenge` → client `proof` → server (perhaps `wait`, and then) `welcome`, `busy` or `abort` →
//! client `introduce`.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use results::numbers::for_people;
use serde_json::Value;

use crate::connection::{Exchange, client_of, dial};
use crate::error::{AcceptError, ConnectError, ExchangeError, FrameError};
use crate::handshakes::END_LIMIT;
use crate::link::Link;
use crate::message::{BusyInfo, HandshakeMessage, Message, NodeFailure, SessionMessage};
use crate::token::{self, Nonce, Role, Token};
use crate::{PROGRAM_VERSION, PROTOCOL_VERSION};

/// Time for a whole handshake, and for connecting before it.
pub const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);

/// A client that waits for the end of the last session for so long is told.
const WAIT_UNTOLD: Duration = Duration::from_secs(1);

/// What is known about the other end after a handshake.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerInfo {
    /// The other end's address on the control connection.
    pub address: SocketAddr,
    /// Version of the rocebench that runs there, such as `0.1.0`.
    pub version: String,
    /// Facts about its host, as it sent them: not checked.
    pub host: Value,
    /// Whether it is a server that was started to receive files.
    pub receives_files: bool,
    /// How its clock differs from this end's; a server does not ask.
    pub clock: Option<ClockOffset>,
}

/// What a server asks of its clients and tells them.
#[derive(Clone, Debug)]
pub struct ServerTerms {
    /// The token that clients must prove, if any.
    pub token: Option<Token>,
    /// Facts about this host, for clients that have proved it.
    pub host: Value,
    /// Time for a whole handshake.
    pub limit: Duration,
    /// A client that waits for the end of the last session for so long is told.
    pub wait_untold: Duration,
    /// Whether this server receives files.
    pub receives_files: bool,
}

impl ServerTerms {
    /// Terms with the usual [`HANDSHAKE_LIMIT`].
    pub fn new(token: Option<Token>, host: Value) -> Self {
        ServerTerms {
            token,
            host,
            limit: HANDSHAKE_LIMIT,
            wait_untold: WAIT_UNTOLD,
            receives_files: false,
        }
    }
}

/// Why a client does not get the session slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotError {
    /// The session that has it ends: ask again.
    Ending,
    /// Another client has the server, and goes on.
    Busy(BusyInfo),
    /// There are no more sessions.
    Over,
}

/// A client that the server has taken. The slot is given back when the guard is dropped.
#[derive(Debug)]
pub struct Accepted<G> {
    /// The connection to the client, with its threads started.
    pub link: Link,
    pub peer: PeerInfo,
    /// What `acquire` returned: the session slot.
    pub slot: G,
}

/// How a client comes to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Approach {
    /// The address of this end; that of the route without.
    pub from: Option<IpAddr>,
    /// How long a server that does not listen yet is waited for.
    pub wait: Duration,
}

/// Connects to the server at `host` and `port`, from this address if one is given, and does the client's half of the handshake. `facts` about
/// this host go to the server. All addresses of `host` are tried.
///
/// # Errors
/// [`ConnectError`], at the latest after twice [`HANDSHAKE_LIMIT`] and the wait for the end of the server's last session; at
/// once when `stop` is set.
pub fn connect(
    host: &str,
    port: u16,
    from: Option<IpAddr>,
    token: Option<&Token>,
    facts: &Value,
    stop: &AtomicBool,
) -> Result<(Link, PeerInfo), ConnectError> {
    let (stream, server) = dial(host, port, from, HANDSHAKE_LIMIT, stop)?;
    let broken = |source| ConnectError::Handshake { server, source };
    let mut exchange = Exchange::new(stream, HANDSHAKE_LIMIT, stop).map_err(broken)?;
    let peer = greet(&mut exchange, server, token, facts)?;
    let link = exchange.into_link(server).map_err(broken)?;
    Ok((link, peer))
}

/// How often an attempt to connect is made while servers are waited for.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(100);

/// Calls `attempt` until its servers listen, for `limit` at most, and says what is waited for; once without a limit.
///
/// # Errors
/// The attempt's, at once if it is another than that nobody listens yet, such as the wish to stop.
pub fn until_servers_listen<T>(
    limit: Duration,
    mut attempt: impl FnMut() -> Result<T, ConnectError>,
) -> Result<T, ConnectError> {
    let began = Instant::now();
    let mut last_reason = String::new();
    loop {
        let error = match attempt() {
            Err(error) if error.nobody_listens() && !limit.is_zero() => error,
            done => return done,
        };
        let left = limit.saturating_sub(began.elapsed());
        if left.is_zero() {
            return Err(ConnectError::StillDown { limit, last: Box::new(error) });
        }
        let reason = error.to_string();
        if reason != last_reason {
            tracing::warn!("waiting for the server, {} more: {reason}", whole_seconds(left));
            last_reason = reason;
        }
        std::thread::sleep(BETWEEN_ATTEMPTS.min(left));
    }
}

/// `30 s`, not less than it is.
fn whole_seconds(span: Duration) -> String {
    for_people(Duration::from_secs(span.as_secs_f64().ceil() as u64))
}

/// The client's messages; returns what the server told of itself.
pub(super) fn greet(
    exchange: &mut Exchange<'_>,
    server: SocketAddr,
    token: Option<&Token>,
    facts: &Value,
) -> Result<PeerInfo, ConnectError> {
    let broken = |source| ConnectError::Handshake { server, source };
    let ours = fresh_nonce().map_err(broken)?;
    exchange
        .send(HandshakeMessage::Hello {
            protocol: PROTOCOL_VERSION,
            version: PROGRAM_VERSION.into(),
            nonce: token::to_hex(&ours),
        })
        .map_err(broken)?;
    let (protocol, version, nonce, token_required) = match exchange.recv().map_err(broken)? {
        Message::Handshake(HandshakeMessage::Challenge {
            protocol,
            version,
            nonce,
            token_required,
        }) => (protocol, version, nonce, token_required),
        other => return Err(refusal(server, "challenge", other)),
    };
    same_version(protocol, &version).map_err(broken)?;
    let theirs = parse_nonce(&nonce)
        .filter(|theirs| *theirs != ours)
        .ok_or_else(|| broken(ExchangeError::BadNonce))?;
    match (token, token_required) {
        (None, true) => {
            // So that the server's log names the reason; the answer would say nothing new.
            let _ = exchange.send(HandshakeMessage::Proof { mac: None });
            return Err(ConnectError::TokenRequired { server });
        }
        (Some(_), false) => return Err(ConnectError::ServerUnproven { server }),
        _ => {}
    }
    let proof = token.map(|token| token.prove(Role::Client, &ours, &theirs));
    let asked_ns = wall_clock_ns();
    exchange.send(HandshakeMessage::Proof { mac: proof }).map_err(broken)?;
    let mut answer = exchange.recv().map_err(broken)?;
    if answer == Message::Handshake(HandshakeMessage::Wait) {
        tracing::warn!("{server}: waiting for the last sweep to end");
        exchange.prolong(END_LIMIT);
        answer = exchange.recv().map_err(broken)?;
    }
    let (mac, host, receives_files, theirs_ns) = match answer {
        Message::Handshake(HandshakeMessage::Welcome { mac, host, receives_files, clock_ns }) => {
            (mac, host, receives_files, clock_ns)
        }
        other => return Err(refusal(server, "welcome", other)),
    };
    let clock = match (asked_ns, theirs_ns, wall_clock_ns()) {
        (Some(asked), Some(read), Some(answered)) => {
            Some(ClockOffset::between(asked, read, answered))
        }
        _ => None,
    };
    if !proven(token, Role::Server, &ours, &theirs, mac.as_deref()) {
        return Err(ConnectError::ServerUnproven { server });
    }
    exchange.send(HandshakeMessage::Introduce { host: facts.clone() }).map_err(broken)?;
    Ok(PeerInfo { address: server, version, host, receives_files, clock })
}

/// Does the server's half of the handshake with a client that has just connected. `acquire` is called once the client
/// has proved the token, and returns the session slot's guard, or why not; after [`SlotError::Ending`] again and again, so
/// it is to wait a moment itself. Run this on a thread of its own: a slow client takes [`ServerTerms::limit`].
///
/// # Errors
/// [`AcceptError`]; the client has been told, where it can understand it, and the server goes on.
pub fn accept<G>(
    stream: TcpStream,
    terms: &ServerTerms,
    stop: &AtomicBool,
    acquire: impl FnMut(SocketAddr) -> Result<G, SlotError>,
) -> Result<Accepted<G>, AcceptError> {
    let client =
        client_of(&stream).map_err(|error| AcceptError::Lost { source: Arc::new(error) })?;
    let exchange = Exchange::new(stream, terms.limit, stop)
        .map_err(|source| AcceptError::Handshake { client, source })?;
    accept_on(exchange, client, terms, acquire)
}

/// As [`accept`], on a conversation that has begun.
pub(super) fn accept_on<G>(
    mut exchange: Exchange<'_>,
    client: SocketAddr,
    terms: &ServerTerms,
    acquire: impl FnMut(SocketAddr) -> Result<G, SlotError>,
) -> Result<Accepted<G>, AcceptError> {
    match admit(&mut exchange, client, terms, acquire) {
        Ok((slot, peer)) => {
            let link = exchange
                .into_link(client)
                .map_err(|source| AcceptError::Handshake { client, source })?;
            Ok(Accepted { link, peer, slot })
        }
        Err(error) => {
            if let Some(last_word) = last_word(&error) {
                let _ = exchange.send(last_word);
            }
            exchange.part();
            Err(error)
        }
    }
}

/// The server's messages, up to and with the client's `introduce`; returns the session slot and what the client told
/// of itself.
fn admit<G>(
    exchange: &mut Exchange<'_>,
    client: SocketAddr,
    terms: &ServerTerms,
    acquire: impl FnMut(SocketAddr) -> Result<G, SlotError>,
) -> Result<(G, PeerInfo), AcceptError> {
    let broken = |source| AcceptError::Handshake { client, source };
    let token = terms.token.as_ref();
    let (protocol, version, nonce) = match exchange.recv().map_err(broken)? {
        Message::Handshake(HandshakeMessage::Hello { protocol, version, nonce }) => {
            (protocol, version, nonce)
        }
        Message::Session(SessionMessage::Abort(why)) => {
            return Err(AcceptError::Refused { client, why });
        }
        other => return Err(broken(unexpected("hello", &other))),
    };
    let ours = fresh_nonce().map_err(broken)?;
    // Sent to a client of another version too: by it, it sees the difference.
    exchange
        .send(HandshakeMessage::Challenge {
            protocol: PROTOCOL_VERSION,
            version: PROGRAM_VERSION.into(),
            nonce: token::to_hex(&ours),
            token_required: token.is_some(),
        })
        .map_err(broken)?;
    same_version(protocol, &version).map_err(broken)?;
    let theirs = parse_nonce(&nonce).ok_or_else(|| broken(ExchangeError::BadNonce))?;
    let mac = match exchange.recv().map_err(broken)? {
        Message::Handshake(HandshakeMessage::Proof { mac }) => mac,
        other => return Err(broken(unexpected("proof", &other))),
    };
    if !proven(token, Role::Client, &theirs, &ours, mac.as_deref()) {
        return Err(AcceptError::Unproven { client });
    }
    let slot = slot(exchange, client, terms.wait_untold, acquire)?;
    let proof = token.map(|token| token.prove(Role::Server, &theirs, &ours));
    exchange
        .send(HandshakeMessage::Welcome {
            mac: proof,
            host: terms.host.clone(),
            receives_files: terms.receives_files,
            clock_ns: wall_clock_ns(),
        })
        .map_err(broken)?;
    match exchange.recv().map_err(broken)? {
        Message::Handshake(HandshakeMessage::Introduce { host }) => Ok((
            slot,
            PeerInfo { address: client, version, host, receives_files: false, clock: None },
        )),
        other => Err(broken(unexpected("introduce", &other))),
    }
}

/// The session slot. A session that ends is waited for, which a client hears of after `wait_untold`.
fn slot<G>(
    exchange: &mut Exchange<'_>,
    client: SocketAddr,
    wait_untold: Duration,
    mut acquire: impl FnMut(SocketAddr) -> Result<G, SlotError>,
) -> Result<G, AcceptError> {
    let broken = |source| AcceptError::Handshake { client, source };
    let began = Instant::now();
    let mut is_told = false;
    loop {
        match acquire(client) {
            Ok(slot) => {
                exchange.prolong(began.elapsed());
                return Ok(slot);
            }
            Err(SlotError::Busy(busy)) => return Err(AcceptError::Busy { client, busy }),
            Err(SlotError::Over) => return Err(broken(ExchangeError::Interrupted)),
            Err(SlotError::Ending) => exchange.check().map_err(broken)?,
        }
        if !is_told && began.elapsed() >= wait_untold {
            exchange.send(HandshakeMessage::Wait).map_err(broken)?;
            is_told = true;
        }
    }
}

/// What a client that is not taken is told. A wrong token and a missing one read the same.
fn last_word(error: &AcceptError) -> Option<Message> {
    let abort = |reason: &str| {
        Some(Message::Session(SessionMessage::Abort(NodeFailure::new(reason, None))))
    };
    let refuse = |reason: &str, hint: &str| {
        Some(Message::Session(SessionMessage::Abort(NodeFailure {
            bad_input: true,
            ..NodeFailure::new(reason, Some(hint.into()))
        })))
    };
    match error {
        AcceptError::Busy { busy, .. } => {
            Some(Message::Handshake(HandshakeMessage::Busy(busy.clone())))
        }
        AcceptError::Unproven { .. } => {
            refuse("the token is wrong or missing", "give both ends the same --token")
        }
        AcceptError::Handshake { source, .. } => match source {
            ExchangeError::Unexpected { got: "join", .. } => refuse(
                "this port belongs to `rocebench serve`, not to rank 0 of the job",
                "give --rank-0 the host where rank 0 runs, or all ranks another --port",
            ),
            ExchangeError::Unexpected { expected, got } => {
                abort(&format!("got `{got}` instead of `{expected}`"))
            }
            ExchangeError::BadNonce => abort("the nonce is not 32 bytes of hex"),
            ExchangeError::Interrupted => abort("the server is shutting down"),
            // It was framed as the protocol does.
            ExchangeError::Frame(
                unreadable @ (FrameError::NotJson { .. }
                | FrameError::NotMessage { .. }
                | FrameError::Excessive { .. }),
            ) => abort(&unreadable.to_string()),
            // Nothing that speaks another protocol would understand it, and `challenge` has told a client
            // of another version.
            _ => None,
        },
        AcceptError::Refused { .. }
        | AcceptError::Crowded { .. }
        | AcceptError::NoRoom { .. }
        | AcceptError::Lost { .. } => None,
    }
}

/// Why the server answered something else than was due.
fn refusal(server: SocketAddr, expected: &'static str, got: Message) -> ConnectError {
    match got {
        Message::Session(SessionMessage::Abort(why)) => ConnectError::Refused { server, why },
        Message::Handshake(HandshakeMessage::Busy(busy)) => ConnectError::Busy { server, busy },
        other => ConnectError::Handshake { server, source: unexpected(expected, &other) },
    }
}

fn unexpected(expected: &'static str, got: &Message) -> ExchangeError {
    ExchangeError::Unexpected { expected, got: got.kind() }
}

fn same_version(protocol: u32, version: &str) -> Result<(), ExchangeError> {
    if protocol == PROTOCOL_VERSION {
        return Ok(());
    }
    Err(ExchangeError::Version { protocol, version: version.into() })
}

/// Whether the other end proved the token, which it need not if there is none.
fn proven(
    token: Option<&Token>,
    role: Role,
    client: &Nonce,
    server: &Nonce,
    mac: Option<&str>,
) -> bool {
    token.is_none_or(|token| mac.is_some_and(|mac| token.verify(role, client, server, mac)))
}

fn fresh_nonce() -> Result<Nonce, ExchangeError> {
    token::nonce().map_err(|error| ExchangeError::Io {
        operation: "drawing a nonce",
        source: Arc::new(error),
    })
}

fn parse_nonce(text: &str) -> Option<Nonce> {
    token::from_hex(text)
}

/// The other end's clock minus this end's, from one question and its answer: the other end read its clock at
/// some time between both, so the middle is right to half the time between them (F. Cristian, Probabilistic
/// clock synchronization, 1989).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// Positive when the other end's clock is ahead.
    pub offset_ns: i128,
    /// The true offset is at most so far from it, as long as neither clock was set meanwhile.
    pub uncertainty_ns: u64,
}

impl ClockOffset {
    /// `theirs_ns` was read between `asked_ns` and `answered_ns`, all since 1970.
    pub fn between(asked_ns: u64, theirs_ns: u64, answered_ns: u64) -> ClockOffset {
        let round_trip_ns = answered_ns.saturating_sub(asked_ns);
        let middle_ns = i128::from(asked_ns) + i128::from(round_trip_ns / 2);
        ClockOffset {
            offset_ns: i128::from(theirs_ns) - middle_ns,
            uncertainty_ns: round_trip_ns.div_ceil(2),
        }
    }
}

/// Nanoseconds since 1970; `None` before it or after the year 2554.
pub(crate) fn wall_clock_ns() -> Option<u64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.ok()?.as_nanos()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_off_by_its_distance_from_the_middle() {
        let ahead = ClockOffset::between(1_000, 6_050, 1_101);
        assert_eq!((ahead.offset_ns, ahead.uncertainty_ns), (5_000, 51));
        let behind = ClockOffset::between(9_000, 4_000, 9_000);
        assert_eq!((behind.offset_ns, behind.uncertainty_ns), (-5_000, 0));
    }
}
