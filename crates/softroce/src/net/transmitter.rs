//! Sending: the pool of sockets, the choice of a flow's socket, and what becomes of batches that the kernel does not
//! take. A full socket loses nothing: its packets wait as copies, and no flow sends more until they are gone.
//! Packets that a faulty link holds back are copied; those that leave it together are a GSO batch again.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

use provider::Lock;

use super::capture::{Capture, Route};
use super::common::Common;
use super::fabric::Attachment;
use super::gso_batch::{CopiedBatch, Flow, GsoBatch, MAX_GSO_BATCH_PACKETS, Outgoing};
use super::impairment::{Fate, Impairment, Transit};
use super::sockets::SENDING_SOCKETS;

/// A packet's flow, and its place in its GSO batch, which its CRC depends on.
type Departure = (Flow, u16);

/// A faulty link, and what has left it together.
struct FaultyLink {
    link: Impairment<Departure>,
    left: CopiedBatch,
}

/// A socket of the pool.
struct Outlet {
    socket: Attachment,
    port: u16,
    backlog: Backlog,
}

/// The sending half of an address.
pub struct Transmitter {
    common: Common,
    outlets: Vec<Outlet>,
    /// Sockets of the pool that have a backlog.
    full_sockets: AtomicIsize,
    /// Whether the system cannot split GSO batches into packets.
    no_gso_batches: AtomicBool,
    faults: Option<Box<Lock<FaultyLink>>>,
    /// With the hop limit that the system gives packets whose flow has none.
    capture: Option<(Arc<Capture>, u8)>,
}

impl Transmitter {
    pub(super) fn new(
        common: Common,
        sockets: Vec<(Attachment, u16)>,
        faults: Option<Impairment<Departure>>,
    ) -> Transmitter {
        Transmitter {
            common,
            outlets: sockets
                .into_iter()
                .map(|(socket, port)| Outlet { socket, port, backlog: Backlog::default() })
                .collect(),
            full_sockets: AtomicIsize::new(0),
            no_gso_batches: AtomicBool::new(false),
            faults: faults.map(|link| {
                let left = CopiedBatch::new();
                Box::new(Lock::new(FaultyLink { link, left }))
            }),
            capture: None,
        }
    }

    /// The descriptors of its sockets.
    pub fn sockets(&self) -> impl Iterator<Item = RawFd> {
        self.outlets.iter().map(|outlet| outlet.socket.fd())
    }

    pub(super) fn capture_to(&mut self, capture: Arc<Capture>) {
        let hop_limit = self.outlets.first().and_then(|it| it.socket.hop_limit().ok());
        self.capture = Some((capture, hop_limit.unwrap_or_default()));
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
        let socket = mixed as usize % self.outlets.len().max(1);
        let port = self.outlets.get(socket).map_or(0, |outlet| outlet.port);
        Flow {
            traffic_class,
            hop_limit,
            ..Flow::new(self.common.address, destination, socket, port)
        }
    }

    /// The link that packets of this flow pass, if it is a faulty one.
    fn faulty_link(&self, flow: &Flow) -> Option<&Lock<FaultyLink>> {
        let destination = flow.destination.ip();
        let link = self.faults.as_deref()?;
        self.common.faulty_peer.is_none_or(|peer| peer == destination).then_some(link)
    }

    /// The most packets of a GSO batch of this flow: 1 if the system allows no GSO batches.
    pub fn max_gso_batch_packets(&self, flow: &Flow) -> usize {
        if self.no_gso_batches.load(Ordering::Relaxed) { 1 } else { flow.max_packets }
    }

