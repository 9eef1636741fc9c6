//! What the workers of one end and the thread that steers them share during a run.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crossbeam::utils::CachePadded;

use crate::metrics::clock::Clock;
use crate::metrics::histogram::Digits;
use crate::plan::Case;
use settings::CqMode;
use verbs::Bell;

use super::{Geometry, Lane};

/// What the workers are to do. They look at it once a pass over their CQs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Phase {
    /// Receive what comes; send nothing yet.
    Idle,
    /// Send, record nothing.
    Warmup,
    /// Send, and record between the edges of the window.
    Measure,
    /// Let the queues run empty; record nothing.
    Drain,
    /// Post nothing more at all: something failed.
    Abort,
    /// Return.
    Exit,
}

/// One worker's counts since the start, written by it alone.
#[derive(Default)]
pub struct Counters {
    /// Messages posted.
    pub posted: AtomicU64,
    /// Posted messages completed.
    pub completed: AtomicU64,
    /// Messages received.
    pub received: AtomicU64,
    /// The phase it has entered: send queues are filled where that belongs to it, and its counts up to
    /// then published.
    pub(super) entered: AtomicU32,
    /// When its window opened and closed, as raw clock readings; 0 for not yet.
    pub(super) opened_raw: AtomicU64,
    pub(super) closed_raw: AtomicU64,
    /// What it had completed by then.
    pub(super) completed_before: AtomicU64,
    pub(super) completed_by_end: AtomicU64,
}

/// The instants between which all workers of an end measure, as raw clock readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edges {
    /// The first instant of the window.
    pub opens_raw: u64,
    /// The first instant after it.
    pub closes_raw: u64,
}

impl Edges {
    /// A window that opens as soon as a worker takes up [`Phase::Measure`], and closes when it takes up
    /// another phase.
    pub const OF_PHASE: Edges = Edges {
        opens_raw: 0,
        closes_raw: u64::MAX,
    };

    fn to_array(self) -> [u64; 2] {
        [self.opens_raw, self.closes_raw]
    }
}

/// How far the windows of an end's workers have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowProgress {
    /// Messages completed in them.
    pub completed: u64,
    /// Time since they were to open, or since the first one did; it ends with them.
    pub elapsed_ns: u64,
    /// All have closed.
    pub is_closed: bool,
}

/// Sums of all workers' counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages posted.
    pub posted: u64,
    /// Posted messages completed.
    pub completed: u64,
    /// Messages received.
    pub received: u64,
}

/// The run, as the workers see it.
pub struct Shared {
    pub(super) case: Case,
    pub(super) geometry: Geometry,
    pub(super) lanes: Vec<Lane>,
    pub(super) clock: Clock,
    pub(super) digits: Digits,
    phase: CachePadded<AtomicU32>,
    failed: CachePadded<AtomicBool>,
    counters: Vec<CachePadded<Counters>>,
    /// See [`Edges`].
    edges: [AtomicU64; 2],
    /// Of the workers that sleep.
    bells: OnceLock<Vec<Arc<Bell>>>,
}

impl Shared {
    /// The QPs of a case with `workers` threads for them.
    pub fn new(case: Case, lanes: Vec<Lane>, clock: Clock, digits: Digits, workers: usize) -> Self {
        Shared {
            geometry: Geometry::of(&case),
            case,
            lanes,
            clock,
            digits,
            phase: CachePadded::new(AtomicU32::new(Phase::Idle as u32)),
            failed: CachePadded::new(AtomicBool::new(false)),
            counters: (0..workers).map(|_| CachePadded::default()).collect(),
            edges: Edges::OF_PHASE.to_array().map(AtomicU64::new),
            bells: OnceLock::new(),
        }
    }

    /// The case.
    pub fn case(&self) -> &Case {
        &self.case
    }

