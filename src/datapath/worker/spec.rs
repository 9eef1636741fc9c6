//! What one worker is given. It must not know what it does with it.

use std::sync::Arc;

use verbs::{Bell, CompletionChannel, CompletionQueue};

/// What one worker is given.
pub struct WorkerSpec {
    /// Its number, from 0.
    pub index: usize,
    /// Core it is pinned to.
    pub core: Option<usize>,
    /// CQs that it polls, in turn.
    pub cqs: Vec<Arc<CompletionQueue>>,
    /// Indices of the QPs that it starts, and whose completions come to it unless the CQ is shared.
    pub lanes: Vec<usize>,
    /// Where it sleeps while its CQs are empty, all of which are on that channel; `None` to poll.
    pub sleep: Option<Sleep>,
}

/// Where a worker sleeps.
#[derive(Clone)]
pub struct Sleep {
    /// The channel of all its CQs; with a shared CQ also that of the other workers.
    pub channel: Arc<CompletionChannel>,
    /// Wakes this worker alone, when a phase begins.
    pub bell: Arc<Bell>,
}
