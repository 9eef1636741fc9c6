//! A worker: what a thread does for one flow. It polls, demultiplexes by `wr_id`, records and posts again. A pass
//! allocates nothing, takes no lock, prints nothing and makes no system call except those of verbs. It must not know what
//! else its thread does, nor when that sleeps.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release};

use metrics::histogram::Samples;
use verbs::{SendScratch, VerbsError, WcBatch};

use super::geometry::Geometry;
use super::qp_context::{QpContext, Sender};
use super::qp_counts::QpCounts;
use super::report::{QpReport, WorkerReport};
use super::shared::{Phase, Shared};
use super::source::Source;
use super::trouble::Trouble;

mod completions;
mod edges;
mod gaps;
mod kind;
mod pace;
mod paced;
mod phases;
mod planned_qps;
mod posting;
mod service;
mod spec;
mod spreading;
mod stamped;
mod stamps;
mod window;

pub use gaps::TOLERATED_NS;
use kind::feed;
pub(super) use kind::{Kind, KindVisitor};
use pace::STAMP_LASTS;
use planned_qps::PlannedQps;
pub(super) use service::{FlowService, Pass, Service};
pub(super) use spec::WorkerPlace;
pub use spec::{Sleep, ThreadSpec, WorkerSpec};
use stamps::Stamps;
use window::{NEVER, Window};

/// One worker's counts of one QP.
#[derive(Clone, Copy, Default)]
struct Tally {
    posted: u64,
    completed: u64,
    received: u64,
    /// Bytes of messages, where they differ in size.
    completed_bytes: u64,
    received_bytes: u64,
    /// COMPARE-SWAPs of `completed` that were made.
    swaps_made: u64,
    /// Receives of its own that are used up and not yet posted again.
    pending_receives: usize,
    /// Whether the head of the QP's last slot is posted and its rest is not.
    open: bool,
}

/// What to post when a slot completes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Nothing.
    Silent,
    /// The next WRs.
    Run,
    /// The next WRs, while the budget lasts.
    Budget,
    /// Only the rest of an open slot, so that everything posted completes.
    Close,
}

/// One QP, as one worker sees it.
struct WorkerQp<'s> {
    qp_context: &'s QpContext,
    sender: Option<&'s Sender>,
    tally: Tally,
    /// Has `tally.completed` for the thread that samples.
    completed: &'s AtomicU64,
    samples: Option<Samples>,
}

impl WorkerQp<'_> {
    /// Counts messages of its send queue that have completed.
    #[inline]
    fn count_completed(&mut self, messages: u64) {
        self.tally.completed += messages;
        self.completed.store(self.tally.completed, Relaxed);
    }
}

/// Memory that a worker keeps per QP of the run besides latencies, in bytes.
pub const WORKER_BYTES_PER_QP: usize = size_of::<WorkerQp<'static>>()
    + 2 * size_of::<Tally>()
    + size_of::<QpReport>()
    + QpCounts::BYTES_PER_QP
    + Source::BYTES_PER_QP
    + PlannedQps::BYTES_PER_QP;

/// The worker of one flow; `kind` has the parameters.
pub(super) struct Worker<
    's,
    const VERIFY: bool,
    const LATENCY: bool,
    const CONTENDED: bool,
    const FEED: u8,
> {
    shared: &'s Shared,
    spec: &'s WorkerSpec,
    place: WorkerPlace,
    /// A copy of the flow's geometry.
    geometry: Geometry,
    several_per_slot: bool,
    /// Messages differ in size.
    is_mixed: bool,
    /// Bytes of a receive's completion that are no payload.
    header_bytes: u32,
    source: Source,
    paced: PlannedQps<'s>,
    /// With latencies that end at the device's stamps.
    stamps: Option<Box<Stamps>>,
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
    /// Weight posted since the clock was last read.
    since_stamp: u32,
    /// Receives of the SRQ that are used up and not yet posted again.
    pending_shared: usize,
    /// Weight that may be posted per clock reading.
    stamp_lasts: u32,
    /// Batches of completions until `stamp_lasts` is updated.
    pace_in: u32,
    last_seen_raw: u64,
    window: Window,
    /// Where the last chain begins in each of the two parts of a slot.
    last_chain_of_head: u32,
    last_chain_of_rest: u32,
}

