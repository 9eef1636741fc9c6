//! How often the clock is read while work is posted.

/// What may be posted on one reading of the clock at most, a message weighing 1 and a call
/// [`CALL_WEIGHT`]: 8 calls of a message, or 2 of 32.
pub(super) const STAMP_LASTS: u32 = 72;
/// What a call weighs beside a message.
pub(super) const CALL_WEIGHT: u32 = 8;

/// By how much the latency of what is posted last on one reading may be told too long.
pub(super) const STAMP_ERROR_NS: u64 = 500;

/// Batches of completions after which it is found out again what posting costs.
pub(super) const PACE_EVERY: u32 = 64;
