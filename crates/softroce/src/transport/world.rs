//! Devices on a network in memory, in one thread and in its time: nothing happens but by [`World::step`] and by what the
//! program calls. The same seed and the same calls have the same effects.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Weak};

use fastrand::Rng;
use provider::Lock;

use crate::net::{self, Direction, Fabric, Faults};
use crate::transport::nic::Nic;

/// The receive buffer of a device: what Linux gives.
const RECEIVE_BUFFER_BYTES: usize = 16 << 20;

/// A network with its devices.
pub struct World {
    fabric: Arc<Fabric>,
    devices: Lock<Devices>,
}

struct Devices {
    /// By their addresses; none where there is no device.
    nics: Vec<Weak<Nic>>,
    /// Draws which of them does its work first in a step.
    chance: Rng,
}

impl Devices {
    fn next_address(&self) -> IpAddr {
        Ipv4Addr::from(0x0a00_0001 + self.nics.len() as u32).into()
    }

    fn open(&self) -> Vec<Arc<Nic>> {
        self.nics.iter().filter_map(Weak::upgrade).collect()
    }
}

impl World {
    /// A network all of whose links are alike, without devices.
    pub fn new(seed: u64, link: Direction) -> World {
        World {
            fabric: Fabric::new(seed, link),
            devices: Lock::new(Devices { nics: Vec::new(), chance: Rng::with_seed(seed) }),
        }
    }

    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// What time it is, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.fabric.clock().now_ns()
    }

    /// Attaches a device, at the next address of 10.0.0.0/8, with faults of its own.
    ///
    /// # Errors
    /// The process has no descriptor left.
    pub fn nic(&self, faults: &Faults, receive_buffer_bytes: Option<u32>) -> io::Result<Arc<Nic>> {
        let mut devices = self.devices.lock();
        let address = devices.next_address();
        let buffer_bytes = receive_buffer_bytes.map_or(RECEIVE_BUFFER_BYTES, |it| it as usize);
        let port = net::open_in(&self.fabric, address, faults, buffer_bytes);
        let nic = Nic::without_engine(port)?;
        devices.nics.push(Arc::downgrade(&nic));
        Ok(nic)
    }

    /// Attaches the next address without a device: [`Fabric::forge`] sends from there, [`Fabric::take`] receives.
    pub fn stranger(&self) -> IpAddr {
        let mut devices = self.devices.lock();
        let address = devices.next_address();
        devices.nics.push(Weak::new());
        self.fabric.attach(address, RECEIVE_BUFFER_BYTES);
        address
    }

    /// Lets the devices work on what there is at this moment, or, if there is nothing, lets time pass until there is. Whether
    /// anything was or will be to do.
    pub fn step(&self) -> bool {
        self.step_until(u64::MAX)
    }

    /// As [`World::step`], but time passes until `end_ns` at most.
    pub fn step_until(&self, end_ns: u64) -> bool {
        let mut devices = self.devices.lock();
        let worked = self.work(&mut devices);
        let next_ns = self.next_ns(&devices).min(end_ns);
        if !worked && next_ns != u64::MAX {
            self.fabric.advance_to(next_ns);
        }
        worked || next_ns != u64::MAX
    }

    /// Lets all happen that happens until then.
    pub fn run_until(&self, end_ns: u64) {
        let mut devices = self.devices.lock();
        loop {
            let worked = self.work(&mut devices);
            let next_ns = self.next_ns(&devices);
            if !worked {
                self.fabric.advance_to(next_ns.min(end_ns));
            }
            if !worked && next_ns > end_ns {
                return;
            }
        }
    }

    /// Has each device work that has something to do now, in an order by chance. Whether any had.
    fn work(&self, devices: &mut Devices) -> bool {
        let mut open = devices.open();
        devices.chance.shuffle(&mut open);
        let now_ns = self.now_ns();
        let mut worked = false;
        for nic in &open {
            if self.fabric.has_arrived(nic.address()) || nic.next_due_ns() <= now_ns {
                nic.work();
                worked = true;
            }
        }
        worked
    }

    /// When there is something to do next; `u64::MAX` for never.
    fn next_ns(&self, devices: &Devices) -> u64 {
        devices
            .open()
            .into_iter()
            .map(|nic| nic.next_due_ns())
            .fold(self.fabric.next_due_ns(), u64::min)
    }
}
