//! All ids of the process and what they are bound to, and the managers of their devices.
//!
//! One thread takes what arrives for the managers and keeps their timers; their events become the
//! ids' events.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::os::raw::c_int;
use std::sync::{Arc, OnceLock};

use provider::{Acks, Behind, Lock, Queue, code};
use rdma_sys::{rdma_cm_event_type as kind, rdma_cm_id, rdma_event_channel};

use super::devices::{Arrived, Devices, Inbox, Watch};
use super::id;
use super::id::{Id, PortSpace};
use super::terms::{Notice, PSN_BITS, Parameters, Terms, path_to};
use crate::cm::{Asker, Event, Happening, Manager, Output};
use crate::net::{block_signals, now_ns};
use crate::transport::OwnClaim;
use crate::verbs::gid;
use crate::wire::cm::{IpHeader, MAD_BYTES, RejReason, SidrRep, SidrStatus};

/// The ports that are given to ids which ask for none: those of Linux (ip_local_port_range).
const FIRST_FREE_PORT: u16 = 32768;
const LAST_FREE_PORT: u16 = 60999;

/// A port that a process has to itself at an address which processes share.
pub(super) struct Claimed {
    pub(super) at: IpAddr,
    /// First, so that the socket closes when nobody waits for it.
    _watch: Watch,
    socket: OwnClaim,
}

/// What the process knows of an id.
pub(super) struct Entry {
    pub(super) id: *mut rdma_cm_id,
    pub(super) space: PortSpace,
    pub(super) queue: Arc<Queue<Notice>>,
    pub(super) acks: Arc<Acks>,
    /// The address of its device.
    pub(super) device: Option<IpAddr>,
    pub(super) local: Option<SocketAddr>,
    /// Whether its port is its own, rather than that of the listener that it came from.
    pub(super) owns_port: bool,
    /// Addresses that processes share, where it has its port to itself.
    pub(super) claims: Vec<Claimed>,
    pub(super) listens: bool,
    pub(super) remote: Option<SocketAddr>,
    /// The manager's number of its connection.
    pub(super) comm: Option<u32>,
    pub(super) terms: Terms,
    pub(super) traffic_class: u8,
    pub(super) ack_timeout: Option<u8>,
}

// SAFETY: the pointer is only compared and handed to the program, and followed only where the id is known to be alive:
// it is removed from the state before it is freed.
unsafe impl Send for Entry {}

impl Entry {
    pub(super) fn raise(&self, kind: kind::Type, status: c_int, parameters: Parameters) {
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
}

pub(super) struct State {
    pub(super) devices: Devices,
    pub(super) ids: BTreeMap<u64, Entry>,
    last_key: u64,
    /// When the next request is due that faults delay.
    requests_due_ns: u64,
}

impl State {
    pub(super) const fn new(inbox: &'static Inbox) -> State {
        State {
            devices: Devices::new(inbox),
            ids: BTreeMap::new(),
            last_key: 0,
            requests_due_ns: u64::MAX,
        }
    }

