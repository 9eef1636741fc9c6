//! A device on one network address, its completion queues and its QP 1, as the verbs layer opens them.
//!
//! [`Cq`]: completion queues for the verbs layer. A thread that polls one does the device's work.
#![allow(unsafe_code)]

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use provider::Lock;

use crate::net::{self, Faults};
use crate::transport::completion_queue::{BrokenCq, Completion, CqContext};
use crate::transport::device::{
    self, Core, Devices, ManagementReceiver, OwnClaim, PortListener, is_management,
};
use crate::transport::engine::Engine;
use crate::transport::memory::{MemoryError, PdId, Region};
use crate::transport::outbox::Outbox;
use crate::transport::windows::WindowType;
use crate::transport::work_queues::PKEY;
use crate::wire::cm::{GSI_QKEY, GSI_QPN};
use crate::wire::{Deth, Extended, Opcode, Packet, Service};

/// The options of opening a device.
#[derive(Clone, Debug, Default)]
pub struct NicOptions {
    /// The address to take. `None` takes one of 127.0.0.0/8: a free one, or what this process or others have already if it
    /// `joins`.
    pub address: Option<IpAddr>,
    /// Whether it may be the device that this process has on loopback, if that was opened so too or by its address.
    pub joins: bool,
    pub faults: Faults,
    pub wire: Wire,
    /// Size to ask of the kernel for the receive buffer; `None` for the largest that it gives.
    pub receive_buffer_bytes: Option<u32>,
    /// A file to capture all packets in; the device's address is added to its name.
    pub capture: Option<PathBuf>,
}

/// How packets go to devices of the same process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wire {
    /// Through memory, if they do so too.
    #[default]
    Memory,
    /// By sockets, as to all others.
    Udp,
}

/// The counter of the CPU time that the device's own thread has used, in nanoseconds.
pub const ENGINE_CPU_NS: &str = "engine_cpu_ns";

/// A device on one address.
pub struct Nic {
    core: Arc<Core>,
    /// Stops when the device is dropped. None in a network in memory.
    engine: Option<Engine>,
    may_be_joined: bool,
}

/// The open devices of this process, in the order of opening.
static OPEN: Lock<Vec<Weak<Nic>>> = Lock::new(Vec::new());

fn of_this_process(open: &[Weak<Nic>]) -> impl Iterator<Item = Arc<Nic>> {
    open.iter().filter_map(Weak::upgrade).filter(|nic| nic.is_of_this_process())
}

impl Nic {
    /// Opens the address and starts the engine. Opening the same given address again in one process shares the
    /// device, and so do openings without one that join.
    ///
    /// # Errors
    /// The socket call that failed, EADDRINUSE if others have the address who do not share it; or the capture's file.
    pub fn open(options: &NicOptions) -> io::Result<Arc<Nic>> {
        let mut devices = device::devices();
        let mut open = OPEN.lock();
        open.retain(|nic| nic.strong_count() > 0);
        if let Some(nic) = of_this_process(&open).find(|nic| nic.serves(options)) {
            return Ok(nic);
        }
        let nic = Nic::start(options, &mut devices)?;
        open.push(Arc::downgrade(&nic));
        Ok(nic)
    }

    /// Whether it is the device that these options open.
    fn serves(&self, options: &NicOptions) -> bool {
        match options.address {
            Some(address) => self.address() == address,
            None => options.joins && self.may_be_joined && self.address().is_loopback(),
        }
    }

    /// The addresses of this process's open devices, in the order of opening.
    pub fn open_addresses() -> Vec<IpAddr> {
        // No fork happens while it is held, so none copies a locked list.
        let _devices = device::devices();
        let open = OPEN.lock();
        of_this_process(&open).map(|nic| nic.address()).collect()
    }

    fn start(options: &NicOptions, devices: &mut Devices) -> io::Result<Arc<Nic>> {
        let open = |address| net::open(address, &options.faults, options.receive_buffer_bytes);
        // Programs share one device, as the kernel's: who is first does not matter. Where its address is not to be had, each has
        // another alone.
        let shared = match options.address {
            None if options.joins => open(Some(Ipv4Addr::LOCALHOST.into())).ok(),
            _ => None,
        };
        let mut port = shared.map_or_else(|| open(options.address), Ok)?;
        if let Some(path) = &options.capture {
            port.capture(path)?;
        }
        if options.wire != Wire::Udp {
            port.open_inbox();
        }
        let core = Arc::new(Core::new(port)?);
        let engine = Engine::start(Arc::clone(&core))?;
        device::add(devices, &core);
        Ok(Arc::new(Nic {
            core,
            engine: Some(engine),
            may_be_joined: options.joins || options.address.is_some(),
        }))
    }

    /// On a port that needs no thread: it works when it is told to, and when its CQs are polled.
    pub(crate) fn without_engine(port: net::Port) -> io::Result<Arc<Nic>> {
        let core = Arc::new(Core::new(port)?);
        Ok(Arc::new(Nic { core, engine: None, may_be_joined: false }))
    }

