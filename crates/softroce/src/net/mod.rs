//! UDP: sockets that send and receive many packets a system call, the addresses there are, the invariant CRC of
//! what passes, faults made on purpose, and a tap for those who want to see packets. It must not know QPs or memory
//! regions.

mod address;
mod counters;
mod faults;
mod flow;
mod gso_batch;
mod gso_batch_limits;
mod identification;
mod impairment;
mod receiver;
mod sockets;
mod tap;
mod transmitter;
mod wakeup;

#[cfg(test)]
mod tests;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use impairment::Impairment;

pub use address::{OpenError, os_error};
pub use counters::{Count, Counters, FaultCounts, Traffic};
pub use faults::{Direction, Faults, FaultsError};
pub use flow::Flow;
pub use gso_batch::GsoBatch;
pub use gso_batch_limits::{MAX_GSO_BATCH_BYTES, MAX_GSO_BATCH_PACKETS};
pub use receiver::{Arrival, Receiver};
pub use sockets::now_ns;
pub use tap::{Passed, Tap};
pub use transmitter::Transmitter;
pub use wakeup::{Wakeup, block_signals, prefer_short_turns};

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
    /// Shared by both.
    pub tap: Arc<Tap>,
}

/// Takes `address`, or a free one of 127.0.0.0/8.
///
/// # Errors
/// The socket call that failed, an [`OpenError`] inside; [`os_error`] has its number.
pub fn open(address: Option<IpAddr>, faults: &Faults) -> io::Result<Port> {
    let (socket, address, receive_buffer_bytes) =
        address::take(address.map(|it| it.to_canonical()))?;
    let sending = address::sending_sockets(address)?;
    let counters = Arc::new(Counters::default());
    let tap = Arc::new(Tap::default());
    let header_bytes = if address.is_ipv4() { 20 + 8 } else { 40 + 8 };
    // The directions' fates must not be the same ones.
    let outwards = Impairment::new(faults.transmit, faults.seed, header_bytes);
    let inwards = Impairment::new(faults.receive, !faults.seed, header_bytes);
    Ok(Port {
        address,
        receive_buffer_bytes,
        transmitter: Transmitter::new(
            address,
            sending,
            outwards,
            Arc::clone(&counters),
            Arc::clone(&tap),
        ),
        receiver: Receiver::new(
            socket,
            address,
            inwards,
            Arc::clone(&counters),
            Arc::clone(&tap),
        ),
        counters,
        tap,
    })
}
