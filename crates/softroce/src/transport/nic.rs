//! A device on one network address, as the verbs layer opens it.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::core::Core;
use super::engine::Engine;
use super::memory::{MemoryError, Region};
use crate::net::{self, Faults};

/// The options of opening a device.
#[derive(Clone, Debug)]
pub struct NicOptions {
    /// The address to take. `None` takes a free one of 127.0.0.0/8.
    pub address: Option<IpAddr>,
    /// Deliberate faults.
    pub faults: Faults,
}

/// A device on one address.
pub struct Nic {
    core: Arc<Core>,
    /// Stops when the device is dropped.
    _engine: Engine,
}

/// Devices of this process that were opened by address.
static OPEN: Mutex<Option<HashMap<IpAddr, Weak<Nic>>>> = Mutex::new(None);

impl Nic {
    /// Opens the address and starts the engine. Opening the same given address again in one process shares the
    /// device.
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

    /// The packet recorder.
    pub fn tap(&self) -> &net::Tap {
        &self.core.tap
    }

    /// Counters since the device was opened, with their names.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        self.core.counters()
    }
}
