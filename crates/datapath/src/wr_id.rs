//! `wr_id`: the QP's index in the high 32 bits, then a receive bit and the slot. One shift and one mask demultiplex a
//! completion. A receive of an SRQ belongs to no QP, and has an index that none has.

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

    proptest! {
        #[test]
        fn parts_come_back(qp: u32, slot in 0..=TAIL_SLOT, receive: bool) {
            let id = if receive { WrId::receive(qp, slot) } else { WrId::send(qp, slot) };
            let id = WrId::from_raw(id.raw());
            prop_assert_eq!((id.qp(), id.slot(), id.is_receive()), (qp as usize, slot, receive));
        }
    }
}
