//! The loop of a worker whose QPs each have one message under way: the initiator posts the next when the answer has come,
//! the target answers what comes. What fetches is answered by its completion. Messages have numbers where they come to
//! memory alone or may be lost (`numbered`).

use std::sync::atomic::Ordering::Relaxed;

use verbs::Completion;

use super::posting::post_verified;
use super::source::RING;
use super::{Mode, Worker};
use crate::geometry::WrId;

/// A message without an answer for so long is lost, where messages are: many times what a packet waits in any queue.
const LOST_AFTER_NS: u64 = 300_000_000;

impl<const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool, const FEED: u8>
    Worker<'_, VERIFY, LATENCY, CONTENDED, FEED>
{
    /// Begins the first turn of each QP.
    #[cold]
    pub(super) fn fill_ping_pong(&mut self) {
        let spec = self.spec;
        if !self.turns.is_target {
            spec.qps.iter().for_each(|qp| self.begin_turn(*qp));
        }
        self.publish();
    }

    /// Posts the initiator's next message, while there is one.
    #[inline]
    fn begin_turn(&mut self, qp: usize) {
        let sender = self.worker_qps.get(qp).and_then(|it| it.sender);
        let is_wanted = match (self.mode, sender) {
            (Mode::Run, _) => true,
            (Mode::Budget, Some(sender)) => sender.slots_left.fetch_sub(1, Relaxed) > 0,
            _ => false,
        };
        if is_wanted && let Some(turn) = self.turns.of_qps.get_mut(qp) {
            turn.number = turn.number.wrapping_add(1);
            self.take_turn(qp);
        }
    }

    /// Posts a message with the number of the QP's turn, or leaves it due until a WR completes.
    #[inline]
    fn take_turn(&mut self, qp: usize) {
        let (Some(worker_qp), Some(turn)) =
            (self.worker_qps.get_mut(qp), self.turns.of_qps.get_mut(qp))
        else {
            return;
        };
        turn.is_due = turn.in_queue == RING;
        let Some(sender) = worker_qp.sender.filter(|_| !turn.is_due) else {
            return;
        };
        let qp_context = worker_qp.qp_context;
        if let Some(numbered) = &qp_context.numbered {
            numbered.set(turn.number);
        }
        turn.posted_raw = self.shared.clock.raw();
        turn.is_open = !self.turns.is_target;
        self.pace.set(turn.posted_raw);
        let position = turn.position.into();
        let posted = if VERIFY {
            post_verified(&mut self.scratch, sender, position, 1, None)
        } else {
            sender.ring.post(position as usize)
        };
        match posted {
            Ok(()) => {
                (turn.position, turn.in_queue) = (RING - 1 - turn.position, turn.in_queue + 1);
                worker_qp.tally.posted += 1;
                self.counts.posted += 1;
            }
            Err(error) => self.post_failed(qp_context, error),
        }
    }

    /// A message has left: its WR is free.
    #[inline]
    pub(super) fn left(&mut self, id: WrId, seen_raw: u64) {
        let qp = id.qp();
        let Some(turn) = self.turns.of_qps.get_mut(qp) else {
            return;
        };
        turn.in_queue = turn.in_queue.saturating_sub(1);
        let is_due = turn.is_due;
        if self.turns.fetches {
            let sender = self.worker_qps.get(qp).and_then(|it| it.sender);
            if let (true, Some(sender)) = (VERIFY, sender) {
                self.look_at_fetched(qp, sender, id.slot(), 1);
            }
            self.came(qp, seen_raw);
        } else if self.turns.is_target {
            self.count_turn(qp);
        }
        if is_due {
            self.take_turn(qp);
        }
    }

    #[inline]
    fn count_turn(&mut self, qp: usize) {
        self.counts.completed += 1;
        if let Some(worker_qp) = self.worker_qps.get_mut(qp) {
            worker_qp.count_completed(1);
        }
    }

    /// A message has come to a receive.
    #[inline]
    pub(super) fn came_to_receive(&mut self, completion: &Completion, id: WrId, seen_raw: u64) {
        let receives = self.shared.shared_receives.as_ref();
        let qp = receives.map_or(Some(id.qp()), |it| it.index_of(completion.qpn()));
        if let Some(qp) = qp {
            self.came(qp, seen_raw);
        }
    }

    /// Looks at the memory of each QP; returns whether a message has come.
    #[inline]
    pub(super) fn look_at_bytes(&mut self) -> bool {
        let spec = self.spec;
        let mut found = false;
        for &qp in &spec.qps {
            let numbered = (self.worker_qps.get(qp)).and_then(|it| it.qp_context.numbered.as_ref());
            let (Some(numbered), Some(turn)) = (numbered, self.turns.of_qps.get(qp)) else {
                continue;
            };
            let is_turn = numbered.last() == turn.number;
            if is_turn != self.turns.is_target && (turn.is_open || self.turns.is_target) {
                let seen_raw = self.begin_batch(&[]);
                self.came(qp, seen_raw);
                found = true;
            }
        }
        if found {
            self.end_batch();
        }
        found
    }

    /// A message has come: the target answers it, the initiator posts the next.
    #[inline]
    fn came(&mut self, qp: usize, seen_raw: u64) {
        let (Some(worker_qp), Some(turn)) =
            (self.worker_qps.get_mut(qp), self.turns.of_qps.get_mut(qp))
        else {
            return;
        };
        let number = worker_qp
            .qp_context
            .numbered
            .as_ref()
            .map_or(turn.number, crate::layout::Numbered::last);
        if self.turns.is_target {
            turn.number = number;
            if self.trouble.refused.is_none() {
                self.take_turn(qp);
            }
            return;
        }
        // An answer that is late was counted as lost.
        if !turn.is_open || number != turn.number {
            return;
        }
        turn.is_open = false;
        if turn.posted_raw <= self.window.record_until_raw
            && let Some(samples) = &mut worker_qp.samples
        {
            let ns = self.shared.clock.ns_between(turn.posted_raw, seen_raw);
            samples.record(if self.turns.fetches { ns } else { ns / 2 });
        }
        self.count_turn(qp);
        self.begin_turn(qp);
    }

    /// Posts anew what is lost, or whose answer is; called after a pass that found nothing. It counts once as posted.
    #[cold]
    pub(super) fn look_for_lost(&mut self) {
        let clock = &self.shared.clock;
        let now_raw = self.window.attended_raw;
        self.turns.look_raw = clock.raw_after(now_raw, LOST_AFTER_NS / 10);
        let spec = self.spec;
        for &qp in &spec.qps {
            let lost = self.turns.of_qps.get_mut(qp).filter(|turn| {
                turn.is_open && clock.ns_between(turn.posted_raw, now_raw) > LOST_AFTER_NS
            });
            if let Some(turn) = lost {
                turn.is_open = false;
                turn.number = turn.number.wrapping_add(1);
                self.counts.posted -= 1;
                if matches!(self.mode, Mode::Run | Mode::Budget) {
                    self.take_turn(qp);
                }
            }
        }
        self.publish();
    }
}
