//! The loop of a worker that posts in an open loop (`--rate`): each message is posted once its planned time has come and
//! its QP's send queue has room, and completions only make room. Planned times never move.
//!
//! Slots of a QP are one WR each and are taken in the order of the ring. A slot is free while its planned time is 0: so
//! whoever polls a completion frees the slot, also where several workers share the CQ.
//!
//! A QP whose queue is full when a message is due has a backlog from then on, until no message of it is due. What a
//! message waits in a backlog is the system's; how late the worker came before is the worker's own.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::super::shared::Phase;
use super::super::wr_id::WrId;
use super::pace::{CALL_WEIGHT, COMPLETION_WEIGHT, PACE_EVERY, PACED_STAMP_ERROR_NS};
use super::window::NEVER;
use super::{Mode, Worker};
use verbs::Completion;

/// The most messages that a pass posts.
const MOST_POSTS: u32 = 32;

/// QPs with a backlog that a pass looks at.
const MOST_LOOKS: usize = 64;

/// How long after the window what was planned in it is still posted.
const AFTER_WINDOW_NS: u64 = 1_000_000_000;

impl<'s, const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool, const FEED: u8>
    Worker<'s, VERIFY, LATENCY, CONTENDED, FEED>
{
    #[inline(always)] // as `Service::pass`, its only caller
    pub(super) fn handle_planned(&mut self, completions: &[Completion]) {
        let seen_raw = self.begin_batch(completions);
        self.since_stamp = COMPLETION_WEIGHT * completions.len() as u32;
        for completion in completions {
            self.completed(completion, seen_raw);
        }
        self.publish();
    }

    /// Records a completion, and frees its slot.
    #[inline]
    pub(super) fn sent_as_planned(&mut self, id: WrId, seen_raw: u64) {
        let (qp, slot) = (id.qp(), id.slot());
        let Some(worker_qp) = self.worker_qps.get_mut(qp) else {
            return;
        };
        let Some(sender) = worker_qp.sender else {
            return;
        };
        let Some(planned) = sender.planned.get(slot as usize) else {
            return;
        };
        self.completed += 1;
        worker_qp.tally.completed += 1;
        if self.is_mixed {
            let bytes = sender.completion_bytes.get(slot as usize);
            worker_qp.tally.completed_bytes += bytes.copied().unwrap_or(0);
        }
        let posted_raw = planned.posted_raw.load(Relaxed);
        if posted_raw != 0 {
            let planned_raw = planned.planned_raw.load(Relaxed);
            let clock = &self.shared.clock;
            if let Some(samples) = &mut worker_qp.samples {
                samples.record(clock.ns_between(planned_raw, seen_raw));
            }
            if let Some(Some(samples)) = self.paced.service.get_mut(qp) {
                samples.record(clock.ns_between(posted_raw, seen_raw));
            }
        }
        if VERIFY {
            self.check_reads(sender, slot, 1);
        }
        planned.planned_raw.store(0, Release);
    }

    /// Posts what is due. Called once a pass, after the CQs were polled; `has_found` if they had completions.
    #[inline(always)] // as `Service::pass`, its only caller
    pub(super) fn post_due(&mut self, has_found: bool) {
        // The reading before a small batch of completions is still good.
        if has_found {
            self.renew_stamp();
        } else {
            self.stamp_raw = self.shared.clock.raw();
            self.since_stamp = 0;
        }
        let now_raw = self.stamp_raw;
        self.look(now_raw);
        if !matches!(self.mode, Mode::Run | Mode::Close) {
            return;
        }
        if !self.paced.full.is_empty() {
            self.look_for_room();
        }
        let mut posts = 0;
        while let Some((planned_raw, planned_qp)) = self.paced.next {
            if planned_raw > self.stamp_raw || planned_raw >= self.paced.last_raw {
                break;
            }
            match self.post_planned(planned_qp as usize) {
                Some(next_raw) => self.paced.put_back(planned_qp, next_raw),
                None => self.paced.wait_for_room(planned_qp, self.stamp_raw),
            }
            posts += 1;
            if posts == MOST_POSTS || self.stamp_raw - now_raw > self.paced.longest_raw {
                break;
            }
        }
        if posts > 0 {
            self.pace_in -= 1;
            if self.pace_in == 0 {
                self.pace_in = PACE_EVERY;
                self.pace_stamps_to(PACED_STAMP_ERROR_NS);
            }
            self.publish();
        }
        if self.paced.give_up_raw.is_some() {
            self.finish_backlog(now_raw);
        }
    }

    /// The same as a function, for where that is seldom.
    #[inline(never)]
    fn try_to_post(&mut self, own: usize) -> Option<u64> {
        self.post_planned(own)
    }

    /// Posts the next message of a QP. Returns the planned time of the one after it; `None` if there was no room.
    #[inline(always)] // as `post_due`, its only caller where it matters
    fn post_planned(&mut self, own: usize) -> Option<u64> {
        self.renew_stamp();
        let stamp_raw = self.stamp_raw;
        let paced = &mut self.paced;
        let planned_qp = paced.own.get_mut(own)?;
        let (slot, sender) = (planned_qp.slot, planned_qp.sender);
        let planned_raw = planned_qp.schedule.next_raw();
        let planned = sender.planned.get(slot as usize)?;
        if planned.planned_raw.load(Acquire) != 0 {
            paced.gaps.interrupt();
            return None;
        }
        let next = slot + 1;
        planned_qp.slot = if next == self.geometry.slots { 0 } else { next };
        let mut posted_raw = 0;
        if (paced.from_raw..paced.until_raw).contains(&planned_raw) {
            planned_qp.offered += 1;
            let mut late_until_raw = stamp_raw;
            if let Some(backlog_raw) = planned_qp.backlog_raw {
                late_until_raw = backlog_raw;
                planned_qp.queue_full_messages += 1;
            } else if stamp_raw >= paced.until_raw {
                planned_qp.late_with_room += 1;
            }
            match planned_qp.sample_in {
                0 => {
                    posted_raw = stamp_raw;
                    planned_qp.sample_in = paced.sampling.next();
                    let late_ns = self.shared.clock.ns_between(planned_raw, late_until_raw);
                    planned_qp.lateness.record(late_ns);
                }
                _ => planned_qp.sample_in -= 1,
            }
            match planned_qp.backlog_raw {
                Some(_) => paced.gaps.interrupt(),
                None => paced.gaps.posted(stamp_raw),
            }
        }
        planned_qp.schedule.advance();
        let next_raw = planned_qp.schedule.next_raw();
        if planned_qp.backlog_raw.is_some() && next_raw > stamp_raw {
            planned_qp.backlog_raw = None;
        }
        planned.posted_raw.store(posted_raw, Relaxed);
        planned.planned_raw.store(planned_raw, Relaxed);
        planned_qp.posted += 1;
        self.posted += 1;
        self.since_stamp += CALL_WEIGHT + 1;
        let qp_context = planned_qp.qp_context;
        let result = match VERIFY {
            true => self.post_verified(sender, slot, 1, None),
            false => sender.ring.post(slot as usize),
        };
        if let Err(error) = result {
            self.post_failed(qp_context, error);
        }
        Some(next_raw)
    }

    /// Looks whether QPs whose queue was full have room, and posts where one has.
    #[cold]
    fn look_for_room(&mut self) {
        let looks = self.paced.full.len().min(MOST_LOOKS);
        for _ in 0..looks {
            let place = match self.paced.look_at < self.paced.full.len() {
                true => self.paced.look_at,
                false => 0,
            };
            self.paced.look_at = place + 1;
            let Some(&index) = self.paced.full.get(place) else {
                return;
            };
            if let Some(next_raw) = self.try_to_post(index as usize) {
                self.paced.has_room(place, next_raw, self.stamp_raw);
                self.paced.look_at = place;
            }
        }
    }

    /// Plans no message after the window, or from now on if that is still open. Returns whether messages planned before
    /// are still to be posted.
    #[cold]
    pub(super) fn end_schedule(&mut self) -> bool {
        let now_raw = self.shared.clock.raw();
        self.paced.last_raw = match self.paced.from_raw {
            NEVER => 0,
            _ => self.paced.until_raw.min(now_raw),
        };
        let has_backlog = self.paced.has_backlog();
        if has_backlog {
            let give_up_raw = self.shared.clock.raw_after(now_raw, AFTER_WINDOW_NS);
            self.paced.give_up_raw = Some(give_up_raw);
        }
        has_backlog
    }

    /// Ends the drain's first part, in which the backlog is posted.
    #[cold]
    fn finish_backlog(&mut self, now_raw: u64) {
        let is_late = self
            .paced
            .give_up_raw
            .is_some_and(|at_raw| now_raw >= at_raw);
        if self.paced.has_backlog() && !is_late {
            return;
        }
        self.give_up(now_raw);
        self.publish();
        self.has_entered(Phase::Drain);
    }

    /// Counts what was planned in the window and is not posted as never sent. What it has waited so far is the least
    /// that its latency can be.
    #[cold]
    pub(super) fn give_up(&mut self, now_raw: u64) {
        self.paced.give_up_raw = None;
        let paced = &mut self.paced;
        while let Some(&own) = paced.full.last() {
            paced.count_full(own, now_raw);
            paced.full.pop();
        }
        let last_raw = paced.last_raw.min(paced.until_raw).min(now_raw);
        for planned_qp in &mut paced.own {
            while planned_qp.schedule.next_raw() < last_raw {
                let planned_raw = planned_qp.schedule.next_raw();
                planned_qp.schedule.advance();
                if planned_raw < paced.from_raw {
                    continue;
                }
                planned_qp.offered += 1;
                planned_qp.never_sent += 1;
                match planned_qp.backlog_raw {
                    Some(_) => planned_qp.queue_full_messages += 1,
                    None => planned_qp.late_with_room += 1,
                }
                if planned_qp.sample_in > 0 {
                    planned_qp.sample_in -= 1;
                    continue;
                }
                planned_qp.sample_in = paced.sampling.next();
                if let Some(worker_qp) = self.worker_qps.get_mut(planned_qp.qp)
                    && let Some(samples) = &mut worker_qp.samples
                {
                    samples.record(self.shared.clock.ns_between(planned_raw, now_raw));
                }
            }
        }
        paced.next = None;
        paced.later.clear();
        paced.last_raw = 0;
    }
}
