//! The loop of a worker that is one source of WRs for its QPs (`--spread`): a completion gives a slot back, and the
//! source says on which QP the next is posted. Slots are posted whole.

use std::sync::atomic::Ordering::Relaxed;

use super::super::geometry::{TAIL_SLOT, WrId};
use super::super::source::NextSlot;
use super::pace::STAMP_LASTS;
use super::{Mode, Worker};

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
    fn post_from_source(&mut self) {
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
