//! Trains of packets that are being built: each thread has one, and packets are added with their headers.

use std::cell::RefCell;

use crate::net::Train;
use crate::wire::Packet;

thread_local! {
    static TRAIN: RefCell<Box<Train>> = RefCell::new(Train::new());
}

/// Lends the thread's train, so that building one allocates nothing.
pub(super) fn with_train<R>(work: impl FnOnce(&mut Train) -> R) -> R {
    TRAIN.with_borrow_mut(|train| work(train))
}

/// Adds a packet to a train, its payload in pieces that make up `payload_bytes`.
///
/// # Safety
/// The pieces stay readable until the train is sent.
pub(super) unsafe fn push(
    train: &mut Train,
    packet: &Packet<'_>,
    payload_bytes: usize,
    pieces: impl Iterator<Item = (*const u8, usize)>,
) {
    let mut headers = [0; Packet::HEADER_ROOM];
    let length = packet.headers_for(payload_bytes, &mut headers);
    let headers = headers.get(..length).unwrap_or_default();
    // SAFETY: the caller vouches for the pieces.
    unsafe { train.push(headers, pieces) };
}
