//! What an address has counted, since it was opened.

use std::sync::atomic::{AtomicU64, Ordering};

/// A count that only grows.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Counts so many more.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// What was counted so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What came in or went out. Sender and receiver are different threads, hence a cache line each.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Traffic {
    /// Datagrams in the sense of a system call: GSO batches.
    pub datagrams: Count,
    /// Packets.
    pub packets: Count,
    /// Bytes from the base transport headers to the CRCs.
    pub bytes: Count,
}

/// Faults made on purpose, one count a packet that one befell.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct FaultCounts {
    /// Dropped.
    pub dropped: Count,
    /// Sent or handed over twice.
    pub duplicated: Count,
    /// Held back behind later ones.
    pub reordered: Count,
    /// A bit flipped.
    pub corrupted: Count,
    /// Dropped because too many waited for a slow or long link.
    pub overflowed: Count,
}

/// What an address has counted.
#[derive(Debug, Default)]
pub struct Counters {
    /// Sent: handed to the kernel.
    pub sent: Traffic,
    /// Received, bad ones included.
    pub received: Traffic,
    /// Packets received that had a wrong invariant CRC.
    pub bad_icrc: Count,
    /// Packets received that were too short for a transport header and a CRC.
    pub short: Count,
    /// Packets lost because the kernel did not take them.
    pub send_errors: Count,
    /// Faults on the way out.
    pub transmit_faults: FaultCounts,
    /// Faults on the way in.
    pub receive_faults: FaultCounts,
}

impl Counters {
    /// All of them with their names.
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
            ("send_errors", self.send_errors.get()),
            ("fault_tx_dropped", tx.dropped.get()),
            ("fault_tx_duplicated", tx.duplicated.get()),
            ("fault_tx_reordered", tx.reordered.get()),
            ("fault_tx_corrupted", tx.corrupted.get()),
            ("fault_tx_overflowed", tx.overflowed.get()),
            ("fault_rx_dropped", rx.dropped.get()),
            ("fault_rx_duplicated", rx.duplicated.get()),
            ("fault_rx_reordered", rx.reordered.get()),
            ("fault_rx_corrupted", rx.corrupted.get()),
            ("fault_rx_overflowed", rx.overflowed.get()),
        ]
    }
}
