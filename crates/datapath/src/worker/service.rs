//! What a thread does with the flows that it serves.

use verbs::{VerbsError, WcBatch};

use super::super::report::WorkerReport;

/// The outcome of a pass over the CQs. The largest of several is the outcome for all of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Pass {
    /// Told to exit; nothing was polled.
    Exit,
    /// All CQs were empty.
    Empty,
    /// A CQ had completions.
    Found,
}

/// The flows that a thread serves.
pub(in super::super) trait Service {
    /// Enters the phases that are new and polls each CQ once.
    fn pass(&mut self, batch: &mut WcBatch) -> Pass;

    /// Arms all CQs; returns whether they have to be polled again before a sleep.
    fn arm(&mut self) -> bool;

    /// Called directly after a sleep.
    fn woken(&mut self);

    /// Whether the next passes must not be delayed.
    fn is_catching_up(&self) -> bool;

    /// The next edge of a window, at which the thread must be awake, as a raw clock reading.
    fn edge_raw(&self) -> Option<u64>;

    /// Records a sleep that failed.
    fn sleep_refused(&mut self, error: VerbsError);
}

pub(in super::super) trait FlowService: Service {
    fn report(self: Box<Self>) -> WorkerReport;
}