    /// The QPs, by index.
    pub fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// The clock that all times of the run are read from.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Tells the workers what to do, and wakes those that sleep.
    pub fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u32, Ordering::Release);
        for bell in self.bells.get().into_iter().flatten() {
            bell.ring();
        }
    }

    /// Says when the window opens and closes, before [`Phase::Measure`] is set; [`Edges::OF_PHASE`] where nobody
    /// does.
    pub fn set_edges(&self, edges: Edges) {
        // The phase that is set after it makes them visible.
        for (cell, edge) in self.edges.iter().zip(edges.to_array()) {
            cell.store(edge, Ordering::Relaxed);
        }
    }

    /// When the window opens and closes.
    pub fn edges(&self) -> Edges {
        let [opens_raw, closes_raw] = self
            .edges
            .each_ref()
            .map(|cell| cell.load(Ordering::Relaxed));
        Edges {
            opens_raw,
            closes_raw,
        }
    }

    /// How far the workers' windows have come.
    pub fn window(&self) -> WindowProgress {
        let mut progress = WindowProgress {
            is_closed: !self.counters.is_empty(),
            ..WindowProgress::default()
        };
        let edges = self.edges();
        let (mut first_raw, mut last_raw) = (u64::MAX, 0);
        for counters in &self.counters {
            let opened_raw = counters.opened_raw.load(Ordering::Acquire);
            let closed_raw = counters.closed_raw.load(Ordering::Acquire);
            let is_closed = closed_raw != 0;
            progress.is_closed &= is_closed;
            if opened_raw == 0 {
                continue;
            }
            let now = if is_closed {
                counters.completed_by_end.load(Ordering::Relaxed)
            } else {
                counters.completed.load(Ordering::Acquire)
            };
            let before = counters.completed_before.load(Ordering::Relaxed);
            progress.completed += now.saturating_sub(before);
            first_raw = first_raw.min(opened_raw);
            last_raw = last_raw.max(closed_raw);
        }
        // A worker opens at its last look before the edge.
        if edges != Edges::OF_PHASE {
            first_raw = first_raw.min(edges.opens_raw);
        }
        if !progress.is_closed {
            last_raw = self.clock.raw().min(edges.closes_raw);
        }
        progress.elapsed_ns = self.clock.ns_between(first_raw, last_raw);
        progress
    }

    /// Names the bells, before the first worker starts.
    pub(super) fn set_bells(&self, bells: Vec<Arc<Bell>>) {
        // Workers are started once.
        let _ = self.bells.set(bells);
    }

    #[inline]
    pub(super) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Idle,
            1 => Phase::Warmup,
            2 => Phase::Measure,
            3 => Phase::Drain,
            4 => Phase::Abort,
            _ => Phase::Exit,
        }
    }

    /// Whether a worker met an error.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    pub(super) fn set_failed(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    pub(super) fn counters(&self, worker: usize) -> Option<&Counters> {
        self.counters.get(worker).map(|counters| &**counters)
    }

    /// Whether all workers have entered `phase`. Filling the send queues of a slow device takes time, and
    /// until then counts say nothing.
    pub fn all_entered(&self, phase: Phase) -> bool {
        self.counters
            .iter()
            .all(|counters| counters.entered.load(Ordering::Acquire) == phase as u32)
    }

    /// Whether all workers drain and nothing is in flight. Equal sums alone do not say so: a worker may
    /// be about to post in a phase that it entered late, or have posted what another's completions
    /// already count.
    pub fn at_rest(&self) -> bool {
        let counts = || {
            let counts = self.counts();
            counts.posted == counts.completed
        };
        self.all_entered(Phase::Drain) && counts()
    }

    /// All counts up to now. What was completed is read before what was posted, and a worker writes what
    /// it posted first: so, with all workers draining, equal sums mean that nothing is in flight.
    pub fn counts(&self) -> Counts {
        let sum = |field: fn(&Counters) -> &AtomicU64| {
            self.counters
                .iter()
                .map(|counters| field(counters).load(Ordering::Acquire))
                .sum()
        };
        let received = sum(|counters| &counters.received);
        let completed = sum(|counters| &counters.completed);
        let posted = sum(|counters| &counters.posted);
        Counts {
            posted,
            completed,
            received,
        }
    }

    /// Whether completions of one QP may be handled by several workers.
    pub(super) fn contended(&self) -> bool {
        self.case.cq == CqMode::Shared && self.counters.len() > 1
    }
}
