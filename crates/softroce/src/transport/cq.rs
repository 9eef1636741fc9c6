//! Completion queues as the verbs layer sees them. Whoever polls one does the device's work.

use std::sync::Arc;

use super::completion::Completion;
use super::core::Core;
use super::cq_context::{CqContext, Overrun};
use super::nic::Nic;

/// A completion queue; clones are the same one.
#[derive(Clone)]
pub struct Cq {
    core: Arc<Core>,
    context: Arc<CqContext>,
}

impl PartialEq for Cq {
    fn eq(&self, other: &Cq) -> bool {
        Arc::ptr_eq(&self.context, &other.context)
    }
}

impl Cq {
    /// Room for at least `capacity` completions. `on_event` is called when the CQ is armed and a completion
    /// comes; `on_overrun` once, when one finds no room. Neither may call back into the transport.
    pub fn new(
        nic: &Nic,
        capacity: usize,
        on_event: Box<dyn Fn() + Send + Sync>,
        on_overrun: Box<dyn Fn() + Send + Sync>,
    ) -> Cq {
        let core = Arc::clone(nic.core());
        let context = CqContext::new(&core.attention, capacity, on_event, on_overrun);
        Cq {
            core,
            context: Arc::new(context),
        }
    }

    pub(super) fn context(&self) -> &Arc<CqContext> {
        &self.context
    }

    /// Completions that there is room for.
    pub fn capacity(&self) -> usize {
        self.context.capacity()
    }

    /// Changes the room. `false` if more completions wait than that.
    pub fn resize(&self, capacity: usize) -> bool {
        self.context.resize(capacity)
    }

    /// Hands up to `most` completions to `take`, oldest first; works for the device when there are none.
    ///
    /// # Errors
    /// After an overrun.
    pub fn poll(&self, most: usize, take: impl FnMut(&Completion)) -> Result<usize, Overrun> {
        if self.context.is_empty() {
            self.core.progress_for_poller();
            if self.context.is_empty() {
                return self.context.intact().map(|()| 0);
            }
        }
        self.context.take(most, take)
    }

    /// Asks for an event on the next completion, or the next solicited or failed one.
    pub fn arm(&self, solicited_only: bool) {
        self.context.arm(solicited_only);
    }

    /// Gives the event now if one was asked for on any completion, and completions were left in the CQ: a program
    /// is about to wait for it that took some of them only, and more may never come.
    pub fn remind(&self) {
        self.context.remind();
    }
}
