//! The manager of a port: finds the connection of each message, keeps the listeners and the timers, and takes requests.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use super::connection::{
    Asker, Connection, EarlyRequests, Happening, MAX_RETRIES, Output, RESPONSE_TIMEOUT, State,
    Unheard,
};
use crate::wire::cm::{
    CmMad, Comms, Handled, Message, Rej, RejReason, Req, SidrRep, SidrReq, SidrStatus, Transport,
};

/// Where the slot lies in a number of a connection, and the bits below it.
const SLOT_SHIFT: u32 = 27;
const LOW_BITS: u32 = (1 << SLOT_SHIFT) - 1;

/// The connections and listeners of a port.
pub struct Manager {
    slot_bits: u32,
    pub(super) ca_guid: u64,
    /// The largest path MTU of the port, as a code.
    pub(super) mtu: u8,
    pub(super) connections: HashMap<u32, Connection>,
    /// From the other end's address and number to a connection's.
    pub(super) by_request: HashMap<(IpAddr, u32), u32>,
    /// From the other end's address and QP.
    pub(super) by_qp: HashMap<(IpAddr, u32), u32>,
    pub(super) listeners: HashMap<u64, Listener>,
    pub(super) early: EarlyRequests,
    timers: BTreeSet<(u64, u32)>,
    last_comm: u32,
}

pub(super) struct Listener {
    pub(super) number: u64,
    pub(super) backlog: usize,
    /// Requests that the program has not answered.
    pub(super) waiting: usize,
}

/// A call does not fit the connection's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CmError {
    /// No connection has the number: it has ended.
    Ended,
    /// The call is for another state.
    State,
    /// Another listener has the service.
    AddressInUse,
}

impl Manager {
    /// A manager without connections. Its numbers for them begin at `first_comm`, which should be random, so that
    /// messages to a former process are not taken for messages to this one.
    ///
    /// They begin with the device's slot, five bits, by which an address that processes share tells whose an answer is.
    pub fn new(ca_guid: u64, mtu: u8, slot: u8, first_comm: u32) -> Manager {
        Manager {
            slot_bits: u32::from(slot) << SLOT_SHIFT,
            ca_guid,
            mtu,
            connections: HashMap::new(),
            by_request: HashMap::new(),
            by_qp: HashMap::new(),
            listeners: HashMap::new(),
            early: EarlyRequests::default(),
            timers: BTreeSet::new(),
            last_comm: first_comm,
        }
    }

    /// Requests for `service` go to listener `number`; those beyond `backlog` that wait for an answer are dropped,
    /// and come again.
    ///
    /// # Errors
    /// [`CmError::AddressInUse`].
    pub fn listen(
        &mut self,
        now: u64,
        service: u64,
        number: u64,
        backlog: usize,
        out: &mut Output,
    ) -> Result<(), CmError> {
        if self.listeners.contains_key(&service) {
            return Err(CmError::AddressInUse);
        }
        let listener = Listener { number, backlog, waiting: 0 };
        self.listeners.insert(service, listener);
        for early in self.early.take_for(service) {
            self.take_request(now, early, out);
        }
        Ok(())
    }

    /// Ends a listener. Its requests stay.
    pub fn stop_listening(&mut self, number: u64) {
        self.listeners.retain(|_, listener| listener.number != number);
    }

    /// Asks the other end for a connection; returns its number. Of the request the manager sets what is its own.
    pub fn connect(&mut self, now: u64, peer: IpAddr, mut req: Box<Req>, out: &mut Output) -> u32 {
        req.local_comm = self.fresh_comm();
        req.ca_guid = self.ca_guid;
        req.remote_response_timeout = RESPONSE_TIMEOUT;
        req.local_response_timeout = RESPONSE_TIMEOUT;
        req.max_cm_retries = MAX_RETRIES;
        let (comm, state) = (req.local_comm, State::ReqSent);
        self.ask(now, comm, state, peer, Message::Req(req), out)
    }

    /// Asks the other end for the QP of a datagram service; returns the request's number, which the manager sets. No
    /// message says that the answer will take a while, so that it is repeated ever more rarely: for 51 s in all.
    pub fn look_up(
        &mut self,
        now: u64,
        peer: IpAddr,
        mut req: Box<SidrReq>,
        out: &mut Output,
    ) -> u32 {
        req.request = self.fresh_comm();
        let (comm, state) = (req.request, State::SidrReqSent);
        self.ask(now, comm, state, peer, Message::SidrReq(req), out)
    }

    fn ask(
        &mut self,
        now: u64,
        comm: u32,
        state: State,
        peer: IpAddr,
        request: Message,
        out: &mut Output,
    ) -> u32 {
        let comms = Comms { local: comm, remote: 0 };
        let mut connection = Connection::new(state, comms, peer, comm.into(), self.ca_guid);
        connection.send_repeatedly(now, request, out);
        self.keep(connection);
        comm
    }

