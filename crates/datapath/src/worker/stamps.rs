//! What the device's stamps of completions are by the CPU's clock. The two clocks are read together once a millisecond, in
//! which those of usual devices drift apart by less than a tenth of a microsecond.

use std::sync::atomic::Ordering::Relaxed;

use metrics::clock::Clock;
use metrics::histogram::{Recorder, Samples};
use verbs::{Completion, StampClock, VerbsError};

use super::super::geometry::WrId;
use super::super::shared::Shared;
use super::posting::COMPLETION_WEIGHT;
use super::{Worker, feed};

/// For how long the clocks' readings are good.
const READINGS_LAST_NS: u64 = 1_000_000;

/// Of so many readings of both clocks the one that took the least time counts.
const READINGS: u32 = 3;

/// The device's clock beside the CPU's, and what was recorded by it.
pub(super) struct Stamps {
    device: StampClock,
    /// Units of the CPU's clock in a tick of the device's.
    raw_per_tick: f64,
    /// What both clocks said at one instant, and until when that is good.
    at_ticks: u64,
    at_raw: u64,
    good_until_raw: u64,
    notices: Samples,
}

impl Stamps {
    /// For a worker that records latencies by stamps; `None` where the flow does not ask for it.
    pub(super) fn new(shared: &Shared) -> Option<Box<Stamps>> {
        let device = shared.stamp_clock.clone()?;
        let raw_per_second = shared.clock.raw_after(0, 1_000_000_000) as f64;
        let ticks_per_second = device.khz() as f64 * 1e3;
        Some(Box::new(Stamps {
            raw_per_tick: raw_per_second / ticks_per_second,
            device,
            at_ticks: 0,
            at_raw: 0,
            good_until_raw: 0,
            notices: Samples::new(shared.digits),
        }))
    }

    /// Reads both clocks, if the last readings are old.
    pub(super) fn read_clocks(&mut self, clock: &Clock, now_raw: u64) -> Result<(), VerbsError> {
        if now_raw < self.good_until_raw {
            return Ok(());
        }
        let mut least_raw = u64::MAX;
        for _ in 0..READINGS {
            let before_raw = clock.raw();
            let ticks = self.device.read()?;
            let took_raw = clock.raw().saturating_sub(before_raw);
            if took_raw < least_raw {
                least_raw = took_raw;
                (self.at_ticks, self.at_raw) = (ticks, before_raw + took_raw / 2);
            }
        }
        self.good_until_raw = clock.raw_after(self.at_raw, READINGS_LAST_NS);
        Ok(())
    }

    /// The CPU's reading at a stamp.
    pub(super) fn raw_of(&self, stamp: u64) -> u64 {
        let ticks = self.device.ticks_between(self.at_ticks, stamp);
        let raw = (ticks as f64 * self.raw_per_tick) as i64;
        self.at_raw.saturating_add_signed(raw)
    }

    /// Records how long after a stamp the worker saw the completion.
    #[inline]
    pub(super) fn notice(&mut self, notice_ns: u64) {
        self.notices.record(notice_ns);
    }

    /// Times from the device's stamp until the worker saw the completion.
    pub(super) fn into_notices(self) -> Recorder {
        self.notices.into_recorder()
    }
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
