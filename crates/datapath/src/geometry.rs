//! How a QP's send queue is cut into slots, and slots into chains.
//!
//! The ring of prebuilt WRs has `slots × unit` positions; `depth` of them are in flight. A slot is `unit` WRs, the
//! last one signalled. The completion of slot *s* allows `unit` posts: the rest of the slot before it (`head..unit`),
//! which closes that slot, and the first `head` WRs of slot *s*. This keeps `depth` WRs in flight even if `depth` is
//! no multiple of the unit. The completed slot alone determines what to post, so workers share no state.
//!
//! If several workers share one CQ, they may handle the completions of one QP in any order. Then only whole slots are
//! posted (`head == unit`), and a slot's completion covers all of the slot. So it is where a worker is one source for
//! all of its QPs: a completion of one may post on another.

use settings::{CqMode, Settings, Spread};

/// How a flow divides its send queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// WRs of a slot, the last of which is signalled.
    pub unit: u32,
    /// Slots in the ring of prebuilt WRs.
    pub slots: u32,
    /// WRs at the start of a slot, posted when the slot before it is closed; `unit` for whole slots.
    pub head: u32,
    /// One WR in so many is signalled.
    pub signal_every: u32,
    /// WRs in a chain at most.
    pub post_list: u32,
}

impl Geometry {
    /// The division for a flow. A depth below one unit becomes one unit.
    pub fn from_flow(flow: &Settings) -> Geometry {
        if flow.ping_pong {
            // The completion of a message may come after the answer to it.
            return Geometry::new(2, 1, 1, false);
        }
        let contended = flow.cq == CqMode::Shared && flow.workers > 1;
        let whole_slots = contended || flow.spread != Spread::Own;
        Geometry::new(flow.tx_depth, flow.signal_every, flow.post_list, whole_slots)
    }

    /// Rounds the depth down to a multiple of the unit if `whole_slots`, or if the post list is longer than the
    /// signalling interval, since a slot then has several completions.
    pub fn new(depth: u32, signal_every: u32, post_list: u32, whole_slots: bool) -> Geometry {
        let (signal_every, post_list) = (signal_every.max(1), post_list.max(1));
        let unit = signal_every.max(post_list);
        let in_flight = depth.max(unit);
        let (slots, head) = if whole_slots || post_list > signal_every {
            (in_flight / unit, unit)
        } else {
            let slots = in_flight.div_ceil(unit);
            (slots, in_flight - (slots - 1) * unit)
        };
        Geometry { unit, slots, head, signal_every, post_list }
    }

    /// Where the last post list of the first `count` WRs of a slot begins.
    pub(super) fn last_chain(&self, count: u32) -> u32 {
        count.saturating_sub(1) / self.post_list * self.post_list
    }

    pub fn ring(&self) -> u32 {
        self.slots * self.unit
    }

    /// WRs in flight at most.
    pub fn depth(&self) -> u32 {
        (self.slots - 1) * self.unit + self.head
    }

    pub fn completions_per_slot(&self) -> u32 {
        self.unit / self.signal_every
    }

    /// The most completions that can wait in a CQ for one QP: one for each WR in flight, because an error flushes all
    /// of them, signalled or not. A position becomes free only when its completion is polled, so there are never
    /// more.
    pub fn completions_in_flight(&self) -> u32 {
        self.depth()
    }

    /// Whether the WR at a ring position is signalled.
    pub fn signalled(&self, position: u32) -> bool {
        (position % self.unit + 1).is_multiple_of(self.signal_every)
    }

    /// Whether a chain ends with the WR at a ring position.
    pub fn ends_chain(&self, position: u32) -> bool {
        let within = position % self.unit;
        let (from_start, length) = if within < self.head {
            (within, self.head)
        } else {
            (within - self.head, self.unit - self.head)
        };
        from_start + 1 == length || (from_start + 1) % self.post_list == 0
    }

    /// The slot before `slot` in the ring.
    #[inline]
    pub fn before(&self, slot: u32) -> u32 {
        if slot == 0 { self.slots - 1 } else { slot - 1 }
    }
}

// `wr_id`: the QP's index in the high 32 bits, then a receive bit and the slot. One shift and one mask demultiplex a
// completion. A receive of an SRQ belongs to no QP, and has an index that none has.

