//! Handling completions: counts, records and checks them, and posts what follows.

use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

use verbs::{Completion, Operation, POLL_BATCH, PostError, RecvRing};

use super::clocks::COMPLETION_WEIGHT;
use super::{Mode, Worker, feed};
use crate::geometry::{TAIL_SLOT, WrId};
use crate::{FailedCompletion, Geometry, QpContext, Receiver, Sender};

impl<'s, const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool, const FEED: u8>
    Worker<'s, VERIFY, LATENCY, CONTENDED, FEED>
{
    #[inline(always)] // as `Service::pass`, its only caller
    pub(super) fn handle(&mut self, completions: &[Completion]) {
        let seen_raw = self.begin_batch(completions);
        if FEED == feed::OWN && self.facts.posts_whole_slots && self.mode == Mode::Run {
            self.repeat(completions, seen_raw);
        } else {
            for completion in completions {
                self.keep_up();
                self.completed(completion, seen_raw);
            }
        }
        self.end_batch();
    }

    /// Counts a batch as a look at the CQs, and returns when it was seen.
    #[inline]
    pub(super) fn begin_batch(&mut self, completions: &[Completion]) -> u64 {
        let seen_raw = self.shared.clock.raw();
        self.look(seen_raw);
        self.window.seen_raw = seen_raw;
        self.window.pass_was_full |= completions.len() == POLL_BATCH;
        self.pace.set(seen_raw);
        seen_raw
    }

    #[inline]
    pub(super) fn end_batch(&mut self) {
        if self.pace.batch_ends() {
            self.measure_pace();
        }
        self.publish();
    }

    #[inline]
    pub(super) fn completed(&mut self, completion: &Completion, seen_raw: u64) {
        let id = WrId::from_raw(completion.wr_id());
        if !completion.is_success() {
            self.failed(completion, id);
        } else if id.is_receive() {
            self.received(completion, id);
            if FEED == feed::PING_PONG {
                self.came_to_receive(completion, id, seen_raw);
            }
            if FEED == feed::LOCK_STEP {
                self.came_in_step(completion, id);
            }
        } else {
            match FEED {
                feed::PING_PONG => self.left(id, seen_raw),
                feed::SOURCE => self.sent_from_source(id, seen_raw),
                feed::LOCK_STEP => self.sent_in_step(id, seen_raw),
                _ => self.sent(id, seen_raw),
            }
        }
    }

    /// Counts and records a completion of a slot, or of a tail. Returns the slot's QP once all of the slot is completed.
    #[inline]
    pub(super) fn record_sent(
        &mut self,
        id: WrId,
        seen_raw: u64,
    ) -> Option<(&'s QpContext, &'s Sender)> {
        let geometry = self.facts.geometry;
        let (qp, slot) = (id.qp(), id.slot());
        let worker_qp = self.worker_qps.get_mut(qp)?;
        let (qp_context, sender) = (worker_qp.qp_context, worker_qp.sender?);
        if slot == TAIL_SLOT {
            self.tail_sent(qp, sender);
            return None;
        }
        let messages = u64::from(geometry.signal_every);
        self.counts.completed += messages;
        worker_qp.count_completed(messages);
        if LATENCY
            && let Some(posted_at) = sender.posted_at.get(slot as usize)
            && let posted_raw = posted_at.load(Relaxed)
            && posted_raw <= self.window.record_until_raw
            && let Some(samples) = &mut worker_qp.samples
        {
            samples.record(self.shared.clock.ns_between(posted_raw, seen_raw));
        }
        let awaited = if self.facts.several_per_slot {
            take_awaited::<CONTENDED>(&geometry, sender, slot)
        } else {
            1
        };
        if self.facts.is_mixed {
            let place = (slot + 1) * geometry.completions_per_slot() - awaited;
            let bytes = sender.completion_bytes.get(place as usize);
            worker_qp.tally.completed_bytes += bytes.copied().unwrap_or(0);
        }
        if awaited > 1 {
            return None;
        }
        if VERIFY {
            self.look_at_fetched(qp, sender, slot * geometry.unit, geometry.unit);
        }
        Some((qp_context, sender))
    }

    #[cold]
    fn tail_sent(&mut self, qp: usize, sender: &Sender) {
        let count = sender.tail_messages.load(Relaxed);
        let first = sender.tail_start.load(Relaxed);
        self.counts.completed += u64::from(count);
        if let Some(worker_qp) = self.worker_qps.get_mut(qp) {
            worker_qp.count_completed(count.into());
            worker_qp.tally.completed_bytes += sender.sizes.sum(qp as u32, first, count);
        }
        if VERIFY {
            self.look_at_fetched(qp, sender, first, count);
        }
    }

    /// Counts and checks what the WRs at `count` positions from `first` fetched.
    pub(super) fn look_at_fetched(&mut self, qp: usize, sender: &Sender, first: u32, count: u32) {
        let Some(check) = &sender.check else {
            return;
        };
        let fetched = check.fetched(first, count);
        if let Some(worker_qp) = self.worker_qps.get_mut(qp) {
            worker_qp.tally.swaps_made += u64::from(fetched.swaps_made);
        }
        if let Some(mismatch) = fetched.mismatch {
            self.trouble.mismatch(mismatch);
            self.shared.set_failed();
        }
    }

    #[inline]
    pub(super) fn received(&mut self, completion: &Completion, id: WrId) {
        let Some(worker_qp) = self.worker_qps.get_mut(id.qp()) else {
            return self.received_on_srq(completion, id.slot());
        };
        let qp_context = worker_qp.qp_context;
        let Some(receiver) = &qp_context.receiver else {
            return;
        };
        let Some(ring) = &receiver.ring else {
            return;
        };
        self.counts.received += 1;
        let payload_bytes = payload_bytes(completion, self.facts.header_bytes);
        worker_qp.tally.count_received(self.facts.is_mixed, payload_bytes);
        let first = if VERIFY {
            Some(id.slot() as usize)
        } else {
            next_chain(&mut worker_qp.tally.pending_receives, ring)
        };
        if VERIFY {
            self.look_at_received(receiver, completion, ring, id.slot());
        }
        self.post_receives(ring, first, |error| {
            error.into_error(Operation::PostRecv, qp_context.qp.qpn())
        });
    }

    /// The same for a receive of the SRQ; the completion tells the QP.
    #[inline]
    fn received_on_srq(&mut self, completion: &Completion, slot: u32) {
        let shared = self.shared;
        let Some(receives) = &shared.shared_receives else {
            return;
        };
        let Some(worker_qp) =
            receives.index_of(completion.qpn()).and_then(|qp| self.worker_qps.get_mut(qp))
        else {
            return;
        };
        self.counts.received += 1;
        let payload_bytes = payload_bytes(completion, self.facts.header_bytes);
        worker_qp.tally.count_received(self.facts.is_mixed, payload_bytes);
        let receiver = worker_qp.qp_context.receiver.as_ref();
        let first = if VERIFY {
            Some(slot as usize)
        } else {
            next_chain(&mut self.worker_qps.pending_shared, &receives.ring)
        };
        if VERIFY && let Some(receiver) = receiver {
            self.look_at_received(receiver, completion, &receives.ring, slot);
        }
        self.post_receives(&receives.ring, first, |error| {
            error.into_error_for(Operation::PostSrqRecv, "the SRQ")
        });
    }

    /// Checks what came into a receive of `ring`.
    fn look_at_received(
        &mut self,
        receiver: &Receiver,
        completion: &Completion,
        ring: &RecvRing,
        slot: u32,
    ) {
        let payload_bytes = payload_bytes(completion, self.facts.header_bytes);
        let place = (slot, ring.last_lap(slot as usize));
        if let Some(check) = &receiver.check
            && let Some(mismatch) = check.check(place, payload_bytes, completion.immediate())
        {
            self.trouble.mismatch(mismatch);
            self.shared.set_failed();
        }
    }

    /// Posts the receives from `first`, if there is one.
    #[inline]
    fn post_receives(
        &mut self,
        ring: &RecvRing,
        first: Option<usize>,
        refused: impl FnOnce(PostError) -> verbs::VerbsError,
    ) {
        if let (Some(first), true) = (first, self.trouble.refused.is_none()) {
            // Without a chain one alone.
            let count = if VERIFY { 1 } else { ring.len() - first };
            match ring.post(first) {
                Ok(()) => self.counts.receives_posted += count as u64,
                Err(error) => self.refused(refused(error)),
            }
        }
    }

    /// Posts the receives that it has used up of each chain.
    #[cold]
    pub(super) fn refill(&mut self) {
        let shared = self.shared;
        for qp in 0..shared.qp_contexts.len() {
            let Some(worker_qp) = self.worker_qps.get_mut(qp) else {
                continue;
            };
            let qp_context = worker_qp.qp_context;
            let used = std::mem::take(&mut worker_qp.tally.pending_receives);
            if let Some(ring) = qp_context.receiver.as_ref().and_then(|it| it.ring.as_ref()) {
                self.post_receives(ring, last_of_chain(ring, used), |error| {
                    error.into_error(Operation::PostRecv, qp_context.qp.qpn())
                });
            }
        }
        let used = std::mem::take(&mut self.worker_qps.pending_shared);
        if let Some(receives) = &shared.shared_receives {
            self.post_receives(&receives.ring, last_of_chain(&receives.ring, used), |error| {
                error.into_error_for(Operation::PostSrqRecv, "the SRQ")
            });
        }
    }

    #[cold]
    pub(super) fn failed(&mut self, completion: &Completion, id: WrId) {
        let qp = self
            .shared
            .shared_receives
            .as_ref()
            .filter(|_| id.is_receive())
            .and_then(|receives| receives.index_of(completion.qpn()))
            .unwrap_or(id.qp());
        let qp_context = self.shared.qp_contexts.get(qp);
        self.trouble.completion(FailedCompletion {
            seen_raw: self.shared.clock.raw(),
            qp,
            qpn: qp_context.map_or(0, |qp_context| qp_context.qp.qpn()),
            op: (!id.is_receive()).then(|| self.shared.flow.op.transfer()),
            status: completion.status(),
            vendor_error: completion.vendor_error(),
            untried_packet_bytes: match self.counts.completed {
                0 => self.shared.largest_packet_bytes(),
                _ => 0,
            },
        });
        self.mode = Mode::Silent;
        self.shared.set_failed();
    }

    #[cold]
    pub(super) fn post_failed(&mut self, qp_context: &QpContext, error: PostError) {
        self.refused(error.into_error(Operation::PostSend, qp_context.qp.qpn()));
    }

    #[cold]
    pub(super) fn refused(&mut self, error: verbs::VerbsError) {
        self.trouble.refused.get_or_insert(error);
        self.mode = Mode::Silent;
        self.shared.set_failed();
    }
}

