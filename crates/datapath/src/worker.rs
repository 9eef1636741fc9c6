//! A worker: what a thread does for one flow. It polls, demultiplexes by `wr_id`, records and posts again. A pass
//! allocates nothing, takes no lock, prints nothing and makes no system call except those of verbs.
//!
//! Each source of messages, a feed, has its loop: in `posting` those of closed loops, whose QPs are each their own source or have
//! one together, in `feed_planned` that of an open loop, in `feed_ping_pong` that of a ping-pong, in
//! `feed_lock_step` that of steps. A new feed is a constant of
//! `feed` and its kinds in [`Kind`], a file `feed_NAME`, and a branch wherever it differs: see `FEED` in `pass`, `completed`,
//! `fill` and `enter`.

use std::sync::Arc;

use settings::Spread;
use verbs::{CompletionQueue, SendScratch, Sleeper, VerbsError, WcBatch};

use crate::layout::looks_at_values;
use crate::shared::QpCounts;
use crate::{Geometry, Phase, Shared, Trouble, WorkerReport};

mod clocks;
mod completions;
mod edges;
mod feed_lock_step;
mod feed_ping_pong;
mod feed_planned;
mod pauses;
mod planned_qps;
mod posting;
mod source;
mod window;

use clocks::{Pace, Stamps};
use feed_lock_step::Steps;
use pauses::Pauses;
use planned_qps::PlannedQps;
use source::{Source, Turns};
use window::{NEVER, Window, WorkerCounts, WorkerQps};

/// What to post when a slot completes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Silent,
    Run,
    /// The next WRs, while the budget lasts.
    Budget,
    /// Nothing until the flow is on again; slots are kept until then.
    Paused,
    /// Only the rest of an open slot, so that everything posted completes.
    Close,
}

/// Memory that a worker keeps per QP of the run besides latencies, in bytes.
pub const WORKER_BYTES_PER_QP: usize = WorkerQps::BYTES_PER_QP
    + QpCounts::BYTES_PER_QP
    + Source::BYTES_PER_QP
    + PlannedQps::BYTES_PER_QP
    + Turns::BYTES_PER_QP
    + Pauses::BYTES_PER_QP;

