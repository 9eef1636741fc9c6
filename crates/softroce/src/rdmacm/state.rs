//! All ids of the process and what they are bound to, and how the managers' events become the ids' events.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::os::raw::c_int;
use std::sync::Arc;

use rdma_sys::{rdma_cm_event_type as kind, rdma_cm_id, rdma_event_channel};

use super::devices::{CmDevice, Devices};
use super::id::Id;
use super::inbox::{Arrived, Inbox};
use super::notice::{Notice, Parameters};
use super::sockaddr;
use super::terms::Terms;
use crate::cm::{Event, Happening, Manager, Output};
use crate::verbs::events::{Acks, Queue};
use crate::verbs::gid;
use crate::wire::cm::{IpHeader, RejReason, Req};

/// The ports that are given to ids which ask for none: those of Linux (ip_local_port_range).
const FIRST_FREE_PORT: u16 = 32768;
const LAST_FREE_PORT: u16 = 60999;
/// Bits of a PSN.
const PSN_BITS: u32 = 0x00ff_ffff;

/// What the process knows of an id.
pub(super) struct Entry {
    pub(super) id: *mut rdma_cm_id,
    pub(super) queue: Arc<Queue<Notice>>,
    pub(super) acks: Arc<Acks>,
    /// The address of its device.
    pub(super) device: Option<IpAddr>,
    pub(super) local: Option<SocketAddr>,
    /// Whether its port is its own, rather than that of the listener that it came from.
    pub(super) owns_port: bool,
    pub(super) listens: bool,
    pub(super) remote: Option<SocketAddr>,
    /// The manager's number of its connection.
    pub(super) comm: Option<u32>,
    pub(super) terms: Terms,
    /// By `rdma_set_option(3)`.
    pub(super) traffic_class: u8,
    pub(super) ack_timeout: Option<u8>,
}

// SAFETY: the pointer is only compared and handed to the program, and followed only where the id is known to be alive:
// it is removed from the state before it is freed.
unsafe impl Send for Entry {}

impl Entry {
    fn raise(&self, kind: kind::Type, status: c_int, parameters: Parameters) {
        let notice = Notice {
            id: self.id,
            listener: std::ptr::null_mut(),
            kind,
            status,
            parameters,
            acks: Arc::clone(&self.acks),
        };
        self.queue.raise(notice, Some(Arc::clone(&self.acks)));
    }

    /// An event of success without parameters.
    pub(super) fn succeed(&self, kind: kind::Type) {
        self.raise(kind, 0, Parameters::default());
    }
}

/// All ids and devices.
pub(super) struct State {
    pub(super) devices: Devices,
    pub(super) ids: BTreeMap<u64, Entry>,
    last_key: u64,
}

impl State {
    pub(super) const fn new(inbox: &'static Inbox) -> State {
        State {
            devices: Devices::new(inbox),
            ids: BTreeMap::new(),
            last_key: 0,
        }
    }

    /// A new id with its events in `queue`.
    pub(super) fn create(
        &mut self,
        channel: *mut rdma_event_channel,
        queue: Arc<Queue<Notice>>,
    ) -> (u64, *mut rdma_cm_id) {
        self.last_key += 1;
        let id = Id::create(self.last_key, channel);
        let entry = Entry {
            id,
            queue,
            // SAFETY: just made.
            acks: Arc::clone(&unsafe { Id::of(id) }.acks),
            device: None,
            local: None,
            owns_port: false,
            listens: false,
            remote: None,
            comm: None,
            terms: Terms::default(),
            traffic_class: 0,
            ack_timeout: None,
        };
        self.ids.insert(self.last_key, entry);
        (self.last_key, id)
    }

    /// The entry of a live id.
    pub(super) fn entry(&mut self, key: u64) -> Result<&mut Entry, c_int> {
        self.ids.get_mut(&key).ok_or(libc::EINVAL)
    }

