//! A queue of receives: a QP's own, or shared by several (SRQ).

use super::request::PostError;
use crate::lock::Lock;
use crate::transport::memory::sge::Sge;

/// Receives that wait for messages; taken in order.
pub struct RecvQueue {
    max_sges: usize,
    ring: Lock<Ring>,
    on_limit: Option<Box<dyn Fn() + Send + Sync>>,
}

struct Ring {
    /// `wr_id` and number of elements of each.
    receives: Box<[(u64, usize)]>,
    sges: Box<[Sge]>,
    first: usize,
    count: usize,
    limit: usize,
}

/// A receive taken from a queue, and how far it is filled.
#[derive(Default)]
pub(crate) struct Receive {
    pub(crate) wr_id: u64,
    pub(crate) sges: Vec<Sge>,
    pub(crate) filled_bytes: u32,
}

impl Receive {
    pub(crate) fn room_bytes(&self) -> u64 {
        self.sges.iter().map(|sge| u64::from(sge.length_bytes)).sum()
    }
}

impl RecvQueue {
    /// A queue of `capacity` receives of at most `max_sges` elements. `on_limit` is called when fewer than the armed
    /// limit are left (SRQ); it must not call the transport.
    pub fn new(
        capacity: usize,
        max_sges: usize,
        on_limit: Option<Box<dyn Fn() + Send + Sync>>,
    ) -> RecvQueue {
        RecvQueue {
            max_sges,
            ring: Lock::new(Ring {
                receives: vec![(0, 0); capacity].into(),
                sges: vec![Sge::default(); capacity * max_sges].into(),
                first: 0,
                count: 0,
                limit: 0,
            }),
            on_limit,
        }
    }

    /// Adds a receive.
    ///
    /// # Errors
    /// [`PostError::Full`], [`PostError::Elements`].
    pub fn post(&self, wr_id: u64, sges: &[Sge]) -> Result<(), PostError> {
        if sges.len() > self.max_sges {
            return Err(PostError::Elements);
        }
        let mut ring = self.ring.lock();
        let ring = &mut *ring;
        let capacity = ring.receives.len();
        if ring.count == capacity {
            return Err(PostError::Full);
        }
        let mut index = ring.first + ring.count;
        if index >= capacity {
            index -= capacity;
        }
        if let Some(receive) = ring.receives.get_mut(index) {
            *receive = (wr_id, sges.len());
        }
        let start = index * self.max_sges;
        if let Some(room) = ring.sges.get_mut(start..start + sges.len()) {
            room.copy_from_slice(sges);
        }
        ring.count += 1;
        Ok(())
    }

    /// Arms the limit event; 0 disarms it.
    pub fn set_limit(&self, limit: usize) {
        self.ring.lock().limit = limit;
    }

    pub fn limit(&self) -> usize {
        self.ring.lock().limit
    }

    /// Moves the oldest receive into `receive`, reusing its memory; `false` if there is none.
    pub(crate) fn take(&self, receive: &mut Receive) -> bool {
        let mut guard = self.ring.lock();
        let ring = &mut *guard;
        if ring.count == 0 {
            return false;
        }
        let Some(&(wr_id, elements)) = ring.receives.get(ring.first) else {
            return false;
        };
        let start = ring.first * self.max_sges;
        receive.wr_id = wr_id;
        receive.filled_bytes = 0;
        receive.sges.clear();
        let sges = ring.sges.get(start..start + elements);
        receive.sges.extend_from_slice(sges.unwrap_or_default());
        ring.first += 1;
        if ring.first == ring.receives.len() {
            ring.first = 0;
        }
        ring.count -= 1;
        let reached = ring.count < ring.limit;
        if reached {
            ring.limit = 0;
        }
        drop(guard);
        if reached && let Some(on_limit) = &self.on_limit {
            on_limit();
        }
        true
    }

    pub(crate) fn clear(&self) {
        self.ring.lock().count = 0;
    }
}
