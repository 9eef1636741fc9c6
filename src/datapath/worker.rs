//! The loop of one worker: poll, demultiplex by `wr_id`, record, post again. Nothing here allocates,
//! locks, prints or makes a system call beyond what verbs itself does; that happens before the loop and
//! after it. A worker that sleeps (`sleeping`) is another instance of the same code.

use std::sync::atomic::Ordering::Release;

use crate::metrics::histogram::Samples;
use verbs::{SendScratch, WcBatch};

use super::geometry::Geometry;
use super::lane::{Lane, Sender};
use super::report::{QpReport, WorkerReport};
use super::shared::{Phase, Shared};
use super::trouble::Trouble;

mod completions;
mod edges;
mod pace;
mod phases;
mod posting;
mod sleeping;
mod spec;
mod window;

use pace::STAMP_LASTS;
pub use spec::{Sleep, WorkerSpec};
use window::Window;

/// Counts of one QP, as seen by one worker.
#[derive(Clone, Copy, Default)]
struct Tally {
    posted: u64,
    completed: u64,
    received: u64,
    /// Receives used up and not posted again yet.
    pending_receives: usize,
    /// The QP's last slot has its head posted and its rest not.
    open: bool,
}

/// What a completed slot leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Nothing is posted.
    Silent,
    /// It is posted again.
    Run,
    /// It is posted again while the budget lasts.
    Budget,
    /// Only a slot that is open is closed, so that everything posted completes.
    Close,
}

/// Since when a worker has found nothing.
#[derive(Default)]
struct Idle {
    since_raw: Option<u64>,
}

/// One QP, as one worker sees it.
struct WorkerQp<'s> {
    lane: &'s Lane,
    sender: Option<&'s Sender>,
    tally: Tally,
    samples: Option<Samples>,
}

/// Memory of what a worker keeps of each QP of the run, besides latencies, in bytes.
pub const WORKER_BYTES_PER_QP: usize =
    size_of::<WorkerQp<'static>>() + 2 * size_of::<Tally>() + size_of::<QpReport>();

pub(super) struct Worker<
    's,
    const VERIFY: bool,
    const LATENCY: bool,
    const CONTENDED: bool,
    const SLEEPS: bool,
> {
    shared: &'s Shared,
    spec: &'s WorkerSpec,
    /// The case's, at hand.
    geometry: Geometry,
    several_per_slot: bool,
    /// A slot is one signalled chain, posted by one call; see [`Self::repeat`].
    posts_whole_slots: bool,
    worker_qps: Vec<WorkerQp<'s>>,
    at_start: Vec<Tally>,
    at_end: Vec<Tally>,
    scratch: SendScratch,
    trouble: Trouble,
    phase: Phase,
    mode: Mode,
    posted: u64,
    completed: u64,
    received: u64,
    polls: u64,
    empty_polls: u64,
    stamp_raw: u64,
    /// Weight of what was posted since.
    since_stamp: u32,
    /// Weight that may be posted on one reading.
    stamp_lasts: u32,
    /// Batches of completions until that is looked at again.
    pace_in: u32,
    last_seen_raw: u64,
    window: Window,
    /// Chains of the two parts of a slot but for the last one: where that begins.
    last_chain_of_head: u32,
    last_chain_of_rest: u32,
}

impl<'s, const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool, const SLEEPS: bool>
    Worker<'s, VERIFY, LATENCY, CONTENDED, SLEEPS>
{
    pub(super) fn new(shared: &'s Shared, spec: &'s WorkerSpec) -> Self {
        let qps = shared.lanes.len();
        let geometry = shared.geometry;
        let last_chain =
            |count: u32| count.saturating_sub(1) / geometry.post_list * geometry.post_list;
        let mine = |index: usize| CONTENDED || spec.lanes.contains(&index);
        Worker {
            shared,
            spec,
            geometry,
            several_per_slot: geometry.completions_per_slot() > 1,
            posts_whole_slots: !VERIFY
                && geometry.completions_per_slot() == 1
                && geometry.head == geometry.unit
                && geometry.post_list == geometry.unit,
            worker_qps: shared
                .lanes
                .iter()
                .enumerate()
                .map(|(qp, lane)| WorkerQp {
                    lane,
                    sender: lane.sender.as_ref(),
                    tally: Tally::default(),
                    samples: (LATENCY && lane.sender.is_some() && mine(qp))
                        .then(|| Samples::new(shared.digits)),
                })
                .collect(),
            at_start: vec![Tally::default(); qps],
            at_end: vec![Tally::default(); qps],
            scratch: SendScratch::new(geometry.unit.max(geometry.post_list) as usize),
            trouble: Trouble::new(),
            phase: Phase::Idle,
            mode: Mode::Silent,
            posted: 0,
            completed: 0,
            received: 0,
            polls: 0,
            empty_polls: 0,
            stamp_raw: 0,
            since_stamp: STAMP_LASTS,
            stamp_lasts: STAMP_LASTS,
            pace_in: 1,
            last_seen_raw: 0,
            window: Window::new(
                window::late_raw(&shared.clock, shared.case.stop()),
                most_piled_up(shared, spec, CONTENDED),
            ),
            last_chain_of_head: last_chain(geometry.head),
            last_chain_of_rest: last_chain(geometry.unit - geometry.head),
        }
    }

    /// Works until told to return.
    pub(super) fn run(mut self) -> WorkerReport {
        let mut batch = WcBatch::new();
        let mut idle = Idle::default();
        self.attend_from_now();
        loop {
            self.follow();
            if self.phase == Phase::Exit {
                return self.report();
            }
            let mut found = false;
            for cq in &self.spec.cqs {
                self.polls += 1;
                match cq.poll(&mut batch) {
                    Ok([]) => self.empty_polls += 1,
                    Ok(completions) => {
                        found = true;
                        // Another worker may have posted these in a phase that this one has not entered
                        // yet: without it, they would be dropped or not charged to the budget.
                        if CONTENDED {
                            self.follow();
                        }
                        self.handle(completions);
                    }
                    Err(error) => self.refused(error),
                }
            }
            if !found {
                self.attend();
            }
            if self.window.is_catching_up() {
                self.after_pass_of_catching_up();
            }
            if SLEEPS {
                self.after_pass(&mut idle, found);
            }
        }
    }

    /// Enters the phase that is wanted, if it is another.
    #[inline]
    fn follow(&mut self) {
        let wanted = self.shared.phase();
        if wanted != self.phase {
            self.phase = wanted;
            self.enter(wanted);
        }
    }

    /// Between two completions of a batch: one of a slow device takes longer than a change of phase may wait.
    #[inline]
    fn keep_up(&mut self) {
        if self.keep_stamp() {
            self.follow();
        }
    }

    /// Posted first: see [`Shared::counts`].
    #[inline]
    fn publish(&self) {
        if let Some(counters) = self.shared.counters(self.spec.index) {
            counters.posted.store(self.posted, Release);
            counters.completed.store(self.completed, Release);
            counters.received.store(self.received, Release);
        }
    }
}

/// Completions that can wait in the CQs of a worker.
fn most_piled_up(shared: &Shared, spec: &WorkerSpec, contended: bool) -> u64 {
    let geometry = shared.geometry;
    let in_flight = u64::from(geometry.completions_in_flight()) + u64::from(shared.case.rx_depth);
    let qps = if contended {
        shared.lanes.len()
    } else {
        spec.lanes.len()
    };
    qps as u64 * in_flight
}
