//! Handling completions with stamps of the device (`--timestamps device`): a latency ends at the stamp, and the time from
//! there until the worker saw the completion is recorded apart.

use std::sync::atomic::Ordering::Relaxed;

use super::super::geometry::WrId;
use super::pace::COMPLETION_WEIGHT;
use super::{Worker, feed};
use verbs::Completion;

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
