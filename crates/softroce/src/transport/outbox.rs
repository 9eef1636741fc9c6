//! Packets on their way out. Those of any QPs that go the same way share GSO batches; [`QpWork`] is the context in
//! which both halves of a QP add them, and QPs whose packets leave together stay locked until these are sent, so
//! that no other thread's overtake them.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use crate::net::{Flow, GsoBatch, Outgoing};
use crate::transport::device::{Core, Tables};
use crate::transport::memory::Access;
use crate::transport::peer::DATAGRAM_OVERHEAD_BYTES;
use crate::transport::qp_state::{QpContext, Requester};
use crate::transport::windows::User;
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

    fn sent_batches(&self) -> u64 {
        self.sent_batches
    }

    pub(crate) fn flush(&mut self) {
        if self.gso_batch.packets() > 0 {
            self.core.send(self.gso_batch);
            self.sent_batches += 1;
        }
    }
}

/// The device, its tables locked for reading, and the QP.
#[derive(Clone, Copy)]
pub(crate) struct QpWork<'a> {
    pub(crate) core: &'a Core,
    pub(crate) tables: &'a Tables,
    pub(crate) qp: &'a QpContext,
    /// The current time, read shortly before.
    pub(crate) now_ns: u64,
}

impl QpWork<'_> {
    /// Runs `step` on the requester, then does the work that must not be done under its lock.
    pub(crate) fn with_requester(self, step: impl FnOnce(&mut Requester, QpWork<'_>)) {
        let mut requester = self.qp.requester.lock();
        step(&mut requester, self);
        let broke = requester.take_broke();
        drop(requester);
        if broke {
            self.qp.flush_receives();
            self.core.release_waiting();
        }
    }

    /// A pointer to registered memory, if it is of the QP's protection domain and allows this.
    pub(crate) fn resolve(
        self,
        key: u32,
        address: u64,
        length_bytes: u64,
        need: Access,
    ) -> Option<*mut u8> {
        let memories = &self.tables.memories;
        memories.resolve(key, self.qp.pd, address, length_bytes, need)
    }

    /// As [`QpWork::resolve`], for a key that the peer has, which may be that of a memory window.
    pub(crate) fn resolve_remote(
        self,
        key: u32,
        address: u64,
        length_bytes: u64,
        need: Access,
    ) -> Option<*mut u8> {
        let memories = &self.tables.memories;
        memories.resolve_remote(key, self.user(), address, length_bytes, need)
    }

    /// Whose keys are used.
    pub(crate) fn user(self) -> User {
        User { pd: self.qp.pd, qpn: self.qp.number }
    }

    /// Adds an acknowledgement that the QP owes behind the requests that it has just added.
    pub(crate) fn append_acknowledgement(self, outbox: &mut Outbox<'_>) {
        if self.qp.owes.load(Ordering::Relaxed)
            && let Some(mut responder) = self.qp.responder.try_lock()
        {
            responder.append_acknowledgement(self, outbox);
        }
    }
}

/// How many QPs may be locked at once for the packets in the outbox.
const HELD_QPS: usize = 64;

/// Locked QPs that have packets in the outbox.
pub(crate) struct Held<'a> {
    requesters: [Option<MutexGuard<'a, Requester>>; HELD_QPS],
    count: usize,
}

impl<'a> Held<'a> {
    pub(crate) fn new() -> Held<'a> {
        Held { requesters: [const { None }; HELD_QPS], count: 0 }
    }

    /// Locks a QP and lets it add packets.
    pub(crate) fn add(
        &mut self,
        work: QpWork<'a>,
        outbox: &mut Outbox<'_>,
        transmit: impl FnOnce(&mut Requester, &mut Outbox<'_>),
    ) {
        let free = work.qp.requester.try_lock();
        if free.is_none() || self.count == HELD_QPS {
            // Waiting with other QPs locked could be for a thread that waits for those.
            self.send(outbox);
        }
        let mut requester = free.unwrap_or_else(|| work.qp.requester.lock());
        let before = outbox.sent_batches();
        transmit(&mut requester, outbox);
        if outbox.sent_batches() > before {
            self.release();
        }
        if requester.take_broke() {
            outbox.flush();
            drop(requester);
            work.qp.flush_receives();
            work.core.release_waiting();
        } else if let Some(place) = self.requesters.get_mut(self.count) {
            *place = Some(requester);
            self.count += 1;
        }
    }

    /// Sends the packets and unlocks the QPs.
    pub(crate) fn send(&mut self, outbox: &mut Outbox<'_>) {
        outbox.flush();
        self.release();
    }

    fn release(&mut self) {
        let held = self.requesters.get_mut(..self.count);
        held.unwrap_or_default().fill_with(|| None);
        self.count = 0;
    }
}
