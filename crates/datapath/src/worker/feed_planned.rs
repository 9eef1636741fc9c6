//! The loop of a worker that posts in an open loop (`--rate`): each message is posted once its planned time has come and
//! its QP's send queue has room, and completions only make room. Planned times never move.
//!
//! Slots of a QP are one WR each and are taken in the order of the ring. A slot is free while its planned time is 0: so
//! whoever polls a completion frees the slot, also where several workers share the CQ.
//!
//! A QP whose queue is full when a message is due has a backlog from then on, until no message of it is due. What a
//! message waits in a backlog is the system's; how late the worker came before is the worker's own, and so is the time for
//! which it was away while the message waited, if the queue had room when it came back.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use verbs::{Completion, POLL_BATCH};

use super::clocks::{CALL_WEIGHT, COMPLETION_WEIGHT};
use super::posting::post_verified;
use super::window::NEVER;
use super::{Mode, Worker};
use crate::Phase;
use crate::geometry::WrId;

/// The most messages that a pass posts.
const MOST_POSTS: u32 = 32;

/// The same where a CQ may hold more completions than were polled. It is below a batch, so that they are polled sooner
/// than they come: a worker that is too slow is late then, and does not find its queues full.
const MOST_POSTS_WHEN_BEHIND: u32 = POLL_BATCH as u32 / 4;

/// The most messages that are posted on one QP before another's that is due.
const LONGEST_RUN: u32 = 16;

const POST_WEIGHT: u32 = CALL_WEIGHT + 1;

/// QPs with a backlog that a pass looks at.
const MOST_LOOKS: usize = 64;

/// How long after the window what was planned in it is still posted.
const AFTER_WINDOW_NS: u64 = 1_000_000_000;

struct Posted {
    posts: u32,
    /// When its next message is planned; `None` if its queue is full.
    next_raw: Option<u64>,
}

