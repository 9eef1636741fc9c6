//! The manager's part that is unheard: what becomes of a request, and of one for which nobody listens.

use std::net::IpAddr;

use super::connection::{Connection, State};
use super::early::Unheard;
use super::event::{Asker, Happening};
use super::manager::Manager;
use super::output::Output;
use crate::wire::cm::{
    CmMad, Comms, Handled, Message, Rej, RejReason, SidrRep, SidrStatus, Transport,
};

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