/// Bytes of a received message, without what the device put before it.
#[inline]
fn payload_bytes(completion: &Completion, header_bytes: u32) -> u32 {
    completion.byte_len().saturating_sub(header_bytes)
}

/// Counts a receive that is used up. Once all of a chain are, returns where that begins.
#[inline]
fn next_chain(pending: &mut usize, ring: &RecvRing) -> Option<usize> {
    *pending += 1;
    (*pending == ring.len()).then(|| {
        *pending = 0;
        0
    })
}

/// Where the last `used` receives of a chain begin.
fn last_of_chain(ring: &RecvRing, used: usize) -> Option<usize> {
    (used > 0).then(|| ring.len() - used)
}

/// Counts a completion of a slot that has several, and returns how many were awaited until then: 1 for the last.
#[inline]
fn take_awaited<const CONTENDED: bool>(geometry: &Geometry, sender: &Sender, slot: u32) -> u32 {
    let Some(awaited) = sender.awaited.get(slot as usize) else {
        return 1;
    };
    let left = if CONTENDED {
        awaited.fetch_sub(1, AcqRel)
    } else {
        let left = awaited.load(Relaxed);
        awaited.store(left.wrapping_sub(1), Relaxed);
        left
    };
    if left == 1 {
        awaited.store(geometry.completions_per_slot(), Release);
    }
    left
}

