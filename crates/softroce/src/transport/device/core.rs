//! The shared state of an open device: its sockets, its tables of QPs and memory, its peers. [`super::progress`]
//! handles arriving packets.
//!
//! Lock order (any lock may be left out): a QP's attributes (the verbs layer's), `inbound`, `tables`, a QP's requester, a
//! QP's responder, a receive queue, a CQ, a queue of events, the timers, the QPs that wait for room. What the verbs layer
//! passes to be called (the requests of a post, events) runs under these locks, so it takes none before them. While a
//! thread holds `tables` for reading, no QP or region is removed.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use crate::lock::Lock;
use crate::net::{self, Flow, GsoBatch, Membership, Receiver, Requests, Transmitter};
use crate::transport::device::generation::Generation;
use crate::transport::device::gsi::Gsi;
use crate::transport::device::port_state::PortState;
use crate::transport::device::statistics::Statistics;
use crate::transport::device::tables::Tables;
use crate::transport::peer::{Peer, entropy};
use crate::transport::qp_state::QpContext;
use crate::transport::timing::{Activity, Corked, HandledUntil, Timers};

pub(crate) struct Core {
    pub(crate) generation: Generation,
    pub(crate) address: IpAddr,
    /// Its part in the address, until the device is closed.
    membership: Option<Membership>,
    pub(crate) transmitter: Transmitter,
    /// CQs share it.
    pub(crate) activity: Arc<Activity>,
    pub(crate) timers: Timers,
    /// When QPs with a rate have their turns.
    pub(crate) turns_at_rate: Timers,
    pub(crate) port_state: PortState,
    pub(crate) statistics: Statistics,
    pub(crate) corked: Corked,
    pub(crate) gsi: Gsi,
    /// Where processes share the address, the requests of connection managers, and their socket.
    pub(crate) requests: Option<(Lock<Requests>, RawFd)>,
    receive_buffer_bytes: usize,
    pub(crate) net_counters: Arc<net::Counters>,
    pub(crate) tap: Arc<net::Tap>,
    pub(crate) inbound: Lock<Inbound>,
    tables: RwLock<Tables>,
    peers: Lock<BTreeMap<IpAddr, Arc<Peer>>>,
    /// QPs that wait until no socket is full.
    waiting_for_room: Lock<Vec<u32>>,
    /// A QP has dropped its packets in flight outside of the handling of arrivals: waiting QPs may send.
    pub(crate) waiting_may_send: AtomicBool,
}

/// The receiving socket, and the answers that are due.
pub(crate) struct Inbound {
    pub(crate) receiver: Receiver,
    pub(crate) handled_until: HandledUntil,
    /// QPs with answers to send.
    pub(crate) owing: Vec<u32>,
    /// Rounds of a poller's work since answers were last sent.
    pub(crate) owing_rounds: u32,
    /// QPs whose requests were answered: they may be able to send more.
    pub(crate) answered: Vec<u32>,
}

impl Core {
    pub(crate) fn new(port: net::Port) -> io::Result<Core> {
        let common = port.common;
        let activity = Arc::new(Activity::new(common.clock, port.receiver.fd())?);
        let port_state = PortState::new(common.outage);
        activity.timer_at(port_state.tell(activity.now_ns()));
        let slot = port.membership.as_ref().map(|member| member.slot);
        Ok(Core {
            generation: Generation::current(),
            address: common.address,
            membership: port.membership,
            transmitter: port.transmitter,
            activity,
            timers: Timers::default(),
            turns_at_rate: Timers::default(),
            port_state,
            statistics: Statistics::default(),
            corked: Corked::default(),
            gsi: Gsi::default(),
            requests: port.requests.map(|requests| {
                let fd = requests.fd();
                (Lock::new(requests), fd)
            }),
            receive_buffer_bytes: port.receive_buffer_bytes,
            net_counters: common.counters,
            tap: common.tap,
            inbound: Lock::new(Inbound {
                receiver: port.receiver,
                handled_until: HandledUntil::new(port.receive_buffer_bytes),
                owing: Vec::with_capacity(1024),
                owing_rounds: 0,
                answered: Vec::with_capacity(1024),
            }),
            tables: RwLock::new(Tables::new(slot, port.seed)),
            peers: Lock::default(),
            waiting_for_room: Lock::default(),
            waiting_may_send: AtomicBool::new(false),
        })
    }