    /// Takes an id out: its connection is let go of, its listening ends, its events are forgotten, and with them the
    /// requests that nobody has taken.
    pub(super) fn remove(&mut self, now: u64, key: u64) {
        let Some(entry) = self.ids.remove(&key) else {
            return;
        };
        if let Some((device, comm)) = entry.device.zip(entry.comm) {
            if let Some(device) = self.devices.get(device) {
                device.ids.remove(&comm);
            }
            self.run(device, |manager, out| manager.let_go(now, comm, out));
        }
        if let Some(device) = entry.device.and_then(|address| self.devices.get(address)) {
            device.users -= 1;
        }
        if entry.listens {
            for (_, device) in self.devices.all() {
                device.manager.stop_listening(key);
            }
        }
        let forgotten = entry
            .queue
            .take_out(|notice| notice.id == entry.id || notice.listener == entry.id);
        for (notice, _) in forgotten {
            if !notice.listener.is_null() {
                // SAFETY: a request's new id, which the program has not got.
                let key = unsafe { Id::of(notice.id) }.key;
                self.remove(now, key);
                // SAFETY: as above; it is out of the state now.
                unsafe { Id::free(notice.id) };
            }
        }
    }

    /// Binds an id to a device that is open: from now on the program sees the device in it.
    pub(super) fn bind_device(&mut self, key: u64, address: IpAddr) -> Result<(), c_int> {
        let device = self.devices.get(address).ok_or(libc::ENODEV)?;
        let entry = self.ids.get_mut(&key).ok_or(libc::EINVAL)?;
        if entry.device.is_none() {
            device.users += 1;
        }
        entry.device = Some(address);
        // SAFETY: a live id; the calling thread has the program's leave to change it, or the program does not know
        // it yet.
        unsafe {
            (*entry.id).verbs = device.context;
            (*entry.id).port_num = gid::PORT;
            if (*entry.id).pd.is_null() {
                (*entry.id).pd = device.pd;
            }
            let addresses = &mut (*entry.id).route.addr.addr.ibaddr;
            addresses.sgid = gid::of_address(address);
            addresses.pkey = 0xffff;
        }
        Ok(())
    }

    /// Sets the addresses of an id, which the program sees.
    pub(super) fn set_addresses(
        &mut self,
        key: u64,
        local: SocketAddr,
        remote: Option<SocketAddr>,
    ) -> Result<(), c_int> {
        let entry = self.entry(key)?;
        entry.local = Some(local);
        entry.remote = remote;
        // SAFETY: as in `bind_device`.
        unsafe {
            let route = &mut (*entry.id).route.addr;
            route.src_addr_union.src_storage = sockaddr::write(local);
            if let Some(remote) = remote {
                route.dst_addr_union.dst_storage = sockaddr::write(remote);
                route.addr.ibaddr.dgid = gid::of_address(remote.ip());
            }
        }
        Ok(())
    }

    /// A port for an id: `wanted`, or a free one for 0. EADDRINUSE if another id has it.
    pub(super) fn port(&self, address: IpAddr, wanted: u16) -> Result<u16, c_int> {
        let taken = |port: u16| {
            self.ids.values().any(|entry| {
                entry.owns_port
                    && entry.local.is_some_and(|local| {
                        let (ip, all) = (local.ip(), IpAddr::is_unspecified);
                        local.port() == port && (ip == address || all(&ip) || all(&address))
                    })
            })
        };
        if wanted != 0 {
            return match taken(wanted) {
                true => Err(libc::EADDRINUSE),
                false => Ok(wanted),
            };
        }
        let first = fastrand::u16(FIRST_FREE_PORT..=LAST_FREE_PORT);
        let after = (first..=LAST_FREE_PORT).chain(FIRST_FREE_PORT..first);
        after
            .into_iter()
            .find(|port| !taken(*port))
            .ok_or(libc::EADDRNOTAVAIL)
    }

    /// Does something with a device's manager, then sends and tells what follows; `None` without the device.
    pub(super) fn run<R>(
        &mut self,
        address: IpAddr,
        step: impl FnOnce(&mut Manager, &mut Output) -> R,
    ) -> Option<R> {
        let mut out = Output::default();
        let device = self.devices.get(address)?;
        let result = step(&mut device.manager, &mut out);
        while !out.datagrams.is_empty() || !out.events.is_empty() {
            if let Some(device) = self.devices.get(address) {
                device.send(&mut out);
            }
            for event in std::mem::take(&mut out.events) {
                self.happened(address, event, &mut out);
            }
        }
        Some(result)
    }

    /// A datagram.
    pub(super) fn take(&mut self, now: u64, arrived: &Arrived) {
        self.run(arrived.at, |manager, out| {
            manager.take(now, arrived.from, &arrived.bytes, out);
        });
    }

