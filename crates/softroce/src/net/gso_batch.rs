//! A GSO batch: packets sent by one system call. Large payloads are sent from where they are; headers, CRCs and small
//! payloads are copied into one buffer. All memory is allocated when the batch is created.
//!
//! The kernel numbers the packets of a GSO batch by their IPv4 identification, 0, 1, 2 …, and the invariant CRC
//! covers that field, so a packet's CRC depends on its position.
//!
//! A batch goes to a flow: the destination of packets, and the fields of their network headers that the CRC covers. One
//! in memory of its own, of finished packets, is a [`CopiedBatch`]: those that leave a faulty link together, and those
//! that a full socket did not take.
#![allow(unsafe_code)]

use std::alloc::Layout;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};
use std::{io, slice};

use super::address::slot_of;
use super::fabric::Attachment;
use super::inbox::Inbox;
use super::sockets::{SendOptions, Socket, copied, piece_of};
use crate::wire::{ICRC_BYTES, IcrcAddresses, IcrcSeed, IdentificationShift, UDP_PORT, as_ipv6};

/// IPv4 flags of all our packets: "don't fragment".
pub const DONT_FRAGMENT: u16 = 0x4000;

/// The path of packets: addresses, the source port that spreads flows, traffic class and hop limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    pub(super) destination: SocketAddr,
    pub(super) addresses: IcrcAddresses,
    /// Whether the destination has our address' family; others cannot be reached.
    pub(super) reachable: bool,
    pub(super) socket: usize,
    pub(super) source: SocketAddr,
    pub(super) traffic_class: u8,
    pub(super) hop_limit: u8,
    /// Which process at the destination gets them: the kernel there gives it a whole GSO batch.
    pub(super) slot: u8,
    /// The most packets of a GSO batch.
    pub(super) max_packets: usize,
    /// Where they are put, if the destination is in this process.
    pub(super) inbox: Option<Arc<Inbox>>,
}

impl Flow {
    /// A flow from `source` to the RoCEv2 port of `destination`.
    pub(super) fn new(source: IpAddr, destination: IpAddr, socket: usize, port: u16) -> Flow {
        let canonical = destination.to_canonical();
        Flow {
            destination: (canonical, UDP_PORT).into(),
            addresses: icrc_addresses(source, canonical),
            reachable: source.is_ipv4() == canonical.is_ipv4(),
            socket,
            source: (source.to_canonical(), port).into(),
            traffic_class: 0,
            hop_limit: 0,
            slot: 0,
            max_packets: most_packets(),
            inbox: None,
        }
    }

    /// The UDP source port of its packets.
    pub fn source_port(&self) -> u16 {
        self.source.port()
    }

    /// The same way to the process of this QP.
    pub fn to_process_of(self, qpn: u32) -> Flow {
        Flow { slot: slot_of(qpn), ..self }
    }

    /// The same way without the kernel, if the destination is a device of this process.
    pub fn through_memory(self) -> Flow {
        Flow { inbox: Inbox::find(self.destination.ip(), self.slot), ..self }
    }

    /// Whether its packets leave without the kernel.
    pub fn is_in_memory(&self) -> bool {
        self.inbox.is_some()
    }

    /// The options for sending so many packets of this length to it at once.
    pub(super) fn send_options(&self, packets: usize, segment_bytes: usize) -> SendOptions {
        SendOptions {
            destination: self.destination,
            traffic_class: self.traffic_class,
            hop_limit: self.hop_limit,
            segment_bytes: (packets > 1).then_some(segment_bytes as u16),
        }
    }

    /// The CRC seed of packets of this length with identification 0.
    pub(super) fn seed(&self, packet_bytes: usize) -> IcrcSeed {
        IcrcSeed::new(self.addresses, self.source.port(), packet_bytes)
    }
}

/// The addresses for the CRC, with identification 0; both as IPv6 if their families differ.
pub fn icrc_addresses(source: IpAddr, destination: IpAddr) -> IcrcAddresses {
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            IcrcAddresses::V4 { source, destination, identification: 0, flags: DONT_FRAGMENT }
        }
        _ => IcrcAddresses::V6 { source: as_ipv6(source), destination: as_ipv6(destination) },
    }
}

/// Packets of one flow for one system call.
pub trait Outgoing {
    fn flow(&self) -> Option<&Flow>;
    fn packets(&self) -> usize;
    /// Length of every packet but the last, which may be shorter.
    fn segment_bytes(&self) -> usize;
    /// Number of bytes, from the base transport headers to the CRCs.
    fn bytes(&self) -> usize;
    /// Calls it with the pieces of the bytes, which are readable meanwhile.
    fn with_pieces<R>(&self, call: impl FnOnce(&[libc::iovec]) -> R) -> R;