    /// Whether this process opened it, rather than one that it was forked from.
    pub(crate) fn is_of_this_process(&self) -> bool {
        self.generation == Generation::current()
    }

    /// The socket of requests, if processes share the address.
    pub(crate) fn requests_fd(&self) -> Option<RawFd> {
        self.requests.as_ref().map(|(_, fd)| *fd)
    }

    /// Called in a child of the process: the address is the parent's.
    pub(crate) fn let_go_of_sockets(&self) {
        let sockets = self.transmitter.sockets();
        let group = self.membership.iter().flat_map(Membership::descriptors);
        let own = [self.activity.socket()].into_iter().chain(self.requests_fd());
        for socket in sockets.chain(own).chain(group) {
            net::let_go(socket);
        }
    }

    pub(crate) fn tables(&self) -> RwLockReadGuard<'_, Tables> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the tables for reading, unless another thread changes them.
    pub(crate) fn try_tables(&self) -> Option<RwLockReadGuard<'_, Tables>> {
        match self.tables.try_read() {
            Ok(tables) => Some(tables),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    pub(crate) fn tables_mut(&self) -> RwLockWriteGuard<'_, Tables> {
        self.tables.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn peer(&self, address: IpAddr) -> Arc<Peer> {
        let mut peers = self.peers.lock();
        Arc::clone(
            peers.entry(address).or_insert_with(|| Arc::new(Peer::new(self.receive_buffer_bytes))),
        )
    }

    pub(crate) fn peers(&self) -> Vec<Arc<Peer>> {
        let peers = self.peers.lock();
        peers.values().cloned().collect()
    }

    /// Called when a QP fails, is reset or destroyed: QPs that wait for the same peer may send.
    pub(crate) fn release_waiting(&self) {
        self.waiting_may_send.store(true, Ordering::SeqCst);
        self.activity.wake();
    }

    /// Sends a GSO batch. If faults delay packets of it, or a socket is full, the engine wakes when they are due or
    /// there is room, since the program may sleep by then.
    pub(crate) fn send(&self, gso_batch: &mut GsoBatch) {
        self.transmitter.send(gso_batch);
        self.wake_if_full();
        if let Some(due_ns) = self.transmitter.next_due_ns() {
            self.activity.departure_at(due_ns);
        }
    }

    /// Sends what has left a faulty link.
    pub(crate) fn release_due(&self) {
        self.transmitter.release_due();
        self.wake_if_full();
    }

    fn wake_if_full(&self) {
        if self.transmitter.is_full() {
            self.activity.wake();
        }
    }

    /// Whether a QP must not send now because a socket is full; then its turn comes when there is room.
    pub(crate) fn waits_for_room(&self, qp: &QpContext) -> bool {
        if !self.transmitter.is_full() {
            return false;
        }
        let mut waiting = self.waiting_for_room.lock();
        // Whoever makes room looks at the list afterwards.
        let full = self.transmitter.is_full();
        if full && !qp.waits_for_room.swap(true, Ordering::Relaxed) {
            waiting.push(qp.number);
        }
        full
    }

    /// Sends what waits for room. Returns the QPs whose turn comes if there is room for all.
    pub(crate) fn make_room(&self) -> Vec<u32> {
        if !self.transmitter.go_on() {
            return Vec::new();
        }
        // What a faulty link held back meanwhile is due.
        self.activity.departure_at(0);
        std::mem::take(&mut self.waiting_for_room.lock())
    }

    /// The flow of packets from one QP to another, whose numbers are `qpns`.
    pub(crate) fn flow(
        &self,
        destination: IpAddr,
        flow_label: u32,
        qpns: [u32; 2],
        traffic_class: u8,
        hop_limit: u8,
    ) -> Flow {
        let entropy = entropy(destination, flow_label, qpns);
        self.transmitter.flow(destination, entropy, traffic_class, hop_limit).to_process_of(qpns[1])
    }

    /// Counters of the sockets and the protocol.
    pub(crate) fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = self.net_counters.named();
        counters.extend(self.statistics.named());
        counters
    }
}
