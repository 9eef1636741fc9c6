//! The GSO batch that each thread uses for building packets.
#![allow(unsafe_code)]

use std::cell::RefCell;

use crate::net::GsoBatch;
use crate::wire::Packet;

thread_local! {
    static GSO_BATCH: RefCell<Box<GsoBatch>> = RefCell::new(GsoBatch::new());
}

/// Calls `work` with the thread's GSO batch, so that building one allocates nothing.
pub(super) fn with_gso_batch<R>(work: impl FnOnce(&mut GsoBatch) -> R) -> R {
    GSO_BATCH.with_borrow_mut(|gso_batch| work(gso_batch))
}

/// Adds a packet to a GSO batch. The pieces of its payload make up `payload_bytes`.
///
/// # Safety
/// The pieces stay readable until the GSO batch is sent.
pub(super) unsafe fn push(
    gso_batch: &mut GsoBatch,
    packet: &Packet<'_>,
    payload_bytes: usize,
    pieces: impl Iterator<Item = (*const u8, usize)>,
) {
    let mut headers = [0; Packet::HEADER_ROOM];
    let length = packet.headers_for(payload_bytes, &mut headers);
    let headers = headers.get(..length).unwrap_or_default();
    // SAFETY: the caller vouches for the pieces.
    unsafe { gso_batch.push(headers, pieces) };
}
