//! Packets between devices of one process, without the kernel. A device's inbox is its receive buffer in memory, bounded as
//! its socket's is. What comes there is what would come by a socket: whole GSO batches, with headers and CRCs.
//!
//! A datagram is copied once, into memory that the receiver takes as it is; a socket copies it in and out.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, MutexGuard, OnceLock, Weak};

use provider::Lock;

use super::common::{Counters, Generation};
use super::sockets::{BATCH, Batch, DATAGRAM_BYTES, SendOptions, Slot};

/// What a datagram takes of the room besides its bytes, as in a socket: about what the kernel counts.
const OVERHEAD_BYTES: usize = 768;

/// The most bytes of a short datagram.
const SHORT_BYTES: usize = 8 << 10;

/// A device's receive buffer for packets of this process.
pub struct Inbox {
    address: IpAddr,
    /// The first bits of the QP numbers that are the device's, where others may have the address too.
    slot: Option<u8>,
    generation: Generation,
    /// The device's, which counts datagrams that find no room.
    counters: Arc<Counters>,
    datagrams: Lock<Datagrams>,
    /// How many wait, readable without the lock.
    count: AtomicUsize,
    on_arrival: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// Whether answers may come by the socket as well.
    has_company: AtomicBool,
}

struct Datagrams {
    waiting: VecDeque<Slot>,
    /// Memory for short datagrams. The one that was given back last is used first: it is in a cache.
    spare_short: Vec<Slot>,
    /// Memory for long ones, used in turn: what the receiver has just read is in its core's cache, from which the sender's
    /// stores would have to fetch each line.
    spare_long: VecDeque<Slot>,
    /// What those that wait, or are being written, take of the room.
    bytes: usize,
    /// The most of it; `None` when the device is closed.
    room_bytes: Option<usize>,
}

/// The inboxes of this process, and of those that it was forked from.
static INBOXES: Lock<Vec<Weak<Inbox>>> = Lock::new(Vec::new());

/// All inboxes, which nobody looks for meanwhile: held by a thread that forks.
pub type Inboxes = MutexGuard<'static, Vec<Weak<Inbox>>>;

pub fn inboxes() -> Inboxes {
    INBOXES.lock()
}

impl PartialEq for Inbox {
    /// Whether it is the same one.
    fn eq(&self, other: &Inbox) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Inbox {}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "inbox of {}", self.address)
    }
}

impl Inbox {
    /// An inbox that senders of this process find, until it is closed.
    pub(super) fn new(
        address: IpAddr,
        slot: Option<u8>,
        room_bytes: usize,
        counters: Arc<Counters>,
    ) -> Arc<Inbox> {
        let inbox = Arc::new(Inbox {
            address,
            slot,
            generation: Generation::current(),
            counters,
            datagrams: Lock::new(Datagrams {
                waiting: VecDeque::new(),
                spare_short: Vec::new(),
                spare_long: VecDeque::new(),
                bytes: 0,
                room_bytes: Some(room_bytes),
            }),
            count: AtomicUsize::new(0),
            on_arrival: OnceLock::new(),
            has_company: AtomicBool::new(false),
        });
        let mut inboxes = inboxes();
        inboxes.retain(|known| known.strong_count() > 0);
        inboxes.push(Arc::downgrade(&inbox));
        inbox
    }

    /// The inbox of the device of this process that has QPs of this slot at this address.
    pub(super) fn find(address: IpAddr, slot: u8) -> Option<Arc<Inbox>> {
        let generation = Generation::current();
        inboxes().iter().filter_map(Weak::upgrade).find(|inbox| {
            inbox.address == address
                && inbox.slot.is_none_or(|own| own == slot)
                && inbox.generation == generation
        })
    }

    /// Senders find it no more, and what they send here is lost.
    pub(super) fn close(&self) {
        inboxes().retain(|known| !std::ptr::eq(known.as_ptr(), self));
        let mut datagrams = self.datagrams.lock();
        datagrams.room_bytes = None;
        datagrams.waiting.clear();
        self.count.store(0, Ordering::SeqCst);
    }

    /// Sets what is called, by the sender, whenever a datagram has come.
    pub fn on_arrival(&self, call: impl Fn() + Send + Sync + 'static) {
        let _ = self.on_arrival.set(Box::new(call));
    }

    /// Called when the device sends to another process: answers will come by its socket.
    pub fn expect_company(&self) {
        self.has_company.store(true, Ordering::Relaxed);
    }

    pub fn has_company(&self) -> bool {
        self.has_company.load(Ordering::Relaxed)
    }

