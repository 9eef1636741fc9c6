//! The way to a peer: its window, the QPs that wait for it, and the path of packets.
//!
//! [`Peer`] limits the bytes in flight to one address: a window shared by all QPs that send there, so that they do not
//! overrun the receiver's socket, which has no flow control. The window grows with answers and halves with losses.
//! QPs that find it full wait in a queue.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

use crate::net::Flow;
use crate::sync::{AtomicI64, AtomicU64, AtomicUsize, Lock, Ordering, fence};

/// The kernel's accounting for a datagram besides its bytes: `sk_buff`, shared info, rounding.
pub(crate) const DATAGRAM_OVERHEAD_BYTES: usize = 1280;
/// The smallest window: one packet.
const SMALLEST_WINDOW_BYTES: i64 = 4096 + DATAGRAM_OVERHEAD_BYTES as i64;
/// The window of a new peer.
const FIRST_WINDOW_BYTES: i64 = 128 << 10;
/// The largest window, whatever the receive buffer: what waits in it beyond the caches is slower to copy.
const MOST_WINDOW_BYTES: i64 = 2 << 20;
/// What a window that has seen a loss grows by in a round trip.
const STEP_BYTES: i64 = 16 << 10;

/// An address that packets are sent to.
#[derive(Default)]
pub(crate) struct Peer {
    /// All bytes ever sent there, and those of them that are not in flight any more.
    charged_bytes: AtomicI64,
    settled_bytes: AtomicI64,
    window_bytes: AtomicI64,
    /// Below it the window doubles with each round trip (RFC 5681, slow start).
    threshold_bytes: AtomicI64,
    largest_bytes: i64,
    /// Round-trip time, smoothed, and its variation (RFC 6298, section 2); 0 before the first.
    round_trip_ns: AtomicU64,
    variation_ns: AtomicU64,
    /// When an answer of it last advanced any QP.
    answered_ns: AtomicU64,
    /// `charged_bytes` at the last loss that made the window smaller.
    shrunk_at_bytes: AtomicI64,
    waiting: Lock<VecDeque<u32>>,
    /// Length of `waiting`, readable without the lock.
    waiting_count: AtomicUsize,
}

/// So many turns take about as long as a QP on its way into the caches.
const TURNS_AHEAD: usize = 3;

impl Peer {
    /// A peer, assuming that its receive buffer is as large as ours.
    pub(crate) fn new(receive_buffer_bytes: usize) -> Peer {
        // Leaves a quarter for answers and for others that send there.
        let largest_bytes = i64::try_from(receive_buffer_bytes / 4 * 3)
            .unwrap_or(i64::MAX)
            .clamp(SMALLEST_WINDOW_BYTES, MOST_WINDOW_BYTES);
        Peer {
            window_bytes: AtomicI64::new(largest_bytes.min(FIRST_WINDOW_BYTES)),
            threshold_bytes: AtomicI64::new(largest_bytes),
            largest_bytes,
            shrunk_at_bytes: AtomicI64::new(i64::MIN),
            ..Peer::default()
        }
    }

