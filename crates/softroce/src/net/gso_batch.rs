//! A GSO batch: packets sent by one system call. Large payloads are sent from where they are; headers, CRCs and small
//! payloads are copied into one buffer. All memory is allocated when the batch is created.
//!
//! The kernel numbers the packets of a GSO batch by their IPv4 identification, 0, 1, 2 …, and the invariant CRC
//! covers that field, so a packet's CRC depends on its position.
#![allow(unsafe_code)]

use std::alloc::Layout;
use std::ptr::NonNull;
use std::{io, slice};

use super::fabric::Attachment;
use super::flow::Flow;
use super::gso_batch_limits::{MAX_GSO_BATCH_BYTES, MAX_GSO_BATCH_PACKETS};
use super::outgoing::Outgoing;
use crate::wire::{ICRC_BYTES, IcrcSeed};

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

// SAFETY: the pointers are read only in `push` and `send_on`, and `push` has its caller keep the memory readable
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
        let pieces = pieces
            .filter(|(_, bytes)| *bytes > 0)
            // SAFETY: the caller vouches for them.
            .map(|(from, bytes)| unsafe { slice::from_raw_parts(from, bytes) });
        if copies || payload_bytes <= COPIED_BYTES || pieces.clone().count() > PIECES {
            self.push_copied(headers, payload_bytes, pieces);
        } else if pieces.clone().map(<[u8]>::len).sum::<usize>() == payload_bytes {
            self.push_in_place(headers, payload_bytes, pieces);
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
                // SAFETY: within the piece; as in `send_on`.
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

    fn copied(&self) -> Vec<u8> {
        let mut copy = Vec::with_capacity(self.bytes);
        for piece in self.pieces() {
            // SAFETY: as in `send_on`.
            copy.extend_from_slice(unsafe {
                slice::from_raw_parts(piece.iov_base.cast(), piece.iov_len)
            });
        }
        copy
    }

    fn send_on(&self, by: &Attachment, flow: &Flow) -> io::Result<()> {
        let options = flow.send_options(self.packets, self.segment_bytes);
        // SAFETY: the pieces are staging memory or what `push`'s caller promised to keep until now.
        unsafe { by.send(self.pieces(), &options) }
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
        let start = start.min(self.used);
        // SAFETY: within the memory, initialized, and lent for as long as `self` is.
        unsafe { slice::from_raw_parts_mut(self.at(start), self.used - start) }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and not used any more.
        unsafe { std::alloc::dealloc(self.memory.as_ptr(), STAGING) };
    }
}