    /// Sends the batch as a whole or not at all, and clears it; never blocks. One that finds no room waits as a copy;
    /// one that the kernel refuses counts as lost.
    pub fn send(&self, gso_batch: &mut GsoBatch) {
        gso_batch.finish();
        if let (Some(tap), Some(flow)) = (self.common.tap.recording(), gso_batch.flow()) {
            tap.sent(flow.destination.ip(), gso_batch.copied_packets());
        }
        if let Some(flow) = gso_batch.flow()
            && gso_batch.packets() > 0
        {
            match self.faulty_link(flow) {
                Some(link) => self.enter(link, flow, gso_batch),
                None => self.put(gso_batch),
            }
        }
        gso_batch.clear();
    }

    /// Sends by the flow's socket, or behind what waits there.
    fn put(&self, outgoing: &impl Outgoing) {
        self.put_by(outgoing, |socket, flow| outgoing.send_on(socket, flow));
    }

    fn put_by(
        &self,
        outgoing: &impl Outgoing,
        send: impl FnOnce(&Attachment, &Flow) -> io::Result<()>,
    ) {
        if self.common.is_down() {
            let dropped = &self.common.counters.transmit_faults.dropped;
            return dropped.add(outgoing.packets() as u64);
        }
        let reachable = outgoing.flow().filter(|flow| flow.reachable);
        let outlet = reachable.and_then(|flow| Some((flow, self.outlets.get(flow.socket)?)));
        let Some((flow, outlet)) = outlet else {
            return self.account(outgoing, Err(io::ErrorKind::HostUnreachable.into()));
        };
        if !outlet.backlog.is_full() {
            match send(&outlet.socket, flow) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => return self.account(outgoing, sent),
            }
        }
        let packets = outgoing.packets() as u64;
        match outlet.backlog.add(CopiedBatch::from_outgoing(flow, outgoing)) {
            Some(first) => {
                self.common.counters.waited.add(packets);
                self.full_sockets.fetch_add(isize::from(first), Ordering::SeqCst);
            }
            None => self.common.counters.send_errors.add(packets),
        }
    }

    /// Whether packets wait for room in a socket: nothing more is to be sent until [`Transmitter::go_on`] says so.
    pub fn is_full(&self) -> bool {
        self.full_sockets.load(Ordering::SeqCst) > 0
    }

    /// The descriptors of the sockets that packets wait for, with -1 for each other socket; `None` if there are none.
    pub fn full_sockets(&self) -> Option<[RawFd; SENDING_SOCKETS]> {
        self.is_full().then(|| {
            let mut full = [-1; SENDING_SOCKETS];
            for (fd, outlet) in full.iter_mut().zip(&self.outlets) {
                if outlet.backlog.is_full() {
                    *fd = outlet.socket.fd();
                }
            }
            full
        })
    }

    /// Sends what waits for room, as far as there is room. Returns whether nothing waits any more.
    pub fn go_on(&self) -> bool {
        for outlet in self.outlets.iter().filter(|it| it.backlog.is_full()) {
            self.common.counters.room_attempts.add(1);
            let emptied = outlet.backlog.go_on(|batch| {
                let sent = batch.flow().map(|flow| batch.send_on(&outlet.socket, flow));
                match sent.unwrap_or(Ok(())) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
                    sent => {
                        self.account(batch, sent);
                        Ok(())
                    }
                }
            });
            self.full_sockets.fetch_sub(isize::from(emptied), Ordering::SeqCst);
        }
        !self.is_full()
    }

    fn account(&self, outgoing: &impl Outgoing, sent: io::Result<()>) {
        let packets = outgoing.packets();
        match sent {
            Ok(()) => {
                self.common.counters.sent.datagrams.add(1);
                self.common.counters.sent.packets.add(packets as u64);
                self.common.counters.sent.bytes.add(outgoing.bytes() as u64);
                if let Some((capture, hop_limit)) = &self.capture {
                    self.capture(capture, *hop_limit, outgoing);
                }
            }
            Err(error) => {
                self.common.counters.send_errors.add(packets as u64);
                let refused = [libc::EIO, libc::EINVAL, libc::EOPNOTSUPP];
                if packets > 1 && error.raw_os_error().is_some_and(|it| refused.contains(&it)) {
                    self.no_gso_batches.store(true, Ordering::Relaxed);
                }
            }
        }
    }

    /// Adds packets to a capture. The kernel has numbered them in the IPv4 identification.
    #[cold]
    fn capture(&self, capture: &Capture, default_hop_limit: u8, outgoing: &impl Outgoing) {
        let Some(flow) = outgoing.flow() else {
            return;
        };
        let route = Route {
            source: flow.source,
            destination: flow.destination,
            traffic_class: flow.traffic_class,
            hop_limit: match flow.hop_limit {
                0 => default_hop_limit,
                hop_limit => hop_limit,
            },
        };
        let copy = outgoing.copied();
        let packets = copy.chunks(outgoing.segment_bytes().max(1));
        capture.add(&route, (0..).zip(packets));
    }

    fn enter(&self, faulty_link: &Lock<FaultyLink>, flow: &Flow, gso_batch: &GsoBatch) {
        let mut faulty = faulty_link.lock();
        let link = &mut faulty.link;
        let mut room = [Fate::default(); MAX_GSO_BATCH_PACKETS];
        let fates = room.get_mut(..gso_batch.packets()).unwrap_or_default();
        let now_ns = self.common.clock.now_ns();
        for (fate, opcode) in fates.iter_mut().zip(gso_batch.opcodes()) {
            *fate = link.draw(now_ns, opcode);
        }
        if link.passes(fates) {
            drop(faulty);
            return self.put(gso_batch);
        }
        for ((bytes, fate), place) in gso_batch.copied_packets().zip(fates).zip(0..) {
            let context = (flow.clone(), place);
            let packet = Transit {
                context,
                source_port: flow.source_port(),
                traffic_class: flow.traffic_class,
                bytes,
            };
            link.enter(now_ns, *fate, packet, &self.common.counters.transmit_faults);
        }
        self.leave(&mut faulty);
    }

    /// Sends what has left the link: what leaves together, in as few GSO batches as it fits into. What has left waits
    /// on the link while a socket is full.
    fn leave(&self, FaultyLink { link, left }: &mut FaultyLink) {
        let counts = &self.common.counters.transmit_faults;
        while !self.is_full()
            && let Some(packet) = link.leave(self.common.clock.now_ns(), counts)
        {
            let Transit { context, bytes, .. } = packet;
            let (mut flow, place) = context;
            if flow.traffic_class != packet.traffic_class {
                flow.traffic_class = packet.traffic_class;
                counts.marked.add(1);
            }
            let most_packets = self.max_gso_batch_packets(&flow);
            if !left.push(&flow, place, &bytes, most_packets) {
                self.put(left);
                left.clear();
                left.push(&flow, place, &bytes, most_packets);
            }
        }
        if left.packets() > 0 {
            self.put(left);
            left.clear();
        }
    }

    /// Sends the delayed packets that are due.
    pub fn release_due(&self) {
        if let Some(link) = &self.faults {
            self.leave(&mut link.lock());
        }
    }

    /// When the next delayed packet is due, in nanoseconds of [`super::now_ns`]; none while a socket is full.
    pub fn next_due_ns(&self) -> Option<u64> {
        if self.is_full() {
            return None;
        }
        self.faults.as_ref()?.lock().link.next_due_ns()
    }
}

