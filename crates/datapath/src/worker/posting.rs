//! The worker's posting: which WRs of which slot it posts, and when it records their time. `geometry` explains the
//! slots.

use std::sync::atomic::Ordering::Relaxed;

use verbs::{Completion, PostError, SendScratch};

use super::clocks::{
    CALL_WEIGHT, PACED_STAMP_ERROR_NS, PACED_STAMP_LASTS, STAMP_ERROR_NS, STAMP_LASTS,
};
use super::source::NextSlot;
use super::{Mode, Worker, feed};
use crate::geometry::{TAIL_SLOT, WrId};
use crate::{QpContext, Sender, Shared};

impl<const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool, const FEED: u8>
    Worker<'_, VERIFY, LATENCY, CONTENDED, FEED>
{
    /// Posts the rest of the slot before `slot`, if only its head is posted.
    #[inline]
    pub(super) fn close_open(
        &mut self,
        qp: usize,
        qp_context: &QpContext,
        sender: &Sender,
        slot: u32,
    ) -> bool {
        let geometry = self.facts.geometry;
        if CONTENDED || geometry.head == geometry.unit || !self.set_open(qp, false) {
            return false;
        }
        let before = geometry.before(slot);
        self.post_rest(qp, qp_context, sender, before);
        true
    }

    /// Sets whether the QP's last slot is open; returns whether it was.
    #[inline]
    pub(super) fn set_open(&mut self, qp: usize, open: bool) -> bool {
        match self.worker_qps.get_mut(qp) {
            Some(worker_qp) => std::mem::replace(&mut worker_qp.tally.open, open),
            None => false,
        }
    }

    /// Posts the head of a slot: the whole slot where slots are posted whole.
    #[inline]
    pub(super) fn open(&mut self, qp: usize, qp_context: &QpContext, sender: &Sender, slot: u32) {
        let geometry = self.facts.geometry;
        let first = slot * geometry.unit;
        if CONTENDED || geometry.head == geometry.unit {
            let last = self.facts.last_chain_of_head;
            self.post_to_signal(qp, qp_context, sender, slot, first, geometry.unit, last);
        } else {
            self.post_span(qp, qp_context, sender, first, geometry.head);
            self.set_open(qp, true);
        }
    }

    /// Posts the WRs of a slot after its head.
    #[inline]
    pub(super) fn post_rest(
        &mut self,
        qp: usize,
        qp_context: &QpContext,
        sender: &Sender,
        slot: u32,
    ) {
        let geometry = self.facts.geometry;
        let first = slot * geometry.unit + geometry.head;
        let count = geometry.unit - geometry.head;
        let last = self.facts.last_chain_of_rest;
        self.post_to_signal(qp, qp_context, sender, slot, first, count, last);
    }

    /// Posts `count` WRs that end with the slot's signalled WR. Records the time before posting the chain that
    /// contains it, which starts at the WR `last`.
    #[inline]
    #[allow(clippy::too_many_arguments)] // all but `last` name the same thing: which WRs of which QP
    pub(super) fn post_to_signal(
        &mut self,
        qp: usize,
        qp_context: &QpContext,
        sender: &Sender,
        slot: u32,
        first: u32,
        count: u32,
        last: u32,
    ) {
        if last > 0 {
            self.post_span(qp, qp_context, sender, first, last);
        }
        self.keep_stamp();
        if LATENCY && let Some(at) = sender.posted_at.get(slot as usize) {
            at.store(self.pace.stamp_raw, Relaxed);
        }
        self.post_span(qp, qp_context, sender, first + last, count - last);
    }

    /// Reads the clock again if as much was posted as one reading allows, which counts as a look at the CQs on a slow
    /// device. Returns whether it does.
    #[inline]
    pub(super) fn keep_stamp(&mut self) -> bool {
        if !self.pace.renew(&self.shared.clock) {
            return false;
        }
        let slow = self.pace.is_slow();
        if slow {
            self.look_while_posting();
        }
        slow
    }

    /// Counts as a look at the CQs for the window: a worker that posts what it found there is not absent, though a
    /// batch may keep it for 40 ms.
    #[cold]
    fn look_while_posting(&mut self) {
        self.look(self.pace.stamp_raw);
    }

    /// Measures what posting costs, by [`Pace::measure`](super::clocks::Pace::measure).
    #[cold] // keeps its arguments out of the loops
    pub(super) fn measure_pace(&mut self) {
        let (error_ns, most) = match FEED {
            feed::PLANNED => (PACED_STAMP_ERROR_NS, PACED_STAMP_LASTS),
            _ => (STAMP_ERROR_NS, STAMP_LASTS),
        };
        let clock = &self.shared.clock;
        self.pace.measure(clock, error_ns, most, LATENCY);
    }

    /// Posts `count` WRs from ring position `first`, chain by chain.
    #[inline]
    pub(super) fn post_span(
        &mut self,
        qp: usize,
        qp_context: &QpContext,
        sender: &Sender,
        first: u32,
        count: u32,
    ) {
        let step = self.facts.geometry.post_list;
        let mut done = 0;
        while done < count {
            let result = if VERIFY {
                post_verified(&mut self.scratch, sender, first + done, step.min(count - done), None)
            } else {
                sender.ring.post((first + done) as usize)
            };
            if let Err(error) = result {
                return self.post_failed(qp_context, error);
            }
            done += step;
            self.pace.since_stamp += CALL_WEIGHT;
        }
        self.pace.since_stamp += count;
        self.counts.posted += u64::from(count);
        if let Some(worker_qp) = self.worker_qps.get_mut(qp) {
            worker_qp.tally.posted += u64::from(count);
        }
    }

    /// Posts the messages that do not fill a slot, once, with the last one signalled.
    #[cold]
    pub(super) fn post_tail(
        &mut self,
        qp: usize,
        qp_context: &QpContext,
        sender: &Sender,
        slot: u32,
    ) {
        if !sender.tail_pending.swap(false, Relaxed) {
            return;
        }
        let geometry = self.facts.geometry;
        let (first, count) = (slot * geometry.unit, sender.tail_messages.load(Relaxed));
        sender.tail_start.store(first, Relaxed);
        let mut done = 0;
        while done < count {
            let chain = geometry.post_list.min(count - done);
            let last = done + chain == count;
            let name = last.then(|| WrId::send(qp as u32, TAIL_SLOT).raw());
            if let Err(error) =
                post_verified(&mut self.scratch, sender, first + done, chain, Some(name))
            {
                return self.post_failed(qp_context, error);
            }
            done += chain;
        }
        self.counts.posted += u64::from(count);
        if let Some(worker_qp) = self.worker_qps.get_mut(qp) {
            worker_qp.tally.posted += u64::from(count);
        }
    }

    pub(super) fn fill(&mut self) {
        match FEED {
            _ if self.pauses.is_some() => self.fill_with_pauses(),
            feed::SOURCE => self.fill_from_source(),
            feed::PING_PONG => self.fill_ping_pong(),
            feed::LOCK_STEP => self.take_steps(),
            feed::PLANNED => {
                let now_raw = self.shared.clock.raw();
                self.paced.start(now_raw);
            }
            _ => self.fill_own(),
        }
    }
}

