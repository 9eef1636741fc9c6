//! A device's QPs by number and its memory by key. It must not know how they are used.
//!
//! A QP number begins with the device's slot. The other 19 of its 24 bits are drawn, so that strangers cannot guess it, and
//! packets of a QP that is gone do not reach a new one. The low 16 bits, which no two QPs share, lead to the QP.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::net::{SLOTS, with_slot};
use crate::transport::memory::{Memories, Unguessable};
use crate::transport::qp_state::QpContext;

/// QPs and memory by number and key.
pub(crate) struct Tables {
    pub(crate) memories: Memories,
    qps: Vec<Option<Arc<QpContext>>>,
    free: Vec<u16>,
    /// By the low bits of a number: the place in `qps` after [`NOWHERE`].
    places: Box<[u16]>,
    numbers: Unguessable,
    /// Numbers of the QPs that went last. A connection manager still remembers them, and rejects a new QP that has one.
    former: VecDeque<u32>,
    /// The first bits of all numbers. By them the kernel of a shared address tells its processes apart.
    slot: u8,
}

/// QP numbers 0 and 1 are reserved, and small ones look like mistakes.
const FIRST_LOW: u32 = 0x11;
/// The low bits of 0xffffff, which multicast has, are no QP's.
const LAST_LOW: u32 = 0xfffe;
const LOW_BITS: u32 = 0xffff;
/// No QP has these low bits.
const NOWHERE: u16 = 0;
/// Numbers of QPs that are gone and not drawn again soon: 7,000 a second, for as long as a connection is remembered.
const FORMER: usize = 4096;
/// Draws until one of them is taken all the same: where nearly all numbers are in use, no other may be left.
const DRAWS: usize = 16;
/// The most QPs of a device.
pub const MAX_QPS: usize = (LAST_LOW - FIRST_LOW + 1) as usize;

fn low_bits(number: u32) -> usize {
    (number & LOW_BITS) as usize
}

impl Tables {
    /// Empty tables, for numbers that begin with this slot. A device that shares its address with nobody has any, which
    /// is one for all its QPs as well: peers send packets to QPs of one slot in one GSO batch.
    pub(crate) fn new(slot: Option<u8>, seed: Option<u64>) -> Tables {
        let mut numbers = Unguessable::from_seed(seed);
        let any_slot = (numbers.draw() % SLOTS as u64) as u8;
        Tables {
            memories: Memories::new(Unguessable::from_seed(seed)),
            qps: Vec::new(),
            free: Vec::new(),
            places: vec![NOWHERE; 1 + LOW_BITS as usize].into(),
            numbers,
            former: VecDeque::new(),
            slot: slot.unwrap_or(any_slot),
        }
    }

    /// The place in `qps` of the QP whose number has these low bits.
    fn place(&self, number: u32) -> Option<usize> {
        let place = *self.places.get(low_bits(number))?;
        usize::from(place).checked_sub(1)
    }

    /// The first bits of all QP numbers.
    pub(crate) fn slot(&self) -> u8 {
        self.slot
    }

    pub(crate) fn qp(&self, number: u32) -> Option<&Arc<QpContext>> {
        let qp = self.qps.get(self.place(number)?)?.as_ref()?;
        (qp.number == number).then_some(qp)
    }

    /// The number of QPs that there have been at most at a time.
    pub(crate) fn qp_count(&self) -> usize {
        self.qps.len()
    }

    /// Adds the QP that `make` creates with its number; `None` if there are no more numbers.
    pub(crate) fn insert(
        &mut self,
        make: impl FnOnce(u32) -> Arc<QpContext>,
    ) -> Option<Arc<QpContext>> {
        let place = match self.free.pop() {
            Some(place) => place,
            None if self.qps.len() < MAX_QPS => {
                self.qps.push(None);
                (self.qps.len() - 1) as u16
            }
            None => return None,
        };
        let number = self.free_number();
        let qp = make(number);
        *self.qps.get_mut(usize::from(place))? = Some(Arc::clone(&qp));
        *self.places.get_mut(low_bits(number))? = place + 1;
        Some(qp)
    }

    /// A number whose low bits no QP has. There is one; while it is the last, finding it takes milliseconds.
    fn free_number(&mut self) -> u32 {
        let mut draws = 0;
        loop {
            let number = with_slot(self.numbers.draw() as u32, self.slot);
            let usable = (FIRST_LOW..=LAST_LOW).contains(&(number & LOW_BITS));
            if !usable || self.place(number).is_some() {
                continue;
            }
            draws += 1;
            if draws == DRAWS || !self.former.contains(&number) {
                return number;
            }
        }
    }

    fn remember(&mut self, number: u32) {
        if self.former.len() == FORMER {
            self.former.pop_front();
        }
        self.former.push_back(number);
    }

    pub(crate) fn remove(&mut self, number: u32) {
        if self.qp(number).is_some()
            && let Some(place) = self.place(number)
            && let Some(qp) = self.qps.get_mut(place)
            && let Some(way) = self.places.get_mut(low_bits(number))
        {
            (*qp, *way) = (None, NOWHERE);
            self.free.push(place as u16);
            self.remember(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_qps_that_just_went_are_not_drawn() {
        let mut tables = Tables::new(None, None);
        for _ in 0..2 * FORMER {
            let number = tables.free_number();
            assert!(!tables.former.contains(&number), "{number:#x}");
            tables.remember(number);
        }
        assert_eq!(tables.former.len(), FORMER);
    }

    #[test]
    fn a_former_number_is_taken_before_there_is_none() {
        let mut tables = Tables::new(Some(0), None);
        // All but one place is taken, and all numbers that lead to it are former ones.
        let last = tables.free_number() & LOW_BITS;
        for (low, place) in tables.places.iter_mut().enumerate() {
            *place = u16::from(low as u32 != last);
        }
        let all = (0..8).map(|high| with_slot(high << 16 | last, 0));
        tables.former.extend(all);
        let number = tables.free_number();
        assert!(tables.former.contains(&number));
    }
}