    /// When it has something to do that no packet announces, 0 for answers that are due; `u64::MAX` for never.
    pub(super) fn next_due_ns(&self) -> u64 {
        let inbound = self.core.inbound.try_lock();
        if inbound.is_some_and(|it| !it.owing.is_empty()) {
            0
        } else {
            self.core.activity.next_due_ns()
        }
    }

    /// Does what is to be done now, as the engine does.
    pub(crate) fn work(&self) -> Option<usize> {
        self.core.use_room(self.core.activity.now_ns());
        self.core.progress()
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Whether this process opened it, rather than one that it was forked from: then it can be used.
    pub fn is_of_this_process(&self) -> bool {
        self.core.is_of_this_process()
    }

    /// The first bits of its QP numbers: which of the devices at its address it is.
    pub fn slot(&self) -> u8 {
        self.core.tables().slot()
    }

    pub fn address(&self) -> IpAddr {
        self.core.address
    }

    /// Registers memory; the key is both lkey and rkey.
    ///
    /// # Errors
    /// Invalid bounds or flags, or no more keys.
    ///
    /// # Safety
    /// The region is mapped, readable, and writable if its access says so, until [`Nic::deregister`].
    pub unsafe fn register(&self, region: Region) -> Result<u32, MemoryError> {
        self.core.tables_mut().memories.insert(region)
    }

    /// Removes a key; when it returns, no thread accesses the memory.
    ///
    /// # Errors
    /// [`MemoryError::InUse`].
    pub fn deregister(&self, key: u32) -> Result<(), MemoryError> {
        self.core.tables_mut().memories.remove(key)
    }

    /// Makes a memory window that is not bound; returns its key.
    ///
    /// # Errors
    /// [`MemoryError::Full`].
    pub fn allocate_window(&self, pd: PdId, window_type: WindowType) -> Result<u32, MemoryError> {
        self.core.tables_mut().memories.add_window(pd, window_type)
    }

    /// Removes the window that was made with this key; when it returns, no peer has access by it.
    pub fn free_window(&self, key: u32) {
        self.core.tables_mut().memories.remove_window(key);
    }

    /// Whether the port is up.
    pub fn port_is_up(&self) -> bool {
        self.core.port_state.is_up(self.core.activity.now_ns())
    }

    /// Tells `listener` when the port goes down or comes up, until it is dropped.
    pub fn listen_to_port(&self, listener: &Arc<PortListener>) {
        self.core.port_state.listen(listener);
    }

    /// Tells the listeners what the port is at this time.
    #[cfg(test)]
    pub(crate) fn tell_of_port(&self, now_ns: u64) {
        self.core.port_state.tell(now_ns);
    }

    /// Lets the thread of its own run on these cores alone. What the kernel refuses leaves it where it was.
    pub fn place_engine(&self, cores: &[usize]) {
        if let Some(engine) = &self.engine {
            engine.place(cores);
        }
    }

    /// The cores on which that thread may run; none where the kernel does not say.
    pub fn engine_cores(&self) -> Vec<usize> {
        self.engine.as_ref().map_or_else(Vec::new, Engine::cores)
    }

    /// How its packets go to a QP at an address.
    pub fn wire_to(&self, address: IpAddr, qpn: u32) -> Wire {
        if self.core.flow(address, 0, [0, qpn], 0, 0).is_in_memory() {
            Wire::Memory
        } else {
            Wire::Udp
        }
    }

    pub fn tap(&self) -> &net::Tap {
        &self.core.tap
    }

    /// Counters since the device was opened, with their names.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = self.core.counters();
        counters.push((ENGINE_CPU_NS, self.engine.as_ref().map_or(0, Engine::cpu_ns)));
        counters
    }
}

/// A completion queue; clones refer to the same one.
#[derive(Clone)]
pub struct Cq {
    core: Arc<Core>,
    context: Arc<CqContext>,
}

impl PartialEq for Cq {
    fn eq(&self, other: &Cq) -> bool {
        Arc::ptr_eq(&self.context, &other.context)
    }
}

impl Cq {
    /// A CQ for at least `capacity` completions. `on_event` is called when the CQ is armed and a completion comes;
    /// `on_overrun` once, when a completion finds no room. Neither may call the transport. If `has_stamps`, each completion
    /// has the time when it came, by [`crate::net::now_ns`].
    pub fn with_stamps(
        nic: &Nic,
        capacity: usize,
        has_stamps: bool,
        on_event: Box<dyn Fn() + Send + Sync>,
        on_overrun: Box<dyn Fn() + Send + Sync>,
    ) -> Cq {
        let core = Arc::clone(nic.core());
        let context = CqContext::new(&core.activity, capacity, has_stamps, on_event, on_overrun);
        Cq { core, context: Arc::new(context) }
    }