/// Fills the payloads of one chain and posts it. With `tail`, only its last WR is signalled, with that `wr_id`.
pub(super) fn post_verified(
    scratch: &mut SendScratch,
    sender: &Sender,
    first: u32,
    count: u32,
    tail: Option<Option<u64>>,
) -> Result<(), PostError> {
    let check = sender.check.as_ref();
    sender.ring.post_edited(scratch, first as usize, count as usize, |place, edit| {
        if let Some(check) = check {
            let prepared = check.prepare(first + place as u32);
            if let Some(immediate) = prepared.immediate {
                edit.set_immediate(immediate);
            }
            if let Some(exchange) = prepared.exchange {
                edit.set_exchange(exchange.expected, exchange.new);
            }
        }
        if let Some(wr_id) = tail {
            edit.set_signalled(wr_id.filter(|_| place + 1 == count as usize));
        }
    })
}

// The loop of a worker whose QPs are each their own source of messages: a completion posts the next on the same QP. Slots
// are explained in `geometry`.

impl<const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool, const FEED: u8>
    Worker<'_, VERIFY, LATENCY, CONTENDED, FEED>
{
    /// A shorter form of [`Self::completed`] for slots posted by one call: records each slot and posts it again,
    /// without further checks.
    #[inline(always)] // as `handle`, its only caller
    pub(super) fn repeat(&mut self, completions: &[Completion], seen_raw: u64) {
        let unit = self.facts.geometry.unit;
        for completion in completions {
            let id = WrId::from_raw(completion.wr_id());
            let slot = id.slot();
            self.keep_up();
            let worker_qp = self.worker_qps.get_mut(id.qp());
            let Some((worker_qp, sender)) =
                worker_qp.and_then(|worker_qp| worker_qp.sender.map(|s| (worker_qp, s)))
            else {
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
                    && let Some(samples) = &mut worker_qp.samples
                {
                    samples.record(self.shared.clock.ns_between(posted_raw, seen_raw));
                }
                posted_at.store(self.pace.stamp_raw, Relaxed);
            }
            self.pace.since_stamp += unit + CALL_WEIGHT;
            worker_qp.count_completed(u64::from(unit));
            self.counts.completed += u64::from(unit);
            let qp_context = worker_qp.qp_context;
            match sender.ring.post((slot * unit) as usize) {
                Ok(()) => {
                    worker_qp.tally.posted += u64::from(unit);
                    self.counts.posted += u64::from(unit);
                }
                Err(error) => self.post_failed(qp_context, error),
            }
        }
    }

    #[inline]
    pub(super) fn sent(&mut self, id: WrId, seen_raw: u64) {
        let (qp, slot) = (id.qp(), id.slot());
        let Some((qp_context, sender)) = self.record_sent(id, seen_raw) else {
            return;
        };
        match self.mode {
            Mode::Silent => {}
            Mode::Run => {
                self.close_open(qp, qp_context, sender, slot);
                self.open(qp, qp_context, sender, slot);
            }
            Mode::Budget => self.spend(qp, qp_context, sender, slot),
            Mode::Close => {
                self.close_open(qp, qp_context, sender, slot);
            }
            Mode::Paused => {
                self.close_open(qp, qp_context, sender, slot);
                self.hold(qp, slot);
            }
        }
    }

    /// Posts what follows a completed slot in a run with a message count.
    #[inline]
    fn spend(&mut self, qp: usize, qp_context: &QpContext, sender: &Sender, slot: u32) {
        let closed = self.close_open(qp, qp_context, sender, slot);
        if sender.slots_left.fetch_sub(1, Relaxed) > 0 {
            self.open(qp, qp_context, sender, slot);
        } else if !closed {
            self.post_tail(qp, qp_context, sender, slot);
        }
    }

    /// Fills the send queues of this worker's QPs, one slot of each QP in turn.
    pub(super) fn fill_own(&mut self) {
        let shared = self.shared;
        let geometry = self.facts.geometry;
        self.pace.since_stamp = STAMP_LASTS;
        for slot in 0..geometry.slots {
            for &qp in &self.spec.qps {
                let Some((qp_context, sender)) = context_and_sender(shared, qp) else {
                    continue;
                };
                if self.mode == Mode::Silent {
                    return;
                }
                if self.mode == Mode::Budget && sender.slots_left.fetch_sub(1, Relaxed) <= 0 {
                    if slot == 0 {
                        self.post_tail(qp, qp_context, sender, slot);
                    }
                    continue;
                }
                self.open(qp, qp_context, sender, slot);
                if slot + 1 < geometry.slots && self.set_open(qp, false) {
                    self.post_rest(qp, qp_context, sender, slot);
                }
            }
            self.publish();
        }
    }
}

