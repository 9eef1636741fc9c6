//! Completion queues.

use std::sync::Arc;

use super::{Completion, Nic};

/// A completion queue.
pub struct Cq {}

/// The CQ was full when a completion came: it is broken, as are the QPs on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overrun;

impl Cq {
    /// Room for at least `capacity` completions. `on_event` is called when the CQ is armed and a completion
    /// comes; `on_overrun` once, when one finds no room. Neither may call back into the transport.
    pub fn new(
        nic: Arc<Nic>,
        capacity: usize,
        on_event: Box<dyn Fn() + Send + Sync>,
        on_overrun: Box<dyn Fn() + Send + Sync>,
    ) -> Arc<Cq> {
        todo!()
    }

    /// Completions that there is room for.
    pub fn capacity(&self) -> usize {
        todo!()
    }

    /// Changes the room. `false` if more completions wait than that.
    pub fn resize(&self, capacity: usize) -> bool {
        todo!()
    }

    /// Hands up to `most` completions to `take`, oldest first; works for the device when there are none.
    ///
    /// # Errors
    /// After an overrun.
    pub fn poll(&self, most: usize, take: impl FnMut(&Completion)) -> Result<usize, Overrun> {
        todo!()
    }

    /// Asks for an event on the next completion, or the next solicited or failed one.
    pub fn arm(&self, solicited_only: bool) {
        todo!()
    }
}