    /// Whether datagrams wait. One that comes after this said no is announced.
    pub fn has_some(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Puts the pieces there as one datagram; false if the device is closed. Without room it is lost and counted, as by a
    /// socket.
    ///
    /// # Safety
    /// The pieces are readable.
    pub(super) unsafe fn send(
        &self,
        source: SocketAddr,
        pieces: &[libc::iovec],
        options: &SendOptions,
    ) -> bool {
        let length: usize = pieces.iter().map(|piece| piece.iov_len).sum();
        let bytes = length + OVERHEAD_BYTES;
        let spare = {
            let mut datagrams = self.datagrams.lock();
            let Some(room_bytes) = datagrams.room_bytes else {
                return false;
            };
            if datagrams.bytes + bytes > room_bytes {
                drop(datagrams);
                self.counters.socket_drops.add(1);
                return true;
            }
            datagrams.bytes += bytes;
            match length {
                ..=SHORT_BYTES => datagrams.spare_short.pop(),
                _ => datagrams.spare_long.pop_front(),
            }
        };
        let mut slot = spare.unwrap_or_else(|| match length {
            ..=SHORT_BYTES => Slot::with_room(SHORT_BYTES),
            _ => Slot::with_room(DATAGRAM_BYTES),
        });
        // SAFETY: as the caller's.
        unsafe { slot.fill_from(source, pieces, options) };
        let mut datagrams = self.datagrams.lock();
        datagrams.waiting.push_back(slot);
        self.count.store(datagrams.waiting.len(), Ordering::SeqCst);
        drop(datagrams);
        if let Some(call) = self.on_arrival.get() {
            call();
        }
        true
    }

    /// Takes back what the batch holds, and puts up to [`BATCH`] datagrams there; returns their number.
    pub(super) fn receive(&self, batch: &mut Batch) -> usize {
        if self.count.load(Ordering::Acquire) == 0 {
            return 0;
        }
        let mut datagrams = self.datagrams.lock();
        for slot in batch.0.drain(..) {
            match slot.room_bytes() {
                SHORT_BYTES => datagrams.spare_short.push(slot),
                _ => datagrams.spare_long.push_back(slot),
            }
        }
        for _ in 0..BATCH {
            let Some(slot) = datagrams.waiting.pop_front() else {
                break;
            };
            datagrams.bytes -= slot.length() + OVERHEAD_BYTES;
            batch.0.push(slot);
        }
        self.count.store(datagrams.waiting.len(), Ordering::SeqCst);
        batch.0.len()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::atomic::AtomicU32;

    use super::super::sockets::piece_of;
    use super::*;

    const BYTES: usize = 100;
    /// No device has it.
    const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));

    fn send(inbox: &Inbox, value: u8) -> bool {
        let bytes = [value; BYTES];
        let options = SendOptions {
            destination: (ADDRESS, 4791).into(),
            traffic_class: 2,
            hop_limit: 0,
            segment_bytes: None,
        };
        // SAFETY: the bytes are there until the call is over.
        unsafe { inbox.send((ADDRESS, 0xc000).into(), &[piece_of(&bytes)], &options) }
    }

    #[test]
    fn it_takes_what_it_has_room_for_and_counts_the_rest() {
        let counters = Arc::new(Counters::default());
        let room_bytes = 2 * (BYTES + OVERHEAD_BYTES);
        let inbox = Inbox::new(ADDRESS, None, room_bytes, Arc::clone(&counters));
        let arrived = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&arrived);
        inbox.on_arrival(move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let mut batch = Batch::default();
        for round in 0..3 {
            assert!((0..3).all(|value| send(&inbox, value)));
            assert_eq!(counters.socket_drops.get(), round + 1);
            assert!(inbox.has_some());
            let taken = inbox.receive(&mut batch);
            let values: Vec<Vec<u8>> =
                batch.datagrams(taken).map(|datagram| datagram.bytes.to_vec()).collect();
            assert_eq!(values, [[0; BYTES], [1; BYTES]]);
            assert!(!inbox.has_some());
        }
        assert_eq!(arrived.load(Ordering::Relaxed), 6);
    }

    #[test]
    fn it_is_found_by_address_and_slot_until_it_is_closed() {
        let other = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 8));
        let inbox = Inbox::new(other, Some(3), 1 << 20, Arc::default());
        assert_eq!(Inbox::find(other, 3).as_ref(), Some(&inbox));
        assert!(Inbox::find(other, 4).is_none());
        inbox.close();
        assert!(Inbox::find(other, 3).is_none() && !send(&inbox, 0));
    }
}
