//! The progress of a worker's measurement window.

use std::sync::atomic::Ordering::{Relaxed, Release};

use machine::cpu;
use metrics::clock::Clock;
use settings::Stop;

use super::super::shared::WindowEdges;
use super::{Worker, feed};

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

// When a worker's measurement window opens and closes, and which messages belong to it.
//
// All workers know the instants of the edges ([`WindowEdges`]). If a worker is kept from its core over an edge, nobody can
// tell on which side of the edge the completions belong that piled up meanwhile. A worker that was present opens and
// closes its window at its last look before the edge, with its counts at that time. A worker that was absent over
// the start opens it after taking what piled up. Each worker's messages are divided by its own window. The backlog
// of an absence may arrive for as long again as the absence lasted, so an absence that ended that close to an edge
// counts as an absence over it. How long the worker was absent in its window is told too: who was away for long saw less
// than there was to see.

/// A window that is still not open after this part of it opens regardless.
const GIVE_UP_PARTS: u64 = 50;

impl<'s, const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool, const FEED: u8>
    Worker<'s, VERIFY, LATENCY, CONTENDED, FEED>
{
    /// Counts the CQs as attended from now; the time before is no absence.
    pub(super) fn attend_from_now(&mut self) {
        self.window.attended_raw = self.shared.clock.raw();
        self.window.absence = Absence::default();
    }

    /// Prepares for the window whose edges are set.
    pub(super) fn expect_window(&mut self) {
        let edges = self.shared.edges();
        self.window.edges = edges;
        self.window.seen_raw = self.shared.clock.raw();
        if FEED == feed::PLANNED {
            self.paced.expect_window(edges, self.window.seen_raw);
        }
        if edges == WindowEdges::OF_PHASE {
            self.window.attended_raw = self.window.seen_raw;
            self.open_window();
            return;
        }
        let length_raw = edges.closes_raw.saturating_sub(edges.opens_raw);
        self.window.give_up_raw = edges.opens_raw + length_raw / GIVE_UP_PARTS;
        self.window.state = WindowState::Ahead;
        self.window.edge_raw = edges.opens_raw;
    }

    /// Called after a pass that found nothing.
    #[inline]
    pub(super) fn attend(&mut self) {
        let now_raw = self.shared.clock.raw();
        self.look(now_raw);
    }

    /// Records a look at the CQs, before counting what it found.
    #[inline]
    pub(super) fn look(&mut self, now_raw: u64) {
        if now_raw.saturating_sub(self.window.attended_raw) > self.window.away_after_raw {
            self.was_away(now_raw);
        }
        if now_raw >= self.window.edge_raw {
            self.reach_edge(now_raw);
        }
        self.window.attended_raw = now_raw;
    }

    #[cold]
    fn was_away(&mut self, now_raw: u64) {
        let absence = Absence { length_raw: now_raw - self.window.attended_raw, end_raw: now_raw };
        // A window that ends meanwhile ends at the last look, before this.
        if self.window.state == WindowState::Open && now_raw < self.window.edge_raw {
            self.window.away_raw += absence.length_raw;
        }
        if absence.length_raw > self.window.late_raw
            && absence.reach_raw() > self.window.absence.reach_raw()
        {
            self.window.absence = absence;
        }
    }

    /// How long the worker was absent over an edge; `looked_raw` is its last look.
    fn away_over(&self, edge_raw: u64, looked_raw: u64) -> u64 {
        let absence = self.window.absence;
        let before_raw = if absence.reach_raw() > edge_raw { absence.length_raw } else { 0 };
        before_raw.max(looked_raw.saturating_sub(edge_raw))
    }

    /// Called after a sleep. It counts as a look at the CQs, because a completion would have ended it.
    #[cold]
    pub(super) fn look_after_sleep(&mut self) {
        let now_raw = self.shared.clock.raw();
        self.paced.woke_raw = now_raw;
        if now_raw >= self.window.edge_raw {
            if now_raw - self.window.edge_raw <= self.window.late_raw {
                self.window.attended_raw = self.window.edge_raw;
            }
            self.look(now_raw);
        }
        self.window.attended_raw = now_raw;
    }

    /// Handles the next edge, which was passed at `now_raw`; the batch just polled is not counted yet.
    #[cold]
    pub(super) fn reach_edge(&mut self, now_raw: u64) {
        match self.window.state {
            WindowState::Ahead => {
                let opens_raw = self.window.edge_raw;
                let away_raw = self.away_over(opens_raw, now_raw);
                if away_raw <= self.window.late_raw {
                    self.window.unattended_raw[0] = away_raw;
                    // It begins at the last look, so that it has the time since.
                    let since_raw = now_raw - self.window.attended_raw;
                    if since_raw > self.window.away_after_raw {
                        self.window.away_raw = since_raw;
                    }
                    return self.open_window();
                }
                self.window.state = WindowState::CatchingUp;
                self.window.edge_raw = NEVER;
                self.window.seen_before = self.counts.seen();
                // The current pass began before the edge.
                self.window.pass_was_full = true;
                self.window.pass_began_raw = now_raw;
            }
            WindowState::Open => {
                self.window.unattended_raw[1] = self.away_over(self.window.edge_raw, now_raw);
                self.close_window(self.window.attended_raw);
            }
            WindowState::None | WindowState::CatchingUp | WindowState::Closed => {
                self.window.edge_raw = NEVER;
            }
        }
    }

    /// Called after each pass while catching up. Opens the window after a pass that emptied the CQs and took no
    /// longer than usual.
    #[cold]
    pub(super) fn after_pass_of_catching_up(&mut self) {
        let window = &mut self.window;
        let took_raw = window.attended_raw.saturating_sub(window.pass_began_raw);
        let was_full = std::mem::take(&mut window.pass_was_full);
        window.pass_began_raw = window.attended_raw;
        let seen = self.counts.seen() - window.seen_before;
        if (!was_full && took_raw <= window.late_raw)
            || seen > window.most_piled_up
            || window.attended_raw >= window.give_up_raw
        {
            let (opens_raw, start_raw) = (window.edges.opens_raw, window.attended_raw);
            self.window.unattended_raw[0] = self.away_over(opens_raw, start_raw);
            self.open_window();
        }
    }

    /// Opens the window at the last look at the CQs, with the counts so far.
    fn open_window(&mut self) {
        self.worker_qps.window_opens();
        let start_raw = self.window.attended_raw;
        self.window.state = WindowState::Open;
        self.window.edge_raw = self.window.edges.closes_raw;
        self.window.record_until_raw = NEVER;
        self.window.start_raw = Some(start_raw);
        self.window.cpu_seconds = self.cpu_seconds();
        self.window.polls = self.counts.polls;
        self.window.empty_polls = self.counts.empty_polls;
        self.window.blocked = self.source.blocked();
        if let Some(counters) = self.shared.counters(self.place.worker) {
            counters.completed_before.store(self.counts.completed, Relaxed);
            counters.opened_raw.store(start_raw.max(1), Release);
        }
    }

    /// CPU time of this thread; none in virtual time.
    fn cpu_seconds(&self) -> f64 {
        if self.shared.clock.is_virtual() { 0.0 } else { cpu::thread_seconds() }
    }

    /// Closes the window with the counts so far, if it is open.
    pub(super) fn close_window(&mut self, end_raw: u64) {
        let was_open = self.window.state == WindowState::Open;
        self.window.state = WindowState::Closed;
        self.window.edge_raw = NEVER;
        self.window.late_raw = NEVER;
        self.window.away_after_raw = NEVER;
        if was_open {
            // A message posted in the window belongs to its latencies even if it completes later.
            self.window.record_until_raw = end_raw;
            self.window.end_raw = Some(end_raw);
            self.window.cpu_seconds = self.cpu_seconds() - self.window.cpu_seconds;
            self.window.polls = self.counts.polls - self.window.polls;
            self.window.empty_polls = self.counts.empty_polls - self.window.empty_polls;
            self.window.blocked = self.source.blocked() - self.window.blocked;
            self.worker_qps.window_closes();
        }
        if let Some(counters) = self.shared.counters(self.place.worker) {
            counters.completed_by_end.store(self.counts.completed, Relaxed);
            counters.closed_raw.store(end_raw.max(1), Release);
        }
    }
}
