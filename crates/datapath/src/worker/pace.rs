//! How often the clock is read while posting.

/// The most that may be posted per clock reading: a message weighs 1 and a call [`CALL_WEIGHT`]. This is 8 calls of
/// one message, or 2 of 32.
pub(super) const STAMP_LASTS: u32 = 72;
/// The same in an open loop, where a pass posts more.
pub(super) const PACED_STAMP_LASTS: u32 = 200;
/// Weight of a call.
pub(super) const CALL_WEIGHT: u32 = 8;

/// Weight of a completion in an open loop.
pub(super) const COMPLETION_WEIGHT: u32 = 4;

/// The most that a latency may be overstated because of an old clock reading.
pub(super) const STAMP_ERROR_NS: u64 = 500;

/// The same of the times of posting in an open loop, of which lateness is made.
pub(super) const PACED_STAMP_ERROR_NS: u64 = 200;

/// Batches of completions between two measurements of the cost of posting.
pub(super) const PACE_EVERY: u32 = 64;