const RECEIVE: u64 = 1 << 31;
const NO_QP: u32 = u32::MAX;
const SLOT_MASK: u64 = RECEIVE - 1;

/// The largest slot number; it stands for the tail of a run with a message count.
pub(super) const TAIL_SLOT: u32 = SLOT_MASK as u32;

/// The `wr_id` of a work request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrId(u64);

impl WrId {
    pub fn send(qp: u32, slot: u32) -> Self {
        WrId(u64::from(qp) << 32 | u64::from(slot) & SLOT_MASK)
    }

    pub fn receive(qp: u32, slot: u32) -> Self {
        WrId(WrId::send(qp, slot).0 | RECEIVE)
    }

    /// A receive of an SRQ.
    pub fn shared_receive(slot: u32) -> Self {
        WrId::receive(NO_QP, slot)
    }

    /// From the `wr_id` of a completion.
    #[inline]
    pub fn from_raw(raw: u64) -> Self {
        WrId(raw)
    }

    /// The `wr_id` for a work request.
    pub fn raw(self) -> u64 {
        self.0
    }

    /// Index of the QP; beyond all of them for a receive of an SRQ.
    #[inline]
    pub fn qp(self) -> usize {
        (self.0 >> 32) as usize
    }

    #[inline]
    pub fn slot(self) -> u32 {
        (self.0 & SLOT_MASK) as u32
    }

    /// Whether it is a receive.
    #[inline]
    pub fn is_receive(self) -> bool {
        self.0 & RECEIVE != 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_queue_is_cut_into_slots() {
        for (depth, signal, list, whole, expected) in [
            // perftest's default.
            (128, 100, 1, false, [2, 28, 128, 200, 1]),
            // Several workers on one CQ get whole slots.
            (128, 100, 1, true, [1, 100, 100, 100, 1]),
            (128, 32, 1, true, [4, 32, 128, 128, 1]),
            // A long list has several completions in a slot.
            (128, 4, 32, false, [4, 32, 128, 128, 8]),
        ] {
            let cut = Geometry::new(depth, signal, list, whole);
            let of_ring = [cut.slots, cut.head, cut.depth(), cut.ring()];
            let found = [&of_ring[..], &[cut.completions_per_slot()]].concat();
            assert_eq!(found, expected, "-t {depth} -Q {signal} -l {list}");
        }
    }

    proptest! {
        #[test]
        fn the_queue_is_as_deep_as_asked(depth in 1..2000u32, signal in 1..300u32, list in 1..300u32) {
            prop_assume!(depth >= signal.max(list));
            prop_assume!(list <= signal || list % signal == 0);
            let cut = Geometry::new(depth, signal, list, false);
            if list <= signal {
                prop_assert_eq!(cut.depth(), depth);
            }
            prop_assert!(cut.depth() <= depth);
            prop_assert!(cut.ring() >= cut.depth());
            prop_assert!((1..=cut.unit).contains(&cut.head));
        }

        #[test]
        fn chains_are_short_enough_and_slots_end_signalled(depth in 1..500u32, signal in 1..80u32, list in 1..80u32, whole: bool) {
            prop_assume!(depth >= signal.max(list));
            prop_assume!(list <= signal || list % signal == 0);
            let cut = Geometry::new(depth, signal, list, whole);
            let mut length = 0;
            let mut signalled = 0;
            for position in 0..cut.ring() {
                length += 1;
                prop_assert!(length <= list);
                signalled += u32::from(cut.signalled(position));
                if cut.ends_chain(position) {
                    length = 0;
                }
                if (position + 1) % cut.unit == 0 {
                    prop_assert_eq!(length, 0);
                    prop_assert!(cut.signalled(position));
                    prop_assert_eq!(signalled, cut.completions_per_slot());
                    signalled = 0;
                }
                if position % cut.unit + 1 == cut.head {
                    prop_assert_eq!(length, 0);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn parts_come_back(qp: u32, slot in 0..=TAIL_SLOT, receive: bool) {
            let id = if receive { WrId::receive(qp, slot) } else { WrId::send(qp, slot) };
            let id = WrId::from_raw(id.raw());
            prop_assert_eq!((id.qp(), id.slot(), id.is_receive()), (qp as usize, slot, receive));
        }
    }
}
