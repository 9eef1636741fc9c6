//! The shared state of an open device: its sockets, its tables of QPs and memory, its peers, QP 1, its counters; and
//! the open devices of the process. `progress` handles arriving packets.
//!
//! Lock order (any lock may be left out): a QP's attributes (the verbs layer's), `inbound`, `tables`, a QP's requester, a
//! QP's responder, a receive queue, a CQ, a queue of events, the timers, the QPs that wait for room. What the verbs layer
//! passes to be called (the requests of a post, events) runs under these locks, so it takes none before them. While a
//! thread holds `tables` for reading, no QP or region is removed.
//!
//! [`Tables`]: a device's QPs by number and its memory by key.
//!
//! A QP number begins with the device's slot. The other 19 of its 24 bits are drawn, so that strangers cannot guess
//! it, and packets of a QP that is gone do not reach a new one. The low 18 bits, which no two QPs share, lead to the
//! QP.
//!
//! [`Owned`]: what becomes of open devices when the process forks and when it exits.
//!
//! A fork copies a device's memory but not its engine, and its locks as they are. So a device is the parent's alone,
//! as with libibverbs: in the child its sockets are let go, and calls fail instead of waiting for ever. The child
//! may open devices of its own.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::mem::ManuallyDrop;
use std::net::IpAddr;
use std::ops::Deref;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{
    Arc, MutexGuard, Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
    Weak,
};

use provider::Lock;

use crate::net::{
    self, Claim, Count, Flow, Generation, GsoBatch, Inbox, Inboxes, Membership, Outage, Receiver,
    Requests, SLOTS, Transmitter, let_go, with_slot,
};
use crate::transport::memory::{self, Memories, Unguessable};
use crate::transport::peer::{Peer, entropy};
use crate::transport::qp_state::QpContext;
use crate::transport::timing::{Activity, Corked, HandledUntil, Timers};
use crate::wire::cm::{GSI_QKEY, GSI_QPN};
use crate::wire::{Opcode, Packet, Psn, Service};

