//! UDP: sockets that send and receive many packets per system call, the machine's addresses, the invariant CRC,
//! deliberate faults, and a packet recorder. It must not know QPs or memory regions.

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
pub use tap::{RecordedPacket, Tap};
pub use transmitter::Transmitter;
pub use wakeup::{Wakeup, block_signals, prefer_short_turns};

/// An open address.
pub struct Port {
    /// The address.
    pub address: IpAddr,
    /// The size of the kernel's receive buffer, in its own accounting.
    pub receive_buffer_bytes: usize,
    /// The sending half, for any thread.
    pub transmitter: Transmitter,
    /// The receiving half, for one thread at a time.
    pub receiver: Receiver,
    /// Counters of both halves.
    pub counters: Arc<Counters>,
    /// Records packets of both halves.
    pub tap: Arc<Tap>,
}

/// Opens `address`, or a free one of 127.0.0.0/8.
///
/// # Errors
/// The failed socket call, as an [`OpenError`] inside; [`os_error`] returns its number.
pub fn open(address: Option<IpAddr>, faults: &Faults) -> io::Result<Port> {
    let (socket, address, receive_buffer_bytes) =
        address::take(address.map(|it| it.to_canonical()))?;
    let sending = address::sending_sockets(address)?;
    let counters = Arc::new(Counters::default());
    let tap = Arc::new(Tap::default());
    let header_bytes = if address.is_ipv4() { 20 + 8 } else { 40 + 8 };
    // The two directions must not make the same faults.
    let outwards = Impairment::new(faults.transmit, faults.seed, header_bytes);
    let inwards = Impairment::new(faults.receive, !faults.seed, header_bytes);
    Ok(Port {
        address,
        receive_buffer_bytes,
        transmitter: Transmitter::new(
            address,
            sending,
            outwards,
            faults.peer,
            Arc::clone(&counters),
            Arc::clone(&tap),
        ),
        receiver: Receiver::new(
            socket,
            address,
            inwards,
            faults.peer,
            Arc::clone(&counters),
            Arc::clone(&tap),
        ),
        counters,
        tap,
    })
}
