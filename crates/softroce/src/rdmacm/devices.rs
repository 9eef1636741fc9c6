//! The devices that ids use: opened for the first id at an address, shared with whatever else of this process has the
//! address open, and closed when nobody needs them.
//!
//! What arrives at their QPs 1 goes into an [`Inbox`]: datagrams, sockets from which more can be taken, and the time of
//! the next timer; the thread of the connection managers waits for it.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::RawFd;
use std::sync::OnceLock;

use provider::{Context, Lock, Objects, code};
use rdma_sys::{ibv_context, ibv_pd};

use super::id::any_like;
use crate::cm::Manager;
use crate::net::{Wakeup, Watched, now_ns};
use crate::transport::Nic;
use crate::verbs::device::Device;
use crate::verbs::open::Softroce;
use crate::verbs::{device, open, query};
use crate::wire::UDP_PORT;
use crate::wire::cm::MAD_BYTES;
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
    /// Where processes share its address, their socket of requests.
    requests: Option<Watch>,
}

// SAFETY: a context and a domain may be used by any thread.
unsafe impl Send for CmDevice {}

impl CmDevice {
    pub(super) fn open_context(&self) -> &Softroce {
        // SAFETY: opened by `open_at`, closed when this is dropped.
        unsafe { Softroce::from_context(self.context) }
    }

    /// How many objects its context has.
    fn objects(&self) -> usize {
        // SAFETY: as above.
        unsafe { Context::from_raw(self.context) }.users.count()
    }

    /// Hands a request on to the process at this address that offers its service; false if there is none.
    pub(super) fn hand_on(&self, service: u64, from: IpAddr, bytes: &[u8]) -> bool {
        let open = self.open_context();
        self.requests.is_some() && net::hand_on(open.address(), service, from, bytes)
    }
}

impl Drop for CmDevice {
    fn drop(&mut self) {
        self.requests = None;
        self.open_context().nic.receive_management(None);
        // SAFETY: made by `open_at`; the last users have gone.
        unsafe {
            verbs::dealloc_pd(self.pd);
            verbs::close_device(self.context);
        }
    }
}

/// The devices that are open for ids of this process, by address.
pub(super) struct Devices {
    by_address: BTreeMap<IpAddr, CmDevice>,
    /// Where their datagrams for the manager go.
    pub(super) inbox: &'static Inbox,
}

