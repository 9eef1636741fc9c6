//! One network address as a device: what the verbs layer opens.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::core::Core;
use super::engine::Engine;
use super::memory::{MemoryError, Region};
use crate::net::{self, Faults};

/// How a device is opened.
#[derive(Clone, Debug)]
pub struct NicOptions {
    /// The address to take. `None` takes a free one of 127.0.0.0/8.
    pub address: Option<IpAddr>,
    /// What goes wrong on purpose.
    pub faults: Faults,
}

/// An address that speaks RoCEv2.
pub struct Nic {
    core: Arc<Core>,
    /// Ends with the device.
    _engine: Engine,
}

/// Devices of this process that were opened by address.
static OPEN: Mutex<Option<HashMap<IpAddr, Weak<Nic>>>> = Mutex::new(None);

impl Nic {
    /// Takes the address and starts the engine. In one process, a second opening of the same given address
    /// shares the device.
    ///
    /// # Errors
    /// The socket call that failed; EADDRINUSE if another process has the address.
    pub fn open(options: &NicOptions) -> io::Result<Arc<Nic>> {
        let Some(address) = options.address else {
            return Nic::start(options);
        };
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let open = open.get_or_insert_default();
        if let Some(nic) = open.get(&address).and_then(Weak::upgrade) {
            return Ok(nic);
        }
        let nic = Nic::start(options)?;
        open.insert(address, Arc::downgrade(&nic));
        Ok(nic)
    }

    fn start(options: &NicOptions) -> io::Result<Arc<Nic>> {
        let port = net::open(options.address, &options.faults)?;
        let core = Arc::new(Core::new(port)?);
        let engine = Engine::start(Arc::clone(&core))?;
        Ok(Arc::new(Nic {
            core,
            _engine: engine,
        }))
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Its address.
    pub fn address(&self) -> IpAddr {
        self.core.address
    }

    /// Registers memory; the key serves as lkey and rkey.
    ///
    /// # Errors
    /// Bad bounds or flags, or no more keys.
    ///
    /// # Safety
    /// The region is mapped, readable, and writable if its access says so, until [`Nic::deregister`].
    pub unsafe fn register(&self, region: Region) -> Result<u32, MemoryError> {
        self.core.tables_mut().memories.insert(region)
    }

    /// Takes the key out of use; returns when nothing reads or writes the memory any more.
    pub fn deregister(&self, key: u32) {
        self.core.tables_mut().memories.remove(key);
    }

    /// What records the packets that pass.
    pub fn tap(&self) -> &net::Tap {
        &self.core.tap
    }

    /// Counters since the opening, with their names.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        self.core.counters()
    }
}
