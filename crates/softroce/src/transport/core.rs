//! What all parts of an open device share: its sockets, its tables of QPs and memory, its peers. The work on what
//! arrives is in [`super::progress`].
//!
//! Locks are taken in this order, and each is left out where it is not needed: `inbound`, `tables`, a QP's
//! requester, a QP's responder, a receive queue, a CQ. Whoever holds `tables` for reading may rely on it that no
//! QP or region goes away.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
};

use super::attention::Attention;
use super::peer::Peer;
use super::statistics::Statistics;
use super::tables::Tables;
use crate::net::{self, Flow, GsoBatch, Receiver, Transmitter};

/// An open device.
pub(super) struct Core {
    pub(super) address: IpAddr,
    pub(super) transmitter: Transmitter,
    /// CQs have it too.
    pub(super) attention: Arc<Attention>,
    pub(super) statistics: Statistics,
    receive_buffer_bytes: usize,
    net_counters: Arc<net::Counters>,
    pub(super) tap: Arc<net::Tap>,
    inbound: Mutex<Inbound>,
    tables: RwLock<Tables>,
    peers: Mutex<HashMap<IpAddr, Arc<Peer>>>,
    /// A QP let go of what it had on its way, outside of the work on what arrives: lines may move.
    pub(super) lines_may_move: AtomicBool,
}

/// What arrives, and what is owed for it.
pub(super) struct Inbound {
    pub(super) receiver: Receiver,
    /// QPs that owe answers.
    pub(super) owing: Vec<u32>,
    /// Rounds of a poller's work since answers were last sent.
    pub(super) owing_rounds: u32,
    /// QPs whose requests were answered: they may have more to send.
    pub(super) answered: Vec<u32>,
}

impl Core {
    pub(super) fn new(port: net::Port) -> io::Result<Core> {
        let attention = Arc::new(Attention::new(port.receiver.fd())?);
        Ok(Core {
            address: port.address,
            transmitter: port.transmitter,
            attention,
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
            lines_may_move: AtomicBool::new(false),
        })
    }

    /// The receiving half, unless another thread has it.
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

    /// A program took a QP away: those that waited behind it may go on.
    pub(super) fn let_lines_move(&self) {
        self.lines_may_move.store(true, Ordering::SeqCst);
        self.attention.wake();
    }

    /// Sends a GSO batch. What faults hold back of it wakes the engine when it is due: the program may sleep by then.
    pub(super) fn send(&self, gso_batch: &mut GsoBatch) {
        self.transmitter.send(gso_batch);
        if let Some(due_ns) = self.transmitter.next_due_ns() {
            self.attention.timer_at(due_ns);
        }
    }

    /// A flow for a QP's packets.
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

    /// Sockets' and protocol's counters.
    pub(super) fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut all = self.net_counters.named();
        all.extend(self.statistics.named());
        all
    }
}
