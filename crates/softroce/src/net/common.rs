//! What both halves of an open address have in common: its clock, its counters, and the tap that records packets.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use provider::Lock;

use super::faults::Outage;
use super::sockets::now_ns;

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

/// Forks on the way to this process.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// A process among those that it was forked from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Generation(u32);

impl Generation {
    pub fn current() -> Generation {
        Generation(FORKS.load(Ordering::Relaxed))
    }

    /// Called in the child of a fork.
    pub fn begin() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
}

/// Where a device takes its time from.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    #[default]
    Machine,
    /// The time that is stored here, in nanoseconds.
    Set(Arc<AtomicU64>),
}

impl Clock {
    #[inline]
    pub fn now_ns(&self) -> u64 {
        match self {
            Clock::Machine => now_ns(),
            Clock::Set(ns) => ns.load(Ordering::Relaxed),
        }
    }
}

#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Packets received or sent, and the system calls that it took.
#[derive(Debug, Default)]
pub struct Traffic {
    /// Datagrams per system call: GSO batches.
    pub datagrams: Count,
    pub packets: Count,
    /// Bytes from the base transport headers to the CRCs.
    pub bytes: Count,
}

/// Deliberate faults: packets affected by each.
#[derive(Debug, Default)]
pub struct FaultCounts {
    pub dropped: Count,
    pub duplicated: Count,
    pub reordered: Count,
    pub corrupted: Count,
    /// Marked, as by a congested switch.
    pub marked: Count,
    /// Dropped because too many packets were on a slow or long link.
    pub overflowed: Count,
    /// Packets whose QP's context was not in the cache.
    pub context_misses: Count,
    /// Pauses, not packets, that held any back.
    pub pauses: Count,
}

/// All counters of an address. Different threads send and receive, so the counters of each have their own cache lines.
#[derive(Debug, Default)]
pub struct Counters {
    /// Sent: accepted by the kernel.
    pub sent: CachePadded<Traffic>,
    pub received: CachePadded<Traffic>,
    /// Packets received with a wrong invariant CRC.
    pub bad_icrc: Count,
    /// Packets received without room for a transport header and a CRC.
    pub short: Count,
    /// Datagrams received for which the socket had no room, as far as a later one told (SO_RXQ_OVFL).
    pub socket_drops: Count,
    /// Packets that the kernel did not accept.
    pub send_errors: Count,
    /// Packets that waited for room in a full socket.
    pub waited: Count,
    /// Attempts to send what waits for room in a socket.
    pub room_attempts: Count,
    pub transmit_faults: CachePadded<FaultCounts>,
    pub receive_faults: CachePadded<FaultCounts>,
}

impl Counters {
    /// All counters with their names.
    pub fn named(&self) -> Vec<(&'static str, u64)> {
        let (tx, rx) = (&self.transmit_faults, &self.receive_faults);
        vec![
            ("datagrams_sent", self.sent.datagrams.get()),
            ("packets_sent", self.sent.packets.get()),
            ("bytes_sent", self.sent.bytes.get()),
            ("datagrams_received", self.received.datagrams.get()),
            ("packets_received", self.received.packets.get()),
            ("bytes_received", self.received.bytes.get()),
            ("bad_icrc", self.bad_icrc.get()),
            ("short_packets", self.short.get()),
            ("socket_drops", self.socket_drops.get()),
            ("send_errors", self.send_errors.get()),
            ("packets_waited", self.waited.get()),
            ("room_attempts", self.room_attempts.get()),
            ("fault_tx_dropped", tx.dropped.get()),
            ("fault_tx_duplicated", tx.duplicated.get()),
            ("fault_tx_reordered", tx.reordered.get()),
            ("fault_tx_corrupted", tx.corrupted.get()),
            ("fault_tx_marked", tx.marked.get()),
            ("fault_tx_overflowed", tx.overflowed.get()),
            ("fault_rx_dropped", rx.dropped.get()),
            ("fault_rx_duplicated", rx.duplicated.get()),
            ("fault_rx_reordered", rx.reordered.get()),
            ("fault_rx_corrupted", rx.corrupted.get()),
            ("fault_rx_marked", rx.marked.get()),
            ("fault_rx_overflowed", rx.overflowed.get()),
            ("qp_cache_misses", tx.context_misses.get() + rx.context_misses.get()),
            // As mlx5 names them: the network stops this device, and this host stops the network.
            ("rx_global_pause", tx.pauses.get()),
            ("tx_global_pause", rx.pauses.get()),
        ]
    }
}

const MOST: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedPacket {
    /// Time, in nanoseconds of the device's clock.
    pub at_ns: u64,
    /// Whether it was sent (recorded before faults); else it was received (recorded after faults).
    pub outwards: bool,
    pub peer: IpAddr,
    /// From the base transport header to the CRC.
    pub bytes: Vec<u8>,
    /// Whether its invariant CRC is right; always true for a sent packet.
    pub icrc_ok: bool,
}

#[derive(Debug, Default)]
pub struct Tap {
    clock: Clock,
    on: AtomicBool,
    passed: Lock<Vec<RecordedPacket>>,
}

impl Tap {
    pub(super) fn new(clock: Clock) -> Tap {
        Tap { clock, ..Tap::default() }
    }

    /// Starts to record, up to the first thousand packets.
    pub fn open(&self) {
        self.on.store(true, Ordering::Relaxed);
    }

    /// Stops recording; returns the packets.
    pub fn close(&self) -> Vec<RecordedPacket> {
        self.on.store(false, Ordering::Relaxed);
        std::mem::take(&mut *self.passed.lock())
    }

    pub(super) fn recording(&self) -> Option<&Tap> {
        self.on.load(Ordering::Relaxed).then_some(self)
    }

    #[cold]
    pub(super) fn sent(&self, peer: IpAddr, packets: impl Iterator<Item = Vec<u8>>) {
        let at_ns = self.clock.now_ns();
        for bytes in packets {
            self.keep(RecordedPacket { at_ns, outwards: true, peer, bytes, icrc_ok: true });
        }
    }

    #[cold]
    pub(super) fn received(&self, peer: IpAddr, bytes: &[u8], icrc_ok: bool) {
        self.keep(RecordedPacket {
            at_ns: self.clock.now_ns(),
            outwards: false,
            peer,
            bytes: bytes.to_vec(),
            icrc_ok,
        });
    }

    fn keep(&self, packet: RecordedPacket) {
        let mut passed = self.passed.lock();
        if passed.len() < MOST {
            passed.push(packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is seen while it is open: `net::tests`.
    #[test]
    fn it_records_not_for_ever_and_nothing_while_closed() {
        let tap = Tap::default();
        assert!(tap.recording().is_none());
        tap.open();
        let peer = IpAddr::from([127, 0, 0, 1]);
        tap.sent(peer, std::iter::repeat_n(vec![0], MOST + 1));
        assert_eq!(tap.close().len(), MOST);
        assert!(tap.recording().is_none() && tap.close().is_empty());
    }
}