impl<'s, const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool, const FEED: u8>
    Worker<'s, VERIFY, LATENCY, CONTENDED, FEED>
{
    pub(super) fn new(shared: &'s Shared, spec: &'s WorkerSpec, place: WorkerPlace) -> Self {
        let qps = shared.qp_contexts.len();
        let geometry = shared.geometry;
        let last_chain =
            |count: u32| count.saturating_sub(1) / geometry.post_list * geometry.post_list;
        let is_mixed = shared.flow.size_mix.is_some();
        let of_source: &[usize] = if shared.sends() { &spec.qps } else { &[] };
        let mine = |index: usize| CONTENDED || spec.qps.contains(&index);
        let paced = match FEED {
            feed::PLANNED => PlannedQps::new(shared, of_source, CONTENDED),
            _ => PlannedQps::default(),
        };
        let mut worker = Worker {
            shared,
            spec,
            place,
            geometry,
            several_per_slot: geometry.completions_per_slot() > 1,
            is_mixed,
            header_bytes: shared.flow.service.receive_header_bytes(),
            source: Source::new(&shared.flow, &geometry, qps, place.worker, of_source),
            paced,
            stamps: match LATENCY && shared.sends() {
                true => Stamps::new(shared),
                false => None,
            },
            posts_whole_slots: !VERIFY
                && !is_mixed
                && geometry.completions_per_slot() == 1
                && geometry.head == geometry.unit
                && geometry.post_list == geometry.unit,
            worker_qps: shared
                .qp_contexts
                .iter()
                .zip(shared.qp_counts.of_worker(place.worker))
                .enumerate()
                .map(|(qp, (qp_context, completed))| WorkerQp {
                    qp_context,
                    sender: qp_context.sender.as_ref(),
                    tally: Tally::default(),
                    completed,
                    samples: (LATENCY && qp_context.sender.is_some() && mine(qp))
                        .then(|| shared.new_samples(qp, place.worker)),
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
            pending_shared: 0,
            stamp_lasts: STAMP_LASTS,
            pace_in: 1,
            last_seen_raw: 0,
            window: Window::new(
                &shared.clock,
                shared.flow.stop(),
                most_piled_up(shared, spec, CONTENDED),
            ),
            last_chain_of_head: last_chain(geometry.head),
            last_chain_of_rest: last_chain(geometry.unit - geometry.head),
        };
        worker.attend_from_now();
        worker
    }

    /// Enters the requested phase, if it is a new one.
    #[inline]
    fn follow(&mut self) {
        let wanted = self.shared.phase();
        if wanted != self.phase {
            self.phase = wanted;
            self.enter(wanted);
        }
    }

    /// Called between two completions of a batch: on a slow device a batch takes longer than a phase change may wait.
    #[inline]
    fn keep_up(&mut self) {
        if self.keep_stamp() {
            self.follow();
        }
    }

    /// Writes posted first; see [`Shared::counts`].
    #[inline]
    fn publish(&self) {
        if let Some(counters) = self.shared.counters(self.place.worker) {
            counters.posted.store(self.posted, Release);
            counters.completed.store(self.completed, Release);
            counters.received.store(self.received, Release);
        }
    }
}

impl<const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool, const FEED: u8> Service
    for Worker<'_, VERIFY, LATENCY, CONTENDED, FEED>
{
    #[inline(always)] // into each loop that has this worker alone, and into the dynamic call
    fn pass(&mut self, batch: &mut WcBatch) -> Pass {
        self.follow();
        if self.phase == Phase::Exit {
            return Pass::Exit;
        }
        let mut pass = Pass::Empty;
        let mut most_found = 0;
        for cq in &self.spec.cqs {
            self.polls += 1;
            let polled = match LATENCY && self.stamps.is_some() {
                true => cq.poll_stamped(batch),
                false => cq.poll(batch).map(|completions| (completions, &[][..])),
            };
            match polled {
                Ok(([], _)) => self.empty_polls += 1,
                Ok((completions, stamps)) => {
                    pass = Pass::Found;
                    most_found = most_found.max(completions.len());
                    // Another worker may have posted these in a phase that this worker has not entered yet.
                    // Without entering it first, they would be dropped or not charged to the budget.
                    if CONTENDED {
                        self.follow();
                    }
                    match FEED {
                        _ if LATENCY && !stamps.is_empty() => {
                            self.handle_stamped(completions, stamps);
                        }
                        feed::PLANNED => self.handle_planned(completions),
                        _ => self.handle(completions),
                    }
                }
                Err(error) => self.refused(error),
            }
        }
        if FEED == feed::PLANNED {
            self.post_due(most_found);
        } else if pass == Pass::Empty {
            self.attend();
        }
        if self.window.is_catching_up() {
            self.after_pass_of_catching_up();
        }
        pass
    }

    fn arm(&mut self) -> bool {
        // A worker that was told to exit polls no more.
        if self.phase == Phase::Exit {
            return false;
        }
        let mut again = false;
        for cq in &self.spec.cqs {
            match cq.arm() {
                Ok(is_new) => again |= is_new,
                Err(error) => {
                    self.refused(error);
                    again = true;
                }
            }
        }
        again
    }

    fn woken(&mut self) {
        self.look_after_sleep();
        if CONTENDED {
            // The next pass polls, whether they were armed or not.
            self.arm();
        }
    }

    fn is_catching_up(&self) -> bool {
        self.window.is_catching_up()
            || FEED == feed::PLANNED && self.paced.wake_raw() <= self.shared.clock.raw()
    }

    fn edge_raw(&self) -> Option<u64> {
        let edge_raw = match FEED {
            feed::PLANNED => self.window.edge_raw.min(self.paced.wake_raw()),
            _ => self.window.edge_raw,
        };
        Some(edge_raw).filter(|&edge_raw| edge_raw != NEVER)
    }

    fn sleep_refused(&mut self, error: VerbsError) {
        self.refused(error);
    }
}

impl<const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool, const FEED: u8> FlowService
    for Worker<'_, VERIFY, LATENCY, CONTENDED, FEED>
{
    fn report(self: Box<Self>) -> WorkerReport {
        self.into_report()
    }
}

/// The most completions that can wait in a worker's CQs.
fn most_piled_up(shared: &Shared, spec: &WorkerSpec, contended: bool) -> u64 {
    let geometry = shared.geometry;
    let qps = if contended {
        shared.qp_contexts.len()
    } else {
        spec.qps.len()
    };
    qps as u64 * u64::from(geometry.completions_in_flight()) + shared.flow.receives_of(qps as u32)
}
