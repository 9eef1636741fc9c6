//! One network address as a device: sockets, tables and the engine.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use super::{MemoryError, Region};
use crate::net::Faults;

/// How a device is opened.
#[derive(Clone, Debug)]
pub struct NicOptions {
    /// The address to take. `None` takes a free one of 127.0.0.0/8.
    pub address: Option<IpAddr>,
    /// What goes wrong on purpose.
    pub faults: Faults,
}

/// An address that speaks RoCEv2.
pub struct Nic {}

impl Nic {
    /// Takes the address and starts the engine. In one process, a second opening of the same given address
    /// shares the device.
    ///
    /// # Errors
    /// The socket call that failed; EADDRINUSE if another process has the address.
    pub fn open(options: &NicOptions) -> io::Result<Arc<Nic>> {
        todo!()
    }

    /// Its address.
    pub fn address(&self) -> IpAddr {
        todo!()
    }

    /// Registers memory; the key serves as lkey and rkey.
    ///
    /// # Errors
    /// Bad bounds or flags, or no more keys.
    ///
    /// # Safety
    /// The region is mapped, readable, and writable if its access says so, until [`Nic::deregister`].
    pub unsafe fn register(&self, region: Region) -> Result<u32, MemoryError> {
        todo!()
    }

    /// Takes the key out of use; returns when nothing reads or writes the memory any more.
    pub fn deregister(&self, key: u32) {
        todo!()
    }

    /// Counters since the opening, with their names.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        todo!()
    }
}
