//! A GSO batch: packets sent by one system call. Large payloads are sent from where they are; headers, CRCs and small
//! payloads are copied into one buffer. All memory is allocated when the batch is created.
//!
//! The kernel numbers the packets of a GSO batch by their IPv4 identification, 0, 1, 2 …, and the invariant CRC
//! covers that field, so a packet's CRC depends on its position.
#![allow(unsafe_code)]

use std::alloc::Layout;
use std::io;
use std::ptr::NonNull;
use std::slice;

use super::flow::Flow;
use super::gso_batch_limits::{MAX_GSO_BATCH_BYTES, MAX_GSO_BATCH_PACKETS};
use super::sockets::{SendOptions, Socket};
use crate::wire::{ICRC_BYTES, IcrcSeed};

/// Payloads up to this size are copied: that costs about as much as one more piece costs the kernel.
const COPIED_BYTES: usize = 512;
/// The most pieces of a payload sent from where they are; a packet with more is copied. With two of our own pieces
/// per packet the total stays below the system call's limit of 1,024 (UIO_MAXIOV).
const PIECES: usize = 12;
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
        let nothing = libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
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
        self.flow = Some(flow.clone());
        self.clear();
    }

    /// Whether a packet with these header and payload lengths may be added; the batch adds padding and CRC itself.
    pub fn takes(&self, header_bytes: usize, payload_bytes: usize) -> bool {
        let bytes = packet_bytes(header_bytes, payload_bytes);
        let most = self.flow.as_ref().map_or(0, |flow| flow.max_packets);
        let fits = self.packets == 0 || !self.closed && bytes <= self.segment_bytes;
        fits && self.packets < most && self.bytes + bytes <= MAX_GSO_BATCH_BYTES
    }

    /// Adds a packet: its headers from the base transport header, and its payload in pieces. A packet that does not
    /// fit ([`GsoBatch::takes`]) is dropped, as if lost.
    ///
    /// # Safety
    /// The pieces are readable until the GSO batch is sent or begun anew.
    pub unsafe fn push(
        &mut self,
        headers: &[u8],
        payload: impl Iterator<Item = (*const u8, usize)>,
    ) {
        let mut payload = payload.filter(|(_, bytes)| *bytes > 0);
        let mut pieces: [&[u8]; PIECES] = [&[]; PIECES];
        let mut payload_bytes = 0;
        for (piece, (start, bytes)) in pieces.iter_mut().zip(payload.by_ref()) {
            // SAFETY: the caller has it readable until the GSO batch is sent, which is after this function.
            *piece = unsafe { slice::from_raw_parts(start, bytes) };
            payload_bytes += bytes;
            if payload_bytes > MAX_GSO_BATCH_BYTES {
                return;
            }
        }
        // `zip` asks its first iterator first, so it drops no piece.
        let mut more = payload.peekable();
        if more.peek().is_some() || payload_bytes <= COPIED_BYTES {
            let start = self.staging.used;
            let mut copied = self.staging.append(headers);
            for piece in pieces {
                copied &= self.staging.append(piece);
            }
            for (start, bytes) in more {
                // SAFETY: as above.
                copied &= self
                    .staging
                    .append(unsafe { slice::from_raw_parts(start, bytes) });
                payload_bytes += bytes;
            }
            if !copied || !self.takes(headers.len(), payload_bytes) {
                self.staging.used = start;
                return;
            }
            self.finish_copied(start, packet_bytes(headers.len(), payload_bytes));
        } else if self.takes(headers.len(), payload_bytes) {
            self.push_in_place(headers, &pieces, payload_bytes);
        }
    }

    /// Finishes a packet whose headers and payload are in the staging memory from `start`.
    fn finish_copied(&mut self, start: usize, bytes: usize) {
        let padding = start + bytes - ICRC_BYTES - self.staging.used;
        self.staging
            .append([0; 3].get(..padding).unwrap_or_default());
        if let Some(seed) = self.account(bytes) {
            let crc = seed.over(self.staging.since(start));
            self.staging.append(&crc.to_le_bytes());
        }
        self.add_staged(start);
    }

    /// Adds a packet whose payload stays where it is.
    fn push_in_place(&mut self, headers: &[u8], pieces: &[&[u8]; PIECES], payload_bytes: usize) {
        let start = self.staging.used;
        self.staging.append(headers);
        self.add_staged(start);
        let Some(seed) = self.account(packet_bytes(headers.len(), payload_bytes)) else {
            return;
        };
        let mut crc = seed.start();
        crc.transport_headers(headers);
        for piece in pieces.iter().take_while(|piece| !piece.is_empty()) {
            crc.update(piece);
            self.add_iovec(piece.as_ptr().cast_mut(), piece.len());
            self.last_is_staged = false;
        }
        let tail = self.staging.used;
        let padding = [0; 3];
        let padding = padding.get(..payload_bytes.wrapping_neg() & 3);
        let padding = padding.unwrap_or_default();
        crc.update(padding);
        self.staging.append(padding);
        self.staging.append(&crc.finish().to_le_bytes());
        self.add_staged(tail);
    }

    /// Counts a packet; returns its CRC seed.
    fn account(&mut self, bytes: usize) -> Option<IcrcSeed> {
        let flow = self.flow.as_ref()?;
        if self.packets == 0 {
            self.segment_bytes = bytes;
            self.seed = Some(flow.seed(bytes));
        }
        let seed = if bytes == self.segment_bytes {
            self.seed?
        } else {
            self.closed = true;
            flow.seed(bytes)
        };
        let place = self.packets as u16;
        self.packets += 1;
        self.bytes += bytes;
        Some(match flow.destination.is_ipv4() {
            true => seed.flip_identification(place),
            false => seed,
        })
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

    /// Number of packets.
    pub fn packets(&self) -> usize {
        self.packets
    }

    /// Number of bytes, from the base transport headers to the CRCs.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn flow(&self) -> Option<&Flow> {
        self.flow.as_ref()
    }

    /// Removes all packets.
    pub(super) fn clear(&mut self) {
        self.segment_bytes = 0;
        self.seed = None;
        self.packets = 0;
        self.bytes = 0;
        self.closed = false;
        self.used_iovecs = 0;
        self.last_is_staged = false;
        self.staging.used = 0;
    }

    /// Sends it.
    pub(super) fn send_on(&self, socket: &Socket, flow: &Flow) -> io::Result<()> {
        let options = SendOptions {
            segment_bytes: (self.packets > 1).then_some(self.segment_bytes as u16),
            ..flow.send_options()
        };
        // SAFETY: the pieces are staging memory or what `push`'s caller promised to keep until now.
        unsafe { socket.send(self.pieces(), &options) }
    }

    /// A copy of its bytes.
    pub(super) fn copied(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.bytes);
        for piece in self.pieces() {
            // SAFETY: as in `send_on`.
            all.extend_from_slice(unsafe {
                slice::from_raw_parts(piece.iov_base.cast(), piece.iov_len)
            });
        }
        all
    }

    /// A copy of each of its packets.
    pub(super) fn copied_packets(&self) -> impl Iterator<Item = Vec<u8>> {
        let all = self.copied();
        let packets: Vec<_> = all
            .chunks(self.segment_bytes.max(1))
            .map(<[u8]>::to_vec)
            .collect();
        packets.into_iter()
    }

    fn pieces(&self) -> &[libc::iovec] {
        self.iovecs.get(..self.used_iovecs).unwrap_or_default()
    }
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
        let Some(memory) = memory else {
            std::alloc::handle_alloc_error(STAGING)
        };
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
