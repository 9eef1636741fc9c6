//! A device on one network address, as the verbs layer opens it.
#![allow(unsafe_code)]

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use crate::lock::Lock;
use crate::net;
use crate::net::Faults;
use crate::transport::device::core::Core;
use crate::transport::device::engine::Engine;
use crate::transport::device::port_state::PortListener;
use crate::transport::device::process;
use crate::transport::device::process::Devices;
use crate::transport::memory::{MemoryError, Region};

/// The options of opening a device.
#[derive(Clone, Debug, Default)]
pub struct NicOptions {
    /// The address to take. `None` takes one of 127.0.0.0/8: a free one, or what this process has already if it `joins`.
    pub address: Option<IpAddr>,
    /// Whether it may be the device that this process has on loopback, if that was opened so too or by its address.
    pub joins: bool,
    pub faults: Faults,
    /// Size to ask of the kernel for the receive buffer; `None` for the largest that it gives.
    pub receive_buffer_bytes: Option<u32>,
    /// A file to capture all packets in; the device's address is added to its name.
    pub capture: Option<PathBuf>,
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
        let mut devices = process::devices();
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
        let _devices = process::devices();
        let open = OPEN.lock();
        of_this_process(&open).map(|nic| nic.address()).collect()
    }

    fn start(options: &NicOptions, devices: &mut Devices) -> io::Result<Arc<Nic>> {
        let mut port = net::open(options.address, &options.faults, options.receive_buffer_bytes)?;
        if let Some(path) = &options.capture {
            port.capture(path)?;
        }
        let core = Arc::new(Core::new(port)?);
        let engine = Engine::start(Arc::clone(&core))?;
        process::add(devices, &core);
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
    pub fn deregister(&self, key: u32) {
        self.core.tables_mut().memories.remove(key);
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
