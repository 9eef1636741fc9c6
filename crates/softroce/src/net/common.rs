//! What both halves of an open address have in common.

use std::net::IpAddr;
use std::sync::Arc;

use super::clock::Clock;
use super::counters::Counters;
use super::outage::Outage;
use super::tap::Tap;

/// It; clones share the counters and the recorder.
#[derive(Clone)]
pub struct Common {
    pub address: IpAddr,
    /// The only address whose packets pass the faulty link; `None` for all.
    pub faulty_peer: Option<IpAddr>,
    /// When it is down on purpose.
    pub outage: Option<Outage>,
    pub clock: Clock,
    pub counters: Arc<Counters>,
    pub tap: Arc<Tap>,
}

impl Common {
    /// Whether it is down now.
    pub fn is_down(&self) -> bool {
        self.outage.is_some_and(|outage| outage.is_down(self.clock.now_ns()))
    }
}