    fn in_flight_bytes(&self) -> i64 {
        self.charged_bytes.load(Ordering::Relaxed) - self.settled_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn note_round_trip(&self, ns: u64) {
        let variation = self.variation_ns.load(Ordering::Relaxed);
        let (smoothed, variation) = match self.round_trip_ns.load(Ordering::Relaxed) {
            0 => (ns, ns / 2),
            before => {
                (before - before / 8 + ns / 8, variation - variation / 4 + before.abs_diff(ns) / 4)
            }
        };
        self.round_trip_ns.store(smoothed, Ordering::Relaxed);
        self.variation_ns.store(variation, Ordering::Relaxed);
    }

    /// The time in which packets are mostly answered: the usual round trip and four times its variation (RFC 6298,
    /// section 2). 0 if it is not known.
    pub(crate) fn answer_time_ns(&self) -> u64 {
        self.round_trip_ns.load(Ordering::Relaxed) + 4 * self.variation_ns.load(Ordering::Relaxed)
    }

    /// Counts an answer that advanced a QP.
    pub(crate) fn note_answer(&self, now_ns: u64) {
        self.answered_ns.store(now_ns, Ordering::Relaxed);
    }

    /// When an answer last advanced any QP.
    pub(crate) fn answered_ns(&self) -> u64 {
        self.answered_ns.load(Ordering::Relaxed)
    }

    /// A mark for [`Peer::has_answered`]: all that was sent so far.
    pub(crate) fn sent_mark(&self) -> i64 {
        self.charged_bytes.load(Ordering::Relaxed)
    }

    /// Whether as many bytes have been answered as had been sent at this mark: then so has been what was sent then, or
    /// what was sent later.
    pub(crate) fn has_answered(&self, mark: i64) -> bool {
        self.settled_bytes.load(Ordering::Relaxed) >= mark
    }

    /// Whether packets are on their way there.
    pub(crate) fn is_busy(&self) -> bool {
        self.in_flight_bytes() > 0
    }

    /// Whether more may be sent now.
    fn is_open(&self) -> bool {
        self.stays_open(0)
    }

    /// Whether more may be sent after these bytes.
    pub(crate) fn stays_open(&self, bytes: usize) -> bool {
        self.in_flight_bytes() + (bytes as i64) < self.window_bytes.load(Ordering::Relaxed)
    }

    /// Whether QPs wait, so that others must queue behind them.
    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting_count.load(Ordering::SeqCst) > 0
    }

