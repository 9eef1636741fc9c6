//! The ranges that every setting must lie in, whatever the device. They keep all sums and products
//! over a case within 64 bits; what a device can do is less, and is checked when it is known.

use std::ops::RangeInclusive;

/// Queue pairs of a case.
pub const QPS: RangeInclusive<u64> = 1..=65_536;
/// Queue pairs with traffic while others are set up.
pub const TRAFFIC_QPS: RangeInclusive<u64> = 0..=65_536;
/// Payload bytes of a message: up to 1 GiB; InfiniBand's own limit is 2 GiB.
pub const SIZE_BYTES: RangeInclusive<u64> = 1..=1 << 30;
/// WRs outstanding on one queue.
pub const DEPTH: RangeInclusive<u64> = 1..=65_536;
/// Bytes sent inline.
pub const INLINE_BYTES: RangeInclusive<u64> = 0..=65_536;
/// Worker threads at each end.
pub const WORKERS: RangeInclusive<u64> = 1..=1_024;
/// Messages on each QP.
pub const ITERS: RangeInclusive<u64> = 1..=1 << 40;
/// Repetitions of each case.
pub const RUNS: RangeInclusive<u64> = 1..=1_000;
/// Entries of a CQ: `ibv_create_cq` takes a C `int`.
pub const CQ_DEPTH: RangeInclusive<u64> = 1..=i32::MAX as u64;
/// Local ACK timeout exponent.
pub const TIMEOUT: RangeInclusive<u64> = 0..=31;
/// Retry counters, three bits each.
pub const RETRIES: RangeInclusive<u64> = 0..=7;
/// RNR NAK timer code.
pub const MIN_RNR_TIMER: RangeInclusive<u64> = 0..=31;
/// READs outstanding on one QP.
pub const MAX_RD_ATOMIC: RangeInclusive<u64> = 1..=255;
/// Service level.
pub const SERVICE_LEVEL: RangeInclusive<u64> = 0..=15;
/// GRH traffic class.
pub const TRAFFIC_CLASS: RangeInclusive<u64> = 0..=255;
/// Cases of one sweep.
pub const CASES: u64 = 100_000;

/// Above this message size every WR is signalled by default, as perftest does.
pub const MODERATED_SIZE_BYTES: u32 = 8_192;
/// CQ moderation by default up to that size, as perftest does.
pub const DEFAULT_SIGNAL_EVERY: u32 = 64;
