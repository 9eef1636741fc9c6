//! The worker's posting: which WRs of which slot it posts, and when it records their time. `geometry` explains the
//! slots.

use std::sync::atomic::Ordering::Relaxed;

use super::super::geometry::{TAIL_SLOT, WrId};
use super::super::qp_context::{QpContext, Sender};
use super::pace::{
    CALL_WEIGHT, PACED_STAMP_ERROR_NS, PACED_STAMP_LASTS, STAMP_ERROR_NS, STAMP_LASTS,
};
use super::{Worker, feed};
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

    /// See [`Pace::measure`](super::pace::Pace::measure).
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