    pub(crate) fn charge(&self, bytes: i64) {
        self.charged_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts bytes as arrived, and widens the window: twofold in a round trip before the first loss, a little after it.
    pub(crate) fn credit(&self, bytes: i64) {
        self.forget(bytes);
        let window = self.window_bytes.load(Ordering::Relaxed);
        if window < self.largest_bytes {
            let more = if window < self.threshold_bytes.load(Ordering::Relaxed) {
                bytes
            } else {
                (STEP_BYTES * bytes / window.max(1)).max(1)
            };
            let wider = (window + more).min(self.largest_bytes);
            self.window_bytes.store(wider, Ordering::Relaxed);
        }
    }

    /// Counts bytes as no longer in flight, whether lost or not. Afterwards the caller looks for waiting QPs, or has them looked
    /// for.
    pub(crate) fn forget(&self, bytes: i64) {
        self.settled_bytes.fetch_add(bytes, Ordering::SeqCst);
    }

    /// Halves the window after a loss: once for all that was on its way together, although several QPs notice it. To be
    /// called before the lost bytes are forgotten.
    pub(crate) fn shrink(&self) {
        let shrunk_at = self.shrunk_at_bytes.load(Ordering::Relaxed);
        if self.settled_bytes.load(Ordering::Relaxed) < shrunk_at {
            return;
        }
        let charged = self.charged_bytes.load(Ordering::Relaxed);
        self.shrunk_at_bytes.store(charged, Ordering::Relaxed);
        let half = self.window_bytes.load(Ordering::Relaxed) / 2;
        let window = half.max(SMALLEST_WINDOW_BYTES);
        self.window_bytes.store(window, Ordering::Relaxed);
        self.threshold_bytes.store(window, Ordering::Relaxed);
    }

    /// Puts a QP at the end of the queue. It must have bytes in flight, whose answer serves the queue.
    pub(crate) fn wait(&self, qpn: u32) {
        let mut line = self.waiting.lock();
        line.push_back(qpn);
        self.waiting_count.store(line.len(), Ordering::Relaxed);
    }

    /// Puts a QP that found the window full, or others waiting, at the end of the queue, unless nobody waits any more and the
    /// window is open: then it may send. Returns whether it waits.
    ///
    /// The last bytes in flight may be answered between its first look and this one. Either the thread that counts them sees the
    /// QP wait, or the QP sees the window open: each stores before it loads, with a fence or `SeqCst` between. Behind others
    /// no look is needed: they wait for an answer too, or are being served.
    pub(crate) fn wait_unless_open(&self, qpn: u32) -> bool {
        let mut line = self.waiting.lock();
        line.push_back(qpn);
        self.waiting_count.store(line.len(), Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let may_send = line.len() == 1 && self.is_open();
        if may_send {
            line.clear();
            self.waiting_count.store(0, Ordering::Relaxed);
        }
        !may_send
    }

    /// The first QP of the queue, if the window is open, and the one that comes [`TURNS_AHEAD`] later.
    pub(crate) fn next_waiting(&self) -> Option<(u32, Option<u32>)> {
        if !self.has_waiting() || !self.is_open() {
            return None;
        }
        let mut line = self.waiting.lock();
        let next = line.pop_front()?;
        self.waiting_count.store(line.len(), Ordering::Relaxed);
        Some((next, line.get(TURNS_AHEAD).copied()))
    }
}

/// What selects the source port of packets to an address: the flow label, or a hash of both QPNs that is the same for both
/// directions. On loopback there are no paths to spread over, unless there is a slow one on purpose: else all packets have one
/// port, and those of several QPs can leave together.
pub(crate) fn entropy(to: IpAddr, flow_label: u32, qpns: [u32; 2], has_slow_path: bool) -> u32 {
    match flow_label {
        0 if to.is_loopback() && !has_slow_path => 0,
        0 => (qpns[0] ^ qpns[1]).wrapping_mul(0x9e37_79b1),
        label => label,
    }
}

/// The source port of a connection's packets: that of the first one whose turn it was.
///
/// Linux' Soft-RoCE, adapters and this device keep it for a QP's life. Another program can send from the peer's address,
/// but not from a port that the peer holds: so it does not get to try PSNs.
#[derive(Clone, Copy, Default)]
pub(crate) struct SourcePort(Option<u16>);

impl SourcePort {
    pub(crate) fn may_be(self, port: u16) -> bool {
        self.0.is_none_or(|known| known == port)
    }

    pub(crate) fn learn(&mut self, port: u16) {
        self.0 = Some(port);
    }
}

/// The path of packets, for both halves of a QP.
#[derive(Clone)]
pub(crate) struct Path {
    pub(crate) flow: Flow,
    pub(crate) peer: Arc<Peer>,
    pub(crate) address: IpAddr,
    pub(crate) qpn: u32,
    pub(crate) mtu_bytes: u32,
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn window(peer: &Peer) -> i64 {
        peer.window_bytes.load(Ordering::Relaxed)
    }

    /// A round trip: the window is sent and arrives.
    fn round_trip(peer: &Peer) {
        let bytes = window(peer);
        peer.charge(bytes);
        peer.credit(bytes);
    }

    #[test]
    fn the_window_closes_and_opens() {
        let peer = Peer::new(400 << 10);
        assert!(peer.is_open());
        peer.charge(FIRST_WINDOW_BYTES);
        assert!(!peer.is_open());
        peer.wait(7);
        assert_eq!(peer.next_waiting(), None);
        peer.credit(1);
        assert_eq!(peer.next_waiting(), Some((7, None)));
        assert_eq!(peer.next_waiting(), None);
    }

    #[test]
    fn a_new_window_is_full_in_a_few_round_trips() {
        let peer = Peer::new(32 << 20);
        (0..5).for_each(|_| round_trip(&peer));
        assert_eq!(window(&peer), MOST_WINDOW_BYTES);
        assert!(!peer.is_busy());
    }

    #[test]
    fn a_loss_that_many_qps_notice_halves_it_once() {
        let peer = Peer::new(32 << 20);
        (0..5).for_each(|_| round_trip(&peer));
        let qps = 8;
        for _ in 0..qps {
            peer.charge(10_000);
        }
        for _ in 0..qps {
            peer.shrink();
            peer.forget(10_000);
            // It retransmits at once.
            peer.charge(10_000);
        }
        assert_eq!(window(&peer), MOST_WINDOW_BYTES / 2);
        for _ in 0..qps {
            peer.credit(10_000);
        }
        peer.shrink();
        assert!(window(&peer) < MOST_WINDOW_BYTES / 2);
    }

    #[test]
    fn losses_make_it_one_packet_and_answers_bring_it_back() {
        let peer = Peer::new(1 << 20);
        for _ in 0..20 {
            peer.charge(1);
            peer.shrink();
            peer.forget(1);
        }
        assert_eq!(window(&peer), SMALLEST_WINDOW_BYTES);
        let full = (1 << 20) / 4 * 3;
        let round_trips = full / STEP_BYTES + 10;
        (0..round_trips).for_each(|_| round_trip(&peer));
        assert_eq!(window(&peer), full);
        assert!(!peer.is_busy());
    }
}
