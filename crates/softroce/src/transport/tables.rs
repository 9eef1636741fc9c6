//! A device's QPs by number and its memory by key. It must not know how they are used.

use std::collections::VecDeque;
use std::sync::Arc;

use super::memory::Memories;
use super::qp_context::QpContext;

/// QPs and memory by number and key.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) memories: Memories,
    qps: Vec<Option<Arc<QpContext>>>,
    free: VecDeque<u32>,
}

/// QP numbers 0 and 1 are reserved, and small ones look like mistakes.
const FIRST_QPN: u32 = 0x11;
const QPN_PLACE_BITS: u32 = 16;
/// The most QPs of a device.
pub const MAX_QPS: usize = (1 << QPN_PLACE_BITS) - FIRST_QPN as usize;

impl Tables {
    /// The QP of this number.
    pub(super) fn qp(&self, number: u32) -> Option<&Arc<QpContext>> {
        let place = (number & ((1 << QPN_PLACE_BITS) - 1)).checked_sub(FIRST_QPN)?;
        let qp = self.qps.get(place as usize)?.as_ref()?;
        (qp.number == number).then_some(qp)
    }

    /// Every QP.
    pub(super) fn qps(&self) -> impl Iterator<Item = &Arc<QpContext>> {
        self.qps.iter().flatten()
    }

    /// Adds the QP that `make` creates with its number; `None` if there are no more numbers.
    pub(super) fn insert(
        &mut self,
        make: impl FnOnce(u32) -> Arc<QpContext>,
    ) -> Option<Arc<QpContext>> {
        let fresh = self.qps.len() as u32;
        // Reuses numbers late, so that packets of an old QP do not reach a new one.
        let number = if (fresh as usize) < MAX_QPS && self.free.len() < 1024 {
            self.qps.push(None);
            u32::from(fastrand::u8(..)) << QPN_PLACE_BITS | (fresh + FIRST_QPN)
        } else {
            self.free.pop_front()?.wrapping_add(1 << QPN_PLACE_BITS) & 0x00ff_ffff
        };
        let qp = make(number);
        let place = (number & ((1 << QPN_PLACE_BITS) - 1)) - FIRST_QPN;
        *self.qps.get_mut(place as usize)? = Some(Arc::clone(&qp));
        Some(qp)
    }

    /// Removes a QP.
    pub(super) fn remove(&mut self, number: u32) {
        if self.qp(number).is_none() {
            return;
        }
        let place = (number & ((1 << QPN_PLACE_BITS) - 1)) - FIRST_QPN;
        if let Some(entry) = self.qps.get_mut(place as usize) {
            *entry = None;
            self.free.push_back(number);
        }
    }
}
