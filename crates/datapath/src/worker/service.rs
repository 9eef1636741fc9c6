//! What a thread does with the flows that it serves.

use std::sync::Arc;

use verbs::{CompletionQueue, Sleeper, VerbsError, WcBatch};

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

// The settings of worker threads and of their workers.

/// The settings of one thread, which has a worker for each flow that it serves.
pub struct ThreadSpec {
    /// The core that it is pinned to.
    pub core: Option<usize>,
    /// How it sleeps while all its CQs are empty; `None` to poll.
    pub sleep: Option<Sleep>,
    /// Its part of each flow of the node, in the flows' order; `None` for a flow that it does not serve.
    pub flows: Vec<Option<WorkerSpec>>,
}

/// The part of one flow that a thread serves.
pub struct WorkerSpec {
    /// The CQs that it polls, in turn.
    pub cqs: Vec<Arc<CompletionQueue>>,
    /// Indices of the QPs that it starts. Their completions come to it unless the CQ is shared.
    pub qps: Vec<usize>,
}

pub struct Sleep {
    /// The channels of all CQs of all its flows, and the wakeup that ends its sleep when a phase begins.
    pub sleeper: Sleeper,
    /// Whether it polls for a while before it sleeps ([`settings::PollMode::Adaptive`]).
    pub adaptive: bool,
}

/// Which of a flow's workers a worker is.
#[derive(Clone, Copy)]
pub(in super::super) struct WorkerPlace {
    /// Its number among the flow's workers, from 0.
    pub(in super::super) worker: usize,
    /// The number of its thread, from 0.
    pub(in super::super) thread: usize,
    /// The core that the thread is pinned to.
    pub(in super::super) core: Option<usize>,
}
