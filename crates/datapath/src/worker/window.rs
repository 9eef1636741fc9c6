//! The progress of a worker's measurement window.

use super::super::shared::WindowEdges;
use metrics::clock::Clock;
use settings::Stop;

/// Later than any reading.
pub(super) const NEVER: u64 = u64::MAX;

/// A look at the CQs is late if more than this part of the window has passed since the last one.
const LATE_PARTS: u64 = 400;

/// A worker is away for a longer time between two looks at its CQs. A pass takes an adapter's program some 10 µs, and the
/// shortest turn that Linux gives another thread is 750 µs (`sched_min_granularity_ns`, since 6.6 `base_slice_ns`).
const AWAY_NS: u64 = 500_000;

/// That time in clock units; never late if the window has no fixed length.
pub(super) fn late_raw(clock: &Clock, stop: Stop) -> u64 {
    match stop {
        Stop::DurationNs(length_ns) => clock.raw_after(0, length_ns) / LATE_PARTS,
        Stop::MessagesPerQp(_) => NEVER,
    }
}

/// The time between two looks above which a worker is away, in clock units. What is late over an edge is away too.
pub(super) fn away_after_raw(clock: &Clock, stop: Stop) -> u64 {
    late_raw(clock, stop).min(clock.raw_after(0, AWAY_NS))
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WindowState {
    /// No window is set.
    None,
    /// The start is set and has not passed.
    Ahead,
    /// The start has passed; completions from before may still wait in the CQs.
    CatchingUp,
    Open,
    Closed,
}

/// A time in which a worker did not look at its CQs.
#[derive(Clone, Copy, Default)]
pub(super) struct Absence {
    pub(super) length_raw: u64,
    pub(super) end_raw: u64,
}

impl Absence {
    /// Until when the backlog of this absence may arrive.
    pub(super) fn reach_raw(self) -> u64 {
        self.end_raw + self.length_raw
    }
}

pub(super) struct Window {
    pub(super) state: WindowState,
    pub(super) edges: WindowEdges,
    /// The next instant at which the state changes.
    pub(super) edge_raw: u64,
    /// When it last found its CQs empty, or had taken a batch from them.
    pub(super) attended_raw: u64,
    /// When it last polled completions. The window of a run with a message count ends then.
    pub(super) seen_raw: u64,
    /// Records the latency of messages posted before this; 0 for none.
    pub(super) record_until_raw: u64,
    /// Clock units after which a look over an edge is late, and the reading at which it stops catching up.
    pub(super) late_raw: u64,
    pub(super) give_up_raw: u64,
    /// Clock units without a look after which the worker was away; never once the window is closed.
    pub(super) away_after_raw: u64,
    /// For how long it was away while the window was open.
    pub(super) away_raw: u64,
    /// When the current pass over the CQs began, and whether one of its batches was full.
    pub(super) pass_began_raw: u64,
    pub(super) pass_was_full: bool,
    /// Completions seen when it began to catch up, and the most that can have piled up by then.
    pub(super) seen_before: u64,
    pub(super) most_piled_up: u64,
    pub(super) start_raw: Option<u64>,
    pub(super) end_raw: Option<u64>,
    /// How long it did not look at the CQs across the start and across the end of the window.
    pub(super) unattended_raw: [u64; 2],
    pub(super) absence: Absence,
    pub(super) cpu_seconds: f64,
    pub(super) polls: u64,
    pub(super) empty_polls: u64,
    pub(super) blocked: u64,
}

impl Window {
    pub(super) fn new(clock: &Clock, stop: Stop, most_piled_up: u64) -> Self {
        Window {
            state: WindowState::None,
            edges: WindowEdges::OF_PHASE,
            edge_raw: NEVER,
            attended_raw: 0,
            seen_raw: 0,
            record_until_raw: 0,
            late_raw: late_raw(clock, stop),
            away_after_raw: away_after_raw(clock, stop),
            away_raw: 0,
            give_up_raw: NEVER,
            pass_began_raw: 0,
            pass_was_full: false,
            seen_before: 0,
            most_piled_up,
            start_raw: None,
            end_raw: None,
            unattended_raw: [0; 2],
            absence: Absence::default(),
            cpu_seconds: 0.0,
            polls: 0,
            empty_polls: 0,
            blocked: 0,
        }
    }

    /// Whether each look at the CQs must be timed.
    #[inline]
    pub(super) fn is_watched(&self) -> bool {
        matches!(self.state, WindowState::Ahead | WindowState::CatchingUp | WindowState::Open)
    }

    #[inline]
    pub(super) fn is_catching_up(&self) -> bool {
        self.state == WindowState::CatchingUp
    }
}