// Handling completions with stamps of the device (`--timestamps device`): a latency ends at the stamp, and the time from
// there until the worker saw the completion is recorded apart.

impl<const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool, const FEED: u8>
    Worker<'_, VERIFY, LATENCY, CONTENDED, FEED>
{
    /// As `handle` and `handle_planned`, of completions with stamps.
    #[inline(never)]
    pub(super) fn handle_stamped(&mut self, completions: &[Completion], stamps: &[u64]) {
        // Only CQs of a worker with stamps have them.
        let Some(mut clocks) = self.stamps.take() else {
            return;
        };
        let seen_raw = self.begin_batch(completions);
        if FEED == feed::PLANNED {
            self.pace.since_stamp = COMPLETION_WEIGHT * completions.len() as u32;
        }
        let shared = self.shared;
        let clock = &shared.clock;
        if let Err(error) = clocks.read_clocks(clock, seen_raw) {
            self.refused(error);
        }
        for (completion, &stamp) in completions.iter().zip(stamps) {
            if FEED != feed::PLANNED {
                self.keep_up();
            }
            let id = WrId::from_raw(completion.wr_id());
            let is_sent = completion.is_success() && !id.is_receive();
            let is_recorded = is_sent && self.is_recorded(id);
            let done_raw = clocks.raw_of(stamp);
            if is_recorded {
                clocks.notice(clock.ns_between(done_raw, seen_raw));
            }
            if FEED == feed::PLANNED && is_sent {
                self.sent_as_planned(id, done_raw);
            } else {
                self.completed(completion, done_raw);
            }
        }
        self.stamps = Some(clocks);
        match FEED {
            feed::PLANNED => self.publish(),
            _ => self.end_batch(),
        }
    }

    /// Whether the latency of what this completion frees will be recorded.
    fn is_recorded(&self, id: WrId) -> bool {
        let worker_qp = self.worker_qps.get(id.qp());
        let Some(sender) = worker_qp.filter(|it| it.samples.is_some()).and_then(|it| it.sender)
        else {
            return false;
        };
        let slot = id.slot() as usize;
        match FEED {
            feed::PLANNED => (sender.planned.get(slot))
                .is_some_and(|planned| planned.posted_raw.load(Relaxed) != 0),
            _ => (sender.posted_at.get(slot))
                .is_some_and(|at| at.load(Relaxed) <= self.window.record_until_raw),
        }
    }
}
