//! UDP: sockets that send and receive many packets per system call, the machine's addresses, the invariant CRC,
//! deliberate faults, and a packet recorder.

mod address;
mod capture;
mod common;
mod fabric;
mod faults;
mod gso_batch;
mod identification;
mod impairment;
mod inbox;
mod limits;
mod receiver;
mod sockets;
#[cfg(test)]
mod tests;
mod transmitter;

use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use address::BoundAddress;
use capture::Capture;
use fabric::Attachment;
use impairment::Impairment;

use crate::wire::UDP_PORT;

pub use address::{Membership, OpenError, SLOTS, os_error, slot_of, with_slot};
pub use common::{
    Clock, Common, Count, Counters, FaultCounts, Generation, RecordedPacket, Tap, Traffic,
};
pub use fabric::{Datagram, Fabric};
pub use faults::{Direction, Faults, FaultsError, MOST_NAMED, NthPacket, Outage, Period};
pub use gso_batch::{Flow, GsoBatch, MAX_GSO_BATCH_BYTES, MAX_GSO_BATCH_PACKETS, Outgoing};
pub use inbox::{Inbox, Inboxes, inboxes};
pub use limits::{Limits, Paths, Pause, QpContexts, QpRate, SlowPath};
pub use receiver::{Arrival, Claim, Receiver, Requests, hand_on};
pub use sockets::{
    SENDING_SOCKETS, Wakeup, Watched, block_signals, ecn_capable, known_hop_limit, let_go, now_ns,
    prefer_short_turns,
};
pub use transmitter::Transmitter;

pub struct Port {
    /// What both halves have too.
    pub common: Common,
    /// The part of the address that is this process', if others may have it too.
    pub membership: Option<Membership>,
    /// The size of the kernel's receive buffer, in its own accounting.
    pub receive_buffer_bytes: usize,
    /// The sending half, for any thread.
    pub transmitter: Transmitter,
    /// The receiving half, for one thread at a time.
    pub receiver: Receiver,
    /// Another one, of requests, where processes share the address.
    pub requests: Option<Requests>,
    /// Of all that the device draws; `None` where strangers must not guess it.
    pub seed: Option<u64>,
    /// The most bytes of a QP that are not acknowledged: [`Faults::qp_window_bytes`].
    pub qp_window_bytes: Option<u32>,
    /// Whether flows are to have different source ports on loopback too, for a slow path.
    pub has_slow_path: bool,
}

impl Port {
    /// Takes packets of this process from memory from now on, and finds devices of this process that do.
    pub fn open_inbox(&mut self) {
        let slot = self.membership.as_ref().map(|member| member.slot);
        let counters = Arc::clone(&self.common.counters);
        let inbox = Inbox::new(self.common.address, slot, self.receive_buffer_bytes, counters);
        self.receiver.take_from(inbox);
    }

    /// Captures all packets from now on, in a file of this address' own: with its name before the extension of `path`.
    ///
    /// # Errors
    /// The file cannot be written; the error names it.
    pub fn capture(&mut self, path: &Path) -> io::Result<()> {
        let slot = self.membership.as_ref().map(|member| member.slot);
        let path = capture::file_of(path, self.common.address, slot);
        let name = path.display().to_string();
        let capture = Capture::create(path).map_err(|error| {
            let why = format!(
                "cannot begin the capture {name}: {error}; name a file that can be written"
            );
            io::Error::new(error.kind(), why)
        })?;
        let capture = Arc::new(capture);
        self.transmitter.capture_to(Arc::clone(&capture));
        if let Some(requests) = &mut self.requests {
            requests.receiver.capture_to(Arc::clone(&capture));
        }
        self.receiver.capture_to(capture);
        Ok(())
    }
}

/// Opens `address`, which other processes may have too, or a free one of 127.0.0.0/8 alone, with a receive buffer of
/// the size asked for or the largest that the kernel gives.
///
/// # Errors
/// The failed socket call, as an [`OpenError`] inside; [`os_error`] returns its number.
pub fn open(
    address: Option<IpAddr>,
    faults: &Faults,
    receive_buffer_bytes: Option<u32>,
) -> io::Result<Port> {
    let taken = address::take(address.map(|it| it.to_canonical()), receive_buffer_bytes)?;
    let sending = address::sending_sockets(taken.address)?
        .into_iter()
        .map(|(socket, port)| (Attachment::Udp(socket), port));
    Ok(port(taken, sending.collect(), faults, Clock::Machine))
}

/// Opens an address of a network in memory, with a receive buffer of this size.
pub fn open_in(
    fabric: &Arc<Fabric>,
    address: IpAddr,
    faults: &Faults,
    receive_buffer_bytes: usize,
) -> Port {
    fabric.attach(address, receive_buffer_bytes);
    let place = |port| Attachment::Fabric(Arc::clone(fabric), (address, port).into());
    let taken = BoundAddress {
        socket: place(UDP_PORT),
        address,
        membership: None,
        requests: None,
        receive_buffer_bytes,
    };
    let sending =
        address::source_ports().take(SENDING_SOCKETS).map(|port| (place(port), port)).collect();
    Port { seed: Some(fabric.seed_of(address)), ..port(taken, sending, faults, fabric.clock()) }
}

fn port(
    taken: BoundAddress,
    sending: Vec<(Attachment, u16)>,
    faults: &Faults,
    clock: Clock,
) -> Port {
    let address = taken.address;
    let header_bytes = if address.is_ipv4() { 20 + 8 } else { 40 + 8 };
    let now_ns = clock.now_ns();
    let common = Common {
        address,
        faulty_peer: faults.peer,
        outage: faults.down.map(|period| Outage::new(period, now_ns)),
        counters: Arc::new(Counters::default()),
        tap: Arc::new(Tap::new(clock.clone())),
        clock,
    };
    // The two directions must not make the same faults.
    let outwards = Impairment::new(faults.transmit, faults.seed, header_bytes, now_ns);
    let receiver = |at, direction| {
        let link = Impairment::new(direction, !faults.seed, header_bytes, now_ns);
        Receiver::new(common.clone(), at, link)
    };
    // Packets are named by their number among those of this process.
    let unnamed = Direction { lose: [None; MOST_NAMED], ..faults.receive };
    Port {
        membership: taken.membership,
        receive_buffer_bytes: taken.receive_buffer_bytes,
        transmitter: Transmitter::new(common.clone(), sending, outwards),
        receiver: receiver(taken.socket, faults.receive),
        requests: (taken.requests).map(|socket| Requests::new(receiver(socket, unnamed))),
        seed: None,
        qp_window_bytes: faults.qp_window_bytes,
        has_slow_path: faults.transmit.limits.slow_path.is_some(),
        common,
    }
}