impl<'s, const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool, const FEED: u8>
    Worker<'s, VERIFY, LATENCY, CONTENDED, FEED>
{
    #[inline(always)] // as `Service::pass`, its only caller
    pub(super) fn handle_planned(&mut self, completions: &[Completion]) {
        let seen_raw = self.begin_batch(completions);
        self.pace.since_stamp = COMPLETION_WEIGHT * completions.len() as u32;
        for completion in completions {
            let id = WrId::from_raw(completion.wr_id());
            if completion.is_success() && !id.is_receive() {
                self.sent_as_planned(id, seen_raw);
            } else {
                self.completed(completion, seen_raw);
            }
        }
        self.publish();
    }

    /// Records a completion, and frees its slot.
    #[inline(always)] // as `handle_planned`, its caller where it matters
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
        self.counts.completed += 1;
        worker_qp.count_completed(1);
        if self.facts.is_mixed {
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
            self.look_at_fetched(qp, sender, slot, 1);
        }
        planned.planned_raw.store(0, Release);
    }

    /// Posts what is due. Called once a pass, after the CQs were polled; one of them had `most_found` completions.
    #[inline(always)] // as `Service::pass`, its only caller
    pub(super) fn post_due(&mut self, most_found: usize) {
        let most_posts = if most_found < POLL_BATCH { MOST_POSTS } else { MOST_POSTS_WHEN_BEHIND };
        // The reading before a small batch of completions is still good.
        if most_found > 0 {
            self.pace.renew(&self.shared.clock);
        } else {
            self.pace.set(self.shared.clock.raw());
        }
        let now_raw = self.pace.stamp_raw;
        self.look(now_raw);
        if most_found == 0 {
            self.found_nothing(now_raw);
        }
        if !matches!(self.mode, Mode::Run | Mode::Close) {
            return;
        }
        if !self.paced.full.is_empty() {
            self.look_for_room();
        }
        let mut posts = 0;
        loop {
            let first = self.paced.next.first();
            if first.time > self.pace.stamp_raw || first.time >= self.paced.last_raw {
                break;
            }
            let run = self.post_run(first.place as usize);
            match run.next_raw {
                Some(next_raw) => self.paced.next.set(first.place, next_raw),
                None => self.paced.wait_for_room(first.place, self.pace.stamp_raw),
            }
            posts += run.posts;
            if posts >= most_posts || self.pace.stamp_raw - now_raw > self.paced.longest_raw {
                break;
            }
        }
        if posts > 0 {
            if self.pace.batch_ends() {
                self.measure_pace();
            }
            self.publish();
        }
        if self.paced.give_up_raw.is_some() {
            self.finish_backlog(now_raw);
        }
    }

    /// The same as a function, for where that is seldom.
    #[inline(never)]
    fn try_to_post(&mut self, own: usize) -> Posted {
        self.post_run(own)
    }

    /// Posts the messages of a QP that are due, up to [`LONGEST_RUN`], while it has room.
    #[inline(always)] // as `post_due`, its only caller where it matters
    fn post_run(&mut self, own: usize) -> Posted {
        self.pace.renew(&self.shared.clock);
        let stamp_raw = self.pace.stamp_raw;
        let mut run = Posted { posts: 0, next_raw: None };
        let most = (self.pace.left() / POST_WEIGHT).clamp(1, LONGEST_RUN);
        let paced = &mut self.paced;
        let Some(planned_qp) = paced.own.get_mut(own) else {
            return run;
        };
        let sender = planned_qp.sender;
        let mut planned_raw = planned_qp.schedule.next_raw();
        let (from_raw, until_raw) = (paced.from_raw, paced.until_raw);
        let due_raw = paced.last_raw.min(stamp_raw + 1);
        let are_all_in_window = from_raw <= planned_raw && due_raw <= until_raw;
        let late_until_raw = planned_qp.backlog_raw.unwrap_or(stamp_raw);
        let away_raw = planned_qp.away_raw.clone();
        let mut slot = planned_qp.slot;
        let mut sample_in = planned_qp.sample_in;
        let (mut in_window, mut waited) = (0, 0);
        let full_until_raw = planned_qp.full_until_raw;
        let mut refused = None;
        while let Some(planned) = sender.planned.get(slot as usize) {
            if planned_raw >= due_raw || run.posts == most {
                run.next_raw = Some(planned_raw);
                break;
            }
            if planned.planned_raw.load(Acquire) != 0 {
                break;
            }
            let mut posted_raw = 0;
            if are_all_in_window || (from_raw..until_raw).contains(&planned_raw) {
                in_window += 1;
                waited += u64::from(planned_raw < full_until_raw);
                if sample_in > 0 {
                    sample_in -= 1;
                } else {
                    sample_in = paced.sampling.next();
                    posted_raw = stamp_raw;
                    let clock = &self.shared.clock;
                    let mut late_ns = clock.ns_between(planned_raw, late_until_raw);
                    if planned_raw < away_raw.end {
                        late_ns += clock.ns_between(away_raw.start.max(planned_raw), away_raw.end);
                    }
                    planned_qp.lateness.record(late_ns);
                }
            }
            planned.posted_raw.store(posted_raw, Relaxed);
            planned.planned_raw.store(planned_raw, Relaxed);
            let result = if VERIFY {
                post_verified(&mut self.scratch, sender, slot, 1, None)
            } else {
                sender.ring.post(slot as usize)
            };
            slot += 1;
            if slot == self.facts.geometry.slots {
                slot = 0;
            }
            run.posts += 1;
            planned_qp.schedule.advance();
            planned_raw = planned_qp.schedule.next_raw();
            if let Err(error) = result {
                refused = Some(error);
                run.next_raw = Some(planned_raw);
                break;
            }
        }
        planned_qp.sample_in = sample_in;
        planned_qp.count((in_window, waited), stamp_raw, until_raw, &mut paced.gaps);
        if run.next_raw.is_none() {
            paced.gaps.interrupt();
        }
        if planned_raw > stamp_raw {
            planned_qp.backlog_raw = None;
            planned_qp.away_raw = 0..0;
        }
        planned_qp.slot = slot;
        planned_qp.posted += u64::from(run.posts);
        let qp_context = planned_qp.qp_context;
        self.counts.posted += u64::from(run.posts);
        self.pace.since_stamp += POST_WEIGHT * run.posts;
        if let Some(error) = refused {
            self.post_failed(qp_context, error);
        }
        run
    }

    /// Looks whether QPs whose queue was full have room, and posts where one has.
    #[cold]
    fn look_for_room(&mut self) {
        let looks = self.paced.full.len().min(MOST_LOOKS);
        for _ in 0..looks {
            let place =
                if self.paced.look_at < self.paced.full.len() { self.paced.look_at } else { 0 };
            self.paced.look_at = place + 1;
            let Some(&index) = self.paced.full.get(place) else {
                return;
            };
            self.paced.look_at(index, self.pace.stamp_raw);
            if let Some(next_raw) = self.try_to_post(index as usize).next_raw {
                self.paced.has_room(place, next_raw, self.pace.stamp_raw);
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
            _ => self.paced.last_raw.min(self.paced.until_raw).min(now_raw),
        };
        self.paced.begins_raw = NEVER;
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
        let is_late = self.paced.give_up_raw.is_some_and(|at_raw| now_raw >= at_raw);
        if self.paced.has_backlog() && !is_late {
            return;
        }
        self.give_up(now_raw);
        self.publish();
        self.has_entered(Phase::Drain);
    }

    /// Counts what was planned in the window until now and is not posted as never sent. What it has waited so far is the least
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
                if planned_raw < planned_qp.full_until_raw {
                    planned_qp.queue_full_messages += 1;
                } else {
                    planned_qp.late_with_room += 1;
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
        paced.next.clear();
        paced.last_raw = 0;
    }
}
