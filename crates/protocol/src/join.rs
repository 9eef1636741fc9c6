//! How a node becomes a pair with a coordinator that it has connected to, where launchers start both: the node says `join`,
//! and from then on the handshake is the usual one, with the coordinator as its client.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::Value;

use crate::dial::dial;
use crate::error::{AcceptError, ConnectError, ExchangeError};
use crate::exchange::Exchange;
use crate::failure::RunFailure;
use crate::handshake::{Accepted, HANDSHAKE_LIMIT, PeerInfo, ServerTerms, accept_on, greet};
use crate::join_message::Join;
use crate::link::Link;
use crate::message::{HandshakeMessage, Message, SessionMessage};
use crate::token::Token;

/// How long one address of rank 0's may take to answer.
const DIAL_LIMIT: Duration = Duration::from_secs(3);

/// Why a rank has not joined.
#[derive(Clone, Debug, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum JoinError {
    /// Rank 0 was not reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Rank 0 was reached, and the handshake broke down, or it refused.
    #[error(transparent)]
    Accept(#[from] AcceptError),
}

/// Connects to the coordinator at `port` of the first of `hosts` that answers, says `join`, and does the server's half of
/// the handshake.
///
/// # Errors
/// [`JoinError`]: none answers, or the one that does refuses.
pub fn join(
    hosts: &[String],
    port: u16,
    join: &Join,
    terms: &ServerTerms,
    stop: &AtomicBool,
) -> Result<Accepted<()>, JoinError> {
    let (stream, coordinator) = dial_any(hosts, port, stop)?;
    let broken = |source| AcceptError::Handshake { client: coordinator, source };
    let mut exchange = Exchange::new(stream, terms.limit, stop).map_err(broken)?;
    let word = Message::Handshake(HandshakeMessage::Join(Box::new(join.clone())));
    exchange.send(word).map_err(broken)?;
    Ok(accept_on(exchange, coordinator, terms, |_| Ok(()))?)
}

fn dial_any(
    hosts: &[String],
    port: u16,
    stop: &AtomicBool,
) -> Result<(TcpStream, SocketAddr), ConnectError> {
    let mut first = None;
    for host in hosts {
        match dial(host, port, DIAL_LIMIT, stop) {
            Ok(dialled) => return Ok(dialled),
            Err(error) if error.is_interrupt() => return Err(error),
            Err(error) => {
                first.get_or_insert(error);
            }
        }
    }
    Err(first.unwrap_or_else(|| ConnectError::Resolve {
        host: "rank 0".to_owned(),
        source: Arc::new(std::io::Error::other("it has no address")),
    }))
}

/// A node that has said `join` and waits for the coordinator's answer.
pub struct Joining<'a> {
    exchange: Exchange<'a>,
    address: SocketAddr,
    /// What it told.
    pub join: Join,
}

impl<'a> Joining<'a> {
    /// Takes the word of one that has just connected. Run this on a thread of its own.
    ///
    /// # Errors
    /// It says something else, or nothing in time.
    pub fn take(stream: TcpStream, stop: &'a AtomicBool) -> Result<Joining<'a>, AcceptError> {
        let address =
            stream.peer_addr().map_err(|error| AcceptError::Lost { source: Arc::new(error) })?;
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        let broken = |source| AcceptError::Handshake { client: address, source };
        let mut exchange = Exchange::new(stream, HANDSHAKE_LIMIT, stop).map_err(broken)?;
        match exchange.recv().map_err(broken)? {
            Message::Handshake(HandshakeMessage::Join(join)) => {
                Ok(Joining { exchange, address, join: *join })
            }
            other => {
                let text = format!(
                    "this port belongs to rank 0 of a launcher's job, which takes ranks and no `{}`",
                    other.kind()
                );
                let hint = "start `rocebench serve` on this host, or choose another port";
                refuse(exchange, &RunFailure::refused(text, hint));
                Err(broken(ExchangeError::Unexpected { expected: "join", got: other.kind() }))
            }
        }
    }

    /// Does the client's half of the handshake with it.
    pub fn greet(
        mut self,
        token: Option<&Token>,
        facts: &Value,
    ) -> Result<(Link, PeerInfo), ConnectError> {
        let server = self.address;
        let peer = greet(&mut self.exchange, server, token, facts)?;
        let link = self
            .exchange
            .into_link(server)
            .map_err(|source| ConnectError::Handshake { server, source })?;
        Ok((link, peer))
    }

    /// Tells it that it is not taken, and why.
    pub fn refuse(self, why: &RunFailure) {
        refuse(self.exchange, why);
    }
}

fn refuse(mut exchange: Exchange<'_>, why: &RunFailure) {
    // One that is gone needs no word.
    let _ = exchange.send(SessionMessage::Abort(why.into()));
    exchange.part();
}
