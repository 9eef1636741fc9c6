//! A connection from the request to the end of its time wait: its states, what it sends and tells, and requests that
//! nobody has heard yet.

use std::collections::VecDeque;
use std::net::IpAddr;

use crate::wire::cm::{
    CmMad, Comms, Dreq, Handled, MAD_BYTES, Message, Mra, Rej, RejReason, Rep, Req, SidrRep,
    SidrReq, SidrStatus,
};
use crate::wire::time_of_code_ns;

/// How soon the other manager has to answer: 268 ms. The kernel asks for 4.3 s, after which a lost message is sent again;
/// managers answer by themselves, and ask for more time if their programs need it.
pub(super) const RESPONSE_TIMEOUT: u8 = 16;
/// How often a message is repeated: with the time above, an address that is silent is given up after 4.3 s.
pub(super) const MAX_RETRIES: u8 = 15;
/// The time that is asked for when the program has not answered yet: 4.3 s. The other end repeats its message after it,
/// which also finds an answer that was lost meanwhile; so it is not the 69 s that the kernel asks for.
pub(super) const SERVICE_TIMEOUT: u8 = 20;
/// How long a request waits for somebody who listens, before it is rejected: 0.5 s. A program may ask for a second
/// connection before the other end has got round to listening for it, as perftest's `-R` does; on adapters it is held up
/// by resolving addresses, which takes no time here.
pub(super) const LISTENER_PATIENCE_NS: u64 = 500_000_000;
/// How long an ended connection is remembered: twice the time above, so that a repeated message finds it.
pub(super) const TIME_WAIT_NS: u64 = 2 * time_of_code_ns(RESPONSE_TIMEOUT);

/// Something happened to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The connection's number at this manager.
    pub comm: u32,
    pub happening: Happening,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asker {
    pub listener: u64,
    pub peer: IpAddr,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A new connection is asked for.
    Requested(Asker, Box<Req>),
    /// The QP of a datagram service is asked for.
    LookedUp(Asker, Box<SidrReq>),
    /// The QP of a datagram service, or why there is none.
    Found(Box<SidrRep>),
    /// The request was accepted; the program has to establish the connection.
    Replied(Box<Rep>),
    /// The other end knows that it was accepted.
    Established,
    /// The other end refused it, with the private data of its program.
    Rejected(RejReason, Box<[u8]>),
    /// The other end does not answer.
    Unreachable,
    Disconnected,
    TimeWaitOver,
}

const MOST: usize = 64;

/// A request for which nobody listens here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unheard {
    pub from: IpAddr,
    /// The service that is asked for.
    pub service: u64,
    pub(super) number: u32,
    pub mad: CmMad,
}

/// The requests that wait, and until when.
#[derive(Default)]
pub(super) struct EarlyRequests(VecDeque<(u64, Unheard)>);

impl EarlyRequests {
    /// Whether the request of this number waits already.
    pub(super) fn has(&self, from: IpAddr, number: u32) -> bool {
        let mut waiting = self.0.iter().map(|(_, early)| (early.from, early.number));
        waiting.any(|early| early == (from, number))
    }

    /// Keeps one more; gives it back if there is no room.
    pub(super) fn keep(&mut self, now: u64, early: Unheard) -> Option<Unheard> {
        if self.0.len() >= MOST {
            return Some(early);
        }
        self.0.push_back((now + LISTENER_PATIENCE_NS, early));
        None
    }

    /// Takes those for a service.
    pub(super) fn take_for(&mut self, service: u64) -> impl Iterator<Item = Unheard> + use<> {
        let (found, others): (VecDeque<_>, _) = std::mem::take(&mut self.0)
            .into_iter()
            .partition(|(_, early)| early.service == service);
        self.0 = others;
        found.into_iter().map(|(_, early)| early)
    }

    /// Takes one that has waited long enough.
    pub(super) fn take_due(&mut self, now: u64) -> Option<Unheard> {
        self.next_ns().filter(|due_ns| *due_ns <= now)?;
        self.0.pop_front().map(|(_, early)| early)
    }

    /// When the first has waited long enough.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.0.front().map(|(due_ns, _)| *due_ns)
    }
}

