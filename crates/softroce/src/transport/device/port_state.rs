//! Whether the port is up, and who is told when that changes. It must not know QPs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use crate::lock::Lock;
use crate::net::Outage;

/// Called with whether the port is up. It must not call the transport.
pub type PortListener = dyn Fn(bool) + Send + Sync;

#[derive(Default)]
pub(crate) struct PortState {
    outage: Option<Outage>,
    /// Whether it was down when the listeners were last told.
    was_down: AtomicBool,
    listeners: Lock<Vec<Weak<PortListener>>>,
}

impl PortState {
    /// An open port with this outage, if any.
    pub(crate) fn new(outage: Option<Outage>) -> PortState {
        PortState { outage, ..PortState::default() }
    }

    pub(crate) fn is_up(&self, now_ns: u64) -> bool {
        self.outage.is_none_or(|outage| !outage.is_down(now_ns))
    }

    /// Tells `listener` about changes, until it is dropped.
    pub(crate) fn listen(&self, listener: &Arc<PortListener>) {
        let mut listeners = self.listeners.lock();
        listeners.retain(|known| known.strong_count() > 0);
        listeners.push(Arc::downgrade(listener));
    }

    /// Tells the listeners if the state has changed. Returns when it changes next; `u64::MAX` for never.
    pub(crate) fn tell(&self, now_ns: u64) -> u64 {
        let Some(outage) = self.outage else {
            return u64::MAX;
        };
        let is_down = outage.is_down(now_ns);
        if self.was_down.swap(is_down, Ordering::Relaxed) != is_down {
            let listeners = self.listeners.lock();
            for listener in listeners.iter().filter_map(Weak::upgrade) {
                listener(!is_down);
            }
        }
        outage.next_change_ns(now_ns)
    }
}
