//! The loop of one worker: poll, demultiplex by `wr_id`, record, post again. Nothing here allocates,
//! locks, prints or makes a system call beyond what verbs itself does; that happens before the loop and
//! after it.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};

use crate::metrics::cpu;
use crate::metrics::histogram::Samples;
use crate::verbs::{Completion, CompletionQueue, Operation, PostError, SendScratch, WcBatch};

use super::Geometry;
use super::lane::{Lane, Sender};
use super::report::{QpReport, WorkerReport};
use super::shared::{Phase, Shared};
use super::trouble::{FailedCompletion, Trouble};
use super::wr_id::{TAIL_SLOT, WrId};

/// How much may be posted on one reading of the clock, a message weighing 1 and a call [`CALL_WEIGHT`]:
/// 8 calls of a message, or 2 of 32. That is less than a microsecond of a NIC's posting, by which the
/// latency of what is posted last is told too long.
const STAMP_LASTS: u32 = 72;
const CALL_WEIGHT: u32 = 8;

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

pub(super) struct Worker<'s, const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool> {
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
    measuring: bool,
    posted: u64,
    completed: u64,
    received: u64,
    polls: u64,
    empty_polls: u64,
    stamp_raw: u64,
    /// Weight of what was posted since.
    since_stamp: u32,
    last_seen_raw: u64,
    window: WindowMarks,
    /// Chains of the two parts of a slot but for the last one: where that begins.
    last_chain_of_head: u32,
    last_chain_of_rest: u32,
}

/// Readings taken when the window opens and closes.
#[derive(Clone, Copy, Default)]
struct WindowMarks {
    start_raw: Option<u64>,
    end_raw: Option<u64>,
    cpu_seconds: f64,
    polls: u64,
    empty_polls: u64,
}

