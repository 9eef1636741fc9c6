//! Look-ups of datagram services: one request and one reply, kept as a connection is.

use std::net::IpAddr;

use super::connection::{Connection, State};
use super::output::Output;
use super::timing::RESPONSE_TIMEOUT;
use crate::wire::cm::{Comms, Message, SidrRep, SidrReq};

impl Connection {
    /// A look-up by this end. No message says that its answer will take a while, so that it is repeated ever more rarely:
    /// for 51 s in all.
    pub(super) fn look_up(
        now: u64,
        peer: IpAddr,
        req: Box<SidrReq>,
        out: &mut Output,
    ) -> Connection {
        let comms = Comms {
            local: req.request,
            remote: 0,
        };
        let transaction = u64::from(req.request);
        let mut connection = Connection::new(State::SidrReqSent, comms, peer, transaction, 0);
        connection.send_repeatedly(now, Message::SidrReq(req), RESPONSE_TIMEOUT, out);
        connection
    }

    /// A look-up by the other end.
    pub(super) fn looked_up(
        comm: u32,
        peer: IpAddr,
        req: &SidrReq,
        transaction: u64,
        listener: u64,
    ) -> Connection {
        let comms = Comms {
            local: comm,
            remote: req.request,
        };
        let state = State::SidrReqReceived;
        let mut connection = Connection::new(state, comms, peer, transaction, 0);
        (connection.listener, connection.service) = (Some(listener), req.service);
        connection
    }

    /// The program answers a look-up. False in another state.
    pub(super) fn answer(&mut self, mut rep: Box<SidrRep>, out: &mut Output) -> bool {
        if self.state != State::SidrReqReceived {
            return false;
        }
        (rep.request, rep.service) = (self.comms.remote, self.service);
        self.confirmation = Some(self.send(Message::SidrRep(rep), out));
        self.enter(State::SidrRepSent);
        true
    }
}
