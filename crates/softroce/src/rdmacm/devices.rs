//! The devices that ids use: opened for the first id at an address, shared with whatever else of this process has the
//! address open, and closed when nobody needs them. It must not know ids.

use std::collections::BTreeMap;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::RawFd;

use rdma_sys::{ibv_context, ibv_pd};

use super::inbox::Inbox;
use super::sockaddr::any_like;
use crate::cm::Manager;
use crate::transport::Nic;
use crate::verbs::context::Context;
use crate::verbs::device::Device;
use crate::verbs::{device, open, query};
use crate::wire::UDP_PORT;
use crate::{net, verbs};

/// A device with its manager.
pub(super) struct CmDevice {
    pub(super) context: *mut ibv_context,
    /// The domain of ids whose programs give none.
    pub(super) pd: *mut ibv_pd,
    pub(super) manager: Manager,
    /// The code of the port's MTU.
    pub(super) mtu: u8,
    /// From the manager's numbers to the keys of ids.
    pub(super) ids: BTreeMap<u32, u64>,
    /// Ids that are bound to it, and the program where it was given the context.
    pub(super) users: usize,
}

// SAFETY: a context and a domain may be used by any thread.
unsafe impl Send for CmDevice {}

impl CmDevice {
    pub(super) fn open_context(&self) -> &Context {
        // SAFETY: opened by `open_at`, closed when this is dropped.
        unsafe { Context::of(self.context) }
    }

    /// Where processes share its address: the socket of requests.
    pub(super) fn requests_fd(&self) -> Option<RawFd> {
        self.open_context().nic.requests_fd()
    }

    /// Hands a request on to the process at this address that offers its service; false if there is none.
    pub(super) fn hand_on(&self, service: u64, from: IpAddr, bytes: &[u8]) -> bool {
        let open = self.open_context();
        self.requests_fd().is_some() && net::hand_on(open.address(), service, from, bytes)
    }
}

impl Drop for CmDevice {
    fn drop(&mut self) {
        self.open_context().nic.receive_management(None);
        // SAFETY: made by `open_at`; the last users have gone.
        unsafe {
            verbs::dealloc_pd(self.pd);
            verbs::close_device(self.context);
        }
    }
}

/// The devices, by address.
pub(super) struct Devices {
    by_address: BTreeMap<IpAddr, CmDevice>,
    /// Where their datagrams for the manager go.
    inbox: &'static Inbox,
    /// There are others to wait for than before.
    pub(super) sockets_changed: bool,
}

impl Devices {
    pub(super) const fn new(inbox: &'static Inbox) -> Devices {
        Devices { by_address: BTreeMap::new(), inbox, sockets_changed: false }
    }

    pub(super) fn get(&mut self, address: IpAddr) -> Option<&mut CmDevice> {
        self.by_address.get_mut(&address)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (IpAddr, &mut CmDevice)> {
        self.by_address.iter_mut().map(|(address, device)| (*address, device))
    }

    /// Closes those without ids whose contexts have no objects of the program.
    pub(super) fn close_unused(&mut self) {
        self.by_address.retain(|_, device| {
            let own_pd = 1;
            device.users > 0
                || !device.manager.is_idle()
                || device.open_context().users.count() > own_pd
        });
    }

    /// Opens the device of an address. ENODEV if no device can have it, and the sockets' error.
    pub(super) fn open(&mut self, address: IpAddr) -> Result<IpAddr, i32> {
        if self.by_address.contains_key(&address) {
            return Ok(address);
        }
        let device = device::devices()?.iter().find(|device| match device.place.address {
            Some(own) => own == address,
            None => address.is_ipv4() && address.is_loopback(),
        });
        self.open_at(device.ok_or(libc::ENODEV)?, Some(address))
    }

    fn open_at(&mut self, device: &'static Device, address: Option<IpAddr>) -> Result<IpAddr, i32> {
        let options = open::OpenOptions::of_environment()?;
        let opened = open::open(device, address, true, options);
        let context = opened.map_err(|error| net::os_error(&error).unwrap_or(libc::EIO))?;
        // SAFETY: just opened.
        let (pd, open) = unsafe { (verbs::alloc_pd(context), Context::of(context)) };
        // Without it only other processes take requests, and hand on what is for this one.
        let _ = open.nic.begin_requests();
        let address = open.address();
        let inbox = self.inbox;
        open.nic.receive_management(Some(Box::new(move |from, payload| {
            inbox.put(address, from, payload);
        })));
        let mtu = u8::try_from(query::active_mtu_of(open)).unwrap_or(1);
        let device = CmDevice {
            context,
            pd,
            manager: Manager::new(open.guid(), mtu, open.nic.slot(), fastrand::u32(..)),
            mtu,
            ids: BTreeMap::new(),
            users: 0,
        };
        self.by_address.insert(address, device);
        self.sockets_changed = true;
        Ok(address)
    }

    /// Opens a device that reaches `peer`: on loopback the process's own, elsewhere that of the address from which the
    /// system sends there. Within this machine another process may have that one; then loopback does as well.
    pub(super) fn open_toward(&mut self, peer: IpAddr) -> Result<IpAddr, i32> {
        if let [only] = device::devices()? {
            return self.open_listed(only);
        }
        if peer.is_loopback() {
            return self.open_loopback();
        }
        let source = UdpSocket::bind((any_like(peer), 0))
            .and_then(|socket| {
                socket.connect((peer, UDP_PORT))?;
                socket.local_addr()
            })
            .map_err(|error| error.raw_os_error().unwrap_or(libc::ENETUNREACH))?;
        match self.open(source.ip()) {
            Err(libc::EADDRINUSE) if source.ip() == peer => self.open_loopback(),
            opened => opened,
        }
    }

    /// Opens the device on loopback: the one that this process has, or else `soft0`.
    fn open_loopback(&mut self) -> Result<IpAddr, i32> {
        let device = device::devices()?
            .iter()
            .find(|device| device.place.address.is_none_or(|it| it.is_loopback()));
        self.open_listed(device.ok_or(libc::ENODEV)?)
    }

    /// Opens a device of the list; `soft0` at the address that this process has already, if it has one.
    fn open_listed(&mut self, device: &'static Device) -> Result<IpAddr, i32> {
        match device
            .address_now()?
            .or_else(|| Nic::open_addresses().into_iter().find(IpAddr::is_loopback))
        {
            Some(address) => self.open(address),
            None => self.open_at(device, None),
        }
    }

    /// Opens all devices that can be opened; returns their addresses. ENODEV if there are none.
    pub(super) fn open_all(&mut self) -> Result<Vec<IpAddr>, i32> {
        for address in Nic::open_addresses() {
            // What cannot be opened again is left out.
            let _ = self.open(address);
        }
        for device in device::devices()? {
            // Another process may have its address.
            let _ = self.open_listed(device);
        }
        let addresses: Vec<IpAddr> = self.by_address.keys().copied().collect();
        if addresses.is_empty() { Err(libc::ENODEV) } else { Ok(addresses) }
    }
}