    /// The program lets go of a connection in whatever state; nothing of it is told any more.
    pub fn let_go(&mut self, now: u64, comm: u32, out: &mut Output) {
        // One that has ended is let go already.
        let _ = self.with(comm, |connection| {
            connection.let_go(now, out);
            true
        });
    }

    /// A datagram to QP 1 from this address. What is no message of a connection manager is ignored.
    pub fn take(&mut self, now: u64, from: IpAddr, bytes: &[u8], out: &mut Output) {
        let Some(mad) = CmMad::parse(bytes) else {
            return;
        };
        if let Some((number, service)) = mad.message.request() {
            let unheard = Unheard { from, service, number, mad };
            return self.take_request(now, unheard, out);
        }
        let (transaction, message) = (mad.transaction, mad.message);
        let comms = match &message {
            Message::Req(_) | Message::SidrReq(_) => return,
            Message::SidrRep(rep) => Comms { local: 0, remote: rep.request },
            Message::Rep(rep) => rep.comms,
            Message::Rej(rej) => rej.comms,
            Message::Mra(mra) => mra.comms,
            Message::Dreq(dreq) => dreq.comms,
            Message::Rtu(comms) | Message::Drep(comms) => *comms,
        };
        // Who gives up to ask does not know this end's number yet.
        let named = match comms.remote {
            0 => self.by_request.get(&(from, comms.local)).copied(),
            remote => Some(remote),
        };
        let known = named.filter(|comm| {
            self.connections.get(comm).is_some_and(|connection| {
                let remote = connection.comms.remote;
                // A rejection may come before the other end has given a number.
                let is_same = remote == 0 || comms.local == 0 || remote == comms.local;
                connection.peer == from && is_same
            })
        });
        if let Some(comm) = known {
            // It is there.
            let _ = self.with(comm, |connection| {
                connection.take(now, message, out);
                true
            });
            return;
        }
        let back = Comms { local: comms.remote, remote: comms.local };
        match message {
            // So that a connection that is forgotten here ends at once there too.
            Message::Dreq(_) => {
                out.send(from, transaction, Message::Drep(back));
            }
            Message::Rep(_) => {
                let rej = Box::new(Rej {
                    comms: back,
                    of: Handled::Rep,
                    reason: RejReason::INVALID_COMM,
                    ..Rej::default()
                });
                out.send(from, transaction, Message::Rej(rej));
            }
            _ => {}
        }
    }

    pub fn wake(&mut self, now: u64, out: &mut Output) {
        while let Some(early) = self.early.take_due(now) {
            out.unheard.push(early);
        }
        while let Some((due, comm)) = self.timers.first().copied()
            && due <= now
        {
            self.timers.remove(&(due, comm));
            // A timer belongs to a connection that is there.
            let _ = self.with(comm, |connection| {
                connection.wake(now, out);
                true
            });
        }
    }

    /// When to wake it next.
    pub fn next_timer_ns(&self) -> Option<u64> {
        self.timers.first().map(|(due, _)| *due).into_iter().chain(self.early.next_ns()).min()
    }

    /// Whether it has neither connections nor listeners.
    pub fn is_idle(&self) -> bool {
        self.connections.is_empty() && self.listeners.is_empty()
    }

    pub(super) fn fresh_comm(&mut self) -> u32 {
        loop {
            self.last_comm = self.last_comm.wrapping_add(1) & LOW_BITS | self.slot_bits;
            if self.last_comm != 0 && !self.connections.contains_key(&self.last_comm) {
                return self.last_comm;
            }
        }
    }

    /// Does something with a connection, and afterwards what its change means for the tables. The step says whether the
    /// connection was in the state for it.
    ///
    /// # Errors
    /// [`CmError::Ended`], and [`CmError::State`] if it was in another state.
    pub fn with(
        &mut self,
        comm: u32,
        step: impl FnOnce(&mut Connection) -> bool,
    ) -> Result<(), CmError> {
        let mut connection = self.connections.remove(&comm).ok_or(CmError::Ended)?;
        if let Some(timer_ns) = connection.timer_ns {
            self.timers.remove(&(timer_ns, comm));
        }
        let waited = connection.state.is_asked();
        let fits = step(&mut connection);
        if waited
            && !connection.state.is_asked()
            && let Some(listener) = self
                .listeners
                .values_mut()
                .find(|listener| Some(listener.number) == connection.listener)
        {
            listener.waiting = listener.waiting.saturating_sub(1);
        }
        self.keep(connection);
        if fits { Ok(()) } else { Err(CmError::State) }
    }

