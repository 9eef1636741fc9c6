//! The result of one worker, returned at the end of a run.

use metrics::histogram::Recorder;

use super::trouble::Trouble;

/// One worker's part of a run: what a thread did for one flow.
pub struct WorkerReport {
    /// Its number among the flow's workers, from 0.
    pub index: usize,
    /// The number of its thread, from 0. Workers of several flows may have one thread.
    pub thread: usize,
    /// The core that the thread was pinned to.
    pub core: Option<usize>,
    /// Raw clock readings when its window opened and closed; `None` unless it did both.
    pub window_raw: Option<(u64, u64)>,
    /// For how long it did not look at its CQs across the start and across the end of the window, in raw clock units.
    pub unattended_raw: [u64; 2],
    /// For how long it was away within its window, in raw clock units: the times between two looks at its CQs that are longer
    /// than a pass. Where a pass takes so long, the thread's CPU time tells that it worked.
    pub away_raw: u64,
    /// CPU time of the thread in the window, for all of its flows.
    pub cpu_seconds: f64,
    /// Polls in the window.
    pub polls: u64,
    /// Polls in the window that found nothing.
    pub empty_polls: u64,
    /// How often in the window the next message found the send queue of its QP full; 0 where each QP is its own source.
    pub blocked: u64,
    /// Its counts of each QP of the run, by index.
    pub qps: Vec<QpReport>,
    /// From the device's stamp of a completion until the worker saw it, with stamps.
    pub notices: Option<Recorder>,
    /// An open loop's part; `None` of a closed loop.
    pub load: Option<WorkerLoad>,
    pub trouble: Trouble,
}

/// What a worker offered in an open loop.
pub struct WorkerLoad {
    /// Messages planned in the window.
    pub offered: u64,
    /// Of these, messages that were not posted until its end, or until so long after it as they are waited for.
    pub never_sent: u64,
    /// Of these, messages that found the send queue of their QP full, or others waiting for it.
    pub queue_full_messages: u64,
    /// How long send queues were full in the window while messages waited, summed over QPs, in nanoseconds.
    pub queue_full_ns: u64,
    /// Messages of `offered` that were not posted in the window, though their queues had room.
    pub late_with_room: u64,
    /// The times of one message in so many are recorded, chosen at random.
    pub recorded_one_in: u64,
    pub gaps: GapSamples,
    /// By index of the QP: from post to completion seen; `None` of a QP that it does not serve.
    pub service: Vec<Option<Recorder>>,
    /// How late it posted, for each QP on which it posts, by index.
    pub lateness: Vec<(usize, Recorder)>,
}

/// Samples of the times between posts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GapSamples {
    /// Messages from the first post of a sample to its last; 0 where none was taken.
    pub messages_of_gap: u64,
    /// Samples, in mean gaps.
    pub mean_gaps: Vec<f64>,
}

/// One QP's part of a worker's report.
pub struct QpReport {
    /// Messages of its send queue that had completed when the window opened.
    pub completed_before: u64,
    /// Messages of its send queue that completed in the window.
    pub completed: u64,
    pub completed_bytes: u64,
    /// COMPARE-SWAPs of them that were made.
    pub swaps_made: u64,
    /// Messages received in the window.
    pub received: u64,
    pub received_bytes: u64,
    /// Messages posted since the QP was made.
    pub posted_in_all: u64,
    /// Messages received since the QP was made.
    pub received_in_all: u64,
    /// Latencies in the window.
    pub latency: Option<Recorder>,
}
