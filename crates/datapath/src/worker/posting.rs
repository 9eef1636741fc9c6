//! The worker's posting: which WRs of which slot it posts, and when it records their time. `geometry` explains the
//! slots.

use std::sync::atomic::Ordering::Relaxed;

use super::super::qp_context::{QpContext, Sender};
use super::super::shared::Shared;
use super::super::wr_id::{TAIL_SLOT, WrId};
use super::pace::{CALL_WEIGHT, STAMP_ERROR_NS, STAMP_LASTS};
use super::{Mode, Worker, feed};
use verbs::{PostError, SendScratch};

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
        let geometry = self.geometry;
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
        let geometry = self.geometry;
        let first = slot * geometry.unit;
        if CONTENDED || geometry.head == geometry.unit {
            let last = self.last_chain_of_head;
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
        let geometry = self.geometry;
        let first = slot * geometry.unit + geometry.head;
        let count = geometry.unit - geometry.head;
        let last = self.last_chain_of_rest;
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
            at.store(self.stamp_raw, Relaxed);
        }
        self.post_span(qp, qp_context, sender, first + last, count - last);
    }

    /// Reads the clock again if as much was posted as one reading allows; returns whether it did.
    #[inline]
    pub(super) fn renew_stamp(&mut self) -> bool {
        let is_old = self.since_stamp >= self.stamp_lasts;
        if is_old {
            self.stamp_raw = self.shared.clock.raw();
            self.since_stamp = 0;
        }
        is_old
    }

    /// The same, which counts as a look at the CQs on a slow device. Returns whether it is one.
    #[inline]
    pub(super) fn keep_stamp(&mut self) -> bool {
        if !self.renew_stamp() {
            return false;
        }
        let slow = self.stamp_lasts < STAMP_LASTS;
        if slow {
            self.look_while_posting();
        }
        slow
    }

    /// Counts as a look at the CQs for the window: a worker that posts what it found there is not absent, though a
    /// batch may keep it for 40 ms.
    #[cold]
    fn look_while_posting(&mut self) {
        self.look(self.stamp_raw);
    }

    /// Sets how much may be posted per clock reading, from the time that posting took since the last one. A NIC takes
    /// tens of nanoseconds a call, a software device in the kernel up to a millisecond. If latency is not recorded, a
    /// fast device needs no reading between two batches.
    #[cold]
    pub(super) fn pace_stamps(&mut self) {
        self.pace_stamps_to(STAMP_ERROR_NS, STAMP_LASTS);
    }

    /// The same, for readings that are at most so old and last for at most `most`.
    #[cold]
    pub(super) fn pace_stamps_to(&mut self, error_ns: u64, most: u32) {
        let weight = u64::from(self.since_stamp);
        if weight == 0 {
            return;
        }
        let clock = &self.shared.clock;
        let took_ns = clock.ns_between(self.stamp_raw, clock.raw()).max(1);
        let lasts = (error_ns * weight / took_ns).clamp(1, most.into()) as u32;
        self.stamp_lasts = if lasts == most && !LATENCY {
            u32::MAX
        } else {
            lasts
        };
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
        let step = self.geometry.post_list;
        let mut done = 0;
        while done < count {
            let result = if VERIFY {
                post_verified(
                    &mut self.scratch,
                    sender,
                    first + done,
                    step.min(count - done),
                    None,
                )
            } else {
                sender.ring.post((first + done) as usize)
            };
            if let Err(error) = result {
                return self.post_failed(qp_context, error);
            }
            done += step;
            self.since_stamp += CALL_WEIGHT;
        }
        self.since_stamp += count;
        self.posted += u64::from(count);
        if let Some(worker_qp) = self.worker_qps.get_mut(qp) {
            worker_qp.tally.posted += u64::from(count);
        }
    }

    /// Posts what follows a completed slot in a run with a message count.
    #[inline]
    pub(super) fn spend(&mut self, qp: usize, qp_context: &QpContext, sender: &Sender, slot: u32) {
        let closed = self.close_open(qp, qp_context, sender, slot);
        if sender.slots_left.fetch_sub(1, Relaxed) > 0 {
            self.open(qp, qp_context, sender, slot);
        } else if !closed {
            self.post_tail(qp, qp_context, sender, slot);
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
        let geometry = self.geometry;
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
        self.posted += u64::from(count);
        if let Some(worker_qp) = self.worker_qps.get_mut(qp) {
            worker_qp.tally.posted += u64::from(count);
        }
    }

    /// Fills the send queues of this worker's QPs, one slot of each QP in turn.
    pub(super) fn fill(&mut self) {
        match FEED {
            feed::SOURCE => return self.fill_from_source(),
            feed::PLANNED => {
                let now_raw = self.shared.clock.raw();
                return self.paced.start(now_raw);
            }
            _ => {}
        }
        let shared = self.shared;
        let geometry = self.geometry;
        self.since_stamp = STAMP_LASTS;
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

/// Fills the payloads of one chain and posts it. With `tail`, only its last WR is signalled, with that `wr_id`.
pub(super) fn post_verified(
    scratch: &mut SendScratch,
    sender: &Sender,
    first: u32,
    count: u32,
    tail: Option<Option<u64>>,
) -> Result<(), PostError> {
    let check = sender.check.as_ref();
    sender
        .ring
        .post_edited(scratch, first as usize, count as usize, |place, edit| {
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
