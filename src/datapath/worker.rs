//! The loop of one worker: poll, demultiplex by `wr_id`, record, post again. Nothing here allocates,
//! locks, prints or makes a system call beyond what verbs itself does; that happens before the loop and
//! after it. A worker that sleeps (`sleeping`) is another instance of the same code.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};

use crate::metrics::histogram::Samples;
use verbs::{Completion, CompletionQueue, Operation, POLL_BATCH, PostError, SendScratch, WcBatch};

use super::Geometry;
use super::lane::{Lane, Sender};
use super::report::{QpReport, WorkerReport};
use super::shared::{Phase, Shared};
use super::trouble::{FailedCompletion, Trouble};
use super::wr_id::{TAIL_SLOT, WrId};

mod phases;
mod posting;
mod sleeping;
mod window;

use posting::{CALL_WEIGHT, PACE_EVERY, STAMP_LASTS};
use sleeping::Idle;
pub use sleeping::Sleep;
use window::Window;

/// What one worker is given.
pub struct WorkerSpec {
    /// Its number, from 0.
    pub index: usize,
    /// Core it is pinned to.
    pub core: Option<usize>,
    /// CQs that it polls, in turn.
    pub cqs: Vec<Arc<CompletionQueue>>,
    /// Indices of the QPs that it starts, and whose completions come to it unless the CQ is shared.
    pub lanes: Vec<usize>,
    /// Where it sleeps while its CQs are empty, all of which are on that channel; `None` to poll.
    pub sleep: Option<Sleep>,
}

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

/// One QP, as one worker sees it.
struct Seat<'s> {
    lane: &'s Lane,
    sender: Option<&'s Sender>,
    tally: Tally,
    samples: Option<Samples>,
}

