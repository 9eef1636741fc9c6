//! Completion queues for the verbs layer. A thread that polls one does the device's work.

use std::sync::Arc;

use crate::transport::completion_queue::{BrokenCq, Completion, CqContext};
use crate::transport::device::core::Core;
use crate::transport::nic::Nic;

/// A completion queue; clones refer to the same one.
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
    /// A CQ for at least `capacity` completions. `on_event` is called when the CQ is armed and a completion comes;
    /// `on_overrun` once, when a completion finds no room. Neither may call the transport. If `has_stamps`, each completion
    /// has the time when it came, by [`crate::net::now_ns`].
    pub fn with_stamps(
        nic: &Nic,
        capacity: usize,
        has_stamps: bool,
        on_event: Box<dyn Fn() + Send + Sync>,
        on_overrun: Box<dyn Fn() + Send + Sync>,
    ) -> Cq {
        let core = Arc::clone(nic.core());
        let context = CqContext::new(&core.activity, capacity, has_stamps, on_event, on_overrun);
        Cq { core, context: Arc::new(context) }
    }

    pub(crate) fn context(&self) -> &Arc<CqContext> {
        &self.context
    }

    pub fn capacity(&self) -> usize {
        self.context.capacity()
    }

    /// Changes the capacity. `false` if more completions wait.
    pub fn resize(&self, capacity: usize) -> bool {
        self.context.resize(capacity)
    }

    /// Passes up to `most` completions to `take`, oldest first; does the device's work if there are none.
    ///
    /// # Errors
    /// After an overrun, and in a child of the process that opened the device.
    pub fn poll(&self, most: usize, mut take: impl FnMut(&Completion)) -> Result<usize, BrokenCq> {
        self.poll_stamped(most, |completion, _| take(completion))
    }

    /// As [`Cq::poll`], with the stamp of each; 0 on a CQ without stamps.
    ///
    /// # Errors
    /// As of [`Cq::poll`].
    pub fn poll_stamped(
        &self,
        most: usize,
        take: impl FnMut(&Completion, u64),
    ) -> Result<usize, BrokenCq> {
        if self.has_some()? { self.take_stamped(most, take) } else { Ok(0) }
    }

    /// The same without the device's work.
    ///
    /// # Errors
    /// After an overrun.
    pub fn take_stamped(
        &self,
        most: usize,
        take: impl FnMut(&Completion, u64),
    ) -> Result<usize, BrokenCq> {
        self.context.take(most, take)
    }

    /// Whether it holds completions; does the device's work if there are none.
    ///
    /// # Errors
    /// As of [`Cq::poll`].
    pub fn has_some(&self) -> Result<bool, BrokenCq> {
        if !self.core.is_of_this_process() {
            return Err(BrokenCq);
        }
        self.core.send_corked();
        if self.context.is_empty() {
            self.core.progress_for_poller();
            if self.context.is_empty() {
                return self.context.intact().map(|()| false);
            }
        }
        Ok(true)
    }

    /// Requests an event for the next completion, or only for the next solicited or failed one.
    /// Does nothing in a child of the process that opened the device.
    pub fn arm(&self, solicited_only: bool) {
        if self.core.is_of_this_process() {
            self.core.send_corked();
            self.context.arm(solicited_only);
        }
    }

    /// Raises the event now if one is requested for any completion and the CQ holds completions: the program has
    /// taken only some of them and is about to wait, and more may never come.
    pub fn remind(&self) {
        self.context.remind();
    }
}
