//! Sending: the pool of sockets, which one a flow takes, and what becomes of a train that the kernel refuses.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::MAX_TRAIN_PACKETS;
use super::counters::Counters;
use super::flow::Flow;
use super::sockets::Socket;
use super::train::Train;

/// How long a send may wait for room in the socket, in milliseconds.
const PATIENCE_MS: i32 = 1;

/// The sending half of an address.
pub struct Transmitter {
    address: IpAddr,
    sockets: Vec<(Socket, u16)>,
    /// The system does not cut trains into packets.
    no_trains: AtomicBool,
    counters: Arc<Counters>,
}

impl Transmitter {
    pub(super) fn new(
        address: IpAddr,
        sockets: Vec<(Socket, u16)>,
        counters: Arc<Counters>,
    ) -> Transmitter {
        Transmitter {
            address,
            sockets,
            no_trains: AtomicBool::new(false),
            counters,
        }
    }

    /// A flow to `destination`; `entropy` (a hash of the QPNs, or the flow label) picks the source port.
    pub fn flow(
        &self,
        destination: IpAddr,
        entropy: u32,
        traffic_class: u8,
        hop_limit: u8,
    ) -> Flow {
        // Multiplied by 2^32 divided by the golden ratio, every bit reaches the high ones.
        let mixed = (entropy ^ entropy >> 16).wrapping_mul(0x9e37_79b9) >> 16;
        let socket = mixed as usize % self.sockets.len().max(1);
        let port = self.sockets.get(socket).map_or(0, |(_, port)| *port);
        Flow {
            traffic_class,
            hop_limit,
            ..Flow::new(self.address, destination, socket, port)
        }
    }

    /// Packets that a train may have: 1 where the system or the faults allow no trains.
    pub fn max_train_packets(&self) -> usize {
        match self.no_trains.load(Ordering::Relaxed) {
            true => 1,
            false => MAX_TRAIN_PACKETS,
        }
    }

    /// Sends it, whole or not at all, and empties it; a train that cannot be sent counts as lost. Never blocks
    /// for long.
    pub fn send(&self, train: &mut Train) {
        if train.packets() > 0 {
            self.transmit(train);
        }
        train.clear();
    }

    fn transmit(&self, train: &Train) {
        let packets = train.packets() as u64;
        match self.hand_to_kernel(train) {
            Ok(()) => {
                self.counters.sent.datagrams.add(1);
                self.counters.sent.packets.add(packets);
                self.counters.sent.bytes.add(train.bytes() as u64);
            }
            Err(error) => {
                self.counters.send_errors.add(packets);
                let refused = [libc::EIO, libc::EINVAL, libc::EOPNOTSUPP];
                if packets > 1 && error.raw_os_error().is_some_and(|it| refused.contains(&it)) {
                    self.no_trains.store(true, Ordering::Relaxed);
                }
            }
        }
    }

    fn hand_to_kernel(&self, train: &Train) -> io::Result<()> {
        let nowhere = || io::Error::from(io::ErrorKind::HostUnreachable);
        let flow = train.flow().ok_or_else(nowhere)?;
        let socket = self.sockets.get(flow.socket).filter(|_| flow.reachable);
        let (socket, _) = socket.ok_or_else(nowhere)?;
        let mut sent = train.send_on(socket, flow);
        if matches!(&sent, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
            // The device's queue is full. Once, not until it is not: the engine has other things to do.
            socket.wait_writable(PATIENCE_MS);
            sent = train.send_on(socket, flow);
        }
        sent
    }

    /// Sends what the faults held back and is due.
    pub fn release_due(&self) {}

    /// When the next packet held back is due, as nanoseconds of [`super::now_ns`].
    pub fn next_due_ns(&self) -> Option<u64> {
        None
    }
}