/// The most GSO batches that wait for one socket. Senders stop when the first one waits, so there are few.
const MOST_WAITING: usize = 64;

/// The queue of one socket.
#[derive(Default)]
pub struct Backlog {
    waiting: Lock<VecDeque<CopiedBatch>>,
    /// Whether any wait, readable without the lock.
    any: AtomicBool,
}

impl Backlog {
    /// Whether packets wait, behind which others must queue.
    pub fn is_full(&self) -> bool {
        self.any.load(Ordering::SeqCst)
    }

    /// Adds a batch at the end. Returns whether it is the first; `None` if there is no room even here.
    pub fn add(&self, batch: CopiedBatch) -> Option<bool> {
        let mut waiting = self.waiting.lock();
        if waiting.len() >= MOST_WAITING {
            return None;
        }
        waiting.push_back(batch);
        Some(!self.any.swap(true, Ordering::SeqCst))
    }

    /// Sends by `send` until that finds no room. Returns whether this has emptied the queue.
    pub fn go_on(&self, send: impl Fn(&CopiedBatch) -> io::Result<()>) -> bool {
        let mut waiting = self.waiting.lock();
        if waiting.is_empty() {
            // Another thread was faster.
            return false;
        }
        while let Some(first) = waiting.front() {
            match send(first) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                // A batch that was refused is lost, as if it had never waited.
                _ => drop(waiting.pop_front()),
            }
        }
        self.any.store(false, Ordering::SeqCst);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::Count;
    use super::super::tests::{Parts, collect, copied, loopback_port, parts, send, whole};
    use super::*;