    /// A copy of the bytes.
    fn copied(&self) -> Vec<u8> {
        // SAFETY: the pieces are readable, as `with_pieces` says.
        self.with_pieces(|pieces| unsafe { copied(pieces) })
    }

    /// Sends them as a whole or not at all, into the memory of a device of this process or else in one system call; never
    /// blocks.
    fn send_on(&self, by: &Attachment, flow: &Flow) -> io::Result<()> {
        let options = flow.send_options(self.packets(), self.segment_bytes());
        // SAFETY: the pieces are readable, as `with_pieces` says.
        self.with_pieces(|pieces| unsafe {
            match &flow.inbox {
                Some(inbox) if inbox.send(flow.source, pieces, &options) => Ok(()),
                _ => by.send(pieces, &options),
            }
        })
    }
}

/// The most packets of a GSO batch: Linux' limit for one datagram (UDP_MAX_SEGMENTS, since 6.9).
pub const MAX_GSO_BATCH_PACKETS: usize = 128;

/// The limit of older kernels.
pub const OLDER_GSO_BATCH_PACKETS: usize = 64;

/// The most bytes of a GSO batch: an IPv4 datagram without its headers.
pub const MAX_GSO_BATCH_BYTES: usize = 65_507;

/// The most packets of a GSO batch: more than older kernels take, if this one does.
pub fn most_packets() -> usize {
    static MOST: OnceLock<usize> = OnceLock::new();
    *MOST.get_or_init(|| match takes(MAX_GSO_BATCH_PACKETS) {
        Ok(()) => MAX_GSO_BATCH_PACKETS,
        Err(_) => OLDER_GSO_BATCH_PACKETS,
    })
}

/// Sends a batch of so many packets of one byte from a socket to itself.
fn takes(packets: usize) -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let options = SendOptions {
        destination: socket.local_addr()?,
        traffic_class: 0,
        hop_limit: 0,
        segment_bytes: Some(1),
    };
    let zeroes = [0; MAX_GSO_BATCH_PACKETS + 1];
    let bytes = zeroes.get(..packets).unwrap_or(&zeroes);
    let socket = Socket::from(OwnedFd::from(socket));
    Attachment::Udp(socket).send_bytes(bytes, &options)
}

/// Payloads up to this size are copied: that costs about as much as one more piece costs the kernel.
const COPIED_BYTES: usize = 512;
/// The most pieces of a payload sent from where they are; a packet with more is copied. With two of our own pieces
/// per packet the total stays within the system call's limit of 1,024 (UIO_MAXIOV).
const PIECES: usize = 6;
const IOVECS: usize = MAX_GSO_BATCH_PACKETS * (PIECES + 2);
/// All bytes of a batch may have to be copied.
const STAGING: Layout = match Layout::from_size_align(1 << 16, 64) {
    Ok(layout) => layout,
    Err(_) => Layout::new::<u64>(),
};

/// Consecutive packets of one flow for one system call (UDP GSO). All have one length; the last may be shorter.
pub struct GsoBatch {
    flow: Option<Flow>,
    /// Length of every packet but the last, and the seed of its CRC.
    segment_bytes: usize,
    seed: Option<IcrcSeed>,
    packets: usize,
    bytes: usize,
    /// Whether the last packet was shorter, which ends the batch.
    closed: bool,
    iovecs: Box<[libc::iovec; IOVECS]>,
    used_iovecs: usize,
    last_is_staged: bool,
    staging: Staging,
}

// SAFETY: the pointers are read only in `push` and `with_pieces`, and `push` has its caller keep the memory readable
// until the GSO batch is sent or begun anew, on whichever thread; the staging memory is the GSO batch's own.
unsafe impl Send for GsoBatch {}

impl GsoBatch {
    /// An empty batch with room for the largest.
    pub fn new() -> Box<GsoBatch> {
        let nothing = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        Box::new(GsoBatch {
            flow: None,
            segment_bytes: 0,
            seed: None,
            packets: 0,
            bytes: 0,
            closed: false,
            iovecs: Box::new([nothing; IOVECS]),
            used_iovecs: 0,
            last_is_staged: false,
            staging: Staging::new(),
        })
    }

    /// Clears it for packets of this flow.
    pub fn begin(&mut self, flow: &Flow) {
        if !self.is_for(flow) {
            self.flow = Some(flow.clone());
        }
        self.clear();
    }

