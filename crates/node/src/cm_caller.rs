//! The initiator's part: for each QP an id that resolves the address and the route, then requests the connection.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use protocol::{failure::RunFailure, message::CmListening, token::from_hex};
use verbs::{
    Gid, VerbsLibrary,
    cm::{CmAddress, CmChannel, CmError, CmEvent, CmEventKind, CmId, CmStep, RejectReason},
};

use crate::connect_cm::{Connections, Nonce, PrivateData, Role, Terms, behind, ns_since, reason};

/// The most connections in progress at once. Each takes datagrams of the kernel's connection manager, whose receive
/// queue holds a few hundred; a lost datagram is sent again only after four seconds.
const IN_FLIGHT: u32 = 64;

/// Interval of the checks while waiting.
const TICK: Duration = Duration::from_millis(10);

/// Longest time for resolving an address or a route.
const RESOLVE_LIMIT: Duration = Duration::from_secs(4);

/// Time limit without any event. A lost datagram is sent again three times in it, so only a peer that does not answer
/// exceeds it.
const SILENCE_LIMIT: Duration = Duration::from_secs(15);

/// An end remembers a connection for some seconds, and until then rejects another one of the same QP number.
const STALE_LIMIT: Duration = Duration::from_secs(8);

/// Pause before requesting a rejected connection again.
const STALE_PAUSE: Duration = Duration::from_millis(250);

/// Time of each step of one connection, in nanoseconds, including other connections' events in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CmTimes {
    /// Resolving IP addresses to the device and the hardware address.
    pub(crate) resolve_address_ns: u64,
    pub(crate) resolve_route_ns: u64,
    /// From the request until the answer is confirmed, including the transitions of both ends' QPs.
    pub(crate) connect_ns: u64,
    /// How often it was requested again because the peer remembered the last connection of its QP number. The times
    /// are those of the last attempt.
    pub(crate) stale_rejections: u32,
}

struct DialedConnection {
    id: CmId,
    step: CmStep,
    began: Instant,
    times: CmTimes,
    /// When it was first rejected as stale.
    stale: Option<Instant>,
}

struct Dialer<'a, R> {
    terms: &'a Terms,
    to: CmAddress,
    nonce: Nonce,
    channel: Arc<CmChannel>,
    connections: Vec<DialedConnection>,
    /// When to request again, and for which QP.
    again: VecDeque<(Instant, u32)>,
    established: u32,
    ready: R,
}

/// Requests connections from a listener, once or several times.
pub(crate) struct Caller {
    channel: Arc<CmChannel>,
    port: u16,
    nonce: Nonce,
}

impl Caller {
    /// A caller of the listener that sent `listening`, by the connection manager of this library's devices.
    ///
    /// # Errors
    /// The message makes no sense, or there is no rdma_cm.
    pub(crate) fn new(
        listening: &CmListening,
        library: &VerbsLibrary,
    ) -> Result<Caller, RunFailure> {
        let nonce = from_hex(&listening.nonce).ok_or_else(|| {
            let hint = "install the same version of rocebench on both ends";
            let message = "the server's nonce is not 16 bytes of hex";
            RunFailure::new(message, Some(hint.into()))
        })?;
        Ok(Caller { channel: CmChannel::open(library)?, port: listening.port, nonce })
    }

    /// Connects all QPs to those of the listener at GID `gid`. `ready` brings a QP to RTS with the attributes of its
    /// id once the other end's QP, whose number it is given, is there. `alive` is called throughout and may end the
    /// attempt.
    ///
    /// # Errors
    /// The first step that failed, with its QP; an error of `ready` or `alive`.
    pub(crate) fn dial(
        &self,
        terms: &Terms,
        gid: Gid,
        alive: impl Fn() -> Result<(), RunFailure>,
        ready: impl FnMut(u32, &CmId, u32) -> Result<(), RunFailure>,
    ) -> Result<(Connections, Vec<CmTimes>), RunFailure> {
        let qps = terms.qpns.len() as u32;
        let mut dialer = Dialer {
            terms,
            to: terms.local.peer(gid, self.port),
            nonce: self.nonce,
            channel: Arc::clone(&self.channel),
            connections: Vec::with_capacity(terms.qpns.len()),
            again: VecDeque::new(),
            established: 0,
            ready,
        };
        let mut heard = Instant::now();
        while dialer.established < qps {
            alive()?;
            while (dialer.connections.len() as u32) < qps.min(dialer.established + IN_FLIGHT) {
                let connection = dialer.begin(dialer.connections.len() as u32)?;
                dialer.connections.push(connection);
            }
            dialer.ask_again()?;
            match dialer.channel.next(TICK)? {
                Some(event) => {
                    heard = Instant::now();
                    dialer.handle(&event).map_err(|failure| behind(failure, &alive))?;
                }
                None if heard.elapsed() > SILENCE_LIMIT => return Err(dialer.silence()),
                None => {}
            }
        }
        let times = dialer.connections.iter().map(|connection| connection.times).collect();
        let connections = Connections {
            ids: dialer.connections.into_iter().map(|connection| Some(connection.id)).collect(),
            disconnects: true,
            _channel: dialer.channel,
        };
        Ok((connections, times))
    }
}