/// A datagram from QP 1 to QP 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    pub to: IpAddr,
    pub bytes: [u8; MAD_BYTES],
}

/// Datagrams and events, in order.
#[derive(Debug, Default)]
pub struct Output {
    pub datagrams: Vec<Datagram>,
    pub events: Vec<Event>,
    /// Requests for which nobody has listened here for long: for another manager of the port, or to be refused.
    pub unheard: Vec<Unheard>,
}

impl Output {
    /// Sends a message; returns its bytes, which may be sent again.
    pub(super) fn send(
        &mut self,
        to: IpAddr,
        transaction: u64,
        message: Message,
    ) -> [u8; MAD_BYTES] {
        let mad = CmMad { transaction, message };
        let bytes = mad.to_bytes();
        self.datagrams.push(Datagram { to, bytes });
        bytes
    }

    pub(super) fn tell(&mut self, comm: u32, happening: Happening) {
        self.events.push(Event { comm, happening });
    }
}

/// The states of specification 12.9.7, less those of features that are not supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    ReqSent,
    ReqReceived,
    RepSent,
    RepReceived,
    Established,
    DreqSent,
    TimeWait,
    SidrReqSent,
    SidrReqReceived,
    /// The reply is kept, in case that it is lost.
    SidrRepSent,
    /// Nothing comes any more: the manager removes it after the step that led here.
    Closed,
}

/// A message that is sent again until it is answered.
struct Repeated {
    bytes: [u8; MAD_BYTES],
    left: u8,
    interval_ns: u64,
}

/// A connection of this manager.
pub struct Connection {
    pub(super) state: State,
    pub(super) comms: Comms,
    pub(super) peer: IpAddr,
    /// The other end's QP; 0 until it is told.
    pub(super) remote_qpn: u32,
    /// The listener that was asked; `None` for a connection that this end asked for.
    pub(super) listener: Option<u64>,
    /// What was looked up here.
    pub(super) service: u64,
    pub(super) timer_ns: Option<u64>,
    transaction: u64,
    ca_guid: u64,
    repeated: Option<Repeated>,
    /// The last confirmation, for repetitions of what it confirms.
    confirmation: Option<[u8; MAD_BYTES]>,
    /// The program has let go of it: nothing is told any more.
    orphaned: bool,
}

impl State {
    /// Whether the program has not answered yet.
    pub(super) fn is_asked(self) -> bool {
        matches!(self, State::ReqReceived | State::SidrReqReceived)
    }
}

impl Connection {
    pub(super) fn new(
        state: State,
        comms: Comms,
        peer: IpAddr,
        transaction: u64,
        ca_guid: u64,
    ) -> Connection {
        Connection {
            state,
            comms,
            peer,
            remote_qpn: 0,
            listener: None,
            service: 0,
            timer_ns: None,
            transaction,
            ca_guid,
            repeated: None,
            confirmation: None,
            orphaned: false,
        }
    }

    fn tell(&self, happening: Happening, out: &mut Output) {
        if !self.orphaned {
            out.tell(self.comms.local, happening);
        }
    }

    fn send(&self, message: Message, out: &mut Output) -> [u8; MAD_BYTES] {
        out.send(self.peer, self.transaction, message)
    }

    fn send_again(&self, bytes: [u8; MAD_BYTES], out: &mut Output) {
        out.datagrams.push(Datagram { to: self.peer, bytes });
    }

    pub(super) fn send_repeatedly(&mut self, now: u64, message: Message, out: &mut Output) {
        let bytes = self.send(message, out);
        let interval_ns = time_of_code_ns(RESPONSE_TIMEOUT);
        self.repeated = Some(Repeated { bytes, left: MAX_RETRIES, interval_ns });
        self.timer_ns = Some(now + interval_ns);
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        self.repeated = None;
        self.timer_ns = None;
    }

    /// The connection is no more; it is remembered for a while.
    fn end(&mut self, now: u64, out: &mut Output) {
        self.enter(State::TimeWait);
        self.timer_ns = Some(now + TIME_WAIT_NS);
        self.tell(Happening::Disconnected, out);
    }