impl<'s, const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool>
    Worker<'s, VERIFY, LATENCY, CONTENDED>
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
            measuring: false,
            posted: 0,
            completed: 0,
            received: 0,
            polls: 0,
            empty_polls: 0,
            stamp_raw: 0,
            since_stamp: STAMP_LASTS,
            last_seen_raw: 0,
            window: WindowMarks::default(),
            last_chain_of_head: last_chain(geometry.head),
            last_chain_of_rest: last_chain(geometry.unit - geometry.head),
        }
    }

    /// Works until told to return.
    pub(super) fn run(mut self) -> WorkerReport {
        let mut batch = WcBatch::new();
        loop {
            self.follow();
            if self.phase == Phase::Exit {
                return self.report();
            }
            for cq in &self.spec.cqs {
                self.polls += 1;
                match cq.poll(&mut batch) {
                    Ok([]) => self.empty_polls += 1,
                    Ok(completions) => {
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

    #[inline]
    fn handle(&mut self, completions: &[Completion]) {
        let seen_raw = if LATENCY || self.measuring {
            self.shared.clock.raw()
        } else {
            0
        };
        self.last_seen_raw = seen_raw;
        if LATENCY {
            self.stamp_raw = seen_raw;
            self.since_stamp = 0;
        }
        if self.posts_whole_slots && self.mode == Mode::Run {
            self.repeat(completions, seen_raw);
        } else {
            for completion in completions {
                self.completed(completion, seen_raw);
            }
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
        let record = LATENCY && self.measuring;
        for completion in completions {
            let id = WrId::from_raw(completion.wr_id());
            let slot = id.slot();
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
            if record && let Some(samples) = &mut seat.samples {
                let posted_raw = posted_at.load(Relaxed);
                samples.record(self.shared.clock.ns_between(posted_raw, seen_raw));
            }
            if LATENCY {
                if self.since_stamp >= STAMP_LASTS {
                    self.stamp_raw = self.shared.clock.raw();
                    self.since_stamp = 0;
                }
                self.since_stamp += unit + CALL_WEIGHT;
                posted_at.store(self.stamp_raw, Relaxed);
            }
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
            && self.measuring
            && let Some(samples) = &mut seat.samples
            && let Some(posted_at) = sender.posted_at.get(slot as usize)
        {
            let posted_raw = posted_at.load(Relaxed);
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

    /// Posts the rest of the slot before `slot`, if its head was posted and that is not yet.
    #[inline]
    fn close_open(&mut self, qp: usize, lane: &Lane, sender: &Sender, slot: u32) -> bool {
        let geometry = self.geometry;
        if CONTENDED || geometry.head == geometry.unit || !self.set_open(qp, false) {
            return false;
        }
        let before = geometry.before(slot);
        self.post_rest(qp, lane, sender, before);
        true
    }

    /// Sets whether the QP's last slot is open, and returns whether it was.
    #[inline]
    fn set_open(&mut self, qp: usize, open: bool) -> bool {
        match self.seats.get_mut(qp) {
            Some(seat) => std::mem::replace(&mut seat.tally.open, open),
            None => false,
        }
    }

    /// Posts the head of a slot, which is all of it where slots are posted whole.
    #[inline]
    fn open(&mut self, qp: usize, lane: &Lane, sender: &Sender, slot: u32) {
        let geometry = self.geometry;
        let first = slot * geometry.unit;
        if CONTENDED || geometry.head == geometry.unit {
            let last = self.last_chain_of_head;
            self.post_to_signal(qp, lane, sender, slot, first, geometry.unit, last);
        } else {
            self.post_span(qp, lane, sender, first, geometry.head);
            self.set_open(qp, true);
        }
    }

    /// Posts what of a slot its head leaves.
    #[inline]
    fn post_rest(&mut self, qp: usize, lane: &Lane, sender: &Sender, slot: u32) {
        let geometry = self.geometry;
        let first = slot * geometry.unit + geometry.head;
        let count = geometry.unit - geometry.head;
        let last = self.last_chain_of_rest;
        self.post_to_signal(qp, lane, sender, slot, first, count, last);
    }

    /// Posts `count` WRs that end with a slot's signalled one, and notes the time before the chain that
    /// has it, which begins `last` WRs on.
    #[inline]
    #[allow(clippy::too_many_arguments)] // all but `last` name the same thing: which WRs of which QP
    fn post_to_signal(
        &mut self,
        qp: usize,
        lane: &Lane,
        sender: &Sender,
        slot: u32,
        first: u32,
        count: u32,
        last: u32,
    ) {
        if last > 0 {
            self.post_span(qp, lane, sender, first, last);
        }
        if LATENCY {
            self.stamp(sender, slot);
        }
        self.post_span(qp, lane, sender, first + last, count - last);
    }

    #[inline]
    fn stamp(&mut self, sender: &Sender, slot: u32) {
        if self.since_stamp >= STAMP_LASTS {
            self.stamp_raw = self.shared.clock.raw();
            self.since_stamp = 0;
        }
        if let Some(at) = sender.posted_at.get(slot as usize) {
            at.store(self.stamp_raw, Relaxed);
        }
    }

    /// Posts `count` WRs from ring position `first` on, chain by chain.
    #[inline]
    fn post_span(&mut self, qp: usize, lane: &Lane, sender: &Sender, first: u32, count: u32) {
        let step = self.geometry.post_list;
        let mut done = 0;
        while done < count {
            let result = if VERIFY {
                self.post_verified(sender, first + done, step.min(count - done), None)
            } else {
                sender.ring.post((first + done) as usize)
            };
            if let Err(error) = result {
                return self.post_failed(lane, error);
            }
            done += step;
            if LATENCY {
                self.since_stamp += CALL_WEIGHT;
            }
        }
        if LATENCY {
            self.since_stamp += count;
        }
        self.posted += u64::from(count);
        if let Some(seat) = self.seats.get_mut(qp) {
            seat.tally.posted += u64::from(count);
        }
    }

    /// Posts one chain whose payloads are filled first; with `tail`, only its last WR is signalled, so named.
    fn post_verified(
        &mut self,
        sender: &Sender,
        first: u32,
        count: u32,
        tail: Option<Option<u64>>,
    ) -> Result<(), PostError> {
        let check = sender.verify.as_ref();
        sender.ring.post_edited(
            &mut self.scratch,
            first as usize,
            count as usize,
            |place, edit| {
                if let Some(check) = check {
                    let key = check.prepare(first + place as u32);
                    if check.names_messages() {
                        edit.set_immediate(key.immediate());
                    }
                }
                if let Some(wr_id) = tail {
                    edit.set_signalled(wr_id.filter(|_| place + 1 == count as usize));
                }
            },
        )
    }

    /// What a completed slot leads to in a run counted in messages.
    #[inline]
    fn spend(&mut self, qp: usize, lane: &Lane, sender: &Sender, slot: u32) {
        let closed = self.close_open(qp, lane, sender, slot);
        if sender.slots_left.fetch_sub(1, Relaxed) > 0 {
            self.open(qp, lane, sender, slot);
        } else if !closed {
            self.post_tail(qp, lane, sender, slot);
        }
    }

    /// Posts the messages that do not fill a slot, the last of them signalled, once.
    #[cold]
    fn post_tail(&mut self, qp: usize, lane: &Lane, sender: &Sender, slot: u32) {
        if !sender.tail_pending.swap(false, Relaxed) {
            return;
        }
        let geometry = self.geometry;
        let (first, count) = (slot * geometry.unit, sender.tail_messages.load(Relaxed));
        sender.tail_start.store(first, Relaxed);
        let mut done = 0;
        while done < count {
            let chain = geometry.post_list.min(count - done);
            let last = done + chain == count;
            let name = last.then(|| WrId::send(qp as u32, TAIL_SLOT).raw());
            if let Err(error) = self.post_verified(sender, first + done, chain, Some(name)) {
                return self.post_failed(lane, error);
            }
            done += chain;
        }
        self.posted += u64::from(count);
        if let Some(seat) = self.seats.get_mut(qp) {
            seat.tally.posted += u64::from(count);
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
        if let (Some(first), true) = (post_from, self.mode_allows_receives())
            && let Err(error) = receiver.ring.post(first)
        {
            self.refused(error.into_error(Operation::PostRecv, lane.qp.qpn()));
        }
    }

    #[inline]
    fn mode_allows_receives(&self) -> bool {
        self.trouble.refused.is_none()
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
    fn refused(&mut self, error: crate::verbs::VerbsError) {
        self.trouble.refused.get_or_insert(error);
        self.mode = Mode::Silent;
        self.shared.set_failed();
    }

    /// Takes up a phase.
    fn enter(&mut self, phase: Phase) {
        let counted = matches!(self.shared.case.stop, crate::plan::Stop::MessagesPerQp(_));
        // A session may set the next phase before it sees that the run failed in this one. Posting again
        // would then meet full queues, and hide the cause behind a refused post.
        let failed = self.shared.has_failed();
        match phase {
            Phase::Idle => {}
            Phase::Warmup => {
                if !failed {
                    self.mode = Mode::Run;
                    self.fill();
                }
            }
            Phase::Measure => {
                if counted {
                    self.open_window();
                }
                let mode = if counted { Mode::Budget } else { Mode::Run };
                if failed {
                    self.mode = Mode::Silent;
                } else if self.mode != mode {
                    self.mode = mode;
                    self.fill();
                }
                // A run by time without warm-up: filling the queues is not yet the steady state.
                if !counted {
                    self.open_window();
                }
            }
            Phase::Drain => {
                self.close_window(counted);
                self.mode = if failed { Mode::Silent } else { Mode::Close };
            }
            Phase::Abort | Phase::Exit => {
                self.close_window(counted);
                self.mode = Mode::Silent;
            }
        }
        self.publish();
        if let Some(counters) = self.shared.counters(self.spec.index) {
            counters.entered.store(phase as u32, Release);
        }
    }

    fn open_window(&mut self) {
        for (at_start, seat) in self.at_start.iter_mut().zip(&self.seats) {
            *at_start = seat.tally;
        }
        self.window = WindowMarks {
            cpu_seconds: cpu::thread_seconds(),
            polls: self.polls,
            empty_polls: self.empty_polls,
            ..WindowMarks::default()
        };
        self.measuring = true;
        let now_raw = self.shared.clock.raw();
        self.last_seen_raw = now_raw;
        self.window.start_raw = Some(now_raw);
    }

    /// `counted` runs end with their last completion, others now.
    fn close_window(&mut self, counted: bool) {
        if !self.measuring {
            return;
        }
        self.measuring = false;
        let end_raw = if counted {
            self.last_seen_raw
        } else {
            self.shared.clock.raw()
        };
        self.window.end_raw = Some(end_raw);
        self.window.cpu_seconds = cpu::thread_seconds() - self.window.cpu_seconds;
        self.window.polls = self.polls - self.window.polls;
        self.window.empty_polls = self.empty_polls - self.window.empty_polls;
        for (at_end, seat) in self.at_end.iter_mut().zip(&self.seats) {
            *at_end = seat.tally;
        }
    }

    /// Fills the send queues of this worker's QPs, a slot at a time, QPs in turn.
    fn fill(&mut self) {
        let shared = self.shared;
        let geometry = self.geometry;
        self.since_stamp = STAMP_LASTS;
        for slot in 0..geometry.slots {
            for &qp in &self.spec.lanes {
                let Some((lane, sender)) = lane_and_sender(shared, qp) else {
                    continue;
                };
                if self.mode == Mode::Silent {
                    return;
                }
                if self.mode == Mode::Budget && sender.slots_left.fetch_sub(1, Relaxed) <= 0 {
                    if slot == 0 {
                        self.post_tail(qp, lane, sender, slot);
                    }
                    continue;
                }
                self.open(qp, lane, sender, slot);
                if slot + 1 < geometry.slots && self.set_open(qp, false) {
                    self.post_rest(qp, lane, sender, slot);
                }
            }
            self.publish();
        }
    }

    fn report(self) -> WorkerReport {
        let qps = self
            .seats
            .into_iter()
            .enumerate()
            .map(|(qp, seat)| {
                let at = |tallies: &[Tally]| tallies.get(qp).copied().unwrap_or_default();
                let (start, end, now) = (at(&self.at_start), at(&self.at_end), seat.tally);
                QpReport {
                    completed: end.completed.saturating_sub(start.completed),
                    received: end.received.saturating_sub(start.received),
                    posted_in_all: now.posted,
                    received_in_all: now.received,
                    latency: seat.samples.map(Samples::into_recorder),
                }
            })
            .collect();
        WorkerReport {
            index: self.spec.index,
            core: self.spec.core,
            window_raw: self.window.start_raw.zip(self.window.end_raw),
            cpu_seconds: self.window.cpu_seconds,
            polls: self.window.polls,
            empty_polls: self.window.empty_polls,
            qps,
            trouble: self.trouble,
        }
    }
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