    /// Whether its packets go this way.
    pub fn is_for(&self, flow: &Flow) -> bool {
        self.flow.as_ref() == Some(flow)
    }

    /// Whether a packet with these header and payload lengths may be added; the batch adds padding and CRC itself.
    pub fn takes(&self, header_bytes: usize, payload_bytes: usize) -> bool {
        let bytes = packet_bytes(header_bytes, payload_bytes);
        let most = self.flow.as_ref().map_or(0, |flow| flow.max_packets);
        let fits = self.packets == 0 || !self.closed && bytes <= self.segment_bytes;
        fits && self.packets < most && self.bytes + bytes <= MAX_GSO_BATCH_BYTES
    }

    /// Adds a packet: its headers from the base transport header, and the pieces of its payload, which make up
    /// `payload_bytes`. A packet that does not fit ([`GsoBatch::takes`]) is dropped, as if lost. With `copies` the payload
    /// may change afterwards.
    ///
    /// # Safety
    /// The pieces are readable until the GSO batch is sent or begun anew; with `copies`, during the call.
    pub unsafe fn push(
        &mut self,
        headers: &[u8],
        payload_bytes: usize,
        pieces: impl Iterator<Item = (*const u8, usize)> + Clone,
        copies: bool,
    ) {
        if !self.takes(headers.len(), payload_bytes) {
            return;
        }
        let slices = pieces
            .filter(|(_, bytes)| *bytes > 0)
            // SAFETY: the caller vouches for them.
            .map(|(from, bytes)| unsafe { slice::from_raw_parts(from, bytes) });
        if copies || payload_bytes <= COPIED_BYTES || slices.clone().count() > PIECES {
            self.push_copied(headers, payload_bytes, slices);
        } else if slices.clone().map(<[u8]>::len).sum::<usize>() == payload_bytes {
            self.push_in_place(headers, payload_bytes, slices);
        }
    }