#[inline]
fn context_and_sender(shared: &Shared, qp: usize) -> Option<(&QpContext, &Sender)> {
    let qp_context = shared.qp_contexts.get(qp)?;
    Some((qp_context, qp_context.sender.as_ref()?))
}

// The loop of a worker that is one source of WRs for its QPs (`--spread`): a completion gives a slot back, and the
// source says on which QP the next is posted. Slots are posted whole.

impl<const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool, const FEED: u8>
    Worker<'_, VERIFY, LATENCY, CONTENDED, FEED>
{
    /// A slot, or a part of one, has completed.
    #[inline]
    pub(super) fn sent_from_source(&mut self, id: WrId, seen_raw: u64) {
        let is_whole = self.record_sent(id, seen_raw).is_some();
        if is_whole || id.slot() == TAIL_SLOT {
            self.source.completed(id.qp());
            self.post_from_source();
        }
    }

    #[inline]
    pub(super) fn post_from_source(&mut self) {
        while matches!(self.mode, Mode::Run | Mode::Budget)
            && let Some(next) = self.source.next_slot()
        {
            let worker_qp = self.worker_qps.get(next.qp);
            let Some((qp_context, sender)) =
                worker_qp.and_then(|worker_qp| Some((worker_qp.qp_context, worker_qp.sender?)))
            else {
                return;
            };
            let NextSlot { qp, slot, is_tail } = next;
            if is_tail {
                sender.tail_pending.store(true, Relaxed);
                self.post_tail(qp, qp_context, sender, slot);
            } else {
                self.open(qp, qp_context, sender, slot);
            }
        }
    }

    /// Begins to post, in a run with a message count as many messages as its QPs have together.
    #[cold]
    pub(super) fn fill_from_source(&mut self) {
        self.pace.since_stamp = STAMP_LASTS;
        let (slots, tail) = match self.mode {
            Mode::Budget => self.take_budgets(),
            _ => (u64::MAX, 0),
        };
        self.source.allow(slots.saturating_add(u64::from(tail > 0)), tail > 0);
        self.post_from_source();
        self.publish();
    }

    /// The whole slots and the rest of messages that are allowed to all QPs of this worker, which are then its own to
    /// post.
    fn take_budgets(&mut self) -> (u64, u32) {
        let unit = u64::from(self.facts.geometry.unit);
        let senders = (self.spec.qps.iter()).filter_map(|qp| self.worker_qps.get(*qp)?.sender);
        let messages = senders.clone().fold(0u64, |sum, sender| {
            let slots = sender.slots_left.swap(0, Relaxed).max(0).unsigned_abs();
            let tail = sender.tail_messages.load(Relaxed);
            sum.saturating_add(slots.saturating_mul(unit)).saturating_add(tail.into())
        });
        let tail = (messages % unit) as u32;
        for sender in senders {
            // It may be posted on any of them.
            sender.tail_messages.store(tail, Relaxed);
        }
        (messages / unit, tail)
    }
}
