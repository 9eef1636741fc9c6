//! A network in memory with a time of its own: a switch with a link to each device. Each link has a rate, a delay, a queue
//! that marks and drops, and faults, by seed ([`Direction`]). The same seed and the same calls have the same effects.
//!
//! Sockets and networks alike are an [`Attachment`], which packets leave and come by.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use provider::Lock;

use super::common::{Clock, FaultCounts};
use super::faults::Direction;
use super::impairment::{Impairment, Transit};
use super::sockets::{Batch, SendOptions, Socket, copied, known_hop_limit, piece_of};
use crate::wire::UDP_PORT;

/// What the kernel counts for a datagram in a receive buffer besides its bytes, about.
const OVERHEAD_BYTES: usize = 768;
/// Bytes of IPv4 and UDP headers.
const HEADER_BYTES: usize = 28;

pub struct Fabric {
    now_ns: Arc<AtomicU64>,
    seed: u64,
    link: Direction,
    ports: Lock<BTreeMap<IpAddr, Port>>,
}

/// The link to a device, and the device's receive buffer.
#[derive(Default)]
struct Port {
    /// With the sender and the hop limit of each packet.
    link: Option<Impairment<(SocketAddr, u8)>>,
    counts: FaultCounts,
    arrived: VecDeque<Datagram>,
    arrived_bytes: usize,
    buffer_bytes: usize,
    /// Datagrams that found no room in the buffer.
    drops: u32,
}

/// What has passed a link.
#[derive(Debug)]
pub struct Datagram {
    pub source: SocketAddr,
    /// Type of service or traffic class.
    pub traffic_class: u8,
    hop_limit: u8,
    segment_bytes: usize,
    /// From the base transport header to the CRC.
    pub bytes: Vec<u8>,
}

impl Port {
    fn take(&mut self) -> Option<Datagram> {
        let datagram = self.arrived.pop_front()?;
        self.arrived_bytes -= datagram.bytes.len() + OVERHEAD_BYTES;
        Some(datagram)
    }

    fn put(&mut self, datagram: Datagram) {
        let bytes = datagram.bytes.len() + OVERHEAD_BYTES;
        if self.arrived_bytes + bytes > self.buffer_bytes {
            self.drops += 1;
            return;
        }
        self.arrived_bytes += bytes;
        self.arrived.push_back(datagram);
    }

    /// Takes what has passed the link.
    fn leave_link(&mut self, now_ns: u64) {
        while let Some(packet) =
            self.link.as_mut().and_then(|link| link.leave(now_ns, &self.counts))
        {
            let (source, hop_limit) = packet.context;
            self.put(Datagram {
                source,
                traffic_class: packet.traffic_class,
                hop_limit,
                segment_bytes: 0,
                bytes: packet.bytes,
            });
        }
    }
}

impl Fabric {
    /// An empty network, at time 1 s, all of whose links are alike.
    pub fn new(seed: u64, link: Direction) -> Arc<Fabric> {
        Arc::new(Fabric {
            now_ns: Arc::new(AtomicU64::new(1_000_000_000)),
            seed,
            link,
            ports: Lock::default(),
        })
    }

    pub fn clock(&self) -> Clock {
        Clock::Set(Arc::clone(&self.now_ns))
    }

    /// A seed for all that the device at this address draws.
    pub(super) fn seed_of(&self, address: IpAddr) -> u64 {
        let octets = match address {
            IpAddr::V4(v4) => v4.octets().to_vec(),
            IpAddr::V6(v6) => v6.octets().to_vec(),
        };
        octets
            .into_iter()
            .fold(self.seed, |seed, octet| seed.wrapping_mul(257).wrapping_add(octet.into()))
    }

    /// Lets time pass until then.
    pub fn advance_to(&self, now_ns: u64) {
        self.now_ns.fetch_max(now_ns, Ordering::Relaxed);
    }

    /// When the next packet leaves a link; `u64::MAX` for never.
    pub fn next_due_ns(&self) -> u64 {
        self.ports
            .lock()
            .values()
            .filter_map(|port| port.link.as_ref()?.next_due_ns())
            .min()
            .unwrap_or(u64::MAX)
    }

    /// Whether packets wait in a device's receive buffer.
    pub fn has_arrived(&self, address: IpAddr) -> bool {
        let now_ns = self.now_ns.load(Ordering::Relaxed);
        self.ports.lock().get_mut(&address).is_some_and(|port| {
            port.leave_link(now_ns);
            !port.arrived.is_empty()
        })
    }

    /// Packets that the link to a device lost because its queue was full, and that its receive buffer had no room for.
    pub fn overflowed(&self, address: IpAddr) -> (u64, u64) {
        let ports = self.ports.lock();
        let port = ports.get(&address);
        port.map_or((0, 0), |port| (port.counts.overflowed.get(), port.drops.into()))
    }

    /// Makes a link to an address, with a receive buffer of this size.
    pub fn attach(&self, address: IpAddr, buffer_bytes: usize) {
        let mut ports = self.ports.lock();
        // Links have unlike chances.
        let seed = self.seed_of(address);
        let now_ns = self.now_ns.load(Ordering::Relaxed);
        let port = Port {
            link: Impairment::new(self.link, seed, HEADER_BYTES, now_ns),
            buffer_bytes,
            ..Port::default()
        };
        ports.insert(address, port);
    }

