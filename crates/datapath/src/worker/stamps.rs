//! What the device's stamps of completions are by the CPU's clock. The two clocks are read together once a millisecond, in
//! which those of usual devices drift apart by less than a tenth of a microsecond.

use super::super::shared::Shared;
use metrics::clock::Clock;
use metrics::histogram::{Recorder, Samples};
use verbs::{StampClock, VerbsError};

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
