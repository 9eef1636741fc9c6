//! The clock reading that posts are stamped with, and how much may be posted until the next.

use metrics::clock::Clock;

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