    fn push_copied<'a>(
        &mut self,
        headers: &[u8],
        payload_bytes: usize,
        pieces: impl Iterator<Item = &'a [u8]>,
    ) {
        let start = self.staging.used;
        let mut copied = self.staging.append(headers);
        for piece in pieces {
            copied &= self.staging.append(piece);
        }
        if !copied || self.staging.used - start != headers.len() + payload_bytes {
            self.staging.used = start;
            return;
        }
        self.staging.append(padding(payload_bytes));
        let bytes = packet_bytes(headers.len(), payload_bytes);
        let seed = self.account(bytes);
        let crc = match seed {
            Some(seed) if !self.is_of_small_packets() => seed.over(self.staging.since(start)),
            _ => 0,
        };
        self.staging.append(&crc.to_le_bytes());
        self.add_staged(start);
    }

    /// Adds a packet whose payload stays where it is.
    fn push_in_place<'a>(
        &mut self,
        headers: &[u8],
        payload_bytes: usize,
        pieces: impl Iterator<Item = &'a [u8]>,
    ) {
        let start = self.staging.used;
        self.staging.append(headers);
        self.add_staged(start);
        let Some(seed) = self.account(packet_bytes(headers.len(), payload_bytes)) else {
            return;
        };
        let mut crc = seed.start(headers);
        for piece in pieces {
            crc.update(piece);
            self.add_iovec(piece.as_ptr().cast_mut(), piece.len());
            self.last_is_staged = false;
        }
        let tail = self.staging.used;
        let padding = padding(payload_bytes);
        crc.update(padding);
        self.staging.append(padding);
        self.staging.append(&crc.finish().to_le_bytes());
        self.add_staged(tail);
    }

    /// Counts a packet; returns its CRC seed.
    fn account(&mut self, bytes: usize) -> Option<IcrcSeed> {
        if self.packets == 0 {
            self.segment_bytes = bytes;
            self.seed = self.flow.as_ref().map(|flow| flow.seed(bytes));
        }
        let seed = self.seed_at(self.packets, bytes);
        self.closed = bytes != self.segment_bytes;
        self.packets += 1;
        self.bytes += bytes;
        seed
    }

    /// The CRC seed of the packet at `place`.
    fn seed_at(&self, place: usize, bytes: usize) -> Option<IcrcSeed> {
        let flow = self.flow.as_ref()?;
        let seed = if bytes == self.segment_bytes { self.seed? } else { flow.seed(bytes) };
        Some(if flow.destination.is_ipv4() { seed.flip_identification(place as u16) } else { seed })
    }

    /// Whether all packets are so short that they are copied.
    fn is_of_small_packets(&self) -> bool {
        self.segment_bytes <= COPIED_BYTES
    }

    /// Finishes the packets, which must be done before they are sent. It computes the CRCs of small ones: right after
    /// they were copied, each would have to wait until its bytes have reached the cache.
    pub fn finish(&mut self) {
        if !self.is_of_small_packets() {
            return;
        }
        for place in 0..self.packets {
            let start = place * self.segment_bytes;
            let end = (start + self.segment_bytes).min(self.bytes);
            if let Some(seed) = self.seed_at(place, end - start)
                && let Some(packet) = self.staging.since(start).get_mut(..end - start)
                && let Some((body, tail)) = packet.split_last_chunk_mut::<ICRC_BYTES>()
            {
                *tail = seed.over(body).to_le_bytes();
            }
        }
    }

    /// Appends the staging memory from `start` to the pieces.
    fn add_staged(&mut self, start: usize) {
        let bytes = self.staging.used - start;
        let last = self.used_iovecs.wrapping_sub(1);
        match self.iovecs.get_mut(last) {
            // The new bytes directly follow the last staged piece.
            Some(last) if self.last_is_staged => last.iov_len += bytes,
            _ => self.add_iovec(self.staging.at(start), bytes),
        }
        self.last_is_staged = true;
    }

    fn add_iovec(&mut self, start: *mut u8, bytes: usize) {
        if let Some(next) = self.iovecs.get_mut(self.used_iovecs) {
            next.iov_base = start.cast();
            next.iov_len = bytes;
            self.used_iovecs += 1;
        }
    }

    pub fn clear(&mut self) {
        self.segment_bytes = 0;
        self.seed = None;
        self.packets = 0;
        self.bytes = 0;
        self.closed = false;
        self.used_iovecs = 0;
        self.last_is_staged = false;
        self.staging.used = 0;
    }

    /// The first byte of each packet, which has its opcode.
    pub(super) fn opcodes(&self) -> [u8; MAX_GSO_BATCH_PACKETS] {
        let mut opcodes = [0; MAX_GSO_BATCH_PACKETS];
        let mut places = opcodes.iter_mut().take(self.packets);
        let (mut packet_at, mut piece_at) = (0, 0);
        for piece in self.pieces() {
            while packet_at < piece_at + piece.iov_len
                && let Some(opcode) = places.next()
            {
                let byte = piece.iov_base.cast::<u8>().wrapping_add(packet_at - piece_at);
                // SAFETY: within the piece; as in `with_pieces`.
                *opcode = unsafe { byte.read() };
                packet_at += self.segment_bytes;
            }
            piece_at += piece.iov_len;
        }
        opcodes
    }

    /// A copy of each of its packets.
    pub(super) fn copied_packets(&self) -> impl Iterator<Item = Vec<u8>> {
        let packets: Vec<_> =
            self.copied().chunks(self.segment_bytes.max(1)).map(<[u8]>::to_vec).collect();
        packets.into_iter()
    }

    fn pieces(&self) -> &[libc::iovec] {
        self.iovecs.get(..self.used_iovecs).unwrap_or_default()
    }
}

impl Outgoing for GsoBatch {
    fn flow(&self) -> Option<&Flow> {
        self.flow.as_ref()
    }

    fn packets(&self) -> usize {
        self.packets
    }

    fn segment_bytes(&self) -> usize {
        self.segment_bytes
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    /// They are staging memory or what `push`'s caller promised to keep until now.
    fn with_pieces<R>(&self, call: impl FnOnce(&[libc::iovec]) -> R) -> R {
        call(self.pieces())
    }
}

/// The bytes that pad a payload of this length to a multiple of 4.
fn padding(payload_bytes: usize) -> &'static [u8] {
    let bytes = payload_bytes.wrapping_neg() & 3;
    [0; 3].get(..bytes).unwrap_or_default()
}

/// A packet's length: headers, payload, padding, CRC.
fn packet_bytes(header_bytes: usize, payload_bytes: usize) -> usize {
    header_bytes + payload_bytes.next_multiple_of(4) + ICRC_BYTES
}

/// Staging memory, which the system call reads. All accesses use this one pointer, because the pieces hold copies of
/// it.
struct Staging {
    memory: NonNull<u8>,
    used: usize,
}

impl Staging {
    fn new() -> Staging {
        // SAFETY: the layout is not of zero bytes.
        let memory = NonNull::new(unsafe { std::alloc::alloc_zeroed(STAGING) });
        let Some(memory) = memory else { std::alloc::handle_alloc_error(STAGING) };
        Staging { memory, used: 0 }
    }

