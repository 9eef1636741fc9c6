//! The loop of a worker whose QPs are each their own source of messages: a completion posts the next on the same QP. Slots
//! are explained in `geometry`.

use std::sync::atomic::Ordering::Relaxed;

use super::super::geometry::WrId;
use super::super::qp_context::{QpContext, Sender};
use super::super::shared::Shared;
use super::pace::{CALL_WEIGHT, STAMP_LASTS};
use super::{Mode, Worker};
use verbs::Completion;

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