    /// A new id with its events in `queue`.
    pub(super) fn create(
        &mut self,
        channel: *mut rdma_event_channel,
        queue: Arc<Queue<Notice>>,
        space: PortSpace,
    ) -> (u64, *mut rdma_cm_id) {
        self.last_key += 1;
        let id = Id::create(self.last_key, channel, space);
        let entry = Entry {
            id,
            space,
            queue,
            // SAFETY: just made.
            acks: Arc::clone(&unsafe { Id::from_raw(id) }.acks),
            device: None,
            local: None,
            owns_port: false,
            claims: Vec::new(),
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

    /// An event of success without parameters.
    pub(super) fn succeed(&mut self, key: u64, kind: kind::Type) -> Result<(), c_int> {
        self.entry(key)?.raise(kind, 0, Parameters::default());
        Ok(())
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
            for (_, device) in self.devices.iter_mut() {
                device.manager.stop_listening(key);
            }
        }
        let forgotten =
            entry.queue.take_out(|notice| notice.id == entry.id || notice.listener == entry.id);
        for (notice, _) in forgotten {
            if !notice.listener.is_null() {
                // SAFETY: a request's new id, which the program has not got.
                let request = unsafe { Id::from_raw(notice.id) }.key;
                self.remove(now, request);
                // SAFETY: as above; it is out of the state now.
                drop(unsafe { Id::take_back(notice.id) });
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
            route.src_addr_union.src_storage = id::written_address(local);
            if let Some(remote) = remote {
                route.dst_addr_union.dst_storage = id::written_address(remote);
                route.addr.ibaddr.dgid = gid::of_address(remote.ip());
            }
        }
        Ok(())
    }

    /// Says that an id alone has its port at an address, among the processes that share it. EADDRINUSE if another process
    /// has it.
    pub(super) fn claim(&mut self, key: u64, address: IpAddr, port: u16) -> Result<(), c_int> {
        let entry = self.ids.get_mut(&key).ok_or(libc::EINVAL)?;
        let device = self.devices.get(address).ok_or(libc::ENODEV)?;
        if entry.claims.iter().all(|claimed| claimed.at != address)
            && let claimed = device.open_context().nic.claim(entry.space.service(port))
            && let Some(socket) = claimed.map_err(|error| code(&error))?
        {
            let _watch = self.devices.inbox.watch(socket.fd())?;
            entry.claims.push(Claimed { at: address, _watch, socket });
        }
        Ok(())
    }

    /// A port for an id: `wanted`, or a free one for 0. EADDRINUSE if another id of this process has it.
    pub(super) fn port(
        &self,
        space: PortSpace,
        address: IpAddr,
        wanted: u16,
    ) -> Result<u16, c_int> {
        let taken = |port: u16| {
            self.ids.values().any(|entry| {
                entry.owns_port
                    && entry.space == space
                    && entry.local.is_some_and(|local| {
                        let ip = local.ip();
                        let is_any = ip.is_unspecified() || address.is_unspecified();
                        local.port() == port && (ip == address || is_any)
                    })
            })
        };
        if wanted != 0 {
            let free = (!taken(wanted)).then_some(wanted);
            return free.ok_or(libc::EADDRINUSE);
        }
        let first = fastrand::u16(FIRST_FREE_PORT..=LAST_FREE_PORT);
        let mut after = (first..=LAST_FREE_PORT).chain(FIRST_FREE_PORT..first);
        let free = after.find(|port| !taken(*port));
        free.ok_or(libc::EADDRNOTAVAIL)
    }

    /// Does something with a device's manager, then sends and tells what follows; `None` without the device.
    pub(super) fn run<R>(
        &mut self,
        address: IpAddr,
        step: impl FnOnce(&mut Manager, &mut Output) -> R,
    ) -> Option<R> {
        let mut out = Output::default();
        let opened = self.devices.get(address)?;
        let result = step(&mut opened.manager, &mut out);
        while !out.datagrams.is_empty() || !out.events.is_empty() || !out.unheard.is_empty() {
            for unheard in std::mem::take(&mut out.unheard) {
                let bytes = unheard.mad.to_bytes();
                if !self.hands_on(address, unheard.service, unheard.from, &bytes)
                    && let Some(device) = self.devices.get(address)
                {
                    device.manager.refuse(&unheard, &mut out);
                }
            }
            if let Some(device) = self.devices.get(address) {
                for datagram in out.datagrams.drain(..) {
                    let nic = &device.open_context().nic;
                    nic.send_management(datagram.to, &datagram.bytes);
                }
            }
            for event in std::mem::take(&mut out.events) {
                self.happened(address, event, &mut out);
            }
        }
        Some(result)
    }

    pub(super) fn take(&mut self, now: u64, arrived: &Arrived) {
        self.run(arrived.at, |manager, out| {
            manager.take(now, arrived.from, &arrived.bytes, out);
        });
    }

    /// Hands a request on to the process that has claimed the service; false if none has, or it is this one.
    fn hands_on(&mut self, at: IpAddr, service: u64, from: IpAddr, bytes: &[u8]) -> bool {
        let is_own = self.ids.values().any(|entry| {
            let service_of_it = entry.local.map(|local| entry.space.service(local.port()));
            service_of_it == Some(service) && entry.claims.iter().any(|claimed| claimed.at == at)
        });
        let device = self.devices.get(at);
        !is_own && device.is_some_and(|device| device.hand_on(service, from, bytes))
    }

    /// Takes the requests that have come to the addresses that processes share, and those that other processes have
    /// handed on to this one.
    pub(super) fn take_requests(&mut self, now: u64) {
        let (mut heard, mut handed_on) = (Vec::new(), Vec::new());
        self.requests_due_ns = u64::MAX;
        for (at, device) in self.devices.iter_mut() {
            let due_ns = device.open_context().nic.take_requests(|from, payload| {
                let bytes = payload.try_into();
                heard.extend(bytes.map(|bytes| Arrived { at, from, bytes }));
            });
            self.requests_due_ns = self.requests_due_ns.min(due_ns.unwrap_or(u64::MAX));
        }
        // A sender's address before it.
        let mut room = [0; 2 * MAD_BYTES];
        for Claimed { at, socket, .. } in self.ids.values().flat_map(|entry| &entry.claims) {
            while let Some((from, payload)) = socket.take(&mut room) {
                let bytes = payload.try_into();
                handed_on.extend(bytes.map(|bytes| Arrived { at: *at, from, bytes }));
            }
        }
        for request in heard {
            let device = self.devices.get(request.at);
            let service =
                device.and_then(|it| it.manager.service_elsewhere(request.from, &request.bytes));
            let is_handed_on = service.is_some_and(|service| {
                self.hands_on(request.at, service, request.from, &request.bytes)
            });
            if !is_handed_on {
                self.take(now, &request);
            }
        }
        for request in handed_on {
            self.take(now, &request);
        }
    }

    /// Does what is due; returns when to come again.
    pub(super) fn wake(&mut self, now: u64) -> u64 {
        let addresses: Vec<IpAddr> = self
            .devices
            .iter_mut()
            .filter_map(|(address, device)| {
                let next = device.manager.next_timer_ns()?;
                (next <= now).then_some(address)
            })
            .collect();
        for address in addresses {
            self.run(address, |manager, out| manager.wake(now, out));
        }
        self.next_timer_ns()
    }

    pub(super) fn next_timer_ns(&mut self) -> u64 {
        let timers = self.devices.iter_mut();
        timers
            .filter_map(|(_, device)| device.manager.next_timer_ns())
            .min()
            .unwrap_or(u64::MAX)
            .min(self.requests_due_ns)
    }
}

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

static INBOX: Inbox = Inbox::new();
static STATE: Lock<State> = Lock::new(State::new(&INBOX));

/// Starts the thread, once.
///
/// # Errors
/// The system has no more threads or descriptors.
pub(super) fn start() -> Result<(), c_int> {
    static STARTED: OnceLock<Result<(), c_int>> = OnceLock::new();
    *STARTED.get_or_init(|| {
        let thread = std::thread::Builder::new().name("softroce-cm".into());
        let started = INBOX.begin().and_then(|()| thread.spawn(run));
        started.map(drop).map_err(|error| error.raw_os_error().unwrap_or(libc::EAGAIN))
    })
}

fn run() {
    // Signals are for the program's threads.
    block_signals();
    let mut arrived = Vec::new();
    loop {
        INBOX.wait(&mut arrived);
        let mut state = STATE.lock();
        let now = now_ns();
        for datagram in arrived.drain(..) {
            state.take(now, &datagram);
        }
        state.take_requests(now);
        let next = state.wake(now);
        state.devices.close_unused();
        drop(state);
        INBOX.wake_at(next);
    }
}

/// Works on the state, with the time.
pub(super) fn with<R>(step: impl FnOnce(&mut State, u64) -> R) -> R {
    let mut state = STATE.lock();
    let result = step(&mut state, now_ns());
    let next = state.next_timer_ns();
    drop(state);
    INBOX.wake_at(next);
    result
}
