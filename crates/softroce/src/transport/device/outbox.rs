//! Packets on their way out. Those of any QPs that go the same way share GSO batches. It must not know QPs.
#![allow(unsafe_code)]

use std::cell::Cell;

use crate::net::{Flow, GsoBatch, Outgoing};
use crate::transport::device::core::Core;
use crate::transport::device::tables::Tables;
use crate::transport::peer::DATAGRAM_OVERHEAD_BYTES;
use crate::wire::Packet;

thread_local! {
    static GSO_BATCH: Cell<Option<Box<GsoBatch>>> = const { Cell::new(None) };
}

/// What becomes of a payload until it is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// It may be sent from where it is: the program must not change it before the completion.
    InPlace,
    /// It is copied now, and the CRC is of the copy: the program may change it at any time.
    Copied,
}

/// Packets that have not been sent yet.
pub(crate) struct Outbox<'a> {
    core: &'a Core,
    /// Locked until all is sent, so that the memory of the payloads stays registered.
    _tables: &'a Tables,
    gso_batch: &'a mut GsoBatch,
    sent_batches: u64,
}

impl Outbox<'_> {
    /// Calls `fill` with an outbox, and sends what it leaves there. Each thread keeps one, so that nothing is allocated; a
    /// thread whose storage is gone, as in the functions of atexit(3), makes a new one each time.
    pub(crate) fn with<R>(
        core: &Core,
        tables: &Tables,
        fill: impl FnOnce(&mut Outbox<'_>) -> R,
    ) -> R {
        let kept = GSO_BATCH.try_with(Cell::take);
        let mut gso_batch = kept.ok().flatten().unwrap_or_else(GsoBatch::new);
        gso_batch.clear();
        let mut outbox =
            Outbox { core, _tables: tables, gso_batch: &mut gso_batch, sent_batches: 0 };
        let result = fill(&mut outbox);
        outbox.flush();
        let _ = GSO_BATCH.try_with(|place| place.set(Some(gso_batch)));
        result
    }

    /// Adds a packet; the pieces of its payload make up `payload_bytes`. Returns how many bytes it takes of the peer's
    /// receive buffer.
    ///
    /// # Safety
    /// The pieces stay readable until the outbox is flushed: they are memory that the outbox' tables have, or they are
    /// copied.
    pub(crate) unsafe fn push(
        &mut self,
        flow: &Flow,
        packet: &Packet<'_>,
        payload_bytes: usize,
        pieces: impl Iterator<Item = (*const u8, usize)> + Clone,
        keep: Keep,
    ) -> usize {
        let mut room = [0; Packet::HEADER_ROOM];
        let length = packet.headers_for(payload_bytes, &mut room);
        let headers = room.get(..length).unwrap_or_default();
        // SAFETY: as the caller's.
        unsafe { self.add(flow, headers, payload_bytes, pieces, keep) }
    }

    /// Adds a packet with a copy of this payload. Returns as [`Outbox::push`].
    pub(crate) fn push_copy(&mut self, flow: &Flow, packet: &Packet<'_>, payload: &[u8]) -> usize {
        let piece = std::iter::once((payload.as_ptr(), payload.len()));
        // SAFETY: it is copied.
        unsafe { self.push(flow, packet, payload.len(), piece, Keep::Copied) }
    }

    /// Adds a packet without payload. Returns as [`Outbox::push`].
    pub(crate) fn push_bare(&mut self, flow: &Flow, packet: &Packet<'_>) -> usize {
        self.push_copy(flow, packet, &[])
    }

    /// Adds a packet that is nothing but these headers.
    pub(crate) fn push_headers(&mut self, flow: &Flow, headers: &[u8]) {
        // SAFETY: there is no payload.
        unsafe { self.add(flow, headers, 0, std::iter::empty(), Keep::Copied) };
    }

    /// # Safety
    /// As of [`Outbox::push`].
    unsafe fn add(
        &mut self,
        flow: &Flow,
        headers: &[u8],
        payload_bytes: usize,
        pieces: impl Iterator<Item = (*const u8, usize)> + Clone,
        keep: Keep,
    ) -> usize {
        if !self.fits(flow, headers.len(), payload_bytes) {
            self.flush();
            self.gso_batch.begin(flow);
        }
        let before = self.gso_batch.bytes();
        // SAFETY: the caller vouches for the pieces.
        unsafe {
            self.gso_batch.push(headers, payload_bytes, pieces, keep == Keep::Copied);
        }
        let overhead = if before == 0 { DATAGRAM_OVERHEAD_BYTES } else { 0 };
        self.gso_batch.bytes() - before + overhead
    }

    /// Whether a packet of these lengths would leave with others that go this way.
    pub(crate) fn has_company(
        &self,
        flow: &Flow,
        header_bytes: usize,
        payload_bytes: usize,
    ) -> bool {
        self.gso_batch.packets() > 0 && self.fits(flow, header_bytes, payload_bytes)
    }

    /// Whether the batch takes a packet of these lengths.
    fn fits(&self, flow: &Flow, header_bytes: usize, payload_bytes: usize) -> bool {
        self.gso_batch.is_for(flow)
            && self.gso_batch.packets() < self.core.transmitter.max_gso_batch_packets(flow)
            && self.gso_batch.takes(header_bytes, payload_bytes)
    }

    pub(crate) fn sent_batches(&self) -> u64 {
        self.sent_batches
    }

    pub(crate) fn flush(&mut self) {
        if self.gso_batch.packets() > 0 {
            self.core.send(self.gso_batch);
            self.sent_batches += 1;
        }
    }
}
