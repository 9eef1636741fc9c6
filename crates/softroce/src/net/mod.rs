//! UDP: sockets that send and receive many packets a system call, the addresses there are, the invariant CRC of
//! what passes, and faults made on purpose. It must not know QPs or memory regions.

mod faults;

use std::io;
use std::net::IpAddr;
use std::os::fd::RawFd;
use std::sync::Arc;

pub use faults::Faults;

/// Packets of a train at most: what Linux segments of one datagram (UDP_MAX_SEGMENTS of its older versions).
pub const MAX_TRAIN_PACKETS: usize = 64;

/// Where packets go: addresses, the source port that spreads flows, traffic class and hop limit.
#[derive(Clone, Debug)]
pub struct Flow {}

/// Consecutive packets to one flow in one system call (UDP GSO): all of one length, the last may be shorter.
pub struct Train {}

impl Train {
    /// Empty, with room for the longest.
    pub fn new() -> Box<Train> {
        todo!()
    }

    /// Empties it, for packets of this flow.
    pub fn begin(&mut self, flow: &Flow) {
        todo!()
    }

    /// Whether a packet of so many header and payload bytes may follow; padding and CRC are added by the train.
    pub fn takes(&self, header_bytes: usize, payload_bytes: usize) -> bool {
        todo!()
    }

    /// Adds a packet: its headers from the base transport header on, and its payload in pieces.
    ///
    /// # Safety
    /// The pieces are readable until the train is sent or begun anew.
    pub unsafe fn push(
        &mut self,
        headers: &[u8],
        payload: impl Iterator<Item = (*const u8, usize)>,
    ) {
        todo!()
    }

    /// Packets in it.
    pub fn packets(&self) -> usize {
        todo!()
    }

    /// Bytes in it, from the base transport headers to the CRCs.
    pub fn bytes(&self) -> usize {
        todo!()
    }
}

/// The sending half of an address.
pub struct Transmitter {}

impl Transmitter {
    /// A flow to `destination`; `entropy` (a hash of the QPNs, or the flow label) picks the source port.
    pub fn flow(
        &self,
        destination: IpAddr,
        entropy: u32,
        traffic_class: u8,
        hop_limit: u8,
    ) -> Flow {
        todo!()
    }

    /// Packets that a train may have: 1 where the system or the faults allow no trains.
    pub fn max_train_packets(&self) -> usize {
        todo!()
    }

    /// Sends it, whole or not at all; a train that cannot be sent counts as lost. Never blocks for long.
    pub fn send(&self, train: &mut Train) {
        todo!()
    }

    /// Sends what the faults held back and is due.
    pub fn release_due(&self) {
        todo!()
    }

    /// When the next packet held back is due, as nanoseconds of [`now_ns`].
    pub fn next_due_ns(&self) -> Option<u64> {
        todo!()
    }
}

/// A packet that came in, its invariant CRC right.
pub struct Arrival<'a> {
    /// Who sent it.
    pub source: IpAddr,
    /// From the base transport header to the end of the padding: without the CRC.
    pub bytes: &'a [u8],
}

/// The receiving half of an address.
pub struct Receiver {}

impl Receiver {
    /// The socket, readable when packets wait.
    pub fn fd(&self) -> RawFd {
        todo!()
    }

    /// Hands over what has arrived, up to some hundred packets, without waiting; returns how many.
    pub fn receive(&mut self, each: impl FnMut(Arrival<'_>)) -> usize {
        todo!()
    }

    /// When the next packet held back by the faults is due.
    pub fn next_due_ns(&self) -> Option<u64> {
        todo!()
    }
}

/// What an address has counted.
#[derive(Debug, Default)]
pub struct Counters {}

/// Both halves of an address.
pub struct Port {
    /// The address taken.
    pub address: IpAddr,
    /// What the kernel holds for the receiver before it drops, in bytes of its own accounting.
    pub receive_buffer_bytes: usize,
    /// Sends, from any thread.
    pub transmitter: Transmitter,
    /// Receives, one thread at a time.
    pub receiver: Receiver,
    /// Shared by both.
    pub counters: Arc<Counters>,
}

/// Takes `address`, or a free one of 127.0.0.0/8.
///
/// # Errors
/// The socket call that failed.
pub fn open(address: Option<IpAddr>, faults: &Faults) -> io::Result<Port> {
    todo!()
}

/// The monotonic clock, in nanoseconds.
pub fn now_ns() -> u64 {
    todo!()
}