impl<R: FnMut(u32, &CmId, u32) -> Result<(), RunFailure>> Dialer<'_, R> {
    fn begin(&self, index: u32) -> Result<DialedConnection, CmError> {
        let id = CmId::new(&self.channel, index)?;
        let began = Instant::now();
        id.resolve_address(self.terms.local, self.to, RESOLVE_LIMIT)?;
        Ok(DialedConnection {
            id,
            step: CmStep::ResolveAddr,
            began,
            times: CmTimes::default(),
            stale: None,
        })
    }

    fn ask_again(&mut self) -> Result<(), CmError> {
        while let Some(&(when, index)) = self.again.front()
            && when <= Instant::now()
        {
            self.again.pop_front();
            let connection = self.begin(index)?;
            if let Some(old) = self.connections.get_mut(index as usize) {
                *old = DialedConnection {
                    stale: old.stale,
                    times: CmTimes {
                        stale_rejections: old.times.stale_rejections + 1,
                        ..connection.times
                    },
                    ..connection
                };
            }
        }
        Ok(())
    }

    fn handle(&mut self, event: &CmEvent) -> Result<(), RunFailure> {
        let index = event.token;
        let Some(connection) = self.connections.get_mut(index as usize) else {
            return Ok(());
        };
        match (connection.step, event.kind) {
            (CmStep::ResolveAddr, CmEventKind::AddrResolved) if event.status == 0 => {
                connection.times.resolve_address_ns = ns_since(connection.began);
                is_our_port(&connection.id, self.terms)?;
                (connection.step, connection.began) = (CmStep::ResolveRoute, Instant::now());
                connection.id.resolve_route(RESOLVE_LIMIT)?;
            }
            (CmStep::ResolveRoute, CmEventKind::RouteResolved) if event.status == 0 => {
                connection.times.resolve_route_ns = ns_since(connection.began);
                (connection.step, connection.began) = (CmStep::Connect, Instant::now());
                let data = self.terms.private_data(Role::Request, index, self.nonce);
                connection.id.connect(&self.terms.parameters(index, &data))?;
            }
            (CmStep::Connect, CmEventKind::ConnectResponse) if event.status == 0 => {
                self.answered(event)?;
            }
            (CmStep::Connect, CmEventKind::Rejected)
                if RejectReason(event.status) == RejectReason::STALE
                    && connection.stale.get_or_insert_with(Instant::now).elapsed()
                        < STALE_LIMIT =>
            {
                tracing::debug!(index, "rejected as stale: asking again");
                self.again.push_back((Instant::now() + STALE_PAUSE, index));
            }
            // This connection was established already; the control connection reports what happened to the peer.
            (CmStep::Establish, CmEventKind::Disconnected | CmEventKind::TimewaitExit) => {}
            _ => return Err(failed(connection.step, self.object(index), event).into()),
        }
        Ok(())
    }

    fn answered(&mut self, event: &CmEvent) -> Result<(), RunFailure> {
        let index = event.token;
        let data = PrivateData::decode(&event.private_data);
        let is_ours = data.is_ok_and(|data| {
            (data.role, data.index, data.nonce) == (Role::Answer, index, self.nonce)
                && self.terms.is_peer(&data, event.qpn)
        });
        if !is_ours {
            let hint = "another program may have taken the server's port: repeat the run";
            let message = format!("{} was answered by a stranger", self.object(index));
            return Err(RunFailure::new(message, Some(hint.into())));
        }
        if let Some(connection) = self.connections.get_mut(index as usize) {
            (self.ready)(index, &connection.id, event.qpn)?;
            connection.id.establish()?;
            connection.times.connect_ns = ns_since(connection.began);
            connection.step = CmStep::Establish;
            self.established += 1;
        }
        Ok(())
    }

    fn object(&self, index: u32) -> String {
        format!("QP {index} from {} to {}", self.terms.local, self.to)
    }

    /// The failure if no answer comes to the connections in progress.
    fn silence(&self) -> RunFailure {
        let first = self.connections.iter().position(|it| it.step != CmStep::Establish);
        let index = first.unwrap_or(0) as u32;
        let step = first.map_or(CmStep::Connect, |place| self.connections[place].step);
        let error = CmError::Event {
            step,
            object: format!(
                "{} ({} of {} QPs are connected)",
                self.object(index),
                self.established,
                self.terms.qpns.len()
            ),
            event: CmEventKind::Unreachable,
            status: -libc::ETIMEDOUT,
        };
        error.into()
    }
}

/// Checks that the addresses lead to the port of the run, since rdma_cm goes by addresses.
pub(crate) fn is_our_port(id: &CmId, terms: &Terms) -> Result<(), CmError> {
    match id.port() {
        Some(port) if port != terms.port => Err(CmError::OtherPort {
            address: terms.local.to_string(),
            taken: port_text(&port),
            wanted: port_text(&terms.port),
        }),
        _ => Ok(()),
    }
}

fn port_text((name, number): &(String, u8)) -> String {
    format!("{name} port {number}")
}

/// The error of an event that ends a step in failure.
pub(crate) fn failed(step: CmStep, object: String, event: &CmEvent) -> CmError {
    match event.kind {
        CmEventKind::Rejected => CmError::Rejected {
            object,
            reason: RejectReason(event.status),
            text: reason(&event.private_data),
        },
        kind => CmError::Event { step, object, event: kind, status: event.status },
    }
}