/// Memory of what a worker keeps of each QP of the run, besides latencies, in bytes.
pub const WORKER_BYTES_PER_QP: usize =
    size_of::<Seat<'static>>() + 2 * size_of::<Tally>() + size_of::<QpReport>();

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
    seats: Vec<Seat<'s>>,
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
            seats: shared
                .lanes
                .iter()
                .enumerate()
                .map(|(qp, lane)| Seat {
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
            window: Window::new(most_piled_up(shared, spec, CONTENDED)),
            last_chain_of_head: last_chain(geometry.head),
            last_chain_of_rest: last_chain(geometry.unit - geometry.head),
        }
    }

    /// Works until told to return.
    pub(super) fn run(mut self) -> WorkerReport {
        let mut batch = WcBatch::new();
        let mut idle = Idle::default();
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

    #[inline]
    fn handle(&mut self, completions: &[Completion]) {
        let seen_raw = self.shared.clock.raw();
        self.look(seen_raw);
        self.last_seen_raw = seen_raw;
        self.window.pass_was_full |= completions.len() == POLL_BATCH;
        self.stamp_raw = seen_raw;
        self.since_stamp = 0;
        if self.posts_whole_slots && self.mode == Mode::Run {
            self.repeat(completions, seen_raw);
        } else {
            for completion in completions {
                self.keep_up();
                self.completed(completion, seen_raw);
            }
        }
        self.pace_in -= 1;
        if self.pace_in == 0 {
            self.pace_in = PACE_EVERY;
            self.pace_stamps();
        }
        self.publish();
    }

    #[inline]
    fn completed(&mut self, completion: &Completion, seen_raw: u64) {
        let id = WrId::from_raw(completion.wr_id());
        if !completion.is_success() {
            self.failed(completion, id);
        } else if id.is_receive() {
            self.received(completion, id);
        } else {
            self.sent(id, seen_raw);
        }
    }

    /// What [`Self::completed`] comes to for most completions where a slot is one call: the slot is
    /// recorded and posted again, and nothing else has to be asked.
    #[inline]
    fn repeat(&mut self, completions: &[Completion], seen_raw: u64) {
        let unit = self.geometry.unit;
        for completion in completions {
            let id = WrId::from_raw(completion.wr_id());
            let slot = id.slot();
            self.keep_up();
            let seat = self.seats.get_mut(id.qp());
            let Some((seat, sender)) = seat.and_then(|seat| seat.sender.map(|s| (seat, s))) else {
                self.completed(completion, seen_raw);
                continue;
            };
            let Some(posted_at) = sender.posted_at.get(slot as usize) else {
                self.completed(completion, seen_raw);
                continue;
            };
            if !completion.is_success() || id.is_receive() || self.mode != Mode::Run {
                self.completed(completion, seen_raw);
                continue;
            }
            if LATENCY {
                let posted_raw = posted_at.load(Relaxed);
                if posted_raw <= self.window.record_until_raw
                    && let Some(samples) = &mut seat.samples
                {
                    samples.record(self.shared.clock.ns_between(posted_raw, seen_raw));
                }
                posted_at.store(self.stamp_raw, Relaxed);
            }
            self.since_stamp += unit + CALL_WEIGHT;
            seat.tally.completed += u64::from(unit);
            self.completed += u64::from(unit);
            let lane = seat.lane;
            match sender.ring.post((slot * unit) as usize) {
                Ok(()) => {
                    seat.tally.posted += u64::from(unit);
                    self.posted += u64::from(unit);
                }
                Err(error) => self.post_failed(lane, error),
            }
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

    #[inline]
    fn sent(&mut self, id: WrId, seen_raw: u64) {
        let geometry = self.geometry;
        let (qp, slot) = (id.qp(), id.slot());
        let Some(seat) = self.seats.get_mut(qp) else {
            return;
        };
        let (lane, Some(sender)) = (seat.lane, seat.sender) else {
            return;
        };
        if slot == TAIL_SLOT {
            self.tail_sent(qp, sender);
            return;
        }
        let messages = u64::from(geometry.signal_every);
        self.completed += messages;
        seat.tally.completed += messages;
        if LATENCY
            && let Some(posted_at) = sender.posted_at.get(slot as usize)
            && let posted_raw = posted_at.load(Relaxed)
            && posted_raw <= self.window.record_until_raw
            && let Some(samples) = &mut seat.samples
        {
            samples.record(self.shared.clock.ns_between(posted_raw, seen_raw));
        }
        if self.several_per_slot && !last_of_slot::<CONTENDED>(&geometry, sender, slot) {
            return;
        }
        if VERIFY {
            self.check_reads(sender, slot * geometry.unit, geometry.unit);
        }
        match self.mode {
            Mode::Silent => {}
            Mode::Run => {
                self.close_open(qp, lane, sender, slot);
                self.open(qp, lane, sender, slot);
            }
            Mode::Budget => self.spend(qp, lane, sender, slot),
            Mode::Close => {
                self.close_open(qp, lane, sender, slot);
            }
        }
    }

    #[cold]
    fn tail_sent(&mut self, qp: usize, sender: &Sender) {
        let count = sender.tail_messages.load(Relaxed);
        self.completed += u64::from(count);
        if let Some(seat) = self.seats.get_mut(qp) {
            seat.tally.completed += u64::from(count);
        }
        if VERIFY {
            self.check_reads(sender, sender.tail_start.load(Relaxed), count);
        }
    }

    fn check_reads(&mut self, sender: &Sender, first: u32, count: u32) {
        let check = sender.verify.as_ref();
        if let Some(mismatch) = check.and_then(|check| check.check_reads(first, count)) {
            self.trouble.mismatch(mismatch);
            self.shared.set_failed();
        }
    }

    #[inline]
    fn received(&mut self, completion: &Completion, id: WrId) {
        let shared = self.shared;
        let qp = id.qp();
        let Some(seat) = self.seats.get_mut(qp) else {
            return;
        };
        let (lane, Some(receiver)) = (seat.lane, &seat.lane.receiver) else {
            return;
        };
        self.received += 1;
        let tally = &mut seat.tally;
        tally.received += 1;
        let mut post_from = None;
        if VERIFY {
            post_from = Some(id.slot() as usize);
        } else {
            tally.pending_receives += 1;
            if tally.pending_receives == receiver.ring.len() {
                tally.pending_receives = 0;
                post_from = Some(0);
            }
        }
        if VERIFY {
            let check = receiver.check.as_ref();
            let (length, immediate) = (completion.byte_len(), completion.immediate());
            if let Some(mismatch) =
                check.and_then(|check| check.check(id.slot(), length, immediate))
            {
                self.trouble.mismatch(mismatch);
                shared.set_failed();
            }
        }
        if let (Some(first), true) = (post_from, self.trouble.refused.is_none())
            && let Err(error) = receiver.ring.post(first)
        {
            self.refused(error.into_error(Operation::PostRecv, lane.qp.qpn()));
        }
    }

    #[cold]
    fn failed(&mut self, completion: &Completion, id: WrId) {
        let lane = self.shared.lanes.get(id.qp());
        self.trouble.completion(FailedCompletion {
            seen_raw: self.shared.clock.raw(),
            qp: id.qp(),
            qpn: lane.map_or(0, |lane| lane.qp.qpn()),
            op: (!id.is_receive()).then_some(self.shared.case.op),
            status: completion.status(),
            vendor_error: completion.vendor_error(),
        });
        self.mode = Mode::Silent;
        self.shared.set_failed();
    }

    #[cold]
    fn post_failed(&mut self, lane: &Lane, error: PostError) {
        self.refused(error.into_error(Operation::PostSend, lane.qp.qpn()));
    }

    #[cold]
    fn refused(&mut self, error: verbs::VerbsError) {
        self.trouble.refused.get_or_insert(error);
        self.mode = Mode::Silent;
        self.shared.set_failed();
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

#[inline]
fn lane_and_sender(shared: &Shared, qp: usize) -> Option<(&Lane, &Sender)> {
    let lane = shared.lanes.get(qp)?;
    Some((lane, lane.sender.as_ref()?))
}

/// Counts a completion of a slot that has several, and says whether it was the last.
#[inline]
fn last_of_slot<const CONTENDED: bool>(geometry: &Geometry, sender: &Sender, slot: u32) -> bool {
    let Some(awaited) = sender.awaited.get(slot as usize) else {
        return false;
    };
    let left = if CONTENDED {
        awaited.fetch_sub(1, std::sync::atomic::Ordering::AcqRel)
    } else {
        let left = awaited.load(Relaxed);
        awaited.store(left.wrapping_sub(1), Relaxed);
        left
    };
    if left > 1 {
        return false;
    }
    awaited.store(geometry.completions_per_slot(), Release);
    true
}