/// The worker of one flow; [`Kind`] chooses the parameters.
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
    /// Used with `feed::SOURCE`, else empty.
    source: Source,
    /// Used with `feed::PLANNED`, else empty.
    paced: PlannedQps<'s>,
    /// Used with `feed::PING_PONG`, else empty.
    turns: Turns,
    /// Used with `feed::LOCK_STEP`, else empty.
    steps: Steps<'s>,
    /// Of a flow that is not on all the time.
    pauses: Option<Box<Pauses>>,
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
            steps: Steps::new(shared, place.worker),
            pauses: Pauses::new(shared),
            stamps: if LATENCY && shared.sends() { Stamps::new(shared) } else { None },
            worker_qps: WorkerQps::new(shared, place.worker, |qp: usize| {
                LATENCY && !shared.answers && (CONTENDED || spec.qps.binary_search(&qp).is_ok())
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
        if FEED == feed::LOCK_STEP {
            self.take_steps();
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
        if let Some(counters) = self.shared.counters(self.place.worker) {
            self.counts.publish_activity(counters);
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
            || FEED == feed::LOCK_STEP && self.steps.resumes_raw <= self.shared.clock.raw()
    }

    fn edge_raw(&self) -> Option<u64> {
        let edge_raw = match FEED {
            feed::PLANNED => self.window.due_raw.min(self.paced.wake_raw()),
            feed::PING_PONG => self.window.due_raw.min(self.turns.look_raw),
            feed::LOCK_STEP => self.window.due_raw.min(self.steps.resumes_raw),
            _ => self.window.due_raw,
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

/// The outcome of a pass over the CQs. The largest of several is the outcome for all of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pass {
    /// Told to exit; nothing was polled.
    Exit,
    /// All CQs were polled, and were empty.
    Empty,
    /// At least one CQ had completions.
    Found,
}

/// What a thread does with the flows that it serves.
pub(super) trait Service {
    /// Enters the phases that are new and polls each CQ once.
    fn pass(&mut self, batch: &mut WcBatch) -> Pass;

    /// Arms all CQs; returns whether they have to be polled again before a sleep.
    fn arm(&mut self) -> bool;

    /// Called directly after a sleep.
    fn woken(&mut self);

    /// Whether the next passes must not be delayed.
    fn is_catching_up(&self) -> bool;

    /// The next edge of a window, at which the thread must be awake, as a raw clock reading.
    fn edge_raw(&self) -> Option<u64>;

    /// Records a sleep that failed.
    fn sleep_refused(&mut self, error: VerbsError);
}

pub(super) trait FlowService: Service {
    fn report(self: Box<Self>) -> WorkerReport;
}

/// The settings of one thread, which has a worker for each flow that it serves.
pub struct ThreadSpec {
    /// The core that it is pinned to.
    pub core: Option<usize>,
    /// How it sleeps while all its CQs are empty; `None` to poll.
    pub sleep: Option<Sleep>,
    /// Its part of each flow of the node, in the flows' order; `None` for a flow that it does not serve.
    pub flows: Vec<Option<WorkerSpec>>,
}

/// The part of one flow that a thread serves.
pub struct WorkerSpec {
    /// The CQs that it polls, in turn.
    pub cqs: Vec<Arc<CompletionQueue>>,
    /// Indices of the QPs that it starts, in order. Their completions come to it unless the CQ is shared.
    pub qps: Vec<usize>,
}

pub struct Sleep {
    /// The channels of all CQs of all its flows, and the wakeup that ends its sleep when a phase begins.
    pub sleeper: Sleeper,
    /// Whether it polls for a while before it sleeps ([`settings::PollMode::Adaptive`]).
    pub adaptive: bool,
}

/// Which of a flow's workers a worker is.
#[derive(Clone, Copy)]
pub(super) struct WorkerPlace {
    /// Its number among the flow's workers, from 0.
    pub(super) worker: usize,
    /// The number of its thread, from 0.
    pub(super) thread: usize,
    /// The core that the thread is pinned to.
    pub(super) core: Option<usize>,
}

/// Where the messages of a worker come from, the parameter `FEED`.
mod feed {
    /// Each QP posts its next as one completes (`posting`).
    pub(super) const OWN: u8 = 0;
    /// The worker is one source for its QPs (`posting`, `source`).
    pub(super) const SOURCE: u8 = 1;
    /// They have planned times (`feed_planned`).
    pub(super) const PLANNED: u8 = 2;
    /// Each follows the answer to the one before (`feed_ping_pong`).
    pub(super) const PING_PONG: u8 = 3;
    /// A step follows what has come of the one before (`feed_lock_step`).
    pub(super) const LOCK_STEP: u8 = 4;
}

/// The kind of a worker: the const parameters of its code, as values. Each kind has a loop of its own.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    verify: bool,
    latency: bool,
    contended: bool,
    feed: u8,
}

/// Code that needs the parameters of a kind as const parameters.
pub(super) trait KindVisitor {
    type Out;

    fn visit<const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool, const FEED: u8>(
        self,
    ) -> Self::Out;
}

/// Runs `$body` with a constant `$name` that is `$value`: `$body` is compiled for both values.
macro_rules! with_const {
    ($name:ident = $value:expr; $body:expr) => {
        if $value {
            const $name: bool = true;
            $body
        } else {
            const $name: bool = false;
            $body
        }
    };
}

impl Kind {
    pub(super) fn from_shared(shared: &Shared) -> Kind {
        let flow = &shared.flow;
        let contended = shared.contended();
        Kind {
            verify: looks_at_values(flow),
            latency: !flow.no_latency,
            contended,
            feed: match (flow.is_closed_loop(), flow.spread) {
                _ if flow.ping_pong => feed::PING_PONG,
                _ if flow.lock_step => feed::LOCK_STEP,
                (false, _) if shared.sends() => feed::PLANNED,
                (_, Spread::Own) => feed::OWN,
                // Workers that share a CQ are no sources.
                _ if contended => feed::OWN,
                _ => feed::SOURCE,
            },
        }
    }

    /// Calls the visitor with the parameters of this kind. Of the 40 combinations only the 20 that flows need are compiled.
    pub(super) fn visit<V: KindVisitor>(self, visitor: V) -> V::Out {
        with_const!(VERIFY = self.verify; match self.feed {
            // The rules of settings allow no others.
            feed::PING_PONG => visitor.visit::<VERIFY, true, false, { feed::PING_PONG }>(),
            feed::LOCK_STEP => visitor.visit::<VERIFY, true, false, { feed::LOCK_STEP }>(),
            // Open loops always record latencies.
            feed::PLANNED => with_const!(CONTENDED = self.contended;
                visitor.visit::<VERIFY, true, CONTENDED, { feed::PLANNED }>()),
            // Sources are never contended: see `Kind::from_shared`.
            feed::SOURCE => with_const!(LATENCY = self.latency;
                visitor.visit::<VERIFY, LATENCY, false, { feed::SOURCE }>()),
            _ => with_const!(CONTENDED = self.contended; with_const!(LATENCY = self.latency;
                visitor.visit::<VERIFY, LATENCY, CONTENDED, { feed::OWN }>())),
        })
    }
}

/// Constants of a flow that its worker needs for each message, computed before the first one.
struct Facts {
    /// A copy of the flow's.
    geometry: Geometry,
    several_per_slot: bool,
    /// A slot is one signalled chain, posted by one call; see [`Worker::repeat`].
    posts_whole_slots: bool,
    /// Where the last chain begins in each of the two parts of a slot.
    last_chain_of_head: u32,
    last_chain_of_rest: u32,
    /// Messages of the flow differ in size.
    is_mixed: bool,
    /// Bytes of a receive's completion that are no payload.
    header_bytes: u32,
}

impl Facts {
    /// With `verify` the payloads of each chain are filled before it is posted.
    fn new(shared: &Shared, verify: bool) -> Facts {
        let geometry = shared.geometry;
        let is_mixed = shared.flow.size_mix.is_some();
        Facts {
            geometry,
            several_per_slot: geometry.completions_per_slot() > 1,
            posts_whole_slots: !verify
                && !is_mixed
                && geometry.completions_per_slot() == 1
                && geometry.head == geometry.unit
                && geometry.post_list == geometry.unit,
            last_chain_of_head: geometry.last_chain(geometry.head),
            last_chain_of_rest: geometry.last_chain(geometry.unit - geometry.head),
            is_mixed,
            header_bytes: shared.flow.service.receive_header_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    struct Parameters;

    impl KindVisitor for Parameters {
        type Out = (bool, bool, bool, u8);

        fn visit<const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool, const FEED: u8>(
            self,
        ) -> Self::Out {
            (VERIFY, LATENCY, CONTENDED, FEED)
        }
    }

    #[test]
    fn a_kind_gets_its_own_parameters_and_what_no_flow_needs_is_not_compiled() {
        let mut compiled = BTreeSet::new();
        for feed in [feed::OWN, feed::SOURCE, feed::PLANNED, feed::PING_PONG, feed::LOCK_STEP] {
            for bits in 0..8 {
                let [verify, latency, contended] = [1, 2, 4].map(|bit| bits & bit != 0);
                let kind = Kind { verify, latency, contended, feed };
                let found = kind.visit(Parameters);
                let expected = match feed {
                    feed::PING_PONG | feed::LOCK_STEP => (verify, true, false, feed),
                    _ => (
                        verify,
                        latency || feed == feed::PLANNED,
                        contended && feed != feed::SOURCE,
                        feed,
                    ),
                };
                assert_eq!(found, expected);
                compiled.insert(found);
            }
        }
        assert_eq!(compiled.len(), 20);
    }
}
