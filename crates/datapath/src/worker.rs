//! A worker: what a thread does for one flow. It polls, demultiplexes by `wr_id`, records and posts again. A pass
//! allocates nothing, takes no lock, prints nothing and makes no system call except those of verbs.
//!
//! Each source of messages, a feed, has a file with its loop: `feed_own`, `feed_source`, `feed_planned` or `feed_ping_pong`. A new feed is a
//! constant and its kinds in `kind`, a file `feed_NAME`, and a branch wherever it differs: see `FEED` in `pass`,
//! `completed`, `fill` and `enter`.

use verbs::{SendScratch, VerbsError, WcBatch};

use super::report::Trouble;
use super::report::WorkerReport;
use super::shared::QpCounts;
use super::shared::{Phase, Shared};
use super::source::Source;

mod completions;
mod edges;
mod feed_own;
mod feed_ping_pong;
mod feed_planned;
mod feed_source;
mod gaps;
mod kind;
mod pace;
mod phases;
mod planned_qps;
mod posting;
mod qps;
mod service;
mod stamped;
mod stamps;
mod turns;
mod window;

pub use gaps::TOLERATED_NS;
use kind::{Facts, feed};
pub(super) use kind::{Kind, KindVisitor};
use pace::Pace;
use planned_qps::PlannedQps;
use qps::{WorkerCounts, WorkerQps};
pub(super) use service::{FlowService, Pass, Service, WorkerPlace};
pub use service::{Sleep, ThreadSpec, WorkerSpec};
use stamps::Stamps;
use turns::Turns;
use window::{NEVER, Window};

/// What to post when a slot completes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Silent,
    Run,
    /// The next WRs, while the budget lasts.
    Budget,
    /// Only the rest of an open slot, so that everything posted completes.
    Close,
}

/// Memory that a worker keeps per QP of the run besides latencies, in bytes.
pub const WORKER_BYTES_PER_QP: usize = WorkerQps::BYTES_PER_QP
    + QpCounts::BYTES_PER_QP
    + Source::BYTES_PER_QP
    + PlannedQps::BYTES_PER_QP
    + Turns::BYTES_PER_QP;

/// The worker of one flow; `kind` chooses the parameters.
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
    facts: Facts,
    /// With `feed::SOURCE`.
    source: Source,
    /// With `feed::PLANNED`.
    paced: PlannedQps<'s>,
    /// With `feed::PING_PONG`.
    turns: Turns,
    /// With latencies that end at the device's stamps.
    stamps: Option<Box<Stamps>>,
    worker_qps: WorkerQps<'s>,
    counts: WorkerCounts,
    pace: Pace,
    window: Window,
    phase: Phase,
    mode: Mode,
    scratch: SendScratch,
    trouble: Trouble,
}

impl<'s, const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool, const FEED: u8>
    Worker<'s, VERIFY, LATENCY, CONTENDED, FEED>
{
    pub(super) fn new(shared: &'s Shared, spec: &'s WorkerSpec, place: WorkerPlace) -> Self {
        let qps = shared.qp_contexts.len();
        let facts = Facts::new(shared, VERIFY);
        let geometry = facts.geometry;
        let of_source: &[usize] = if shared.sends() { &spec.qps } else { &[] };
        let mut worker = Worker {
            shared,
            spec,
            place,
            facts,
            source: Source::new(&shared.flow, &geometry, qps, place.worker, of_source),
            paced: match FEED {
                feed::PLANNED => PlannedQps::new(shared, of_source, CONTENDED),
                _ => PlannedQps::default(),
            },
            turns: Turns::new(shared),
            stamps: if LATENCY && shared.sends() { Stamps::new(shared) } else { None },
            worker_qps: WorkerQps::new(shared, place.worker, |qp: usize| {
                LATENCY && !shared.answers && (CONTENDED || spec.qps.contains(&qp))
            }),
            counts: WorkerCounts::default(),
            pace: Pace::new(),
            window: Window::new(
                &shared.clock,
                shared.flow.stop(),
                most_piled_up(shared, spec, CONTENDED),
            ),
            phase: Phase::Idle,
            mode: Mode::Silent,
            scratch: SendScratch::new(geometry.unit.max(geometry.post_list) as usize),
            trouble: Trouble::new(),
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

    #[inline]
    fn publish(&self) {
        if let Some(counters) = self.shared.counters(self.place.worker) {
            self.counts.publish(counters);
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
            self.counts.polls += 1;
            let polled = if LATENCY && self.stamps.is_some() {
                cq.poll_stamped(batch)
            } else {
                cq.poll(batch).map(|completions| (completions, &[][..]))
            };
            match polled {
                Ok(([], _)) => self.counts.empty_polls += 1,
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
        if FEED == feed::PING_PONG && self.turns.awaits_bytes && self.look_at_bytes() {
            pass = Pass::Found;
        }
        if FEED == feed::PLANNED {
            self.post_due(most_found);
        } else if pass == Pass::Empty {
            self.attend();
            if FEED == feed::PING_PONG && self.window.attended_raw >= self.turns.look_raw {
                self.look_for_lost();
            }
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
            feed::PING_PONG => self.window.edge_raw.min(self.turns.look_raw),
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
    let qps = if contended { shared.qp_contexts.len() } else { spec.qps.len() };
    qps as u64 * u64::from(geometry.completions_in_flight()) + shared.flow.receives_of(qps as u32)
}
