//! What the workers of one end and the thread that steers them share during a run.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crossbeam::utils::CachePadded;

use crate::metrics::clock::Clock;
use crate::metrics::histogram::Digits;
use crate::plan::{Case, CqMode};
use crate::verbs::Bell;

use super::{Geometry, Lane};

/// What the workers are to do. They look at it once a pass over their CQs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Phase {
    /// Receive what comes; send nothing yet.
    Idle,
    /// Send, record nothing.
    Warmup,
    /// Send and record.
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
