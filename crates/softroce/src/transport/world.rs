//! Devices on a network in memory, in one thread and in its time: nothing happens but by [`World::step`] and by what the
//! program calls. The same seed and the same calls have the same effects. It must not know packets.

use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Weak};

use fastrand::Rng;

use crate::net::{self, Direction, Fabric, Faults};
use crate::transport::nic::Nic;

/// The receive buffer of a device: what Linux gives.
const RECEIVE_BUFFER_BYTES: usize = 16 << 20;

/// A network with its devices.
pub struct World {
    fabric: Arc<Fabric>,
    nics: RefCell<Vec<Weak<Nic>>>,
    /// Which device is first.
    chance: RefCell<Rng>,
}

impl World {
    /// A network all of whose links are alike, without devices.
    pub fn new(seed: u64, link: Direction) -> World {
        World {
            fabric: Fabric::new(seed, link),
            nics: RefCell::default(),
            chance: RefCell::new(Rng::with_seed(seed)),
        }
    }

    /// The network.
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
    pub fn nic(
        &self,
        faults: &Faults,
        receive_buffer_bytes: Option<usize>,
    ) -> io::Result<Arc<Nic>> {
        let mut nics = self.nics.borrow_mut();
        let number = 1 + nics.len() as u32;
        let address = IpAddr::from(Ipv4Addr::from(0x0a00_0000 + number));
        let buffer_bytes = receive_buffer_bytes.unwrap_or(RECEIVE_BUFFER_BYTES);
        let port = net::open_in(&self.fabric, address, faults, buffer_bytes);
        let nic = Nic::without_engine(port)?;
        nics.push(Arc::downgrade(&nic));
        Ok(nic)
    }

    /// Lets the devices work on what there is at this moment, or, if there is nothing, lets time pass until there is. Whether
    /// anything was or will be to do.
    pub fn step(&self) -> bool {
        let nics = self.nics.borrow();
        let mut open: Vec<Arc<Nic>> = nics.iter().filter_map(Weak::upgrade).collect();
        self.chance.borrow_mut().shuffle(&mut open);
        let now_ns = self.now_ns();
        let mut next_ns = u64::MAX;
        let mut worked = false;
        for nic in &open {
            let has_arrived = self.fabric.has_arrived(nic.address());
            if has_arrived || nic.next_due_ns() <= now_ns {
                nic.work();
                worked = true;
            }
        }
        for nic in &open {
            next_ns = next_ns.min(nic.next_due_ns());
        }
        next_ns = next_ns.min(self.fabric.next_due_ns());
        if !worked && next_ns != u64::MAX {
            self.fabric.advance_to(next_ns);
        }
        worked || next_ns != u64::MAX
    }
}
