//! The receives of an SRQ, from which all QPs of a flow at its receiving end take theirs. Its receives belong to no QP:
//! their `wr_id` has the slot, and a completion's QP number tells which QP took it. The table that finds the QP is built
//! before the first message and never changes, so workers read it without a lock.
//!
//! There is one SRQ for all workers: which QP takes a receive has nothing to do with which worker polls it. So workers
//! post to the same queue, whose lock is the library's; they post chains, so that it is taken once for several receives.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use settings::Settings;
use verbs::{AsyncEvents, MemoryRegion, Operation, RecvRing, SharedReceiveQueue, VerbsError};

use super::Layout;
use super::geometry::WrId;
use super::qp_context::{post_all, templates};

/// The limit of an SRQ's event is this part of its receives.
const LIMIT_PART: u32 = 4;

/// An SRQ with its prebuilt receives.
pub struct SharedReceives {
    srq: Arc<SharedReceiveQueue>,
    pub(super) ring: RecvRing,
    depth: u32,
    qps: QpNumbers,
    limit_events: AtomicU64,
    is_armed: AtomicBool,
}

impl SharedReceives {
    /// Prebuilds the receives of a flow with buffers in `memory`, and posts all of them. `qpns` are the numbers of its
    /// QPs, in their order.
    ///
    /// # Errors
    /// The ring cannot be built, or a refused post.
    pub fn post(
        flow: &Settings,
        srq: &Arc<SharedReceiveQueue>,
        memory: &Arc<MemoryRegion>,
        qpns: impl ExactSizeIterator<Item = u32>,
    ) -> Result<SharedReceives, VerbsError> {
        let templates = templates(flow, 0, WrId::shared_receive);
        let ring = RecvRing::shared(srq, memory, &templates, !flow.verify)?;
        let receives = SharedReceives {
            srq: Arc::clone(srq),
            ring: ring.walking(Layout::receives(flow).walk())?,
            depth: flow.rx_depth,
            qps: QpNumbers::new(qpns),
            limit_events: AtomicU64::new(0),
            is_armed: AtomicBool::new(false),
        };
        post_all(&receives.ring, receives.depth, flow.verify)
            .map_err(|error| error.into_error_for(Operation::PostSrqRecv, "the SRQ"))?;
        receives.rearm()?;
        Ok(receives)
    }

    /// Index of the QP with this number.
    #[inline]
    pub(super) fn index_of(&self, qpn: u32) -> Option<usize> {
        self.qps.index_of(qpn)
    }

    /// Whether an event's SRQ is this one.
    pub fn is(&self, identity: usize) -> bool {
        AsyncEvents::is_srq(&self.srq, identity)
    }

    /// Counts an event of the SRQ's limit, if it is of this one; returns whether it is.
    pub fn count_limit(&self, identity: usize) -> bool {
        let is_own = self.is(identity);
        if is_own {
            self.limit_events.fetch_add(1, Relaxed);
            self.is_armed.store(false, Relaxed);
        }
        is_own
    }

    /// Requests the next event of the limit, unless it is requested.
    ///
    /// # Errors
    /// The failed call.
    pub fn rearm(&self) -> Result<(), VerbsError> {
        if self.is_armed.swap(true, Relaxed) {
            Ok(())
        } else {
            self.srq.arm(self.depth / LIMIT_PART)
        }
    }

    /// Events of the limit that were counted.
    pub fn limit_events(&self) -> u64 {
        self.limit_events.load(Relaxed)
    }
}

/// Finds QPs by their numbers: a hash table with open addressing, at most half full.
struct QpNumbers {
    /// Numbers and indexes; [`NO_QP`] as index where there is none.
    places: Box<[(u32, u32)]>,
    shift: u32,
}

const NO_QP: u32 = u32::MAX;

impl QpNumbers {
    fn new(qpns: impl ExactSizeIterator<Item = u32>) -> QpNumbers {
        let places = (2 * qpns.len()).next_power_of_two().max(2);
        let mut numbers = QpNumbers {
            places: vec![(0, NO_QP); places].into(),
            shift: u32::BITS - places.trailing_zeros(),
        };
        for (qpn, index) in qpns.zip(0..) {
            let mut place = numbers.place_of(qpn);
            while numbers.places[place].1 != NO_QP {
                place = (place + 1) % places;
            }
            numbers.places[place] = (qpn, index);
        }
        numbers
    }

    /// Numbers follow each other on most devices, so neighbours get places far from each other (Knuth, The Art of
    /// Computer Programming 3, 6.4: multiplicative hashing).
    #[inline]
    fn place_of(&self, qpn: u32) -> usize {
        (qpn.wrapping_mul(0x9e37_79b1) >> self.shift) as usize
    }

    #[inline]
    fn index_of(&self, qpn: u32) -> Option<usize> {
        let mask = self.places.len() - 1;
        let mut place = self.place_of(qpn);
        loop {
            match *self.places.get(place)? {
                (_, NO_QP) => return None,
                (number, index) if number == qpn => return Some(index as usize),
                _ => place = (place + 1) & mask,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_number_finds_its_qp_and_others_none(
            qpns in proptest::collection::hash_set(0..1u32 << 24, 1..300), other in 0..1u32 << 24,
        ) {
            let all: Vec<u32> = qpns.iter().copied().collect();
            let numbers = QpNumbers::new(all.iter().copied());
            for (index, qpn) in all.iter().enumerate() {
                prop_assert_eq!(numbers.index_of(*qpn), Some(index));
            }
            prop_assert_eq!(numbers.index_of(other).is_some(), qpns.contains(&other));
        }
    }

    #[test]
    fn numbers_that_follow_each_other_are_found() {
        for count in [1, 2, 16, 4096] {
            let numbers = QpNumbers::new(0x11..0x11 + count);
            assert!((0..count).all(|qp| numbers.index_of(0x11 + qp) == Some(qp as usize)));
            assert_eq!(numbers.index_of(0x10), None);
        }
    }
}
