//! A device on one network address, as the verbs layer opens it.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::core::Core;
use super::engine::Engine;
use super::gsi::ManagementReceiver;
use super::memory::{MemoryError, Region};
use super::port_state::PortListener;
use super::process::{self, Devices, OwnClaim};
use crate::net::{self, Faults};

/// The options of opening a device.
#[derive(Clone, Debug, Default)]
pub struct NicOptions {
    /// The address to take. `None` takes a free one of 127.0.0.0/8.
    pub address: Option<IpAddr>,
    /// Deliberate faults.
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
    /// Stops when the device is dropped.
    engine: Engine,
}

/// The open devices of this process by address.
static OPEN: Mutex<Option<HashMap<IpAddr, Weak<Nic>>>> = Mutex::new(None);

impl Nic {
    /// Opens the address and starts the engine. Opening the same given address again in one process shares the
    /// device.
    ///
    /// # Errors
    /// The socket call that failed, EADDRINUSE if others have the address who do not share it; or the capture's file.
    pub fn open(options: &NicOptions) -> io::Result<Arc<Nic>> {
        let mut devices = process::devices();
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let open = open.get_or_insert_default();
        let shared = options.address.and_then(|address| open.get(&address));
        let shared = shared.and_then(Weak::upgrade);
        if let Some(nic) = shared.filter(|nic| nic.is_of_this_process()) {
            return Ok(nic);
        }
        let nic = Nic::start(options, &mut devices)?;
        open.retain(|_, nic| nic.strong_count() > 0);
        open.insert(nic.address(), Arc::downgrade(&nic));
        Ok(nic)
    }

    /// The addresses of this process's open devices, in their order.
    pub fn open_addresses() -> Vec<IpAddr> {
        // No fork happens while it is held, so none copies a locked list.
        let _devices = process::devices();
        let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let there = |(address, nic): (&IpAddr, &Weak<Nic>)| {
            nic.upgrade()
                .filter(|nic| nic.is_of_this_process())
                .map(|_| *address)
        };
        let mut all: Vec<IpAddr> = open.iter().flatten().filter_map(there).collect();
        all.sort_unstable();
        all
    }

    fn start(options: &NicOptions, devices: &mut Devices) -> io::Result<Arc<Nic>> {
        let mut port = net::open(
            options.address,
            &options.faults,
            options.receive_buffer_bytes,
        )?;
        if let Some(path) = &options.capture {
            port.capture(path)?;
        }
        let core = Arc::new(Core::new(port)?);
        let engine = Engine::start(Arc::clone(&core))?;
        process::add(devices, &core);
        Ok(Arc::new(Nic { core, engine }))
    }

    pub(super) fn core(&self) -> &Arc<Core> {
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

    /// Where processes share its address, the socket of the requests of connection managers, which is readable when some wait
    /// that [`Nic::take_requests`] takes.
    pub fn requests_fd(&self) -> Option<RawFd> {
        self.core.requests_fd()
    }

    /// Says that only this process offers a service at its address. `None` where processes do not share it.
    ///
    /// # Errors
    /// EADDRINUSE if another does.
    pub fn claim(&self, service: u64) -> io::Result<Option<OwnClaim>> {
        self.requests_fd()
            .map(|_| OwnClaim::new(self.address(), service))
            .transpose()
    }

    /// Takes requests from now on; until then they are other processes'.
    ///
    /// # Errors
    /// The call that failed.
    pub fn begin_requests(&self) -> io::Result<()> {
        self.core.begin_requests()
    }

    /// Passes the requests that wait, with their senders, to `each`; returns when the next that faults delay is due.
    pub fn take_requests(&self, each: impl FnMut(IpAddr, &[u8])) -> Option<u64> {
        self.core.take_requests(each)
    }

    /// Its address.
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
        self.core.port_state.is_up()
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

    /// Sets who gets the datagrams for QP 1: their senders and payloads. It is called by whoever polls and must not
    /// call this device. `None` drops them.
    pub fn receive_management(&self, receiver: Option<ManagementReceiver>) {
        self.core.gsi.set_receiver(receiver);
    }

    /// Sends a datagram from QP 1 to QP 1 of another device.
    pub fn send_management(&self, to: IpAddr, payload: &[u8]) {
        self.core.send_management(to, payload);
    }

    /// The packet recorder.
    pub fn tap(&self) -> &net::Tap {
        &self.core.tap
    }

    /// Counters since the device was opened, with their names.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut all = self.core.counters();
        all.push((ENGINE_CPU_NS, self.engine.cpu_ns()));
        all
    }
}