    pub(crate) fn context(&self) -> &Arc<CqContext> {
        &self.context
    }

    pub fn capacity(&self) -> usize {
        self.context.capacity()
    }

    /// Changes the capacity. `false` if more completions wait.
    pub fn resize(&self, capacity: usize) -> bool {
        self.context.resize(capacity)
    }

    /// Passes up to `most` completions to `take`, oldest first; does the device's work if there are none.
    ///
    /// # Errors
    /// After an overrun, and in a child of the process that opened the device.
    pub fn poll(&self, most: usize, mut take: impl FnMut(&Completion)) -> Result<usize, BrokenCq> {
        self.poll_stamped(most, |completion, _| take(completion))
    }

    /// As [`Cq::poll`], with the stamp of each; 0 on a CQ without stamps.
    ///
    /// # Errors
    /// As of [`Cq::poll`].
    pub fn poll_stamped(
        &self,
        most: usize,
        take: impl FnMut(&Completion, u64),
    ) -> Result<usize, BrokenCq> {
        if self.has_some()? { self.take_stamped(most, take) } else { Ok(0) }
    }

    /// The same without the device's work.
    ///
    /// # Errors
    /// After an overrun.
    pub fn take_stamped(
        &self,
        most: usize,
        take: impl FnMut(&Completion, u64),
    ) -> Result<usize, BrokenCq> {
        self.context.take(most, take)
    }

    /// Whether it holds completions; does the device's work if there are none.
    ///
    /// # Errors
    /// As of [`Cq::poll`].
    pub fn has_some(&self) -> Result<bool, BrokenCq> {
        if !self.core.is_of_this_process() {
            return Err(BrokenCq);
        }
        self.core.send_corked();
        if self.context.is_empty() {
            self.core.progress_for_poller();
            if self.context.is_empty() {
                return self.context.intact().map(|()| false);
            }
        }
        Ok(true)
    }

    /// Requests an event for the next completion, or only for the next solicited or failed one.
    /// Does nothing in a child of the process that opened the device.
    pub fn arm(&self, solicited_only: bool) {
        if self.core.is_of_this_process() {
            self.core.send_corked();
            self.context.arm(solicited_only);
        }
    }

    /// Raises the event now if one is requested for any completion and the CQ holds completions: the program has
    /// taken only some of them and is about to wait, and more may never come.
    pub fn remind(&self) {
        self.context.remind();
    }
}

impl Nic {
    /// Where processes share its address, the socket of the requests of connection managers, which is readable when some wait
    /// that [`Nic::take_requests`] takes.
    pub fn requests_fd(&self) -> Option<RawFd> {
        self.core().requests_fd()
    }

    /// Says that only this process offers a service at its address. `None` where processes do not share it.
    ///
    /// # Errors
    /// EADDRINUSE if another does.
    pub fn claim(&self, service: u64) -> io::Result<Option<OwnClaim>> {
        self.requests_fd().map(|_| OwnClaim::new(self.address(), service)).transpose()
    }

    /// Takes requests from now on; until then they are other processes'.
    ///
    /// # Errors
    /// The call that failed.
    pub fn begin_requests(&self) -> io::Result<()> {
        let requests = self.core().requests.as_ref();
        requests.map_or(Ok(()), |(requests, _)| requests.lock().begin())
    }

    /// Passes the requests that wait, with their senders, to `each`; returns when the next that faults delay is due.
    pub fn take_requests(&self, mut each: impl FnMut(IpAddr, &[u8])) -> Option<u64> {
        let (requests, _) = self.core().requests.as_ref()?;
        requests.lock().take(
            |qpn| qpn == GSI_QPN,
            |arrival| match Packet::parse_body(arrival.bytes) {
                Ok(packet) if is_management(&packet) => each(arrival.source.ip(), packet.payload),
                _ => {}
            },
        )
    }

    /// Sets who gets the datagrams for QP 1: their senders and payloads. It is called by whoever polls and must not
    /// call this device. `None` drops them.
    pub fn receive_management(&self, receiver: Option<ManagementReceiver>) {
        self.core().gsi.set_receiver(receiver);
    }

    /// Sends a datagram from QP 1 to QP 1 of another device.
    pub fn send_management(&self, to: IpAddr, payload: &[u8]) {
        let core = self.core();
        let packet = Packet {
            service: Service::Ud,
            opcode: Opcode::SendOnly,
            solicited: false,
            pkey: PKEY,
            destination_qpn: GSI_QPN,
            ack_request: false,
            psn: core.gsi.next_psn(),
            extended: Extended {
                deth: Some(Deth { qkey: GSI_QKEY, source_qpn: GSI_QPN }),
                ..Extended::default()
            },
            payload,
        };
        let flow = core.flow(to, 0, [GSI_QPN; 2], 0, 0);
        Outbox::with(core, &core.tables(), |outbox| {
            outbox.push_copy(&flow, &packet, payload);
        });
    }
}