pub(crate) struct Core {
    pub(crate) generation: Generation,
    pub(crate) address: IpAddr,
    /// Its part in the address, until the device is closed.
    membership: Option<Membership>,
    pub(crate) transmitter: Transmitter,
    /// Of packets of this process, if they come without the kernel.
    pub(crate) inbox: Option<Arc<Inbox>>,
    /// Shared with the CQs, which say when one is armed.
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
    pub(crate) qp_window_bytes: Option<u32>,
    has_slow_path: bool,
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
        let inbox = port.receiver.inbox().cloned();
        if let Some(inbox) = &inbox {
            let activity = Arc::clone(&activity);
            inbox.on_arrival(move || activity.packets_came());
        }
        Ok(Core {
            generation: Generation::current(),
            address: common.address,
            membership: port.membership,
            transmitter: port.transmitter,
            inbox,
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
            qp_window_bytes: port.qp_window_bytes,
            has_slow_path: port.has_slow_path,
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
    fn let_go_of_sockets(&self) {
        let sockets = self.transmitter.sockets();
        let group = self.membership.iter().flat_map(Membership::descriptors);
        let own = [self.activity.socket()].into_iter().chain(self.requests_fd());
        for socket in sockets.chain(own).chain(group) {
            let_go(socket);
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
        // Not only a wakeup: the engine may have looked already, and not sleep yet.
        self.activity.departure_at(0);
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
        let entropy = entropy(destination, flow_label, qpns, self.has_slow_path);
        let flow = self
            .transmitter
            .flow(destination, entropy, traffic_class, hop_limit)
            .to_process_of(qpns[1]);
        // What is for the connection managers of several processes the kernel gives to one of them.
        let Some(inbox) = self.inbox.as_ref().filter(|_| qpns[1] != GSI_QPN) else {
            return flow;
        };
        let flow = flow.through_memory();
        if !flow.is_in_memory() {
            inbox.expect_company();
        }
        flow
    }

    /// Counters of the sockets and the protocol.
    pub(crate) fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = self.net_counters.named();
        counters.extend(self.statistics.named());
        counters
    }
}

/// QPs and memory by number and key.
pub(crate) struct Tables {
    pub(crate) memories: Memories,
    qps: Vec<Option<Arc<QpContext>>>,
    free: Vec<u32>,
    /// By the low bits of a number: the place in `qps` after [`NOWHERE`].
    places: Box<[u32]>,
    numbers: Unguessable,
    /// Numbers of the QPs that went last. A connection manager still remembers them, and rejects a new QP that has one.
    former: VecDeque<u32>,
    /// The first bits of all numbers. By them the kernel of a shared address tells its processes apart.
    slot: u8,
}

/// QP numbers 0 and 1 are reserved, and small ones look like mistakes.
const FIRST_LOW: u32 = 0x11;
/// The low bits of 0xffffff, which multicast has, are no QP's.
const LAST_LOW: u32 = 0x3_fffe;
const LOW_BITS: u32 = 0x3_ffff;
/// No QP has these low bits.
const NOWHERE: u32 = 0;
/// Numbers of QPs that are gone and not drawn again soon: 7,000 a second, for as long as a connection is remembered.
const FORMER: usize = 4096;
/// Draws until one of them is taken all the same.
const DRAWS: usize = 16;
/// The most QPs of a device: half as many as there are low bits, so that free ones are drawn soon.
pub const MAX_QPS: usize = 1 << 17;

/// With fewer QPs than this their state stays in the caches.
const MANY_QPS: usize = 1024;

fn low_bits(number: u32) -> usize {
    (number & LOW_BITS) as usize
}

impl Tables {
    /// Empty tables, for numbers that begin with this slot. A device that shares its address with nobody has any, which
    /// is one for all its QPs as well: peers send packets to QPs of one slot in one GSO batch.
    pub(crate) fn new(slot: Option<u8>, seed: Option<u64>) -> Tables {
        let mut numbers = Unguessable::from_seed(seed);
        let any_slot = (numbers.draw() % SLOTS as u64) as u8;
        Tables {
            memories: Memories::new(Unguessable::from_seed(seed)),
            qps: Vec::new(),
            free: Vec::new(),
            places: vec![NOWHERE; 1 + LOW_BITS as usize].into(),
            numbers,
            former: VecDeque::new(),
            slot: slot.unwrap_or(any_slot),
        }
    }

    /// The place in `qps` of the QP whose number has these low bits.
    fn place(&self, number: u32) -> Option<usize> {
        let place = *self.places.get(low_bits(number))?;
        (place as usize).checked_sub(1)
    }

    /// The first bits of all QP numbers.
    pub(crate) fn slot(&self) -> u8 {
        self.slot
    }

    pub(crate) fn qp(&self, number: u32) -> Option<&Arc<QpContext>> {
        let qp = self.qps.get(self.place(number)?)?.as_ref()?;
        (qp.number == number).then_some(qp)
    }

    /// As [`Tables::qp`], for work on it soon: where QPs are many the processor begins to fetch all of it.
    #[inline]
    pub(crate) fn qp_soon(&self, number: u32) -> Option<&Arc<QpContext>> {
        let qp = self.qp(number)?;
        if self.qp_count() > MANY_QPS {
            memory::fetch_ahead(Arc::as_ptr(qp).cast(), size_of::<QpContext>());
        }
        Some(qp)
    }

    /// The number of QPs that there have been at most at a time.
    pub(crate) fn qp_count(&self) -> usize {
        self.qps.len()
    }

    /// Adds the QP that `make` creates with its number; `None` if there are no more numbers.
    pub(crate) fn insert(
        &mut self,
        make: impl FnOnce(u32) -> Arc<QpContext>,
    ) -> Option<Arc<QpContext>> {
        let place = match self.free.pop() {
            Some(place) => place,
            None if self.qps.len() < MAX_QPS => {
                self.qps.push(None);
                (self.qps.len() - 1) as u32
            }
            None => return None,
        };
        let number = self.free_number();
        let qp = make(number);
        *self.qps.get_mut(place as usize)? = Some(Arc::clone(&qp));
        *self.places.get_mut(low_bits(number))? = place + 1;
        Some(qp)
    }

    /// A number whose low bits no QP has.
    fn free_number(&mut self) -> u32 {
        let mut draws = 0;
        loop {
            let number = with_slot(self.numbers.draw() as u32, self.slot);
            let usable = (FIRST_LOW..=LAST_LOW).contains(&(number & LOW_BITS));
            if !usable || self.place(number).is_some() {
                continue;
            }
            draws += 1;
            if draws == DRAWS || !self.former.contains(&number) {
                return number;
            }
        }
    }

    fn remember(&mut self, number: u32) {
        if self.former.len() == FORMER {
            self.former.pop_front();
        }
        self.former.push_back(number);
    }

    pub(crate) fn remove(&mut self, number: u32) {
        if self.qp(number).is_some()
            && let Some(place) = self.place(number)
            && let Some(qp) = self.qps.get_mut(place)
            && let Some(way) = self.places.get_mut(low_bits(number))
        {
            (*qp, *way) = (None, NOWHERE);
            self.free.push(place as u32);
            self.remember(number);
        }
    }
}

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

/// Gets the datagrams: their senders and payloads.
pub type ManagementReceiver = Box<dyn Fn(IpAddr, &[u8]) + Send>;

/// QP 1, of the general services: datagrams between connection managers (InfiniBand specification 13.5.1).
#[derive(Default)]
pub(crate) struct Gsi {
    receiver: Lock<Option<ManagementReceiver>>,
    psn: AtomicU32,
}

impl Gsi {
    pub(crate) fn set_receiver(&self, receiver: Option<ManagementReceiver>) {
        let mut place = self.receiver.lock();
        *place = receiver;
    }

    /// The PSN of the next packet that is sent. Nobody checks it.
    pub(crate) fn next_psn(&self) -> Psn {
        Psn::new(self.psn.fetch_add(1, Ordering::Relaxed))
    }

    /// Takes a packet if it is for QP 1 and somebody receives there.
    pub(crate) fn take(&self, packet: &Packet<'_>, source: IpAddr) -> bool {
        if !is_management(packet) {
            return false;
        }
        let receiver = self.receiver.lock();
        let Some(receiver) = receiver.as_ref() else {
            return false;
        };
        receiver(source, packet.payload);
        true
    }
}

/// Whether it is a datagram for QP 1.
pub(crate) fn is_management(packet: &Packet<'_>) -> bool {
    packet.destination_qpn == GSI_QPN
        && packet.service == Service::Ud
        && packet.opcode == Opcode::SendOnly
        && packet.extended.deth.is_some_and(|deth| deth.qkey == GSI_QKEY)
}

macro_rules! statistics {
    ($($(#[$doc:meta])* $counter:ident,)*) => {
        #[derive(Default)]
        pub(crate) struct Statistics {
            $($(#[$doc])* pub(crate) $counter: Count,)*
        }

        impl Statistics {
            /// Each counter with its name.
            pub(crate) fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($counter), self.$counter.get()),)*].into_iter()
            }
        }
    };
}

statistics! {
    unknown_qp,
    unparsed,
    wrong_service,
    pkey_violations,
    wrong_source,
    acks_sent,
    naks_sent,
    rnr_naks_sent,
    duplicate_requests,
    unanswered_duplicates,
    out_of_sequence,
    timeouts,
    probes,
    go_backs,
    /// QPs that were looked at because a timer of theirs was due, or had been.
    timer_checks,
    dropped_datagrams,
    np_ecn_marked_roce_packets,
    np_cnp_sent,
    rp_cnp_handled,
    rp_cnp_ignored,
    /// Turns of QPs that waited for the rate which CNPs left them.
    rate_waits,
}

/// What is a process's alone.
pub(crate) struct Owned {
    devices: Vec<Weak<Core>>,
    /// Sockets whose names say that the process is there.
    claims: Vec<RawFd>,
}

/// The devices of this process, and of those that it was forked from.
static DEVICES: Lock<Owned> = Lock::new(Owned { devices: Vec::new(), claims: Vec::new() });

pub(crate) type Devices = MutexGuard<'static, Owned>;

thread_local! {
    /// Held by the thread that forks.
    static HELD: Cell<Option<(Devices, Inboxes)>> = const { Cell::new(None) };
}

/// Locks the devices. A process forks only before this or after the lock is given.
pub(crate) fn devices() -> Devices {
    static HOOKS: Once = Once::new();
    HOOKS.call_once(|| {
        // SAFETY: the functions may be called at any time; an error (no memory) leaves forks unnoticed.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child)) };
    });
    DEVICES.lock()
}

pub(crate) fn add(devices: &mut Devices, core: &Arc<Core>) {
    let devices = &mut devices.devices;
    devices.retain(|device| device.strong_count() > 0);
    devices.push(Arc::downgrade(core));
}

/// A service that this process alone offers at an address, until it is dropped; a child of the process does not.
pub struct OwnClaim(ManuallyDrop<Claim>);

impl OwnClaim {
    pub(crate) fn new(address: IpAddr, service: u64) -> io::Result<OwnClaim> {
        let mut devices = devices();
        let claim = Claim::new(address, service)?;
        devices.claims.push(claim.fd());
        Ok(OwnClaim(ManuallyDrop::new(claim)))
    }
}

impl Deref for OwnClaim {
    type Target = Claim;

    fn deref(&self) -> &Claim {
        &self.0
    }
}

impl Drop for OwnClaim {
    fn drop(&mut self) {
        // While it is held no fork copies a list with a number that may be another file's.
        let mut devices = devices();
        let own = self.0.fd();
        devices.claims.retain(|fd| *fd != own);
        // SAFETY: nobody has it any more.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}

unsafe extern "C" fn before_fork() {
    // A thread whose storage is gone forks without the lock.
    let _ = HELD.try_with(|held| held.set(Some((devices(), net::inboxes()))));
}

unsafe extern "C" fn after_fork() {
    let _ = HELD.try_with(Cell::take);
}

/// Only async-signal-safe calls, and no lock that another thread may have had.
unsafe extern "C" fn in_child() {
    Generation::begin();
    let _ = HELD.try_with(|held| {
        let Some((owned, _inboxes)) = held.take() else { return };
        for core in owned.devices.iter().filter_map(Weak::upgrade) {
            core.let_go_of_sockets();
        }
        owned.claims.iter().for_each(|claim| let_go(*claim));
    });
}

/// Sends what was left for the next poll: posts, and answers, since the program has seen its completions and its peers must
/// see theirs. `_exit(2)` and signals that kill leave no time for it.
extern "C" fn at_exit() {
    let Some(devices) = DEVICES.try_lock() else {
        return;
    };
    for core in devices.devices.iter().filter_map(Weak::upgrade) {
        if core.is_of_this_process() {
            core.send_last();
        }
    }
}

/// After `main`, the functions of atexit(3) and static destructors, which may poll and post.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_qps_that_just_went_are_not_drawn() {
        let mut tables = Tables::new(None, None);
        for _ in 0..2 * FORMER {
            let number = tables.free_number();
            assert!(!tables.former.contains(&number), "{number:#x}");
            tables.remember(number);
        }
        assert_eq!(tables.former.len(), FORMER);
    }

    #[test]
    fn a_former_number_is_taken_before_there_is_none() {
        let mut tables = Tables::new(Some(0), None);
        // All but one place is taken, and all numbers that lead to it are former ones.
        let last = tables.free_number() & LOW_BITS;
        for (low, place) in tables.places.iter_mut().enumerate() {
            *place = u32::from(low as u32 != last);
        }
        let numbers = (0..2).map(|high| with_slot(high << 18 | last, 0));
        tables.former.extend(numbers);
        let number = tables.free_number();
        assert!(tables.former.contains(&number));
    }
}
