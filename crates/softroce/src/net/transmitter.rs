//! Sending: the pool of sockets, the choice of a flow's socket, and the handling of batches that the kernel refuses.
//! With faults a GSO batch is a copy of one packet and is sent when the faulty link releases it.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::counters::Counters;
use super::flow::Flow;
use super::gso_batch::GsoBatch;
use super::impairment::{Impairment, Transit};
use super::sockets::{Socket, now_ns};
use super::tap::Tap;

/// How long a send may wait for room in the socket, in milliseconds.
const PATIENCE_MS: i32 = 1;

/// The sending half of an address.
pub struct Transmitter {
    address: IpAddr,
    sockets: Vec<(Socket, u16)>,
    /// Whether the system cannot split GSO batches into packets.
    no_gso_batches: AtomicBool,
    faults: Option<Box<Mutex<Impairment<Flow>>>>,
    /// The only address whose packets enter the faulty link; `None` for all.
    faulty_peer: Option<IpAddr>,
    counters: Arc<Counters>,
    tap: Arc<Tap>,
}

impl Transmitter {
    pub(super) fn new(
        address: IpAddr,
        sockets: Vec<(Socket, u16)>,
        faults: Option<Impairment<Flow>>,
        faulty_peer: Option<IpAddr>,
        counters: Arc<Counters>,
        tap: Arc<Tap>,
    ) -> Transmitter {
        Transmitter {
            address,
            sockets,
            no_gso_batches: AtomicBool::new(false),
            faults: faults.map(|link| Box::new(Mutex::new(link))),
            faulty_peer,
            counters,
            tap,
        }
    }

    /// A flow to `destination`; `entropy` (a hash of the QPNs, or the flow label) selects the source port.
    pub fn flow(
        &self,
        destination: IpAddr,
        entropy: u32,
        traffic_class: u8,
        hop_limit: u8,
    ) -> Flow {
        // Multiplying by 2^32 divided by the golden ratio spreads every bit to the high ones.
        let mixed = (entropy ^ entropy >> 16).wrapping_mul(0x9e37_79b9) >> 16;
        let socket = mixed as usize % self.sockets.len().max(1);
        let port = self.sockets.get(socket).map_or(0, |(_, port)| *port);
        let mut flow = Flow {
            traffic_class,
            hop_limit,
            ..Flow::new(self.address, destination, socket, port)
        };
        if self.faulty_link(&flow).is_some() {
            flow.max_packets = 1;
        }
        flow
    }

    /// The link that packets of this flow pass, if it is a faulty one.
    fn faulty_link(&self, flow: &Flow) -> Option<&Mutex<Impairment<Flow>>> {
        let destination = flow.destination.ip();
        let link = self.faults.as_deref()?;
        self.faulty_peer
            .is_none_or(|peer| peer == destination)
            .then_some(link)
    }

    /// The most packets of a GSO batch of this flow: 1 if the system or the faults allow no GSO batches.
    pub fn max_gso_batch_packets(&self, flow: &Flow) -> usize {
        match self.no_gso_batches.load(Ordering::Relaxed) {
            true => 1,
            false => flow.max_packets,
        }
    }

    /// Sends the batch as a whole or not at all, and clears it; a batch that cannot be sent counts as lost. Never
    /// blocks for long.
    pub fn send(&self, gso_batch: &mut GsoBatch) {
        if let (Some(tap), Some(flow)) = (self.tap.recording(), gso_batch.flow()) {
            tap.sent(flow.destination.ip(), gso_batch.copied_packets());
        }
        let flow = gso_batch.flow();
        match flow.and_then(|flow| self.faulty_link(flow)) {
            _ if gso_batch.packets() == 0 => {}
            None => self.account(
                gso_batch.packets(),
                gso_batch.bytes(),
                flow.map(|flow| self.with_room(flow, |socket| gso_batch.send_on(socket, flow))),
            ),
            Some(link) => self.enter(link, gso_batch),
        }
        gso_batch.clear();
    }

    /// Sends on the flow's socket, with a second attempt if the socket was full.
    fn with_room(&self, flow: &Flow, send: impl Fn(&Socket) -> io::Result<()>) -> io::Result<()> {
        let socket = self.sockets.get(flow.socket).filter(|_| flow.reachable);
        let (socket, _) = socket.ok_or(io::ErrorKind::HostUnreachable)?;
        match send(socket) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // The device's queue is full. Wait only briefly: the engine has other work.
                socket.wait_writable(PATIENCE_MS);
                send(socket)
            }
            sent => sent,
        }
    }

    fn account(&self, packets: usize, bytes: usize, sent: Option<io::Result<()>>) {
        match sent {
            Some(Ok(())) => {
                self.counters.sent.datagrams.add(1);
                self.counters.sent.packets.add(packets as u64);
                self.counters.sent.bytes.add(bytes as u64);
            }
            Some(Err(error)) => {
                self.counters.send_errors.add(packets as u64);
                let refused = [libc::EIO, libc::EINVAL, libc::EOPNOTSUPP];
                if packets > 1 && error.raw_os_error().is_some_and(|it| refused.contains(&it)) {
                    self.no_gso_batches.store(true, Ordering::Relaxed);
                }
            }
            None => self.counters.send_errors.add(packets as u64),
        }
    }

    fn enter(&self, link: &Mutex<Impairment<Flow>>, gso_batch: &GsoBatch) {
        let Some(flow) = gso_batch.flow() else {
            return;
        };
        let packet = Transit {
            context: flow.clone(),
            bytes: gso_batch.copied(),
        };
        let mut link = link.lock().unwrap_or_else(PoisonError::into_inner);
        link.enter(now_ns(), packet, &self.counters.transmit_faults);
        self.leave(&mut link);
    }

    fn leave(&self, link: &mut Impairment<Flow>) {
        while let Some(Transit { context, bytes }) = link.leave(now_ns()) {
            let options = context.send_options();
            let sent = self.with_room(&context, |socket| socket.send_bytes(&bytes, &options));
            self.account(1, bytes.len(), Some(sent));
        }
    }

    /// Sends the delayed packets that are due.
    pub fn release_due(&self) {
        if let Some(link) = &self.faults {
            self.leave(&mut link.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// When the next delayed packet is due, in nanoseconds of [`super::now_ns`].
    pub fn next_due_ns(&self) -> Option<u64> {
        let link = self.faults.as_ref()?.lock();
        link.unwrap_or_else(PoisonError::into_inner).next_due_ns()
    }
}