    fn send_rejection(&self, reason: RejReason, private_data: &[u8], out: &mut Output) {
        let rej = Box::new(Rej {
            comms: self.comms,
            of: match self.state {
                State::ReqSent | State::ReqReceived => Handled::Req,
                State::RepSent | State::RepReceived => Handled::Rep,
                _ => Handled::Other,
            },
            reason,
            ca_guid: (reason == RejReason::TIMEOUT).then_some(self.ca_guid),
            private_data: private_data.to_vec(),
        });
        self.send(Message::Rej(rej), out);
    }

    /// The program accepts the request. False in another state.
    pub fn accept(&mut self, now: u64, mut rep: Box<Rep>, out: &mut Output) -> bool {
        if self.state != State::ReqReceived {
            return false;
        }
        rep.comms = self.comms;
        rep.ca_guid = self.ca_guid;
        self.enter(State::RepSent);
        self.send_repeatedly(now, Message::Rep(rep), out);
        true
    }

    /// The program confirms the reply. False in another state.
    pub fn establish(&mut self, out: &mut Output) -> bool {
        if self.state != State::RepReceived {
            return false;
        }
        self.enter(State::Established);
        self.confirmation = Some(self.send(Message::Rtu(self.comms), out));
        true
    }

    /// The program answers a look-up. False in another state.
    pub fn answer(&mut self, mut rep: Box<SidrRep>, out: &mut Output) -> bool {
        if self.state != State::SidrReqReceived {
            return false;
        }
        (rep.request, rep.service) = (self.comms.remote, self.service);
        self.confirmation = Some(self.send(Message::SidrRep(rep), out));
        self.enter(State::SidrRepSent);
        true
    }

    /// The program has received data, so the other end has the reply, although its confirmation may be lost. True: it
    /// is wrong in no state.
    pub fn notice_data(&mut self, out: &mut Output) -> bool {
        if self.state == State::RepSent {
            self.enter(State::Established);
            self.tell(Happening::Established, out);
        }
        true
    }

    /// The program refuses. False in another state than before the establishing.
    pub fn reject(&mut self, reason: RejReason, private_data: &[u8], out: &mut Output) -> bool {
        if self.state == State::SidrReqReceived {
            let rep = Box::new(SidrRep {
                status: SidrStatus::REJECTED,
                private_data: private_data.to_vec(),
                ..SidrRep::default()
            });
            return self.answer(rep, out);
        }
        if !matches!(self.state, State::ReqReceived | State::RepSent | State::RepReceived) {
            return false;
        }
        self.send_rejection(reason, private_data, out);
        self.enter(State::Closed);
        true
    }

    /// The program ends the connection. False if there is none to end.
    pub fn disconnect(&mut self, now: u64, out: &mut Output) -> bool {
        if !matches!(self.state, State::Established | State::RepSent) {
            return false;
        }
        self.enter(State::DreqSent);
        let dreq = Dreq { comms: self.comms, remote_qpn: self.remote_qpn };
        self.send_repeatedly(now, Message::Dreq(dreq), out);
        true
    }

    /// The program lets go of it, in whatever state.
    pub(super) fn let_go(&mut self, now: u64, out: &mut Output) {
        self.orphaned = true;
        match self.state {
            State::ReqSent => {
                self.send_rejection(RejReason::TIMEOUT, &[], out);
                self.enter(State::Closed);
            }
            State::ReqReceived | State::RepReceived | State::RepSent => {
                self.reject(RejReason::CONSUMER, &[], out);
            }
            State::Established => {
                self.disconnect(now, out);
            }
            State::SidrReqSent => self.enter(State::Closed),
            State::SidrReqReceived => {
                self.reject(RejReason::CONSUMER, &[], out);
                self.timer_ns = Some(now + TIME_WAIT_NS);
            }
            State::SidrRepSent => self.timer_ns = Some(now + TIME_WAIT_NS),
            State::DreqSent | State::TimeWait | State::Closed => {}
        }
    }

    /// A repetition of the request that made it.
    pub(super) fn asked_again(&self, out: &mut Output) {
        match (self.state, &self.repeated) {
            (State::ReqReceived, _) => self.ask_for_time(Handled::Req, out),
            (State::RepSent, Some(reply)) => self.send_again(reply.bytes, out),
            (State::SidrRepSent, _) => {
                if let Some(reply) = self.confirmation {
                    self.send_again(reply, out);
                }
            }
            _ => {}
        }
    }

