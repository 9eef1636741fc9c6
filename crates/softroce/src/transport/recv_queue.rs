//! A queue of receives: a QP's own, or shared by several (SRQ).

use super::{PostError, Sge};

/// Receives that wait for messages. Taken in order.
pub struct RecvQueue {}

impl RecvQueue {
    /// Room for `capacity` receives of at most `max_sges` elements. `on_limit` is called when fewer than the
    /// armed limit are left (SRQ).
    pub fn new(
        capacity: usize,
        max_sges: usize,
        on_limit: Option<Box<dyn Fn() + Send + Sync>>,
    ) -> RecvQueue {
        todo!()
    }

    /// Adds a receive.
    ///
    /// # Errors
    /// [`PostError::Full`], [`PostError::Elements`].
    pub fn post(&self, wr_id: u64, sges: &[Sge]) -> Result<(), PostError> {
        todo!()
    }

    /// Arms the limit event; 0 disarms it.
    pub fn set_limit(&self, limit: usize) {
        todo!()
    }

    /// The armed limit.
    pub fn limit(&self) -> usize {
        todo!()
    }
}
