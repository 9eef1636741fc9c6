//! Limits the bytes in flight to one address: a window shared by all QPs that send there, so that they do not overrun
//! the receiver's socket, which has no flow control. The window grows with answers and halves with losses. QPs that
//! find it full wait in a queue.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The kernel's accounting for a datagram besides its bytes: `sk_buff`, shared info, rounding.
pub(super) const DATAGRAM_OVERHEAD_BYTES: i64 = 1280;

/// The smallest window: two GSO batches.
const SMALLEST_WINDOW_BYTES: i64 = 128 << 10;

/// An address that packets are sent to.
pub(super) struct Peer {
    in_flight_bytes: AtomicI64,
    window_bytes: AtomicI64,
    largest_bytes: i64,
    waiting: Mutex<VecDeque<u32>>,
    /// Length of `waiting`, readable without the lock.
    waiting_count: AtomicUsize,
}

impl Peer {
    /// A peer, assuming that its receive buffer is as large as ours.
    pub(super) fn new(receive_buffer_bytes: usize) -> Peer {
        // Leaves a quarter for answers and for others that send there.
        let largest_bytes = i64::try_from(receive_buffer_bytes / 4 * 3)
            .unwrap_or(i64::MAX)
            .clamp(SMALLEST_WINDOW_BYTES, 4 << 20);
        Peer {
            in_flight_bytes: AtomicI64::new(0),
            window_bytes: AtomicI64::new(largest_bytes),
            largest_bytes,
            waiting: Mutex::new(VecDeque::new()),
            waiting_count: AtomicUsize::new(0),
        }
    }

    /// Whether more may be sent now.
    pub(super) fn is_open(&self) -> bool {
        self.in_flight_bytes.load(Ordering::Relaxed) < self.window_bytes.load(Ordering::Relaxed)
    }

    /// Whether QPs wait, so that others must queue behind them.
    pub(super) fn has_waiting(&self) -> bool {
        self.waiting_count.load(Ordering::Relaxed) > 0
    }

    /// Counts bytes as in flight.
    pub(super) fn charge(&self, bytes: i64) {
        self.in_flight_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts bytes as arrived, and widens the window a little.
    pub(super) fn credit(&self, bytes: i64) {
        self.in_flight_bytes.fetch_sub(bytes, Ordering::Relaxed);
        let window = self.window_bytes.load(Ordering::Relaxed);
        if window < self.largest_bytes {
            // Answers to one window's worth of bytes widen it by an eighth of the smallest window.
            let more = (SMALLEST_WINDOW_BYTES / 8 * bytes / window.max(1)).max(1);
            let window = (window + more).min(self.largest_bytes);
            self.window_bytes.store(window, Ordering::Relaxed);
        }
    }

    /// Counts bytes as no longer in flight, whether lost or not.
    pub(super) fn forget(&self, bytes: i64) {
        self.in_flight_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Halves the window after a loss.
    pub(super) fn shrink(&self) {
        let window = self.window_bytes.load(Ordering::Relaxed) / 2;
        self.window_bytes
            .store(window.max(SMALLEST_WINDOW_BYTES), Ordering::Relaxed);
    }

    fn line(&self) -> MutexGuard<'_, VecDeque<u32>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a QP at the end of the queue.
    pub(super) fn wait(&self, qpn: u32) {
        let mut line = self.line();
        line.push_back(qpn);
        self.waiting_count.store(line.len(), Ordering::Relaxed);
    }

    /// The first QP of the queue, if the window is open.
    pub(super) fn next_waiting(&self) -> Option<u32> {
        if !self.has_waiting() || !self.is_open() {
            return None;
        }
        let mut line = self.line();
        let next = line.pop_front();
        self.waiting_count.store(line.len(), Ordering::Relaxed);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_closes_and_opens() {
        let peer = Peer::new(400 << 10);
        assert!(peer.is_open());
        peer.charge(300 << 10);
        assert!(!peer.is_open());
        peer.wait(7);
        assert_eq!(peer.next_waiting(), None);
        peer.credit(1);
        assert_eq!(peer.next_waiting(), Some(7));
        assert_eq!(peer.next_waiting(), None);
    }

    #[test]
    fn losses_halve_it_and_answers_bring_it_back() {
        let peer = Peer::new(1 << 20);
        let full = peer.window_bytes.load(Ordering::Relaxed);
        for _ in 0..9 {
            peer.shrink();
        }
        assert_eq!(
            peer.window_bytes.load(Ordering::Relaxed),
            SMALLEST_WINDOW_BYTES
        );
        for _ in 0..10_000 {
            peer.charge(10_000);
            peer.credit(10_000);
        }
        assert_eq!(peer.window_bytes.load(Ordering::Relaxed), full);
        assert_eq!(peer.in_flight_bytes.load(Ordering::Relaxed), 0);
    }
}
