//! The settings of one worker. It must not know what the worker does with them.

use std::sync::Arc;

use verbs::{CompletionChannel, CompletionQueue, Wakeup};

/// The settings of one worker.
pub struct WorkerSpec {
    /// Its number, from 0.
    pub index: usize,
    /// The core that it is pinned to.
    pub core: Option<usize>,
    /// The CQs that it polls, in turn.
    pub cqs: Vec<Arc<CompletionQueue>>,
    /// Indices of the QPs that it starts. Their completions come to it unless the CQ is shared.
    pub qps: Vec<usize>,
    /// How it sleeps while its CQs are empty; `None` to poll. All its CQs are on that channel.
    pub sleep: Option<Sleep>,
}

/// The objects on which a worker sleeps.
#[derive(Clone)]
pub struct Sleep {
    /// The channel of all its CQs; with a shared CQ also that of the other workers.
    pub channel: Arc<CompletionChannel>,
    /// Wakes this worker alone when a phase begins.
    pub wakeup: Arc<Wakeup>,
}