    /// Does what is due; returns when to come again.
    pub(super) fn wake(&mut self, now: u64) -> u64 {
        let due = |(address, device): (IpAddr, &mut CmDevice)| {
            let next = device.manager.next_timer_ns()?;
            (next <= now).then_some(address)
        };
        let addresses: Vec<IpAddr> = self.devices.all().filter_map(due).collect();
        for address in addresses {
            self.run(address, |manager, out| manager.wake(now, out));
        }
        self.next_timer_ns()
    }

    pub(super) fn next_timer_ns(&mut self) -> u64 {
        let timers = self.devices.all();
        let next = timers.filter_map(|(_, device)| device.manager.next_timer_ns());
        next.min().unwrap_or(u64::MAX)
    }

    fn happened(&mut self, address: IpAddr, event: Event, out: &mut Output) {
        let comm = event.comm;
        if let Happening::Requested {
            listener,
            peer,
            req,
        } = event.happening
        {
            if self
                .requested(address, comm, listener, peer, &req)
                .is_none()
                && let Some(device) = self.devices.get(address)
            {
                // Of a manager that has just told of it.
                let _ = device.manager.reject(comm, RejReason::CONSUMER, &[], out);
            }
            return;
        }
        let key = self.devices.get(address).and_then(|device| {
            let key = device.ids.get(&comm).copied();
            if event.happening == Happening::TimeWaitOver {
                device.ids.remove(&comm);
            }
            key
        });
        let Some(entry) = key.and_then(|key| self.ids.get_mut(&key)) else {
            return;
        };
        let none = Parameters::default();
        match event.happening {
            Happening::Requested { .. } => {}
            Happening::Replied(rep) => {
                entry.terms.replied(&rep);
                let parameters = Parameters::of_reply(&rep);
                entry.raise(kind::RDMA_CM_EVENT_CONNECT_RESPONSE, 0, parameters);
            }
            Happening::Established => entry.raise(kind::RDMA_CM_EVENT_ESTABLISHED, 0, none),
            Happening::Rejected(reason, data) => {
                let parameters = Parameters::of_data(data);
                entry.raise(kind::RDMA_CM_EVENT_REJECTED, reason.0.into(), parameters);
            }
            Happening::Unreachable => {
                entry.raise(kind::RDMA_CM_EVENT_UNREACHABLE, -libc::ETIMEDOUT, none);
            }
            Happening::Disconnected => entry.raise(kind::RDMA_CM_EVENT_DISCONNECTED, 0, none),
            Happening::TimeWaitOver => {
                entry.comm = None;
                entry.raise(kind::RDMA_CM_EVENT_TIMEWAIT_EXIT, 0, none);
            }
        }
    }

    /// Makes the id of a request and tells its listener; `None` if that is not there, or the request has no addresses.
    fn requested(
        &mut self,
        address: IpAddr,
        comm: u32,
        listener: u64,
        peer: IpAddr,
        req: &Req,
    ) -> Option<()> {
        let (header, program_data) = IpHeader::split(&req.private_data)?;
        let (parent, queue, acks, port) = {
            let entry = self.ids.get(&listener)?;
            let port = entry.local?.port();
            let shared = (Arc::clone(&entry.queue), Arc::clone(&entry.acks));
            (entry.id, shared.0, shared.1, port)
        };
        // SAFETY: a listener that is in the state is alive; its channel changes only under the state's lock.
        let channel = unsafe { (*parent).channel };
        let (key, id) = self.create(channel, Arc::clone(&queue));
        let local = SocketAddr::new(address, port);
        let remote = SocketAddr::new(peer, header.source_port);
        // The device has just told of the request, so it is there.
        self.bind_device(key, address).ok()?;
        self.set_addresses(key, local, Some(remote)).ok()?;
        self.devices.get(address)?.ids.insert(comm, key);
        let entry = self.ids.get_mut(&key)?;
        entry.comm = Some(comm);
        entry.terms = Terms::asked(peer, req, fastrand::u32(..) & PSN_BITS);
        let notice = Notice {
            id,
            listener: parent,
            kind: kind::RDMA_CM_EVENT_CONNECT_REQUEST,
            status: 0,
            parameters: Parameters::of_request(req, program_data),
            acks: Arc::clone(&acks),
        };
        queue.raise(notice, Some(acks));
        Some(())
    }
}
