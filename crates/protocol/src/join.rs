//! How a node becomes a pair with a coordinator that it has connected to, where launchers start both: the node says `join`,
//! and from then on the handshake is the usual one, with the coordinator as its client.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::connection::{Exchange, client_of, dial};
use crate::error::{AcceptError, ConnectError, ExchangeError};
use crate::failure::RunFailure;
use crate::handshake::{Accepted, HANDSHAKE_LIMIT, PeerInfo, ServerTerms, accept_on, greet};
use crate::link::Link;
use crate::message::{HandshakeMessage, Message, SessionMessage};
use crate::token::Token;
use crate::{PROGRAM_VERSION, PROTOCOL_VERSION};

/// How long one address of rank 0's may take to answer.
const DIAL_LIMIT: Duration = Duration::from_secs(3);

/// Why a rank has not joined.
#[derive(Clone, Debug, thiserror::Error)]
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
        match dial(host, port, None, DIAL_LIMIT, stop) {
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
    /// What the node said of itself; nothing of it is checked yet.
    pub join: Join,
}

impl<'a> Joining<'a> {
    /// Takes the word of one that has just connected. Run this on a thread of its own.
    ///
    /// # Errors
    /// It says something else, or nothing in time.
    pub fn take(stream: TcpStream, stop: &'a AtomicBool) -> Result<Joining<'a>, AcceptError> {
        let address =
            client_of(&stream).map_err(|error| AcceptError::Lost { source: Arc::new(error) })?;
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

/// What a rank tells of itself. Rank 0 compares it with its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// The [`PROTOCOL_VERSION`] that the rank speaks.
    pub protocol: u32,
    /// Program version of the rank.
    pub version: String,
    /// Number of the rank in its job, 0 to `ranks` - 1.
    pub rank: u32,
    /// How many ranks its launcher told it of.
    pub ranks: u32,
    /// Name of the rank's host.
    pub host: String,
    /// Its options, as `--flag=value` in the order of their definition, without those that are a rank's own.
    pub options: Vec<String>,
}

impl Join {
    /// Of a rank of this version.
    pub fn new(rank: u32, ranks: u32, host: String, options: Vec<String>) -> Join {
        Join {
            protocol: PROTOCOL_VERSION,
            version: PROGRAM_VERSION.to_owned(),
            rank,
            ranks,
            host,
            options,
        }
    }

    /// Rank and host, as messages name them: `rank 3 (node4)`.
    pub fn who(&self) -> String {
        format!("rank {} ({})", self.rank, self.host)
    }

    /// Why a rank that tells this of itself and rank 0, which tells `own`, cannot be of one job: a sentence that names the
    /// rank, and what to do.
    pub fn contradiction(&self, own: &Join) -> Option<(String, &'static str)> {
        let who = self.who();
        if (self.protocol, &self.version) != (own.protocol, &own.version) {
            let text = format!(
                "{who} is rocebench {} and speaks protocol {}, rank 0 ({}) is {} and speaks {}",
                self.version, self.protocol, own.host, own.version, own.protocol
            );
            return Some((text, "install one version on all nodes"));
        }
        if self.ranks != own.ranks {
            let text = format!(
                "{who} was started with {} ranks, rank 0 ({}) with {}",
                self.ranks, own.host, own.ranks
            );
            return Some((text, "give --ranks alike to all, and start them as one job"));
        }
        if self.rank == own.rank || self.rank >= own.ranks {
            let text = format!(
                "{who} joined rank 0 ({}), of {} ranks: ranks are 1 to {}",
                own.host,
                own.ranks,
                own.ranks.saturating_sub(1)
            );
            return Some((text, "give each process a rank of its own, and start them as one job"));
        }
        if !(1..=253).contains(&self.host.len())
            || !self.host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
        {
            let text =
                format!("rank {} is on `{}`, which is not a host name", self.rank, self.host);
            return Some((text, "give its host a name of letters, digits, `-` and `.`"));
        }
        let lacks = |one: &[String], other: &[String]| {
            let lacking: Vec<&str> =
                other.iter().filter(|option| !one.contains(option)).map(String::as_str).collect();
            if lacking.is_empty() { "none of them".to_owned() } else { lacking.join(" ") }
        };
        (self.options != own.options).then(|| {
            let text = format!(
                "{who} was started with other options than rank 0 ({}): {}, where rank 0 has {}",
                own.host,
                lacks(&own.options, &self.options),
                lacks(&self.options, &own.options),
            );
            (
                text,
                "start all ranks with the same options; only --device, --ib-port, --gid-index, --cores, --faults and --pcap may differ",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use results::sample::has;

    fn join(rank: u32, options: &str) -> Join {
        let options = options.split_terminator(' ').map(str::to_owned);
        Join::new(rank, 4, format!("node{rank}"), options.collect())
    }

    #[test]
    fn ranks_of_one_job_agree() {
        let own = join(0, "--size=64");
        assert_eq!(join(3, "--size=64").contradiction(&own), None);
    }

    #[test]
    fn what_differs_is_named() {
        let own = join(0, "--size=64 --runs=2");
        let refused = |other: Join, words| {
            let (text, hint) = other.contradiction(&own).unwrap();
            has(text, [words]);
            assert!(!hint.is_empty());
        };
        let changed = |change: fn(&mut Join), words| {
            let mut other = join(2, "--size=64 --runs=2");
            change(&mut other);
            refused(other, words);
        };
        let another = "rank 2 (node2) is rocebench 9.9.9";
        changed(|it| it.version = "9.9.9".to_owned(), another);
        changed(|it| it.protocol = 77, "speaks protocol 77");
        let ranks = "rank 2 (node2) was started with 5 ranks, rank 0 (node0) with 4";
        changed(|it| it.ranks = 5, ranks);
        let host = "rank 2 is on `a>b`, which is not a host name";
        changed(|it| it.host = "a>b".to_owned(), host);
        refused(join(0, ""), "ranks are 1 to 3");
        refused(join(4, ""), "ranks are 1 to 3");
        let options = "rank 2 (node2) was started with other options than rank 0 (node0): --size=4096, where rank 0 has --size=64";
        refused(join(2, "--size=4096 --runs=2"), options);
        let none = "none of them, where rank 0 has --runs=2";
        refused(join(2, "--size=64"), none);
    }
}