    /// Puts a connection into the tables, or takes a closed one out of them.
    pub(super) fn keep(&mut self, connection: Connection) {
        let comm = connection.comms.local;
        let request = (connection.peer, connection.comms.remote);
        let qp = (connection.peer, connection.remote_qpn);
        if connection.state == State::Closed {
            if self.by_request.get(&request) == Some(&comm) {
                self.by_request.remove(&request);
            }
            if self.by_qp.get(&qp) == Some(&comm) {
                self.by_qp.remove(&qp);
            }
            return;
        }
        if connection.listener.is_some() {
            self.by_request.entry(request).or_insert(comm);
        }
        if connection.remote_qpn != 0 {
            self.by_qp.entry(qp).or_insert(comm);
        }
        if let Some(timer_ns) = connection.timer_ns {
            self.timers.insert((timer_ns, comm));
        }
        self.connections.insert(comm, connection);
    }
}

impl Manager {
    /// The service of a request for which nobody listens here, or has.
    pub fn service_elsewhere(&self, from: IpAddr, bytes: &[u8]) -> Option<u64> {
        let (number, service) = CmMad::parse(bytes)?.message.request()?;
        let known =
            self.listeners.contains_key(&service) || self.by_request.contains_key(&(from, number));
        (!known).then_some(service)
    }

    pub(super) fn take_request(&mut self, now: u64, unheard: Unheard, out: &mut Output) {
        let (from, number, service) = (unheard.from, unheard.number, unheard.service);
        if let Some(comm) = self.by_request.get(&(from, number)) {
            if let Some(connection) = self.connections.get(comm) {
                connection.asked_again(out);
            }
            return;
        }
        if self.early.has(from, number) {
            return;
        }
        if !self.listeners.contains_key(&service) {
            if let Some(unheard) = self.early.keep(now, unheard) {
                refuse(&unheard, RejReason::INVALID_SERVICE, out);
            }
            return;
        }
        if let Message::Req(req) = &unheard.mad.message {
            let refused = if req.transport != Transport::Rc {
                Some(RejReason::INVALID_TRANSPORT)
            } else if req.mtu > self.mtu {
                Some(RejReason::INVALID_MTU)
            } else if self.end_former(now, from, req.qpn, out) {
                Some(RejReason::STALE)
            } else {
                None
            };
            if let Some(reason) = refused {
                return refuse(&unheard, reason, out);
            }
        }
        let Some(listener) = self.listeners.get_mut(&service) else {
            return;
        };
        if listener.waiting >= listener.backlog {
            return;
        }
        listener.waiting += 1;
        let asker = Asker { listener: listener.number, peer: from };
        let comms = Comms { local: self.fresh_comm(), remote: number };
        let (state, remote_qpn, happening) = match unheard.mad.message {
            Message::SidrReq(req) => (State::SidrReqReceived, 0, Happening::LookedUp(asker, req)),
            Message::Req(req) => (State::ReqReceived, req.qpn, Happening::Requested(asker, req)),
            // No request.
            _ => return,
        };
        let mut connection =
            Connection::new(state, comms, from, unheard.mad.transaction, self.ca_guid);
        (connection.listener, connection.service) = (Some(asker.listener), service);
        connection.remote_qpn = remote_qpn;
        self.keep(connection);
        out.tell(comms.local, happening);
    }

    /// Refuses a request that nobody at the port has heard.
    pub fn refuse(&self, unheard: &Unheard, out: &mut Output) {
        refuse(unheard, RejReason::INVALID_SERVICE, out);
    }

    /// Whether the QP is that of a connection that is still remembered; if it is in use, it ends.
    fn end_former(&mut self, now: u64, from: IpAddr, qpn: u32, out: &mut Output) -> bool {
        let Some(comm) = self.by_qp.get(&(from, qpn)).copied() else {
            return false;
        };
        // One that cannot be ended is not established, or ends by itself.
        let _ = self.with(comm, |former| former.disconnect(now, out));
        true
    }
}

/// Refuses a request; for a look-up there is only one reason.
fn refuse(unheard: &Unheard, reason: RejReason, out: &mut Output) {
    let (to, transaction) = (unheard.from, unheard.mad.transaction);
    match &unheard.mad.message {
        Message::SidrReq(_) => {
            let rep = Box::new(SidrRep {
                request: unheard.number,
                service: unheard.service,
                status: SidrStatus::UNSUPPORTED,
                ..SidrRep::default()
            });
            out.send(to, transaction, Message::SidrRep(rep));
        }
        _ => {
            let (local, remote) = (0, unheard.number);
            let rej = Box::new(Rej {
                comms: Comms { local, remote },
                of: Handled::Req,
                reason,
                ..Rej::default()
            });
            out.send(to, transaction, Message::Rej(rej));
        }
    }
}
