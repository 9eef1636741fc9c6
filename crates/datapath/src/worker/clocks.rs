//! The clocks of a worker: the reading of the CPU's that posts are stamped with, and how much may be posted until the next; and
//! the device's, which stamps completions.

use metrics::Clock;
use metrics::latency::Samples;
use verbs::{StampClock, VerbsError};

use crate::Shared;

/// The most that may be posted per clock reading: a message weighs 1 and a call [`CALL_WEIGHT`]. This is 8 calls of
/// one message, or 2 of 32.
pub(super) const STAMP_LASTS: u32 = 72;
/// The same in an open loop, where a pass posts more.
pub(super) const PACED_STAMP_LASTS: u32 = 200;
pub(super) const CALL_WEIGHT: u32 = 8;

/// Weight of a completion in an open loop.
pub(super) const COMPLETION_WEIGHT: u32 = 4;

/// The most that a latency may be overstated because of an old clock reading.
pub(super) const STAMP_ERROR_NS: u64 = 500;

/// The same of the times of posting in an open loop, of which lateness is made.
pub(super) const PACED_STAMP_ERROR_NS: u64 = 200;

/// Batches between two measurements of the cost of posting.
const PACE_EVERY: u32 = 64;

/// The last reading, and how long one lasts.
pub(super) struct Pace {
    pub(super) stamp_raw: u64,
    /// Weight posted since the clock was read.
    pub(super) since_stamp: u32,
    /// Weight that may be posted per reading.
    stamp_lasts: u32,
    /// Batches until the next [`measure`](Self::measure).
    batches_left: u32,
}

impl Pace {
    pub(super) fn new() -> Pace {
        Pace { stamp_raw: 0, since_stamp: STAMP_LASTS, stamp_lasts: STAMP_LASTS, batches_left: 1 }
    }

    #[inline]
    pub(super) fn set(&mut self, now_raw: u64) {
        self.stamp_raw = now_raw;
        self.since_stamp = 0;
    }

    /// Reads the clock again if as much was posted as one reading allows; returns whether it did.
    #[inline]
    pub(super) fn renew(&mut self, clock: &Clock) -> bool {
        let is_old = self.since_stamp >= self.stamp_lasts;
        if is_old {
            self.set(clock.raw());
        }
        is_old
    }

    /// Weight that may be posted before the next reading.
    #[inline]
    pub(super) fn left(&self) -> u32 {
        self.stamp_lasts.saturating_sub(self.since_stamp)
    }

    /// Whether a reading lasts for less than on a fast device.
    #[inline]
    pub(super) fn is_slow(&self) -> bool {
        self.stamp_lasts < STAMP_LASTS
    }

    /// Counts a batch; returns whether [`measure`](Self::measure) is due.
    #[inline]
    pub(super) fn batch_ends(&mut self) -> bool {
        self.batches_left -= 1;
        let is_due = self.batches_left == 0;
        if is_due {
            self.batches_left = PACE_EVERY;
        }
        is_due
    }

    /// Sets how much may be posted per clock reading, from the time that posting took since the last one. A NIC takes
    /// tens of nanoseconds a call, a software device in the kernel up to a millisecond. A reading is at most so old and
    /// lasts for at most `most`; if latency is not recorded, a fast device needs none between two batches.
    pub(super) fn measure(&mut self, clock: &Clock, error_ns: u64, most: u32, has_latency: bool) {
        let weight = u64::from(self.since_stamp);
        if weight == 0 {
            return;
        }
        let took_ns = clock.ns_between(self.stamp_raw, clock.raw()).max(1);
        let lasts = (error_ns * weight / took_ns).clamp(1, most.into()) as u32;
        self.stamp_lasts = if lasts == most && !has_latency { u32::MAX } else { lasts };
    }
}

/// For how long the clocks' readings are good.
const READINGS_LAST_NS: u64 = 1_000_000;

/// Of so many readings of both clocks the one that took the least time counts.
const READINGS: u32 = 3;

/// The device's clock beside the CPU's, and what was recorded by it. The two clocks are read together once a millisecond, in
/// which those of usual devices drift apart by less than a tenth of a microsecond.
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
    pub(super) fn into_notices(self) -> Samples {
        self.notices
    }
}
