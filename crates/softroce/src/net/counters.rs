//! The counters of an address since it was opened.

use std::sync::atomic::{AtomicU64, Ordering};

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

/// Packets received or sent. Different threads send and receive, so each has its own cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Traffic {
    /// Datagrams per system call: GSO batches.
    pub datagrams: Count,
    pub packets: Count,
    /// Bytes from the base transport headers to the CRCs.
    pub bytes: Count,
}

/// Deliberate faults: packets affected by each.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct FaultCounts {
    pub dropped: Count,
    pub duplicated: Count,
    pub reordered: Count,
    pub corrupted: Count,
    /// Marked, as by a congested switch.
    pub marked: Count,
    /// Dropped because too many packets were on a slow or long link.
    pub overflowed: Count,
}

/// All counters of an address.
#[derive(Debug, Default)]
pub struct Counters {
    /// Sent: accepted by the kernel.
    pub sent: Traffic,
    pub received: Traffic,
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
    pub transmit_faults: FaultCounts,
    pub receive_faults: FaultCounts,
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
        ]
    }
}