impl Devices {
    pub(super) const fn new(inbox: &'static Inbox) -> Devices {
        Devices { by_address: BTreeMap::new(), inbox }
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
            device.users > 0 || !device.manager.is_idle() || device.objects() > own_pd
        });
    }

    /// Opens the device of an address. ENODEV if no device can have it, and the sockets' error.
    pub(super) fn open(&mut self, address: IpAddr) -> Result<IpAddr, i32> {
        if self.by_address.contains_key(&address) {
            return Ok(address);
        }
        let device = device::devices()?.into_iter().find(|device| match device.place.address {
            Some(own) => own == address,
            None => address.is_ipv4() && address.is_loopback(),
        });
        self.open_at(device.ok_or(libc::ENODEV)?, Some(address))
    }

    fn open_at(&mut self, listed: &'static Device, wanted: Option<IpAddr>) -> Result<IpAddr, i32> {
        let options = open::OpenOptions::of_environment()?;
        let opened = open::open(listed, wanted, true, options);
        let context = opened.map_err(|error| net::os_error(&error).unwrap_or(libc::EIO))?;
        // SAFETY: just opened.
        let (pd, open) = unsafe { (verbs::alloc_pd(context), Softroce::from_context(context)) };
        // Without it only other processes take requests, and hand on what is for this one.
        let _ = open.nic.begin_requests();
        let address = open.address();
        let inbox = self.inbox;
        open.nic.receive_management(Some(Box::new(move |from, payload| {
            inbox.put(address, from, payload);
        })));
        let mtu = u8::try_from(query::active_mtu_of(open)).unwrap_or(1);
        let mut device = CmDevice {
            context,
            pd,
            manager: Manager::new(open.guid(), mtu, open.nic.slot(), fastrand::u32(..)),
            mtu,
            ids: BTreeMap::new(),
            users: 0,
            requests: None,
        };
        let requests_fd = open.nic.requests_fd();
        device.requests = requests_fd.map(|fd| inbox.watch(fd)).transpose()?;
        self.by_address.insert(address, device);
        Ok(address)
    }

    /// Opens a device that reaches `peer`: on loopback the process's own, elsewhere that of the address from which the
    /// system sends there. Within this machine another process may have that one; then loopback does as well.
    pub(super) fn open_toward(&mut self, peer: IpAddr) -> Result<IpAddr, i32> {
        if let [only] = device::devices()?[..] {
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
            .into_iter()
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

/// The most datagrams that wait; more are dropped, and their senders repeat them.
const MOST_WAITING: usize = 4096;

pub(super) struct Arrived {
    /// The address of the device.
    pub(super) at: IpAddr,
    pub(super) from: IpAddr,
    pub(super) bytes: [u8; MAD_BYTES],
}

struct Waiting {
    datagrams: Vec<Arrived>,
    wake_ns: u64,
}

pub(super) struct Inbox {
    waiting: Lock<Waiting>,
    wakeup: OnceLock<Wakeup>,
    sockets: OnceLock<Watched>,
}

/// A socket for which the thread waits, until this is dropped; the socket is open as long.
pub(super) struct Watch {
    inbox: &'static Inbox,
    fd: RawFd,
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(sockets) = self.inbox.sockets.get() {
            sockets.remove(self.fd);
        }
    }
}

impl Inbox {
    pub(super) const fn new() -> Inbox {
        Inbox {
            waiting: Lock::new(Waiting { datagrams: Vec::new(), wake_ns: u64::MAX }),
            wakeup: OnceLock::new(),
            sockets: OnceLock::new(),
        }
    }

    /// Lets a thread wait.
    ///
    /// # Errors
    /// No more descriptors.
    pub(super) fn begin(&self) -> io::Result<()> {
        let (wakeup, sockets) = (Wakeup::new()?, Watched::new()?);
        // It is called once; a second wakeup would do nothing.
        let _ = (self.wakeup.set(wakeup), self.sockets.set(sockets));
        Ok(())
    }

    /// Lets the thread wait for a socket too, from now on.
    pub(super) fn watch(&'static self, fd: RawFd) -> Result<Watch, i32> {
        let sockets = self.sockets.get().ok_or(libc::EIO)?;
        sockets.add(fd).map_err(|error| code(&error))?;
        Ok(Watch { inbox: self, fd })
    }

    fn wake(&self) {
        if let Some(wakeup) = self.wakeup.get() {
            wakeup.wake();
        }
    }

    /// Adds a datagram. Called by whoever polls, in the middle of a device's work: takes no other lock.
    pub(super) fn put(&self, at: IpAddr, from: IpAddr, payload: &[u8]) {
        let Ok(bytes) = payload.try_into() else {
            return;
        };
        let mut waiting = self.waiting.lock();
        if waiting.datagrams.len() < MOST_WAITING {
            waiting.datagrams.push(Arrived { at, from, bytes });
            self.wake();
        }
    }

    /// Ends the waiting at this time or earlier.
    pub(super) fn wake_at(&self, ns: u64) {
        let mut waiting = self.waiting.lock();
        if ns < waiting.wake_ns {
            waiting.wake_ns = ns;
            self.wake();
        }
    }

    /// Waits until a datagram is there, one of the sockets is readable or the time has come, and moves the datagrams
    /// into `to`, which is empty.
    pub(super) fn wait(&self, to: &mut Vec<Arrived>) {
        let left_ns = {
            let waiting = self.waiting.lock();
            match (waiting.datagrams.is_empty(), waiting.wake_ns) {
                (false, _) => 0,
                (true, u64::MAX) => u64::MAX,
                (true, wake_ns) => wake_ns.saturating_sub(now_ns()),
            }
        };
        if left_ns > 0
            && let Some(wakeup) = self.wakeup.get()
        {
            wakeup.wait(self.sockets.get().map(Watched::fd), None, left_ns);
        }
        let mut waiting = self.waiting.lock();
        waiting.wake_ns = u64::MAX;
        std::mem::swap(to, &mut waiting.datagrams);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_bounded_and_takes_mads_only() {
        let inbox = Inbox::new();
        let address = IpAddr::from([127, 0, 0, 1]);
        inbox.put(address, address, &[0; MAD_BYTES + 1]);
        for _ in 0..MOST_WAITING + 3 {
            inbox.put(address, address, &[0; MAD_BYTES]);
        }
        let mut taken = Vec::new();
        inbox.wait(&mut taken);
        assert_eq!(taken.len(), MOST_WAITING);
    }

    #[test]
    fn a_timer_ends_the_waiting() {
        let inbox = Inbox::new();
        inbox.begin().unwrap();
        let due = now_ns() + 5_000_000;
        let mut taken = Vec::new();
        while now_ns() < due {
            inbox.wake_at(due);
            inbox.wait(&mut taken);
        }
    }
}