    /// A pointer to offset `at`.
    fn at(&self, at: usize) -> *mut u8 {
        self.memory.as_ptr().wrapping_add(at)
    }

    /// Appends the bytes; `false` if there is no room.
    fn append(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() > STAGING.size() - self.used {
            return false;
        }
        // SAFETY: there is room, and the bytes are not of this memory, which nobody else has a reference to.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at(self.used), bytes.len()) };
        self.used += bytes.len();
        true
    }

    /// The bytes appended from `start`.
    fn since(&mut self, start: usize) -> &mut [u8] {
        let from = start.min(self.used);
        // SAFETY: within the memory, initialized, and lent for as long as `self` is.
        unsafe { slice::from_raw_parts_mut(self.at(from), self.used - from) }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and not used any more.
        unsafe { std::alloc::dealloc(self.memory.as_ptr(), STAGING) };
    }
}

/// Consecutive packets of one flow for one system call. All have one length; the last may be shorter.
pub struct CopiedBatch {
    flow: Option<Flow>,
    segment_bytes: usize,
    packets: usize,
    /// Whether the last packet was shorter, which ends the batch.
    closed: bool,
    bytes: Vec<u8>,
    /// For packets of this length, with the CRC.
    shift: Option<(usize, IdentificationShift)>,
}

impl CopiedBatch {
    /// An empty batch with room for the largest.
    pub fn new() -> CopiedBatch {
        CopiedBatch {
            flow: None,
            segment_bytes: 0,
            packets: 0,
            closed: false,
            bytes: Vec::with_capacity(MAX_GSO_BATCH_BYTES),
            shift: None,
        }
    }

    /// A copy of packets on their way.
    pub fn from_outgoing(flow: &Flow, outgoing: &impl Outgoing) -> CopiedBatch {
        CopiedBatch {
            flow: Some(flow.clone()),
            segment_bytes: outgoing.segment_bytes(),
            packets: outgoing.packets(),
            closed: true,
            bytes: outgoing.copied(),
            shift: None,
        }
    }

    /// Adds a packet whose CRC is right at `place` of a GSO batch; `false` if it does not fit.
    pub fn push(&mut self, flow: &Flow, place: u16, packet: &[u8], most_packets: usize) -> bool {
        if self.packets == 0 {
            self.flow = Some(flow.clone());
            self.segment_bytes = packet.len();
        }
        let fits = !self.closed
            && self.packets < most_packets
            && packet.len() <= self.segment_bytes
            && self.bytes.len() + packet.len() <= MAX_GSO_BATCH_BYTES
            && self.flow.as_ref() == Some(flow);
        if !fits {
            return false;
        }
        self.bytes.extend_from_slice(packet);
        self.closed = packet.len() < self.segment_bytes;
        let moved = place ^ self.packets as u16;
        self.packets += 1;
        if moved != 0 && flow.destination.is_ipv4() {
            let change = self.shift_for(packet.len()).change(moved);
            // What damaged the packet stays in it: only the move is added.
            if let Some(crc) = self.bytes.last_chunk_mut::<ICRC_BYTES>() {
                *crc = (u32::from_le_bytes(*crc) ^ change).to_le_bytes();
            }
        }
        true
    }

    fn shift_for(&mut self, packet_bytes: usize) -> IdentificationShift {
        match self.shift {
            Some((bytes, shift)) if bytes == packet_bytes => shift,
            _ => {
                let shift = IdentificationShift::over(packet_bytes.saturating_sub(ICRC_BYTES));
                self.shift = Some((packet_bytes, shift));
                shift
            }
        }
    }

    pub fn clear(&mut self) {
        self.packets = 0;
        self.closed = false;
        self.bytes.clear();
    }
}

impl Outgoing for CopiedBatch {
    fn flow(&self) -> Option<&Flow> {
        self.flow.as_ref()
    }

    fn packets(&self) -> usize {
        self.packets
    }

    fn segment_bytes(&self) -> usize {
        self.segment_bytes
    }

    fn bytes(&self) -> usize {
        self.bytes.len()
    }

    fn with_pieces<R>(&self, call: impl FnOnce(&[libc::iovec]) -> R) -> R {
        call(&[piece_of(&self.bytes)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_of_the_most_packets_is_taken_and_a_longer_one_is_not() {
        let most = most_packets();
        assert!(takes(most).is_ok());
        assert!(takes(most + 1).is_err());
    }
}
