//! How the managers' events become the ids' events.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rdma_sys::rdma_cm_event_type as kind;

use super::notice::{Notice, Parameters};
use super::state::{Entry, State};
use super::terms::{PSN_BITS, Terms, path_to};
use crate::cm::{Asker, Event, Happening, Output};
use crate::wire::cm::{IpHeader, RejReason, SidrRep, SidrStatus};

impl State {
    pub(super) fn happened(&mut self, address: IpAddr, event: Event, out: &mut Output) {
        let comm = event.comm;
        let made = match &event.happening {
            Happening::Requested(asker, req) => {
                let terms = Terms::answering(asker.peer, req, fastrand::u32(..) & PSN_BITS);
                self.take_request(
                    address,
                    comm,
                    asker,
                    terms,
                    &req.private_data,
                    |data: &[u8]| Parameters::of_request(req, data),
                )
            }
            Happening::LookedUp(asker, req) => {
                let (terms, parameters) = (Terms::of_datagrams(asker.peer), Parameters::of_look_up);
                self.take_request(address, comm, asker, terms, &req.private_data, parameters)
            }
            _ => return self.happened_to_id(address, event),
        };
        if made.is_none()
            && let Some(device) = self.devices.get(address)
        {
            // Of a manager that has just told of it.
            let _ = device.manager.with(comm, |it| it.reject(RejReason::CONSUMER, &[], out));
        }
    }

    fn happened_to_id(&mut self, address: IpAddr, event: Event) {
        let comm = event.comm;
        let key = self.devices.get(address).and_then(|device| match event.happening {
            Happening::TimeWaitOver => device.ids.remove(&comm),
            _ => device.ids.get(&comm).copied(),
        });
        let Some(entry) = key.and_then(|key| self.ids.get_mut(&key)) else {
            return;
        };
        let none = Parameters::default();
        let (kind, status, parameters) = match event.happening {
            Happening::Requested(..) | Happening::LookedUp(..) => return,
            Happening::Found(rep) => return entry.found(&rep),
            Happening::Replied(rep) => {
                entry.terms.replied(&rep);
                let parameters = Parameters::of_reply(&rep);
                (kind::RDMA_CM_EVENT_CONNECT_RESPONSE, 0, parameters)
            }
            Happening::Established => (kind::RDMA_CM_EVENT_ESTABLISHED, 0, none),
            Happening::Rejected(reason, data) => {
                let parameters = Parameters::of_data(data);
                (kind::RDMA_CM_EVENT_REJECTED, reason.0.into(), parameters)
            }
            Happening::Unreachable => (kind::RDMA_CM_EVENT_UNREACHABLE, -libc::ETIMEDOUT, none),
            Happening::Disconnected => (kind::RDMA_CM_EVENT_DISCONNECTED, 0, none),
            Happening::TimeWaitOver => {
                entry.comm = None;
                (kind::RDMA_CM_EVENT_TIMEWAIT_EXIT, 0, none)
            }
        };
        entry.raise(kind, status, parameters);
    }

    /// Makes the id of a request and tells its listener; `None` if that is not there, or the request has no addresses.
    fn take_request(
        &mut self,
        address: IpAddr,
        comm: u32,
        asker: &Asker,
        terms: Terms,
        private_data: &[u8],
        parameters: impl FnOnce(&[u8]) -> Parameters,
    ) -> Option<()> {
        let (header, program_data) = IpHeader::split(private_data)?;
        let listener = self.ids.get(&asker.listener)?;
        let (parent, space, port) = (listener.id, listener.space, listener.local?.port());
        let (queue, acks) = (Arc::clone(&listener.queue), Arc::clone(&listener.acks));
        // SAFETY: a listener that is in the state is alive; its channel changes only under the state's lock.
        let channel = unsafe { (*parent).channel };
        let (key, id) = self.create(channel, Arc::clone(&queue), space);
        let local = SocketAddr::new(address, port);
        let remote = SocketAddr::new(asker.peer, header.source_port);
        // The device has just told of the request, so it is there.
        self.bind_device(key, address).ok()?;
        self.set_addresses(key, local, Some(remote)).ok()?;
        self.devices.get(address)?.ids.insert(comm, key);
        let entry = self.ids.get_mut(&key)?;
        entry.comm = Some(comm);
        entry.terms = terms;
        let notice = Notice {
            id,
            listener: parent,
            kind: kind::RDMA_CM_EVENT_CONNECT_REQUEST,
            status: 0,
            parameters: parameters(program_data),
            acks: Arc::clone(&acks),
        };
        queue.raise(notice, Some(acks));
        Some(())
    }
}

impl Entry {
    /// The reply to a look-up: with a QP the program can send there, otherwise it is as if nobody were there.
    fn found(&self, rep: &SidrRep) {
        let Some(peer) = self.remote.map(|remote| remote.ip()) else {
            return;
        };
        let path = path_to(peer, self.traffic_class);
        let (kind, parameters) = match rep.status {
            SidrStatus::VALID => {
                let parameters = Parameters::of_found(rep, path);
                (kind::RDMA_CM_EVENT_ESTABLISHED, parameters)
            }
            _ => {
                let parameters = Parameters::of_look_up(&rep.private_data);
                (kind::RDMA_CM_EVENT_UNREACHABLE, parameters)
            }
        };
        self.raise(kind, rep.status.0.into(), parameters);
    }
}