    fn ask_for_time(&self, of: Handled, out: &mut Output) {
        let mra = Mra { comms: self.comms, of, service_timeout: SERVICE_TIMEOUT };
        self.send(Message::Mra(mra), out);
    }

    /// A message of this connection.
    pub(super) fn take(&mut self, now: u64, message: Message, out: &mut Output) {
        match message {
            Message::Rep(rep) => self.take_rep(rep, out),
            Message::Rtu(_) => {
                self.notice_data(out);
            }
            Message::Rej(rej) => self.take_rej(now, &rej, out),
            Message::Mra(mra) => {
                let waits = match self.state {
                    State::ReqSent => mra.of == Handled::Req,
                    State::RepSent => mra.of == Handled::Rep,
                    _ => false,
                };
                if waits && let Some(repeated) = &mut self.repeated {
                    // The other manager is there, however long its program takes.
                    repeated.left = MAX_RETRIES;
                    self.timer_ns = Some(now + time_of_code_ns(mra.service_timeout));
                }
            }
            Message::Dreq(_) => self.take_dreq(now, out),
            Message::Drep(_) => {
                if self.state == State::DreqSent {
                    self.end(now, out);
                }
            }
            Message::SidrRep(rep) => {
                if self.state == State::SidrReqSent {
                    self.enter(State::Closed);
                    self.tell(Happening::Found(rep), out);
                }
            }
            // The manager finds a repeated request's connection by other numbers.
            Message::Req(_) | Message::SidrReq(_) => {}
        }
    }

    fn take_rep(&mut self, rep: Box<Rep>, out: &mut Output) {
        match (self.state, self.confirmation) {
            (State::ReqSent, _) => {
                self.comms.remote = rep.comms.local;
                self.remote_qpn = rep.qpn;
                self.enter(State::RepReceived);
                self.tell(Happening::Replied(rep), out);
            }
            (State::RepReceived, _) => self.ask_for_time(Handled::Rep, out),
            (State::Established, Some(confirmation)) => self.send_again(confirmation, out),
            _ => {}
        }
    }

    fn take_rej(&mut self, now: u64, rej: &Rej, out: &mut Output) {
        match self.state {
            State::ReqSent | State::ReqReceived | State::RepSent | State::RepReceived => {
                self.enter(State::Closed);
                let data = Box::from(&*rej.private_data);
                self.tell(Happening::Rejected(rej.reason, data), out);
            }
            // It does not know the connection any more.
            State::Established | State::DreqSent => {
                self.end(now, out);
            }
            _ => {}
        }
    }

    fn take_dreq(&mut self, now: u64, out: &mut Output) {
        match self.state {
            State::RepSent | State::RepReceived | State::Established | State::DreqSent => {
                self.end(now, out);
            }
            State::TimeWait => {}
            _ => return,
        }
        self.send(Message::Drep(self.comms), out);
    }

    pub(super) fn wake(&mut self, now: u64, out: &mut Output) {
        self.timer_ns = None;
        match self.state {
            State::TimeWait => {
                self.enter(State::Closed);
                self.tell(Happening::TimeWaitOver, out);
                return;
            }
            State::SidrRepSent => return self.enter(State::Closed),
            _ => {}
        }
        if let Some(repeated) = &mut self.repeated
            && let Some(left) = repeated.left.checked_sub(1)
        {
            repeated.left = left;
            if self.state == State::SidrReqSent {
                let doubled_ns = 2 * repeated.interval_ns;
                repeated.interval_ns = doubled_ns.min(time_of_code_ns(SERVICE_TIMEOUT));
            }
            let (bytes, interval_ns) = (repeated.bytes, repeated.interval_ns);
            self.timer_ns = Some(now + interval_ns);
            self.send_again(bytes, out);
            return;
        }
        if self.state == State::DreqSent {
            self.end(now, out);
            return;
        }
        if self.state != State::SidrReqSent {
            self.send_rejection(RejReason::TIMEOUT, &[], out);
        }
        self.enter(State::Closed);
        self.tell(Happening::Unreachable, out);
    }
}
