//! The worker's posting: which WRs of which slot it posts, and when it records their time. `geometry` explains the
//! slots.

use std::sync::atomic::Ordering::Relaxed;

use metrics::clock::Clock;
use verbs::{PostError, SendScratch};

use super::super::geometry::{TAIL_SLOT, WrId};
use super::super::qp_context::{QpContext, Sender};
use super::{Worker, feed};

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

    /// See [`Pace::measure`](Pace::measure).
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
            feed::SOURCE => self.fill_from_source(),
            feed::PING_PONG => self.fill_ping_pong(),
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

// The clock reading that posts are stamped with, and how much may be posted until the next.

/// The most that may be posted per clock reading: a message weighs 1 and a call [`CALL_WEIGHT`]. This is 8 calls of
/// one message, or 2 of 32.
pub(super) const STAMP_LASTS: u32 = 72;
/// The same in an open loop, where a pass posts more.
pub(super) const PACED_STAMP_LASTS: u32 = 200;
pub(super) const CALL_WEIGHT: u32 = 8;

/// Weight of a completion in an open loop.
pub(super) const COMPLETION_WEIGHT: u32 = 4;

/// The most that a latency may be overstated because of an old clock reading.
pub(super) const STAMP_ERROR_NS: u64 = 500;

/// The same of the times of posting in an open loop, of which lateness is made.
pub(super) const PACED_STAMP_ERROR_NS: u64 = 200;

/// Batches between two measurements of the cost of posting.
const PACE_EVERY: u32 = 64;

/// The last reading, and how long one lasts.
pub(super) struct Pace {
    pub(super) stamp_raw: u64,
    /// Weight posted since the clock was read.
    pub(super) since_stamp: u32,
    /// Weight that may be posted per reading.
    stamp_lasts: u32,
    /// Batches until the next [`measure`](Self::measure).
    batches_left: u32,
}

impl Pace {
    pub(super) fn new() -> Pace {
        Pace { stamp_raw: 0, since_stamp: STAMP_LASTS, stamp_lasts: STAMP_LASTS, batches_left: 1 }
    }

    #[inline]
    pub(super) fn set(&mut self, now_raw: u64) {
        self.stamp_raw = now_raw;
        self.since_stamp = 0;
    }

    /// Reads the clock again if as much was posted as one reading allows; returns whether it did.
    #[inline]
    pub(super) fn renew(&mut self, clock: &Clock) -> bool {
        let is_old = self.since_stamp >= self.stamp_lasts;
        if is_old {
            self.set(clock.raw());
        }
        is_old
    }

    /// Weight that may be posted before the next reading.
    #[inline]
    pub(super) fn left(&self) -> u32 {
        self.stamp_lasts.saturating_sub(self.since_stamp)
    }

    /// Whether a reading lasts for less than on a fast device.
    #[inline]
    pub(super) fn is_slow(&self) -> bool {
        self.stamp_lasts < STAMP_LASTS
    }

    /// Counts a batch; returns whether [`measure`](Self::measure) is due.
    #[inline]
    pub(super) fn batch_ends(&mut self) -> bool {
        self.batches_left -= 1;
        let is_due = self.batches_left == 0;
        if is_due {
            self.batches_left = PACE_EVERY;
        }
        is_due
    }

    /// Sets how much may be posted per clock reading, from the time that posting took since the last one. A NIC takes
    /// tens of nanoseconds a call, a software device in the kernel up to a millisecond. A reading is at most so old and
    /// lasts for at most `most`; if latency is not recorded, a fast device needs none between two batches.
    pub(super) fn measure(&mut self, clock: &Clock, error_ns: u64, most: u32, has_latency: bool) {
        let weight = u64::from(self.since_stamp);
        if weight == 0 {
            return;
        }
        let took_ns = clock.ns_between(self.stamp_raw, clock.raw()).max(1);
        let lasts = (error_ns * weight / took_ns).clamp(1, most.into()) as u32;
        self.stamp_lasts = if lasts == most && !has_latency { u32::MAX } else { lasts };
    }
}
