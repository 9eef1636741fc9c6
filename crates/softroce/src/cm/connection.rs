//! One connection, or one look-up of a datagram service: its state, and what messages, the program and the time do to it.

use std::net::IpAddr;

use super::event::Happening;
use super::output::{Datagram, Output};
use super::timing::{MAX_RETRIES, RESPONSE_TIMEOUT, SERVICE_TIMEOUT, TIME_WAIT_NS};
use crate::wire::cm::{
    Comms, Dreq, Handled, MAD_BYTES, Message, Mra, Rej, RejReason, Rep, SidrRep, SidrStatus,
};
use crate::wire::time_of_code_ns;

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
    /// To be removed.
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
