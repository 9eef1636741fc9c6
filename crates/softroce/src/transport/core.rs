//! The shared state of an open device: its sockets, its tables of QPs and memory, its peers. [`super::progress`]
//! handles arriving packets.
//!
//! Lock order (any lock may be left out): `inbound`, `tables`, a QP's requester, a QP's responder, a receive queue, a
//! CQ. While a thread holds `tables` for reading, no QP or region is removed.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
};

use super::activity::Activity;
use super::peer::Peer;
use super::statistics::Statistics;
use super::tables::Tables;
use crate::net::{self, Flow, GsoBatch, Receiver, Transmitter};

/// An open device.
pub(super) struct Core {
    pub(super) address: IpAddr,
    pub(super) transmitter: Transmitter,
    /// CQs share it.
    pub(super) activity: Arc<Activity>,
    pub(super) statistics: Statistics,
    receive_buffer_bytes: usize,
    net_counters: Arc<net::Counters>,
    pub(super) tap: Arc<net::Tap>,
    inbound: Mutex<Inbound>,
    tables: RwLock<Tables>,
    peers: Mutex<HashMap<IpAddr, Arc<Peer>>>,
    /// A QP has dropped its packets in flight outside of the handling of arrivals: waiting QPs may send.
    pub(super) waiting_may_send: AtomicBool,
}

/// The receiving socket, and the answers that are due.
pub(super) struct Inbound {
    pub(super) receiver: Receiver,
    /// QPs with answers to send.
    pub(super) owing: Vec<u32>,
    /// Rounds of a poller's work since answers were last sent.
    pub(super) owing_rounds: u32,
    /// QPs whose requests were answered: they may be able to send more.
    pub(super) answered: Vec<u32>,
}

impl Core {
    pub(super) fn new(port: net::Port) -> io::Result<Core> {
        let activity = Arc::new(Activity::new(port.receiver.fd())?);
        Ok(Core {
            address: port.address,
            transmitter: port.transmitter,
            activity,
            statistics: Statistics::default(),
            receive_buffer_bytes: port.receive_buffer_bytes,
            net_counters: port.counters,
            tap: port.tap,
            inbound: Mutex::new(Inbound {
                receiver: port.receiver,
                owing: Vec::with_capacity(1024),
                owing_rounds: 0,
                answered: Vec::with_capacity(1024),
            }),
            tables: RwLock::default(),
            peers: Mutex::default(),
            waiting_may_send: AtomicBool::new(false),
        })
    }

    /// Locks the receiving half, unless another thread holds it.
    pub(super) fn try_inbound(&self) -> Option<MutexGuard<'_, Inbound>> {
        match self.inbound.try_lock() {
            Ok(inbound) => Some(inbound),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    pub(super) fn tables(&self) -> RwLockReadGuard<'_, Tables> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tables_mut(&self) -> RwLockWriteGuard<'_, Tables> {
        self.tables.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The peer at `address`.
    pub(super) fn peer(&self, address: IpAddr) -> Arc<Peer> {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Peer::new(self.receive_buffer_bytes));
        Arc::clone(peers.entry(address).or_insert_with(new))
    }

    /// Every peer.
    pub(super) fn peers(&self) -> Vec<Arc<Peer>> {
        let peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        peers.values().cloned().collect()
    }

    /// Called when a program destroys or resets a QP: QPs that wait for the same peer may send.
    pub(super) fn release_waiting(&self) {
        self.waiting_may_send.store(true, Ordering::SeqCst);
        self.activity.wake();
    }

    /// Sends a GSO batch. If faults delay packets of it, the engine wakes when they are due, since the program may
    /// sleep by then.
    pub(super) fn send(&self, gso_batch: &mut GsoBatch) {
        self.transmitter.send(gso_batch);
        if let Some(due_ns) = self.transmitter.next_due_ns() {
            self.activity.timer_at(due_ns);
        }
    }

    /// The flow of a QP's packets.
    pub(super) fn flow(
        &self,
        destination: IpAddr,
        entropy: u32,
        traffic_class: u8,
        hop_limit: u8,
    ) -> Flow {
        self.transmitter
            .flow(destination, entropy, traffic_class, hop_limit)
    }

    /// Counters of the sockets and the protocol.
    pub(super) fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut all = self.net_counters.named();
        all.extend(self.statistics.named());
        all
    }
}
