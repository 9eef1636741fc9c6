//! What all parts of an open device share: its sockets, its tables of QPs and memory, its peers. The work on what
//! arrives is in [`super::progress`].
//!
//! Locks are taken in this order, and each is left out where it is not needed: `inbound`, `tables`, a QP's
//! requester, a QP's responder, a receive queue, a CQ. Whoever holds `tables` for reading may rely on it that no
//! QP or region goes away.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
};

use super::Qp;
use super::engine::Attention;
use super::memory::Memories;
use super::peer::Peer;
use crate::net::{self, Flow, Receiver, Train, Transmitter};

/// An open device.
pub(super) struct Core {
    pub(super) address: IpAddr,
    pub(super) transmitter: Transmitter,
    pub(super) attention: Attention,
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

/// QPs and memory by number and key.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) memories: Memories,
    qps: Vec<Option<Arc<Qp>>>,
    free: std::collections::VecDeque<u32>,
}

/// Events of the protocol, counted.
#[derive(Default)]
#[allow(missing_docs)]
pub(super) struct Statistics {
    pub(super) unknown_qp: AtomicU64,
    pub(super) unparsed: AtomicU64,
    pub(super) acks_sent: AtomicU64,
    pub(super) naks_sent: AtomicU64,
    pub(super) rnr_naks_sent: AtomicU64,
    pub(super) duplicate_requests: AtomicU64,
    pub(super) out_of_sequence: AtomicU64,
    pub(super) timeouts: AtomicU64,
    pub(super) go_backs: AtomicU64,
    pub(super) dropped_datagrams: AtomicU64,
}

impl Statistics {
    pub(super) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// QP numbers 0 and 1 are reserved, and small ones look like mistakes.
const FIRST_QPN: u32 = 0x11;
const QPN_PLACE_BITS: u32 = 16;
/// Most QPs of a device.
pub const MAX_QPS: usize = (1 << QPN_PLACE_BITS) - FIRST_QPN as usize;

impl Tables {
    /// The QP of this number.
    pub(super) fn qp(&self, number: u32) -> Option<&Arc<Qp>> {
        let place = (number & ((1 << QPN_PLACE_BITS) - 1)).checked_sub(FIRST_QPN)?;
        let qp = self.qps.get(place as usize)?.as_ref()?;
        (qp.number() == number).then_some(qp)
    }

    /// Every QP.
    pub(super) fn qps(&self) -> impl Iterator<Item = &Arc<Qp>> {
        self.qps.iter().flatten()
    }

    /// Takes in the QP that `make` makes of a number; `None` if there are no more.
    pub(super) fn insert(&mut self, make: impl FnOnce(u32) -> Arc<Qp>) -> Option<Arc<Qp>> {
        let fresh = self.qps.len() as u32;
        // Places are used again late, so that packets of an old QP do not meet a new one.
        let number = if (fresh as usize) < MAX_QPS && self.free.len() < 1024 {
            self.qps.push(None);
            u32::from(fastrand::u8(..)) << QPN_PLACE_BITS | (fresh + FIRST_QPN)
        } else {
            self.free.pop_front()?.wrapping_add(1 << QPN_PLACE_BITS) & 0x00ff_ffff
        };
        let qp = make(number);
        let place = (number & ((1 << QPN_PLACE_BITS) - 1)) - FIRST_QPN;
        *self.qps.get_mut(place as usize)? = Some(Arc::clone(&qp));
        Some(qp)
    }

    /// Takes out a QP.
    pub(super) fn remove(&mut self, number: u32) {
        if self.qp(number).is_none() {
            return;
        }
        let place = (number & ((1 << QPN_PLACE_BITS) - 1)) - FIRST_QPN;
        if let Some(entry) = self.qps.get_mut(place as usize) {
            *entry = None;
            self.free.push_back(number);
        }
    }
}

impl Core {
    pub(super) fn new(port: net::Port) -> io::Result<Core> {
        let attention = Attention::new(port.receiver.fd())?;
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
        self.attention.kick();
    }

    /// Sends a train. What faults hold back of it wakes the engine when it is due: the program may sleep by then.
    pub(super) fn send(&self, train: &mut Train) {
        self.transmitter.send(train);
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
        let own = &self.statistics;
        let own = [
            ("unknown_qp", &own.unknown_qp),
            ("unparsed", &own.unparsed),
            ("acks_sent", &own.acks_sent),
            ("naks_sent", &own.naks_sent),
            ("rnr_naks_sent", &own.rnr_naks_sent),
            ("duplicate_requests", &own.duplicate_requests),
            ("out_of_sequence", &own.out_of_sequence),
            ("timeouts", &own.timeouts),
            ("go_backs", &own.go_backs),
            ("dropped_datagrams", &own.dropped_datagrams),
        ];
        let own = own.map(|(name, counter)| (name, counter.load(Ordering::Relaxed)));
        let mut all = self.net_counters.named();
        all.extend(own);
        all
    }
}
