//! A device's QPs by number and its memory by key. It must not know how they are used.
//!
//! A QP number begins with the device's slot. The other 19 of its 24 bits are drawn, so that strangers cannot guess it, and
//! packets of a QP that is gone do not reach a new one. The low 16 bits, which no two QPs share, lead to the QP.

use std::sync::Arc;

use super::memory::Memories;
use super::qp_context::QpContext;
use super::unguessable::Unguessable;
use crate::net::{SLOTS, with_slot};

/// QPs and memory by number and key.
pub(super) struct Tables {
    pub(super) memories: Memories,
    qps: Vec<Option<Arc<QpContext>>>,
    free: Vec<u16>,
    /// By the low bits of a number: the place in `qps` after [`NOWHERE`].
    places: Box<[u16]>,
    numbers: Unguessable,
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
/// The most QPs of a device.
pub const MAX_QPS: usize = (LAST_LOW - FIRST_LOW + 1) as usize;

fn low_bits(number: u32) -> usize {
    (number & LOW_BITS) as usize
}

impl Tables {
    /// Empty tables, for numbers that begin with this slot. A device that shares its address with nobody has any, which
    /// is one for all its QPs as well: peers send packets to QPs of one slot in one GSO batch.
    pub(super) fn new(slot: Option<u8>) -> Tables {
        let mut numbers = Unguessable::default();
        let any_slot = (numbers.draw() % SLOTS as u64) as u8;
        Tables {
            memories: Memories::default(),
            qps: Vec::new(),
            free: Vec::new(),
            places: vec![NOWHERE; 1 + LOW_BITS as usize].into(),
            numbers,
            slot: slot.unwrap_or(any_slot),
        }
    }

    /// The place in `qps` of the QP whose number has these low bits.
    fn place(&self, number: u32) -> Option<usize> {
        let place = *self.places.get(low_bits(number))?;
        usize::from(place).checked_sub(1)
    }

    /// The first bits of all QP numbers.
    pub(super) fn slot(&self) -> u8 {
        self.slot
    }

    /// The QP of this number.
    pub(super) fn qp(&self, number: u32) -> Option<&Arc<QpContext>> {
        let qp = self.qps.get(self.place(number)?)?.as_ref()?;
        (qp.number == number).then_some(qp)
    }

    /// The number of QPs that there have been at most at a time.
    pub(super) fn qp_count(&self) -> usize {
        self.qps.len()
    }

    /// Adds the QP that `make` creates with its number; `None` if there are no more numbers.
    pub(super) fn insert(
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

    /// A number whose low bits no QP has. There is one; while it is the last, finding it takes a millisecond.
    fn free_number(&mut self) -> u32 {
        loop {
            let number = with_slot(self.numbers.draw() as u32, self.slot);
            let usable = (FIRST_LOW..=LAST_LOW).contains(&(number & LOW_BITS));
            if usable && self.place(number).is_none() {
                return number;
            }
        }
    }

    /// Removes a QP.
    pub(super) fn remove(&mut self, number: u32) {
        if self.qp(number).is_none() {
            return;
        }
        if let Some(place) = self.place(number)
            && let Some(entry) = self.qps.get_mut(place)
        {
            *entry = None;
            self.free.push(place as u16);
        }
        if let Some(entry) = self.places.get_mut(low_bits(number)) {
            *entry = NOWHERE;
        }
    }
}