    /// These packets as one batch that finds no room.
    fn blocked(transmitter: &Transmitter, flow: &Flow, packets: &[Parts]) {
        transmitter.put_by(&copied(flow, packets), |_, _| Err(io::ErrorKind::WouldBlock.into()));
    }

    #[test]
    fn what_a_full_socket_does_not_take_leaves_later_in_order() {
        let mut port = loopback_port();
        let flow = port.transmitter.flow(port.common.address, 7, 0, 0);
        let other = (8..64)
            .map(|entropy| port.transmitter.flow(port.common.address, entropy, 0, 0))
            .find(|other| other.socket != flow.socket);
        let packets: Vec<Parts> = (0..9).map(|salt| parts(12, &[700], salt)).collect();
        assert!(!port.transmitter.is_full());
        assert_eq!(port.transmitter.full_sockets(), None);
        blocked(&port.transmitter, &flow, &packets[..3]);
        assert!(port.transmitter.is_full());
        let full = port.transmitter.full_sockets().unwrap();
        assert_eq!(full.iter().filter(|fd| **fd >= 0).count(), 1);
        // There is room now, and yet these must not overtake the others. Another socket has room.
        send(&port.transmitter, &flow, &packets[3..6]);
        send(&port.transmitter, &flow, &packets[6..8]);
        send(&port.transmitter, &other.unwrap(), &packets[8..]);
        assert_eq!(collect(&mut port, 1), [whole(&packets[8])]);
        assert_eq!(port.receiver.receive(|_| true, |_| ()), 0);
        assert!(port.transmitter.go_on());
        assert!(!port.transmitter.is_full());
        let expected: Vec<Vec<u8>> = packets[..8].iter().map(whole).collect();
        assert_eq!(collect(&mut port, 8), expected);
        let counters = &port.common.counters;
        let (sent, wrong) = (&counters.sent, [&counters.bad_icrc, &counters.send_errors]);
        let counted = [&counters.waited, &sent.packets, &sent.datagrams].map(Count::get);
        assert_eq!((counted, wrong.map(Count::get)), ([8, 9, 4], [0; 2]));
    }

    #[test]
    fn a_backlog_is_bounded_and_goes_on_only_while_there_is_room() {
        let port = loopback_port();
        let flow = port.transmitter.flow(port.common.address, 7, 0, 0);
        let packet = [parts(12, &[64], 0)];
        for _ in 0..70 {
            blocked(&port.transmitter, &flow, &packet);
        }
        assert_eq!(port.common.counters.waited.get(), 64);
        assert_eq!(port.common.counters.send_errors.get(), 6);
        let backlog = &port.transmitter.outlets[flow.socket].backlog;
        let room = std::cell::Cell::new(10);
        let emptied = backlog.go_on(|_| match room.get() {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            left => {
                room.set(left - 1);
                Ok(())
            }
        });
        assert!(!emptied && port.transmitter.is_full());
        assert!(port.transmitter.go_on());
        assert_eq!(port.common.counters.sent.packets.get(), 54);
    }
}