    /// Sends a datagram in the name of any sender.
    pub fn forge(&self, source: SocketAddr, to: IpAddr, traffic_class: u8, bytes: &[u8]) {
        let options = SendOptions {
            destination: (to, UDP_PORT).into(),
            traffic_class,
            hop_limit: 0,
            segment_bytes: None,
        };
        self.send(source, bytes, &options);
    }

    /// Takes a packet that has come to an address without a device.
    pub fn take(&self, own: IpAddr) -> Option<Datagram> {
        let now_ns = self.now_ns.load(Ordering::Relaxed);
        let mut ports = self.ports.lock();
        let port = ports.get_mut(&own)?;
        port.leave_link(now_ns);
        let mut first = port.take()?;
        let segment_bytes = first.segment_bytes;
        if segment_bytes > 0 && segment_bytes < first.bytes.len() {
            let bytes = first.bytes.split_off(segment_bytes);
            port.arrived_bytes += bytes.len() + OVERHEAD_BYTES;
            port.arrived.push_front(Datagram { bytes, ..first });
        }
        Some(first)
    }

    /// Sends a datagram, or one split into segments; it is lost where there is no device.
    pub(super) fn send(&self, source: SocketAddr, bytes: &[u8], options: &SendOptions) {
        let now_ns = self.now_ns.load(Ordering::Relaxed);
        let mut ports = self.ports.lock();
        let Some(port) = ports.get_mut(&options.destination.ip()) else {
            return;
        };
        port.leave_link(now_ns);
        let traffic_class = options.traffic_class;
        let hop_limit = known_hop_limit(options.hop_limit);
        let segment_bytes = options.segment_bytes.map_or(0, usize::from);
        let Some(link) = &mut port.link else {
            return port.put(Datagram {
                source,
                traffic_class,
                hop_limit,
                segment_bytes,
                bytes: bytes.to_vec(),
            });
        };
        let packet_bytes = match segment_bytes {
            0 => bytes.len().max(1),
            _ => segment_bytes,
        };
        for packet in bytes.chunks(packet_bytes) {
            let fate = link.draw(now_ns, packet.first().copied().unwrap_or_default());
            let packet = Transit {
                context: (source, hop_limit),
                source_port: source.port(),
                traffic_class,
                bytes: packet.to_vec(),
            };
            link.enter(now_ns, fate, packet, &port.counts);
        }
        port.leave_link(now_ns);
    }

    /// Takes up to `most` datagrams that have arrived.
    pub(super) fn receive(&self, own: IpAddr, batch: &mut Batch, most: usize) -> usize {
        let now_ns = self.now_ns.load(Ordering::Relaxed);
        let mut ports = self.ports.lock();
        let Some(port) = ports.get_mut(&own) else {
            return 0;
        };
        port.leave_link(now_ns);
        let mut taken = 0;
        for slot in batch.0.iter_mut().take(most) {
            let Some(datagram) = port.take() else {
                break;
            };
            slot.fill(
                datagram.source,
                (datagram.traffic_class, datagram.hop_limit),
                datagram.segment_bytes,
                port.drops,
                &datagram.bytes,
            );
            taken += 1;
        }
        taken
    }
}

const NONE: RawFd = -1;

pub enum Attachment {
    /// A socket of this machine.
    Udp(Socket),
    /// A place in a network in memory, with its address there.
    Fabric(Arc<Fabric>, SocketAddr),
}

#[allow(unsafe_code)]
impl Attachment {
    /// The socket's descriptor; -1 for none.
    pub fn fd(&self) -> RawFd {
        match self {
            Attachment::Udp(socket) => socket.fd(),
            Attachment::Fabric(..) => NONE,
        }
    }

    /// The time to live or hop limit of packets that set none.
    pub fn hop_limit(&self) -> io::Result<u8> {
        match self {
            Attachment::Udp(socket) => socket.hop_limit(),
            Attachment::Fabric(..) => Ok(known_hop_limit(0)),
        }
    }

    /// Sends the pieces as one datagram, or as one split into segments; never blocks.
    ///
    /// # Safety
    /// The pieces are readable.
    pub unsafe fn send(&self, pieces: &[libc::iovec], options: &SendOptions) -> io::Result<()> {
        match self {
            // SAFETY: the caller's promise.
            Attachment::Udp(socket) => unsafe { socket.send(pieces, options) },
            Attachment::Fabric(fabric, source) => {
                // SAFETY: the caller's promise.
                let bytes = unsafe { copied(pieces) };
                fabric.send(*source, &bytes, options);
                Ok(())
            }
        }
    }

    /// Sends the bytes as one datagram, or as one split into segments; never blocks.
    pub fn send_bytes(&self, bytes: &[u8], options: &SendOptions) -> io::Result<()> {
        // SAFETY: the bytes are borrowed until the call is over.
        unsafe { self.send(&[piece_of(bytes)], options) }
    }

    /// Receives up to `most` datagrams, at most [`super::sockets::BATCH`]; returns their number, 0 if none wait.
    pub fn receive(&self, batch: &mut Batch, most: usize) -> io::Result<usize> {
        match self {
            Attachment::Udp(socket) => socket.receive(batch, most),
            Attachment::Fabric(fabric, own) => Ok(fabric.receive(own.ip(), batch, most)),
        }
    }
}
