//! What a worker hands over when a run is over.

use crate::metrics::histogram::Recorder;

use super::trouble::Trouble;

/// One worker's part of a run.
pub struct WorkerReport {
    /// Its number, from 0.
    pub index: usize,
    /// Core that it was pinned to.
    pub core: Option<usize>,
    /// Raw clock readings when its window opened and closed; `None` if it never did both.
    pub window_raw: Option<(u64, u64)>,
    /// How long it did not look at its CQs over the start and over the end of the window, in raw clock units.
    pub unattended_raw: [u64; 2],
    /// CPU time in the window.
    pub cpu_seconds: f64,
    /// Polls in the window.
    pub polls: u64,
    /// Polls in the window that found nothing.
    pub empty_polls: u64,
    /// What it saw of each QP of the run, by index.
    pub qps: Vec<QpReport>,
    /// What went wrong.
    pub trouble: Trouble,
}

/// One QP's part of it.
pub struct QpReport {
    /// Messages of its send queue completed in the window.
    pub completed: u64,
    /// Messages received in the window.
    pub received: u64,
    /// Messages posted since the QP was made.
    pub posted_in_all: u64,
    /// Messages received since the QP was made.
    pub received_in_all: u64,
    /// Latencies in the window.
    pub latency: Option<Recorder>,
}
